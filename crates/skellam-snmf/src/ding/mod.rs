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
    Algorithm, Axes, BlockSpec, Constraint, FitError, Frozen, Model, Settings, check_room,
};
use plca_tensor::{Data, Real};

pub(crate) use scaled::Scaled;
use steps::DingSteps;

pub use state::DingState;

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
/// This value holds the settings, which have been checked; [`Ding::builder`] makes it, [`Model::fit`] fits it.
///
/// ```
/// use plca_fit::{Model, Reconstruct};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// use skellam_snmf::Ding;
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor)?;
/// let fit = Ding::builder(1).build()?.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!((fit.state().cell(&[1, 0]) + 1.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ding<T: Real> {
    components: usize,
    settings: Settings<T>,
}

/// The settings of [`Ding`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct DingBuilder<T: Real>(Ding<T>);

plca_fit::freeze_setters!(DingBuilder);

impl<T: Real> Ding<T> {
    /// Starts the settings of a model with this number of components.
    pub fn builder(components: usize) -> DingBuilder<T> {
        DingBuilder(Self {
            components,
            settings: Settings::default(),
        })
    }
}

impl<T: Real> DingBuilder<T> {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] without components; [`FitError::Conflict`] for frozen components of the basis, whose columns are found together.
    pub fn build(self) -> Result<Ding<T>, FitError> {
        let ding = self.0;
        FitError::if_zero("components", ding.components)?;
        if !matches!(ding.settings.frozen("basis"), Frozen::No | Frozen::Whole) {
            return Err(FitError::Conflict {
                what: "the columns of `basis` are computed together: freeze all of them, or none"
                    .into(),
            });
        }
        Ok(ding)
    }
}

impl<T: Real> Model<T> for Ding<T> {
    type State = DingState<T>;

    fn components(&self) -> usize {
        self.components
    }

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        let data = Scaled::new(data)?;
        let mut specs = specs(data.values.shape(), self.components);
        self.settings.apply(&mut specs)?;
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
