//! Semi-non-negative factorization in squared error, the baseline.
//!
//! ```math
//! \begin{aligned}
//! & \min \; \lVert V - W H \rVert^2 \\
//! & H \gets H \circ \sqrt{\frac{(W^\top V)^+ + (W^\top W)^- H}{(W^\top V)^- + (W^\top W)^+ H}} \\
//! & W = V H^\top (H H^\top)^{-1}
//! \end{aligned}
//! ```
//!
//! `H ≥ 0` and `W` of any sign, by the multiplicative updates of Ding, Li, Jordan (2010). The error never grows; where it gets stuck depends on the
//! start. `[SKELLAM 12]`

mod scaled;
mod state;
mod steps;

use plca_fit::{
    Algorithm, FitError, Model, Settings,
    blocks::{Axes, BlockSpec, Constraint, Frozen, check_room},
};
use plca_tensor::{Data, Real};

pub(crate) use scaled::Scaled;
use steps::DingSteps;

pub use state::DingState;

plca_fit::settings! {
    /// Semi-non-negative matrix factorization under squared error, by the updates of Ding, Li and Jordan: a baseline.
    ///
    /// ```math
    /// V \approx W H, \qquad \text{minimise} \quad \lVert V - W H \rVert^2, \qquad H \ge 0
    /// ```
    ///
    /// `V` is the data, an `F x N` matrix of either sign. The blocks are `basis`, `W` (`F x K`, of any sign), and `activations`, `H` (`K x N`);
    /// together they have the units of the data. A start that does not give the basis has the best one for its activations, which are drawn
    /// uniformly from (0, 1).
    ///
    /// [`Ding::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use skellam_snmf::{Model, Reconstruct};
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::Ding;
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor)?;
    /// let fit = Ding::new(1).fit(&v, &mut skellam_snmf::seed(0))?;
    /// assert!((fit.state().cell(&[1, 0]) + 1.0).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Ding {}
}

plca_fit::by_name!(Ding {});

impl Settings for Ding {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components; [`FitError::Conflict`] for frozen components of the basis, whose columns are found together.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        if !matches!(self.blocks.frozen("basis"), Frozen::No | Frozen::Whole) {
            return Err(FitError::Conflict {
                what: "the columns of `basis` are computed together: freeze all of them, or none"
                    .into(),
            });
        }
        Ok(())
    }
}

impl<T: Real> Model<T> for Ding {
    type State = DingState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        let data = Scaled::new(data)?;
        let mut specs = specs(data.values.shape(), self.components);
        self.blocks.apply(&mut specs)?;
        let k = self.components;
        check_room::<T>(k, k.checked_mul(k).and_then(|n| n.checked_mul(4)))?;
        Ok(Box::new(DingSteps::new(data, specs)?))
    }
}

/// The blocks of a matrix of this shape.
fn specs<T: Real>((f, n): (usize, usize), k: usize) -> Vec<BlockSpec<T>> {
    vec![
        BlockSpec::values("basis", (f, k), Axes::factor(0), Constraint::Free),
        BlockSpec::values(
            "activations",
            (k, n),
            Axes::coefficients(1),
            Constraint::NonNegative,
        ),
    ]
}
