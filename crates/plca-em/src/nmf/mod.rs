//! Non-negative matrix factorization under the generalised Kullback-Leibler divergence.
//!
//! ```math
//! V \approx W H,
//! \qquad D = \sum \left( V \ln \frac{V}{W H} - V + W H \right)
//! ```
//!
//! `D` falls in every iteration, simultaneous or sequential:
//!
//! ```math
//! \begin{aligned}
//! H &\gets H \circ (W^\top Q) / (W^\top 1) \\
//! W &\gets W \circ (Q H^\top) / (1 H^\top) \\
//! Q &= V / (W H)
//! \end{aligned}
//! ```
//!
//! The simultaneous form takes both from one ratio `Q`, in one pass over the data; the divisors are sums of the partner, of the new `H` for
//! `W`. The sequential form takes `W` first and `H` from a fresh ratio. With hidden cells the sequential form divides by sums over the observed
//! cells, and the simultaneous one replaces hidden cells by what the model expects of them. `[SPEC 3]` `[SPEC 4]`
//!
//! A prior on the rates of a block changes what the counts are divided by: the M-step is exact, so that `D` less the log-density falls.

mod counts;
mod sequential;
mod shards;
mod state;
mod stream;

use plca_fit::{
    Algorithm, FitError, Model, Settings,
    blocks::{Axes, BlockSpec, Constraint, Draw},
    em::Em,
    units::levels,
};
use plca_tensor::{Data, Real, check_counts};

use crate::Missing;
use crate::product::conflict;
use crate::sequential::Sequential;
use counts::{NmfCounts, plan};

pub use state::NmfState;

/// The order in which `W` and `H` are updated.
///
/// ```math
/// H \gets H \circ \frac{W^\top Q}{W^\top 1}, \qquad W \gets W \circ \frac{Q H^\top}{1 H^\top}, \qquad Q = \frac{V}{W H}
/// ```
///
/// The quotients are entry by entry, `∘` multiplies entry by entry, and `1` is a matrix of ones in the shape of the data.
///
/// ```
/// use plca_em::{Nmf, Update};
/// let nmf = Nmf::new(4).update(Update::Sequential);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Update {
    /// Both from one ratio, `W` divided by the row sums of the new `H`: this is PLCA.
    #[default]
    Simultaneous,
    /// `W` first, then `H` from a fresh ratio: what most packages do. Another trajectory, the same fixed points.
    Sequential,
}

plca_fit::settings! {
    /// Non-negative matrix factorization (NMF) under the generalised Kullback-Leibler divergence.
    ///
    /// ```math
    /// V \approx W H, \qquad \text{minimise} \quad
    /// D = \sum_{i,j} \left( V_{ij} \ln \frac{V_{ij}}{(W H)_{ij}} - V_{ij} + (W H)_{ij} \right), \qquad W, H \ge 0
    /// ```
    ///
    /// `V` is the data, a non-negative `I x J` matrix; the sum runs over its observed cells. Up to a constant `D` is minus the log-likelihood
    /// of independent Poisson counts with the means `W H`; minus the log-density of the priors, such as a
    /// [`Penalty`](plca_priors::Penalty), is added. With priors `fast` is not for this model. The blocks are `w`, `W` as an `I x K`
    /// matrix, and `h`, `H` as a `K x J` matrix, in the scale of the data.
    ///
    /// [`Nmf::new`](Self::new) and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use plca_em::{Model, Nmf};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let fit = Nmf::new(2).fit(&v, &mut plca_em::seed(0))?;
    /// assert!(fit.objective() < 1e-3);                                    // two components are enough
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Nmf, priors "" {
        /// The form of the updates (default: simultaneous on complete data, sequential where cells are hidden).
        pub update: Option<Update> = None, some Update;
        /// The treatment of hidden cells (default: multiplicative, or imputation with simultaneous updates). The multiplicative one makes the updates
        /// sequential on complete data too.
        pub missing: Option<Missing> = None, some Missing;
    }
}

impl Nmf {
    /// What entries of the two factors are drawn around, for data of this shape and sum.
    fn scale(&self, shape: &[usize], total: f64) -> Result<Vec<f64>, FitError> {
        let &[rows, columns] = shape else {
            let order = shape.len();
            return conflict(format!("NMF is for matrices, the data have order {order}"));
        };
        // E[W H] is K times the product of what both are drawn around.
        let cells = rows as f64 * columns as f64;
        Ok(levels(total / cells / self.components as f64, 2))
    }

    /// The blocks for data of this shape, drawn around a scale each.
    fn drawn_around<T: Real>(
        &self,
        scale: Vec<f64>,
        shape: &[usize],
    ) -> Result<Vec<BlockSpec<T>>, FitError> {
        let mut specs = specs([shape[0], shape[1]], self.components);
        for (spec, scale) in specs.iter_mut().zip(scale) {
            spec.draw = Draw::Around(scale);
        }
        self.blocks.apply(&mut specs)?;
        Ok(specs)
    }

    /// Whether one iteration takes both factors from one ratio.
    fn is_simultaneous(&self, complete: bool) -> bool {
        match (self.update, self.missing) {
            // On complete data too: whether a cell is hidden should not change the form of the updates.
            (Some(Update::Sequential), _) | (_, Some(Missing::Multiplicative)) => false,
            (Some(Update::Simultaneous), _) | (_, Some(Missing::Imputation)) => true,
            (None, None) => complete,
        }
    }
}

plca_fit::by_name!(Nmf {
    update: ["update", "FORM", "Solver", "Form of the update: simultaneous or sequential [default: simultaneous]"];
    missing: crate::plca::MISSING;
});

plca_fit::choices!(Update {
    "simultaneous" = Update::Simultaneous: "Of nmf-kl: both blocks from the same counts";
    "sequential" = Update::Sequential: "Of nmf-kl: one block after the other";
});

impl Settings for Nmf {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components, [`FitError::Conflict`] for updates and a treatment of hidden cells that do not go together.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        match (self.update, self.missing) {
            (Some(Update::Simultaneous), Some(Missing::Multiplicative)) => {
                conflict("masked multiplicative updates have the sequential form only")
            }
            (Some(Update::Sequential), Some(Missing::Imputation)) => {
                conflict("imputation of hidden cells has the simultaneous form only")
            }
            _ => Ok(()),
        }
    }
}

impl<T: Real> Model<T> for Nmf {
    type State = NmfState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        check_counts(data)?;
        let scale = self.scale(data.shape(), data.total())?;
        let specs = self.drawn_around(scale, data.shape())?;
        let counts = NmfCounts {
            data,
            complete: data.is_complete(),
            self_information: data.self_information_in(data.unit())?,
            plan: plan(self, &specs),
            specs,
        };
        Ok(match self.is_simultaneous(data.is_complete()) {
            true => Box::new(Em(counts)),
            false => Box::new(Sequential(Em(counts))),
        })
    }
}

/// The blocks of a matrix of this shape.
fn specs<T: Real>([rows, columns]: [usize; 2], k: usize) -> Vec<BlockSpec<T>> {
    let rates = |name, shape, axes| BlockSpec {
        constraint: Constraint::NonNegative,
        ..BlockSpec::simplex(name, shape, axes)
    };
    vec![
        rates("w", (rows, k), Axes::factor(0)),
        rates("h", (k, columns), Axes::coefficients(1)),
    ]
}
