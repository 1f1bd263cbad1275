//! What is maximised, and how it is computed.

/// The objective if mass of the model can lie outside the data; of no effect if all supports are valid. `[SPEC 5.2]`
///
/// ```math
/// \begin{aligned}
/// & \text{conditional:} & \sum_x V[x] \ln P(x) - v \ln \sum_x P(x) \\
/// & \text{literal:} & \sum_x V[x] \ln P(x)
/// \end{aligned}
/// ```
///
/// `x` runs over the window of the data `V`, and `v` is their sum.
///
/// ```
/// use plca_em::{Likelihood, Shifted, Support};
/// let as_in_the_paper = Shifted::new(3, vec![20]).support(Support::Full).likelihood(Likelihood::Literal);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Likelihood {
    /// `Σ V ln P - v ln Σ_window P`: the data are a window cut from a longer record.
    #[default]
    Conditional,
    /// `Σ V ln P`: there is nothing outside, mass there is lost.
    Literal,
}

/// The arithmetic of the E-step. All ways give the same counts except for rounding.
///
/// ```
/// use plca_em::{Evaluation, Shifted};
/// let by_transforms = Shifted::new(3, vec![64, 64]).evaluation(Evaluation::Fft);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Evaluation {
    /// The one that should be fastest.
    #[default]
    Auto,
    /// The sums as they are written.
    Direct,
    /// The same sums over the cells that are not 0 or hidden alone: time and memory do not depend on the other cells. Good with few
    /// of them.
    Sparse,
    /// Copies stacked side by side and matrix products: good with many unshifted cells.
    Matrix,
    /// Fourier transforms along one or two shifted dimensions: good with large kernels.
    Fft,
}
