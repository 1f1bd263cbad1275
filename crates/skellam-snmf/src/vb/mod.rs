//! Semi-NMF under the Skellam law, by variational Bayes.
//!
//! ```math
//! \text{maximise} \quad \frac{\mathrm{ELBO}}{M}
//! \quad \text{over} \quad q(T) = \prod \mathrm{Dirichlet}(\hat\alpha),
//! \quad q(H) = \prod \mathrm{Gamma}(\hat s, \text{rate } \hat b)
//! ```
//!
//! Each iteration renews both posteriors from one pass over the data, with the geometric means of the old ones. No iteration lowers the
//! bound. `[SKELLAM 6]`, `[SKELLAM 7]`

mod counts;
mod select;
mod shards;
mod start;
mod state;
mod transform;

use plca_fit::{
    Algorithm, FitError, Model, Settings,
    blocks::{Axes, BlockSpec, Constraint, Draw, Frozen},
    em::Em,
    setting::BlockSettings,
};
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Real};

use crate::check::check_numbers;
use crate::posterior::least_shape;
use crate::signed::SignedData;
use crate::snmf::around;
use crate::{Entries, Prior, Replicates};
use counts::VbCounts;
pub(crate) use counts::shapes;
use start::Started;

pub use select::{Candidate, select_components};
pub use state::SnmfVbState;

plca_fit::settings! {
    /// Factorization of a matrix of either sign under the Skellam law, by variational Bayes: the model `V ~ (T⁺ - T⁻) H` of
    /// [`Snmf`](crate::Snmf), but it fits a distribution over the factors instead of one value of them.
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
    /// `V` is the data, `F x N`, `L_fit` the log-likelihood of [`Replicates`] over the observed cells, and `p` the prior. Expectations are
    /// under `q`. The other sums run over all cells, hidden ones too. The objective is a lower bound of the log-evidence (ELBO), divided by the
    /// number of replicates.
    ///
    /// | block | shape | what |
    /// |---|---|---|
    /// | `atoms_shape` | `2F x K` | the Dirichlet shapes `α̂` of `T⁺`, and below them those of `T⁻` |
    /// | `activations_shape` | `K x N` | the gamma shapes `ŝ` of `H` |
    /// | `activations_rate` | `K x N` | the gamma rates `b̂` of `H`; `1 / b̂` has the units of the data |
    ///
    /// A start that gives only `atoms_shape` begins with the prior of the activations. In any other start, blocks that are not given come from
    /// one update, begun at random factors.
    ///
    /// Cost: an iteration is one pass over the data, as one of [`Snmf`](crate::Snmf).
    ///
    /// [`SnmfVb::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::SnmfVb;
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor)?;
    /// let vb = SnmfVb::new(1);
    /// let fit = vb.fit(&v, &mut skellam_snmf::seed(0))?;
    /// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
    /// let means = fit.state().means()?;
    /// assert!(means.signed_atoms()[0] > 0.0 && means.activations()[1] > means.activations()[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct SnmfVb, priors "_shape" {
        /// The number `M` of replicated draws (default: [`Auto`](Replicates::Auto), for real data with noise).
        pub replicates: Replicates = Replicates::default();
        /// Whether data of which `M V` is not whole are accepted with finite `M` too (default: no): factorials become gamma functions. No effect in the limit.
        pub real_data: bool = false;
        priors: Prior = Prior { rate: Entries::All(1e-3), ..Prior::flat() }, own;
    }
}

/// The names of the blocks.
pub(crate) const NAMES: [&str; 3] = ["atoms_shape", "activations_shape", "activations_rate"];

impl SnmfVb {
    /// Sets the priors of atoms and activations (default: all shapes 1, all rates 0.001), such as those that a [`Learner`](crate::Learner)
    /// has learnt. Every rate must be positive. Shapes must be at least 1e-150, in `f32` at least 1e-19: smaller ones are refused when the
    /// model meets data.
    pub fn priors(mut self, priors: Prior) -> Self {
        self.priors = priors;
        for block in NAMES {
            self.blocks.without_prior(block);
        }
        self
    }

    /// The blocks for data of this shape.
    fn specs<T: Real>(&self, shape: (usize, usize)) -> Result<Vec<BlockSpec<T>>, FitError> {
        let mut specs = specs(shape, self.components);
        self.blocks.apply_frozen(&mut specs)?;
        let priors = self.laws();
        priors.check_shape(shape, self.components)?;
        priors.check_least(least_shape::<T>())?;
        Ok(specs)
    }

    /// The priors of atoms and activations.
    fn laws(&self) -> Prior {
        self.priors.clone().with(&self.blocks).0
    }

    fn on_cells<T: Real>(&self, cells: Signed<T>) -> Result<Started<T>, FitError> {
        let specs = self.specs(cells.shape())?;
        let data = SignedData::new(cells, self.replicates, self.real_data)?;
        Ok(Started(Em(VbCounts {
            specs: drawn(specs, data.size, data.cells.observed()),
            prior: self.laws(),
            is_shard: false,
            held: None,
            data,
        })))
    }
}

plca_fit::by_name!(SnmfVb {
    replicates: crate::replicates::M;
    real_data: crate::replicates::REAL_DATA;
});

impl Settings for SnmfVb {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] for 0 components or replicates; [`FitError::Prior`] for a prior that is no law of its block; [`FitError::Range`] for a shape or
    /// rate of the prior that is not positive and finite; [`FitError::Conflict`] unless the same part of `activations_shape` and `activations_rate` is frozen.
    fn check(&self) -> Result<(), FitError> {
        check_numbers(self.components, self.replicates)?;
        check_laws(&self.blocks)?;
        let laws = self.laws();
        laws.check()?;
        laws.check_proper()?;
        check_frozen(NAMES.map(|name| self.blocks.frozen(name)))
    }
}

impl<T: Real> Model<T> for SnmfVb {
    type State = SnmfVbState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        Ok(Box::new(self.on_cells(Signed::new(data)?)?))
    }
}

/// Refuses priors that are no laws of atoms or activations.
pub(crate) fn check_laws(blocks: &BlockSettings) -> Result<(), FitError> {
    for (block, prior) in blocks.priors() {
        let checked = match block {
            "activations_shape" => prior.gamma().map(drop),
            _ => prior.shapes().map(drop),
        };
        checked.map_err(|source| FitError::Prior {
            block: block.trim_end_matches("_shape").into(),
            source,
        })?;
    }
    Ok(())
}

/// Refuses to freeze a part of a law: the entries of an atom have one law, shape and rate of an activation another.
pub(crate) fn check_frozen([atoms, shape, rate]: [&Frozen; 3]) -> Result<(), FitError> {
    let what = match (atoms, shape == rate) {
        (Frozen::Entries(_), _) => format!(
            "the entries of a column of `{}` have a joint distribution: freeze all of the block, or whole components",
            NAMES[0]
        ),
        (_, false) => format!("`{}` and `{}` are frozen together", NAMES[1], NAMES[2]),
        _ => return Ok(()),
    };
    Err(FitError::Conflict { what })
}

/// Blocks that are drawn as factors of data with this sum of absolute values over this number of cells: one update makes a start of them.
fn drawn<T: Real>(mut specs: Vec<BlockSpec<T>>, size: f64, observed: usize) -> Vec<BlockSpec<T>> {
    specs[0].draw = Draw::Sides;
    specs[1].draw = around(size, observed, &specs);
    specs[2].draw = Draw::Even;
    specs
}

/// The blocks of a matrix of this shape. Rates follow from the prior.
fn specs<T: Real>((f, n): (usize, usize), k: usize) -> Vec<BlockSpec<T>> {
    let [atoms, shape, rate] = NAMES;
    let positive = |name, shape, axes| BlockSpec::values(name, shape, axes, Constraint::Positive);
    vec![
        positive(atoms, (2 * f, k), Axes::sides(0)),
        positive(shape, (k, n), Axes::coefficients(1)),
        BlockSpec {
            follows: true,
            ..positive(rate, (k, n), Axes::coefficients(1))
        },
    ]
}
