//! Semi-NMF under the Skellam law, by variational Bayes.
//!
//! ```math
//! \text{maximise} \quad \frac{\mathrm{ELBO}}{M}
//! \quad \text{over} \quad q(T) = \prod \mathrm{Dirichlet}(\hat\alpha),
//! \quad q(H) = \prod \mathrm{Gamma}(\hat s, \text{rate } \hat b)
//! ```
//!
//! Each iteration takes both posteriors from one pass over the data under their geometric means. No iteration lowers the bound.
//! `[SKELLAM 6]`, `[SKELLAM 7]`

mod counts;
mod select;
mod start;
mod state;
mod transform;

use plca_fit::{Algorithm, Axis, BlockSpec, Constraint, Em, FitError, Model, Settings};
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Real};

use crate::check::check_numbers;
use crate::posterior::least_shape;
use crate::signed::{SignedData, law_setters};
use crate::{Entries, Prior, Replicates};
use counts::VbCounts;
use start::Bound;

pub use select::{Candidate, select_components};
pub use state::SnmfVbState;

/// Factorization of a matrix of either sign under the Skellam law, by variational Bayes: the model of [`Snmf`](crate::Snmf), with a
/// distribution of its factors in place of the best ones.
///
/// ```math
/// \begin{aligned}
/// & q(T) = \prod_k \mathrm{Dirichlet}(\hat\alpha_k), \qquad q(H) = \prod_{k,n} \mathrm{Gamma}(\hat s_{kn}, \text{rate } \hat b_{kn}) \\
/// & \text{maximise} \quad L_\mathrm{fit}(V; \tilde L^+, \tilde L^-) + \sum_{f,n} (\tilde L^+ + \tilde L^-)
///   - \sum_{k,n} \frac{\hat s}{\hat b} - \mathrm{KL}(q \,\Vert\, p) \\
/// & \text{where} \quad \tilde L^\pm = e^{E[\ln T^\pm]} \, e^{E[\ln H]}
/// \end{aligned}
/// ```
///
/// `V` is the data, `F x N`, `Lfit` the likelihood of [`Replicates`], `p` the prior, and the expectations are those under `q`. The
/// objective is a lower bound of the log-evidence, divided by the number of replicates. The blocks are `atoms_shape`, the Dirichlet shapes
/// `α̂` of `T⁺` above those of `T⁻` (`2F x K`), and `activations_shape` and `activations_rate`, `ŝ` and `b̂` of `H` (`K x N`; `1 / b̂` has
/// the units of the data). A start that gives `atoms_shape` alone has the prior of the activations; the blocks that other starts do not
/// give are those of an update from drawn factors.
///
/// This value holds the settings, which have been checked; [`SnmfVb::builder`] makes it, [`Model::fit`] fits it.
///
/// ```
/// use plca_fit::Model;
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// use skellam_snmf::SnmfVb;
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor)?;
/// let vb = SnmfVb::builder(1).build()?;
/// let fit = vb.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
/// let means = fit.state().means()?;
/// assert!(means.signed_atoms()[0] > 0.0 && means.activations()[1] > means.activations()[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SnmfVb<T: Real> {
    components: usize,
    replicates: Replicates,
    real_data: bool,
    priors: Prior,
    settings: Settings<T>,
}

/// The settings of [`SnmfVb`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct SnmfVbBuilder<T: Real>(SnmfVb<T>);

law_setters!(SnmfVbBuilder);
plca_fit::freeze_setters!(SnmfVbBuilder);

/// The names of the blocks.
const NAMES: [&str; 3] = ["atoms_shape", "activations_shape", "activations_rate"];

impl<T: Real> SnmfVb<T> {
    /// Starts the settings of a model of so many components.
    pub fn builder(components: usize) -> SnmfVbBuilder<T> {
        SnmfVbBuilder(Self {
            components,
            replicates: Replicates::default(),
            real_data: false,
            priors: Prior {
                rate: Entries::All(1e-3),
                ..Prior::flat()
            },
            settings: Settings::default(),
        })
    }

    fn on_cells(&self, cells: Signed<T>) -> Result<Bound<T>, FitError> {
        let mut specs = specs(cells.shape(), self.components);
        self.settings.apply(&mut specs)?;
        let priors = &self.priors;
        priors.check_shape(cells.shape(), self.components)?;
        priors.check_least(least_shape::<T>())?;
        Ok(Bound(Em(VbCounts {
            prior: priors.clone(),
            data: SignedData::new(cells, self.replicates, self.real_data)?,
            specs,
        })))
    }
}

impl<T: Real> SnmfVbBuilder<T> {
    /// Sets the priors of atoms and activations (default: shapes 1, rates 0.001), such as those that a [`Learner`](crate::Learner) has learnt.
    /// Every rate must be positive. Shapes from 1e-150 up can be fitted, from 1e-19 in `f32`.
    pub fn priors(mut self, priors: Prior) -> Self {
        self.0.priors = priors;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] without components or replicates; [`FitError::Range`] for a hyperparameter outside its range, a rate of 0 among
    /// them, which has no bound; [`FitError::Conflict`] where of shapes and rates of the activations not the same is frozen.
    pub fn build(self) -> Result<SnmfVb<T>, FitError> {
        let vb = self.0;
        check_numbers(vb.components, vb.replicates)?;
        vb.priors.check()?;
        vb.priors.check_proper()?;
        if vb.settings.frozen(NAMES[1]) != vb.settings.frozen(NAMES[2]) {
            return Err(FitError::Conflict {
                what: format!("`{}` and `{}` are frozen together", NAMES[1], NAMES[2]),
            });
        }
        Ok(vb)
    }
}

impl<T: Real> Model for SnmfVb<T> {
    type Scalar = T;
    type State = SnmfVbState<T>;

    fn components(&self) -> usize {
        self.components
    }

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        Ok(Box::new(self.on_cells(Signed::new(data)?)?))
    }
}

/// The blocks of a matrix of this shape. Rates follow from the prior.
fn specs<T: Real>((f, n): (usize, usize), k: usize) -> Vec<BlockSpec<T>> {
    let [atoms, shape, rate] = NAMES;
    let positive = |name, shape, axis| BlockSpec::values(name, shape, axis, Constraint::Positive);
    vec![
        positive(atoms, (2 * f, k), Axis::Columns),
        positive(shape, (k, n), Axis::Rows),
        BlockSpec {
            follows: true,
            ..positive(rate, (k, n), Axis::Rows)
        },
    ]
}
