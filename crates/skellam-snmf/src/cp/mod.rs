//! Tensors of either sign: a sum of rank-one terms whose factor of one mode has two sides.
//!
//! ```math
//! V[f,i,j,\dots] \sim \mathrm{Sk} \left(
//!   \sum_k w_k T^+[f,k] B[i,k] C[j,k] \cdots, \;
//!   \sum_k w_k T^-[f,k] B[i,k] C[j,k] \cdots
//! \right)
//! ```
//!
//! The EM of `[SKELLAM 5]` on the tensor unfolded along its signed mode, in which the counts of the activations `w_k B[i,k] C[j,k] …` are shared out
//! over their factors. Activations exist for some columns at a time.

mod bound;
mod counts;
mod form;
mod others;
mod priors;
mod slabs;
mod state;
mod transform;
mod unfold;
mod vb;

use plca_fit::{Algorithm, Axes, BlockSpec, Constraint, Em, FitError, Frozen, Model, Settings};
use plca_priors::PriorSpec;
use plca_tensor::{Data, Real};

use crate::bounds::Bounds;
use crate::check::check_numbers;
use crate::prior::Parts;
use crate::rule::Split;
use crate::signed::law_setters;
use crate::{Entries, Replicates};
use counts::{CpCounts, carrier};
pub(crate) use priors::Shapes;
use slabs::Slabs;
use unfold::Folding;

pub use state::SignedCpState;
pub use vb::{SignedCpVb, SignedCpVbBuilder, SignedCpVbState};

/// Factorization of a tensor of either sign into rank-one terms whose factor of one mode is signed, under the Skellam law.
///
/// ```math
/// \begin{aligned}
/// & V \sim \mathrm{Sk}(L^+, L^-), \qquad L^\pm[f,i,j,\dots] = \sum_k w_k \, T^\pm[f,k] \, B[i,k] \, C[j,k] \cdots \\
/// & \text{maximise} \quad L_\mathrm{fit}(V; L^+, L^-)
/// \end{aligned}
/// ```
///
/// `V` is the data, `f` the index of the signed mode, of `F`, and `Lfit` the likelihood of [`Replicates`], to which the log-density of the
/// priors is added. The blocks are `atoms`, `T⁺` above `T⁻` (`2F x K`, columns sum to 1), `weights`, `w` (`K x 1`, in the units of the
/// data), and `factor_j` for every other mode `j`, counted from 0: its size `x K`, columns sum to 1. With a
/// [mode of the scale](SignedCpBuilder::scale_mode) there are no weights, and its factor is in the units of the data.
///
/// This value holds the settings, which have been checked; [`SignedCp::builder`] makes it, [`Model::fit`] fits it.
///
/// ```
/// use plca_fit::{Model, Reconstruct};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// use skellam_snmf::SignedCp;
/// let values = vec![2.0, 4.0, 1.0, 2.0, -4.0, -8.0, -2.0, -4.0];       // rank one in every mode
/// let v = DenseTensor::<f64>::new(vec![2, 2, 2], values, Order::RowMajor)?;
/// let fit = SignedCp::builder(1).build()?.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!((fit.state().factor(2)[1] - 2.0 / 3.0).abs() < 1e-2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SignedCp<T: Real> {
    components: usize,
    replicates: Replicates,
    real_data: bool,
    signed_mode: usize,
    scale_mode: Option<usize>,
    /// Priors of variational Bayes that are laid out as posteriors.
    parts: Parts,
    /// Flat priors are in the objective too.
    constants: bool,
    settings: Settings<T>,
}

/// The settings of [`SignedCp`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct SignedCpBuilder<T: Real>(SignedCp<T>);

law_setters!(SignedCpBuilder);
plca_fit::freeze_setters!(SignedCpBuilder);

impl<T: Real> SignedCp<T> {
    /// Starts the settings of a model with this number of components.
    pub fn builder(components: usize) -> SignedCpBuilder<T> {
        SignedCpBuilder(Self {
            components,
            replicates: Replicates::default(),
            real_data: false,
            signed_mode: 0,
            scale_mode: None,
            parts: Parts::default(),
            constants: false,
            settings: Settings::default(),
        })
    }

    fn on_cells(&self, cells: Slabs<T>) -> Result<Em<CpCounts<T>>, FitError> {
        let scale = self.scale_mode;
        cells.folding.check_scale(scale)?;
        let mut specs = specs(&cells.folding, self.components, scale);
        self.settings.apply(&mut specs)?;
        if self.has_laws() {
            priors::apply(&self.settings, &mut specs)?;
        }
        cells.check(self.replicates, self.real_data)?;
        let (size, largest) = cells.sizes();
        let noise = self.replicates.noise(size, cells.observed());
        Ok(Em(CpCounts {
            split: Split::new::<T>(self.replicates, largest).with_noise(noise),
            bounds: match noise > 0.0 && self.is_bounded(&specs) {
                true => cells.bounds(scale),
                false => Bounds::None,
            },
            cells,
            size,
            scale,
            specs,
            noise,
        }))
    }

    /// Whether what carries the scale is to be bounded under noise: not where a prior is on it.
    fn is_bounded(&self, specs: &[BlockSpec<T>]) -> bool {
        if specs[carrier(specs)].frozen == Frozen::Whole {
            return false;
        }
        match self.settings.prior_of(&specs[carrier(specs)].name) {
            Some(PriorSpec::Gamma(shape, rate)) => {
                (shape, rate) == (&Entries::All(1.0), &Entries::All(0.0))
            }
            prior => prior.is_none(),
        }
    }

    /// Whether any block has a law, so that all have.
    fn has_laws(&self) -> bool {
        self.constants || self.settings.priors().any(|(_, prior)| is_law(prior))
    }
}

/// Whether a prior is one of the laws whose constants are in the objective.
fn is_law(prior: &PriorSpec) -> bool {
    matches!(prior, PriorSpec::Dirichlet(_) | PriorSpec::Gamma(..))
}

/// Setters of builders that are a newtype of [`SignedCp`]; the text is the default of the priors.
macro_rules! cp_setters {
    ($builder:ident, $suffix:literal, $default:literal) => {
        impl<T: Real> $builder<T> {
            /// Sets the mode whose factor has two sides, counted from 0 (default: the first).
            pub fn signed_mode(mut self, mode: usize) -> Self {
                self.0.signed_mode = mode;
                self
            }

            /// Lets the factor of a mode carry the scale (default: none, the weights do). With two modes that is the model of a matrix.
            pub fn scale_mode(mut self, mode: Option<usize>) -> Self {
                self.0.scale_mode = mode;
                self
            }

            #[doc = concat!("Puts a prior on a block; a later one replaces an earlier one (default: ", $default, "). Dirichlet laws are for `atoms`, of both sides as they stand in the block, and `factor_j`, gamma laws for `weights`, or the factor of the mode of the scale. With a law on any block the objective has the constants of all of them, of flat ones too. `[EXT 6]`")]
            pub fn prior(mut self, block: impl Into<String>, prior: impl Into<PriorSpec>) -> Self {
                let (mut block, prior) = (block.into(), prior.into());
                if block.starts_with("atoms") {
                    self.0.parts.atoms = None;
                } else if matches!(prior, PriorSpec::Gamma(..)) {
                    self.0.parts.activations = None;
                }
                if !block.ends_with($suffix) {
                    block.push_str($suffix);
                }
                self.0.settings.prior(block, prior);
                self
            }
        }
    };
}
pub(crate) use cp_setters;

cp_setters!(SignedCpBuilder, "", "flat");

impl<T: Real> SignedCpBuilder<T> {
    /// Gives all blocks flat priors where they have none, whose constants are part of the objective.
    pub fn with_constants(mut self) -> Self {
        self.0.constants = true;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] without components or replicates.
    pub fn build(self) -> Result<SignedCp<T>, FitError> {
        let cp = self.0;
        check_numbers(cp.components, cp.replicates)?;
        Ok(cp)
    }
}

impl<T: Real> Model<T> for SignedCp<T> {
    type State = SignedCpState<T>;

    fn components(&self) -> usize {
        self.components
    }

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        let cells = Slabs::new(data, self.signed_mode, self.components)?;
        Ok(Box::new(self.on_cells(cells)?))
    }
}

/// The blocks of tensors of this shape; the factor of the mode of the scale stands in for weights.
fn specs<T: Real>(folding: &Folding, k: usize, scale: Option<usize>) -> Vec<BlockSpec<T>> {
    let atoms = BlockSpec::simplex(
        "atoms",
        (2 * folding.rows(), k),
        Axes::sides(folding.mode()),
    );
    let rates = Constraint::NonNegative;
    let weights = BlockSpec::values("weights", (k, 1), Axes::WEIGHTS, rates);
    let weights = scale.is_none().then_some(weights);
    let factor = |(j, n)| match Some(j) == scale {
        true => BlockSpec::values(format!("factor_{j}"), (n, k), Axes::factor(j), rates),
        false => BlockSpec::simplex(format!("factor_{j}"), (n, k), Axes::factor(j)),
    };
    let factors = folding.others().map(factor);
    std::iter::once(atoms)
        .chain(weights)
        .chain(factors)
        .collect()
}
