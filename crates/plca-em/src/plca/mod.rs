//! Symmetric PLCA of any order: the components are the latent classes `z`, given which the modes are independent.
//!
//! ```math
//! P(x) = \sum_z P(z) \prod_j P(x_j \mid z)
//! ```
//!
//! Its likelihood `Σ_x V[x] ln P(x)` rises in every iteration of expectation-maximisation:
//!
//! ```math
//! \begin{aligned}
//! & \text{E-step:}
//!   & C_j[i,z] &= \sum_{x : x_j = i} V[x] \, P(z \mid x),
//!   & P(z \mid x) &= \frac{P(z) \prod_j P(x_j \mid z)}{P(x)} \\
//! & \text{M-step:}
//!   & P(z) &= \frac{n_z}{\sum_{z'} n_{z'}},
//!   & P(x_j = i \mid z) &= \frac{C_j[i,z]}{n_z},
//!   \qquad n_z = \sum_i C_j[i,z]
//! \end{aligned}
//! ```
//!
//! One pass over the data gives the counts `C_j` of all modes. A prior changes the M-step of its block; hidden cells are replaced by what
//! the model expects of them. `[LV eq. 11-14]`

mod counts;
mod multiplicative;
mod shards;
mod state;
mod stream;

use plca_fit::{
    Algorithm, FitError, Model, Settings,
    blocks::{Axes, BlockSpec, Draw, Frozen},
    em::Em,
};
use plca_tensor::{Data, Real, check_counts};

use crate::product::{check_power, conflict};
use crate::sequential::Sequential as Multiplicative;
use counts::PlcaCounts;

pub use state::PlcaState;

/// The treatment of hidden cells; of no effect on complete data.
///
/// ```math
/// \begin{aligned}
/// & \text{imputation:} & \text{hidden } V[x] &= P(x) \, \frac{\sum_\text{obs} V}{\sum_\text{obs} P} \quad \text{in the E-step} \\
/// & \text{multiplicative:} & F_j[i,z] &\gets F_j[i,z] \, \frac{C_j[i,z]}{X_j[i,z]}
/// \end{aligned}
/// ```
///
/// `P` is the model and `F_j` its factor of mode `j`. `C_j` are the counts expected of the observed cells, `X_j` the mass that the model
/// has there, both in the shape of `F_j`.
///
/// Both reach the same optima. The simultaneous form is that of imputation [SPEC 4]: that is the default of PLCA, whose updates
/// treat all modes alike. KL-NMF takes the multiplicative updates, which are sequential, unless it is told otherwise.
///
/// ```
/// use plca_em::{Missing, Plca, Settings};
/// let plca = Plca::new(3).missing(Missing::Multiplicative);
/// assert!(plca.temper(0.9).check().is_err());                     // these updates know no tempering
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Missing {
    /// Imputation EM: hidden cells are replaced by their expectation. Any order, any prior.
    #[default]
    Imputation,
    /// Masked multiplicative updates, block after block: fewer iterations; matrices without priors.
    Multiplicative,
}

plca_fit::settings! {
    /// Probabilistic latent component analysis (PLCA) of data of any order: a mixture of products of distributions, one for every mode.
    ///
    /// ```math
    /// \begin{aligned}
    /// P(x) &= \sum_z P(z) \prod_j P(x_j \mid z) \\
    /// & \text{maximise} \quad \sum_x V[x] \ln P(x) - v \ln \sum_x P(x), \qquad v = \sum_x V[x]
    /// \end{aligned}
    /// ```
    ///
    /// `V` is the data, non-negative, of shape `I_0 x I_1 x …`; `x` runs over its observed cells, `z` over the `K` components. The second term
    /// of the objective is 0 on complete data; the log-density of the priors is added. The blocks are `weights`, `P(z)` as a column of `K`, and
    /// `factor_0`, `factor_1`, …, `P(x_j | z)` as an `I_j x K` matrix for every mode; all columns sum to 1.
    ///
    /// [`Plca::new`](Self::new) and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use plca_em::{Model, Plca};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let fit = Plca::new(1).fit(&v, &mut plca_em::seed(0))?;
    /// assert!((fit.state().factor(1)[(0, 0)] - 0.5).abs() < 1e-12);       // one component: the marginals
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Plca, priors "" {
        /// The power in `(0, 1]` that the factors are raised to in the E-step (default 1; below 1 it is tempered EM, which flattens the posteriors).
        pub temper: f64 = 1.0;
        /// Whether `P(z)` is raised to the tempering power too (default: no, as in the original tempered EM).
        pub temper_prior: bool = false;
        /// The treatment of hidden cells (default: imputation).
        pub missing: Missing = Missing::default();
    }
}

impl Plca {
    /// Whether blocks can be renewed one after the other, each at its optimum with the others fixed.
    fn is_sequential(&self) -> bool {
        let whole = |name: &str| *self.blocks.frozen(name) == Frozen::Whole;
        let free = |name: &str| *self.blocks.frozen(name) == Frozen::No;
        let one = free("factor_0") && whole("factor_1") || whole("factor_0") && free("factor_1");
        let blocks = one || free("factor_0") && free("factor_1");
        !self.blocks.has_priors() && self.temper == 1.0 && free("weights") && blocks
    }
}

plca_fit::by_name!(Plca {
    temper: TEMPER;
    temper_prior: ["temper_prior", "", "Solver", "Also raises P(z) to the tempering power"];
    missing: MISSING;
});

/// Of all models that temper.
pub(crate) const TEMPER: [&str; 4] = [
    "temper",
    "B",
    "Solver",
    "Tempered EM: power B in (0, 1] of the E-step [default: 1]",
];

/// Of all models that have both treatments.
pub(crate) const MISSING: [&str; 4] = [
    "missing_method",
    "HOW",
    "Solver",
    "Missing cells [default: imputation; nmf-kl: multiplicative]\n\nHow EM treats missing cells.",
];

plca_fit::choices!(Missing {
    "multiplicative" = Missing::Multiplicative: "";
    "imputation" = Missing::Imputation: "";
});

impl Settings for Plca {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components or for a tempering power outside `(0, 1]`, [`FitError::Conflict`] for multiplicative updates
    /// together with priors, tempering, frozen weights or components, or both factors frozen.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        check_power(self.temper)?;
        if self.missing == Missing::Multiplicative && !self.is_sequential() {
            return conflict(
                "the multiplicative treatment of missing cells cannot be combined with priors, tempering, frozen weights, frozen components or two frozen factors",
            );
        }
        Ok(())
    }
}

impl<T: Real> Model<T> for Plca {
    type State = PlcaState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        check_counts(data)?;
        let counts = PlcaCounts::new(self, data)?;
        if self.missing == Missing::Imputation || data.is_complete() {
            return Ok(Box::new(Em(counts)));
        }
        match data.shape().len() {
            2 => Ok(Box::new(Multiplicative(Em(counts)))),
            order => conflict(format!(
                "multiplicative updates are for matrices, the data have order {order}"
            )),
        }
    }
}

/// The blocks of PLCA: `K x 1` weights and `I_j x K` factors.
fn specs<T: Real>(shape: &[usize], k: usize) -> Vec<BlockSpec<T>> {
    let mut weights = BlockSpec::simplex("weights", (k, 1), Axes::WEIGHTS);
    weights.draw = Draw::Even;
    let factor = |(j, &n)| BlockSpec::simplex(format!("factor_{j}"), (n, k), Axes::factor(j));
    let factors = shape.iter().enumerate().map(factor);
    std::iter::once(weights).chain(factors).collect()
}
