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

use plca_fit::{
    Algorithm, FitError, Model, Settings,
    blocks::{Axes, BlockSpec, Constraint, Frozen},
    em::Em,
};
use plca_priors::PriorSpec;
use plca_tensor::{Data, Real};

use crate::bounds::Bounds;
use crate::check::check_numbers;
use crate::rule::Split;
use crate::{Entries, Replicates};
use counts::{CpCounts, carrier};
pub(crate) use priors::Shapes;
use slabs::Slabs;
use unfold::Folding;

pub use state::SignedCpState;
pub use vb::{SignedCpVb, SignedCpVbState};

plca_fit::settings! {
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
    /// [mode of the scale](SignedCp::scale_mode()) there are no weights, and its factor is in the units of the data.
    ///
    /// Dirichlet laws are for `atoms`, of both sides as they stand in the block, and `factor_j`, gamma laws for `weights`, or the factor of the mode of the
    /// scale. With a law on any block the objective has the constants of all of them, of flat ones too. `[EXT 6]`
    ///
    /// [`SignedCp::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use skellam_snmf::{Model, Reconstruct};
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::SignedCp;
    /// let values = vec![2.0, 4.0, 1.0, 2.0, -4.0, -8.0, -2.0, -4.0];       // rank one in every mode
    /// let v = DenseTensor::<f64>::new(vec![2, 2, 2], values, Order::RowMajor)?;
    /// let fit = SignedCp::new(1).fit(&v, &mut skellam_snmf::seed(0))?;
    /// assert!((fit.state().factor(2)[1] - 2.0 / 3.0).abs() < 1e-2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct SignedCp, priors "" {
        /// The number `M` of replicated draws (default: [`Auto`](Replicates::Auto), for real data with noise).
        pub replicates: Replicates = Replicates::default();
        /// Whether data of which `M V` is not whole are accepted with finite `M` too (default: no): factorials become gamma functions. No effect in the limit.
        pub real_data: bool = false;
        /// The mode whose factor has two sides, counted from 0 (default: the first).
        pub signed_mode: usize = 0;
        /// The mode whose factor carries the scale (default: none, the weights do). With two modes that is the model of a matrix.
        pub scale_mode: Option<usize> = None;
        /// Whether blocks without a prior have a flat one, whose constants are part of the objective (default: no).
        pub with_constants: bool = false;
    }
}

impl SignedCp {
    fn on_cells<T: Real>(&self, cells: Slabs<T>) -> Result<Em<CpCounts<T>>, FitError> {
        let scale = self.scale_mode;
        cells.folding.check_scale(scale)?;
        let mut specs = specs(&cells.folding, self.components, scale);
        self.blocks.apply(&mut specs)?;
        if self.has_laws() {
            priors::apply(&self.blocks, &mut specs)?;
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
    fn is_bounded<T: Real>(&self, specs: &[BlockSpec<T>]) -> bool {
        if specs[carrier(specs)].frozen == Frozen::Whole {
            return false;
        }
        match self.blocks.prior_of(&specs[carrier(specs)].name) {
            Some(PriorSpec::Gamma(shape, rate)) => {
                (shape, rate) == (&Entries::All(1.0), &Entries::All(0.0))
            }
            prior => prior.is_none(),
        }
    }

    /// Whether any block has a law, so that all have.
    fn has_laws(&self) -> bool {
        self.with_constants || self.blocks.priors().any(|(_, prior)| is_law(prior))
    }
}

/// Whether a prior is one of the laws whose constants are in the objective.
fn is_law(prior: &PriorSpec) -> bool {
    matches!(prior, PriorSpec::Dirichlet(_) | PriorSpec::Gamma(..))
}

plca_fit::by_name!(SignedCp {
    replicates: crate::replicates::M;
    real_data: crate::replicates::REAL_DATA;
    signed_mode: SIGNED_MODE;
    scale_mode: SCALE_MODE;
});

/// Of both models of tensors.
pub(crate) const SIGNED_MODE: [&str; 4] = [
    "signed_mode",
    "D",
    "Model",
    "The dimension whose factor is signed [default: 0]",
];
pub(crate) const SCALE_MODE: [&str; 4] = [
    "scale_mode",
    "R",
    "Model",
    "Dimension whose factor holds the scale [default: none, weights do]",
];

impl Settings for SignedCp {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components or replicates.
    fn check(&self) -> Result<(), FitError> {
        check_numbers(self.components, self.replicates)
    }
}

impl<T: Real> Model<T> for SignedCp {
    type State = SignedCpState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
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
