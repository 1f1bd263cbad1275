//! Asymmetric PLSA: every given index `y` is a mixture of the components' distributions over the explained mode.
//!
//! ```math
//! P(x \mid y) = \sum_z P(x \mid z) \, P(z \mid y)
//! ```
//!
//! The likelihood `Σ V[x,y] ln P(x | y)` rises in every iteration of expectation-maximisation:
//!
//! ```math
//! \begin{aligned}
//! & \text{E-step:}
//!   & C[x,y,z] &= V[x,y] \, P(z \mid x,y),
//!   & P(z \mid x,y) &= \frac{P(x \mid z) \, P(z \mid y)}{P(x \mid y)} \\
//! & \text{M-step:}
//!   & P(x \mid z) &\propto \sum_y C[x,y,z],
//!   & P(z \mid y) &\propto \sum_x C[x,y,z]
//! \end{aligned}
//! ```
//!
//! Hidden cells are replaced by what the model expects of them, of every `y` in the scale of what was observed of it. `[LV eq. 10]`
//! `[SPEC 2]`

mod counts;
mod shards;
mod state;
mod stream;

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, FitError, Model, Settings,
    blocks::{Axes, BlockSpec, Frozen},
    em::Em,
    setting::{Setting, SettingValue},
};
use plca_tensor::{Cp, Data, Factor, Real};

use crate::product::check_power;
use counts::PlsaCounts;
pub(crate) use counts::check_order;

pub use state::PlsaState;

/// The mode of the matrix that is given; the other one is explained.
///
/// ```
/// use plca_em::Given;
/// assert_eq!((Given::Columns.explained(), Given::Columns.mode()), (0, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Given {
    /// `P(x_1 | x_0)`: mixtures belong to rows.
    Rows,
    /// `P(x_0 | x_1)`: mixtures belong to columns (the usual form: columns are documents or time frames).
    #[default]
    Columns,
}

impl Given {
    /// The mode that is given, 0 or 1; the other one is explained.
    ///
    /// ```
    /// assert_eq!(plca_em::Given::Rows.mode(), 0);
    /// ```
    pub fn mode(self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Columns => 1,
        }
    }

    /// The mode that is explained.
    ///
    /// ```
    /// assert_eq!(plca_em::Given::Rows.explained(), 1);
    /// ```
    pub fn explained(self) -> usize {
        1 - self.mode()
    }

    /// The axes of basis and mixture.
    pub(crate) fn axes(self) -> (Axes, Axes) {
        (
            Axes::factor(self.explained()),
            Axes::coefficients(self.mode()),
        )
    }
}

plca_fit::settings! {
    /// Probabilistic latent semantic analysis (PLSA) of a matrix: every column (or row) is a mixture of the same few distributions.
    ///
    /// ```math
    /// \begin{aligned}
    /// P(x \mid y) &= \sum_z P(x \mid z) \, P(z \mid y) \\
    /// & \text{maximise} \quad \sum_{x,y} V[x,y] \ln P(x \mid y) - \sum_y v_y \ln \sum_x P(x \mid y), \qquad v_y = \sum_x V[x,y]
    /// \end{aligned}
    /// ```
    ///
    /// `V` is the data, non-negative; `x` is the index that is explained, of `I`, `y` the given one, of `J`, and `z` runs over the `K`
    /// components. The sums run over the observed cells, so the second term of the objective is 0 on complete data; the log-density of the
    /// priors is added. The blocks are `basis`, `P(x | z)` as an `I x K` matrix, `mixture`, `P(z | y)` as a `K x J` matrix, and `marginal`,
    /// `P(y)` as a column of `J`, which comes from the data; all columns sum to 1.
    ///
    /// [`Plsa::new`](Self::new) and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use plca_em::{Model, Plsa};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let fit = Plsa::new(2).fit(&v, &mut plca_em::seed(0))?;
    /// assert_eq!(fit.state().marginal(), [0.5, 0.5]);                     // both columns sum to 3
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Plsa, priors "" {
        /// The mode that is given (default: the columns).
        pub given: Given = Given::default();
        /// The power in `(0, 1]` that both blocks are raised to in the E-step (default 1; below 1 it is tempered EM, which flattens the posteriors).
        pub temper: f64 = 1.0;
    }
}

plca_fit::by_name!(Plsa {
    given: GIVEN;
    temper: crate::plca::TEMPER;
});

/// Of PLSA by EM and by variational Bayes.
pub(crate) const GIVEN: [&str; 4] = [
    "given",
    "D",
    "Model",
    "Dimension of samples or documents, y of P(z | y) [default: 1]",
];

/// The dimension, 0 or 1.
impl Setting for Given {
    const WHOLE: bool = true;

    fn of(value: &SettingValue) -> Result<Self, String> {
        match usize::of(value)? {
            0 => Ok(Self::Rows),
            1 => Ok(Self::Columns),
            d => Err(format!("{d} is not in 0..=1")),
        }
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        let value = usize::words(words).map_err(|_| format!("{words} is not in 0..=1"))?;
        Self::of(&value).map(|_| value)
    }
}

impl Settings for Plsa {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components or for a tempering power outside `(0, 1]`.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        check_power(self.temper)
    }
}

impl<T: Real> Model<T> for Plsa {
    type State = PlsaState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        Ok(Box::new(Em(PlsaCounts::new(self, data)?)))
    }
}

/// The blocks of PLSA for these numbers of explained and given indices.
fn specs<T: Real>(mode: Given, [explained, given]: [usize; 2], k: usize) -> Vec<BlockSpec<T>> {
    let mut marginal = BlockSpec::simplex("marginal", (given, 1), Axes::numbers(mode.mode()));
    marginal.frozen = Frozen::Whole;
    let (basis, mixture) = mode.axes();
    vec![
        BlockSpec::simplex("basis", (explained, k), basis),
        BlockSpec::simplex("mixture", (k, given), mixture),
        marginal,
    ]
}

/// The factors of both modes.
fn factors<'a, T: Real>(
    given: Given,
    basis: &'a DMatrix<T>,
    mixture: &'a DMatrix<T>,
) -> [Factor<'a, T>; 2] {
    let mut factors = [Factor::Columns(basis), Factor::Rows(mixture)];
    if given == Given::Rows {
        factors.reverse();
    }
    factors
}

pub(crate) fn with_model<T: Real, O>(
    given: Given,
    basis: &DMatrix<T>,
    mixture: &DMatrix<T>,
    f: impl FnOnce(&Cp<'_, T>) -> O,
) -> O {
    f(&Cp {
        weights: None,
        factors: &factors(given, basis, mixture),
    })
}
