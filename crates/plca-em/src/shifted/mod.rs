//! Shift-invariant PLCA of any order.
//!
//! ```math
//! P(x) = \sum_z P(z) \sum_t K(t \mid z) \, H(x - t + o \mid z)
//! ```
//!
//! Every component is a kernel, placed wherever its impulse is positive. Each dimension may be shifted or not: a kernel as long as the data does
//! not move along that dimension, a kernel of extent 1 is an ordinary factor's index. `[SI eq. 6-15]`
//!
//! The likelihood `Σ_x V[x] ln P(x)` rises in every iteration of expectation-maximisation, with `Q = V / P`:
//!
//! ```math
//! \begin{aligned}
//! K(t \mid z) &\propto K(t \mid z) \sum_x Q[x] \, H(x - t + o \mid z) \\
//! H(h \mid z) &\propto H(h \mid z) \sum_t Q[h + t - o] \, K(t \mid z) \\
//! P(z) &= \frac{n_z}{\sum_{z'} n_{z'}}
//! \end{aligned}
//! ```

pub(crate) mod evaluate;
pub(crate) mod geometry;
pub(crate) mod model;
mod options;
mod shares;
mod state;
mod window;

use plca_fit::{Algorithm, Anneal, FitError, Model, Settings, em::Em};
use plca_tensor::{Data, Real, check_counts};

use self::model::{Evaluator, Layout};
use crate::placed::{
    Placed, check_powers, even_where_convex, is_conditional, likelihood_fact, numbers, specs,
};
use crate::product::conflict;

pub use geometry::{Geometry, Support};
pub use options::{Evaluation, Likelihood};
pub use state::ShiftedState;

plca_fit::settings! {
    /// Shift-invariant PLCA of data of any order: every component is a kernel that is placed wherever its impulse is positive.
    ///
    /// ```math
    /// \begin{aligned}
    /// P(x) &= \sum_z P(z) \sum_t K(t \mid z) \, H(x - t + o \mid z) \\
    /// & \text{maximise} \quad \sum_x V[x] \ln P(x) - v \ln \sum_x P(x), \qquad v = \sum_x V[x]
    /// \end{aligned}
    /// ```
    ///
    /// `V` is the data, non-negative; `x` runs over its observed cells, `t` over the cells of a kernel, and `o` is the
    /// [offset](Geometry::offset). The second term of the objective is 0 where all kernels lie inside complete data, and is left out under
    /// [`Likelihood::Literal`]; the log-density of the priors is added. The blocks are `weights`, `P(z)` as a column of `K` numbers, `kernels`,
    /// a column for each component with the cells of its kernel in row-major order, and `impulses`, the same of the places; all columns sum to
    /// 1.
    ///
    /// [`Shifted::new`](Self::new) and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use plca_em::{Model, Shifted};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// // The pattern 1 3, twice.
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let fit = Shifted::new(1, vec![2]).fit(&v, &mut plca_em::seed(2))?;
    /// // A kernel of 2 cells, an impulse over the 5 places where it fits.
    /// assert_eq!((fit.state().kernels().shape(), fit.state().impulses().shape()), ((2, 1), (5, 1)));
    /// assert!((fit.state().kernels().sum() - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "SI-PLCA")]
    pub struct Shifted(kernel: Vec<usize>), priors "" {
        /// Where kernels may lie, dimension by dimension, or the same along all of them (default: inside the data).
        pub supports: Vec<Support> = vec![Support::default()];
        /// The arithmetic of the E-step (default: whichever should be fastest).
        pub evaluation: Evaluation = Evaluation::default();
        /// The likelihood of models whose mass can lie outside the data (default: the likelihood given the data's window).
        pub likelihood: Likelihood = Likelihood::default();
        /// A power that the kernels are raised to, which grows to 1 (default: none). `[SPEC 5.3]`
        pub anneal: Option<Anneal> = None, some Anneal;
        /// A power of at least 1 that the impulses are raised to (default: none). `[SPEC 5.3]`
        pub impulse_power: Option<Anneal> = None, some Anneal;
    }
}

impl Shifted {
    /// Where kernels may lie, the same along every dimension: [`supports`](Self::supports()) of one.
    pub fn support(self, support: Support) -> Self {
        self.supports(vec![support])
    }

    /// Shapes of kernels and impulses on data of a shape.
    ///
    /// # Errors
    ///
    /// Those of [`Settings::check`]; [`FitError::DataShape`] for data of another order or smaller than a kernel, [`FitError::Data`] for more cells than 32
    /// bits can number.
    ///
    /// # Examples
    ///
    /// ```
    /// let shifted = plca_em::Shifted::new(2, vec![9, 9]);
    /// assert_eq!(shifted.geometry(&[60, 60])?.impulse_cells(), 52 * 52);
    /// assert!(shifted.geometry(&[60, 8]).is_err());
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn geometry(&self, data: &[usize]) -> Result<Geometry, FitError> {
        self.check()?;
        Geometry::new(data, &self.kernel, &self.supports)
    }

    fn on_data<'a, T: Real>(
        &self,
        data: &'a dyn Data<T>,
    ) -> Result<Placed<'a, T, Evaluator<T>>, FitError> {
        self.check()?;
        check_counts(data)?;
        let geometry = self.geometry(data.shape())?;
        let conditional = is_conditional(self.likelihood, !geometry.is_valid(), data)?;
        if self.evaluation == Evaluation::Fft && !cfg!(feature = "fft") {
            return conflict("`Evaluation::Fft` without the feature `fft`");
        }
        let k = self.components;
        let mut specs = specs(geometry.cells(), k);
        self.blocks.apply(&mut specs)?;
        even_where_convex(&mut specs);
        let facts = facts(&geometry, self.likelihood);
        let layout = Layout::new(geometry);
        let evaluator = Evaluator::new(layout, self.likelihood, self.evaluation, k, data)?;
        Ok(Placed {
            data,
            evaluator,
            conditional,
            specs,
            powers: [self.anneal, self.impulse_power],
            facts,
        })
    }
}

plca_fit::by_name!(Shifted {
    kernel: KERNEL_EXTENTS;
    supports: ["domain", "WHERE", "Model", "Where kernels may lie: one value, or one per dimension [default: valid]"];
    likelihood: LIKELIHOOD;
    anneal: ANNEAL;
    impulse_power: IMPULSE_POWER;
});

/// Of all models of placed kernels.
#[doc(hidden)]
pub const KERNEL_EXTENTS: [&str; 4] = [
    "kernel",
    "k0xk1x…",
    "Model",
    "Extent of the kernels along each dimension [default: as in --init]\n\nA kernel as large as the data along a dimension is not shifted along it.",
];
#[doc(hidden)]
pub const LIKELIHOOD: [&str; 4] = [
    "likelihood",
    "WHICH",
    "Model",
    "Outside the data: conditional or literal [default: conditional]\n\nWhich likelihood is maximised where kernels may extend beyond the data.",
];
#[doc(hidden)]
pub const ANNEAL: [&str; 4] = [
    "anneal",
    "ALPHA0,T",
    "Model",
    "Power of the kernels, from ALPHA0 in (0, 1] to 1 in T iterations",
];
#[doc(hidden)]
pub const IMPULSE_POWER: [&str; 4] = [
    "impulse_power",
    "A[,T]",
    "Model",
    "Power A >= 1 of the impulses; with T it falls to 1 in T iterations",
];

plca_fit::choices!(Likelihood {
    "conditional" = Likelihood::Conditional: "The data are a window of a longer record";
    "literal" = Likelihood::Literal: "There is nothing outside the data";
});

plca_fit::choices!(Support {
    "valid" = Support::Valid: "Kernels lie inside the data";
    "same" = Support::Same: "Kernels may extend beyond the far border";
    "full" = Support::Full: "Kernels may extend beyond both borders";
});

impl Settings for Shifted {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components, for a kernel without extent, a power out of range or one that lasts no time;
    /// [`FitError::Conflict`] for another number of supports than dimensions.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        check_powers(self.anneal, self.impulse_power)?;
        let extended = !self.kernel.contains(&0);
        FitError::unless(extended, "kernel", 0.0, "extents of at least 1")?;
        let (supports, order) = (self.supports.len(), self.kernel.len());
        if supports != 1 && supports != order {
            return conflict(format!(
                "{supports} supports for kernels of {order} dimensions: expected one for all dimensions, or one for each"
            ));
        }
        Ok(())
    }
}

impl<T: Real> Model<T> for Shifted {
    type State = ShiftedState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        Ok(Box::new(Em(self.on_data(data)?)))
    }
}

const SHAPE: &str = "shape";
const KERNEL: &str = "kernel";
const PLACES: &str = "places";
const SUPPORTS: &str = "supports";
const ALL: [Support; 3] = [Support::Valid, Support::Same, Support::Full];

/// What a state remembers: the shapes of data, kernels and impulses, where these may lie as places in [`ALL`], and the likelihood.
fn facts(geometry: &Geometry, likelihood: Likelihood) -> Vec<(&'static str, Vec<f64>)> {
    let supports = geometry.supports().into_iter();
    let supports = supports.map(|s| ALL.iter().position(|&other| other == s).unwrap_or(0));
    vec![
        (SHAPE, numbers(geometry.data_shape())),
        (KERNEL, numbers(geometry.kernel_shape())),
        (PLACES, numbers(geometry.impulse_shape())),
        (SUPPORTS, numbers(&supports.collect::<Vec<_>>())),
        likelihood_fact(likelihood),
    ]
}
