//! The reported objective beside its definition.

use plca_tensor::CompensatedSum;

use super::{Law, Violation};
use crate::{Fit, Parameters, State};

/// A sum term by term, and the sum of what the terms are made of: how exactly such a sum can be known.
///
/// ```
/// use plca_fit::laws::Terms;
/// let terms: Terms = [3.0, -1.0].into_iter().collect();
/// assert_eq!((terms.sum(), terms.size()), (2.0, 4.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    sum: CompensatedSum,
    size: CompensatedSum,
}

impl Terms {
    /// Adds a term.
    pub fn add(&mut self, term: f64) {
        self.add_of(term, term.abs());
    }

    /// Adds a term that is a difference of larger numbers, which add up to `size`: of `(v - y)²` that is `v² + y²`.
    ///
    /// ```
    /// use plca_fit::laws::Terms;
    /// let mut terms = Terms::default();
    /// terms.add_of(1.0, 13.0);                                            // (3 - 2)²
    /// assert_eq!((terms.sum(), terms.size()), (1.0, 13.0));
    /// ```
    pub fn add_of(&mut self, term: f64, size: f64) {
        self.sum += term;
        self.size += size;
    }

    /// The sum of the terms.
    pub fn sum(&self) -> f64 {
        self.sum.value()
    }

    /// The sum of their absolute values, or of what they are made of.
    pub fn size(&self) -> f64 {
        self.size.value()
    }
}

impl Extend<f64> for Terms {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, terms: I) {
        terms.into_iter().for_each(|term| self.add(term));
    }
}

impl FromIterator<f64> for Terms {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut all = Self::default();
        all.extend(terms);
        all
    }
}

/// Checks a fit against [`Law::Definition`]: the objective that it reports is the one that `definition` computes of its parameters, and the
/// one that its trace ends with.
///
/// ```math
/// | J - \sum_i t_i | \le \text{relative} \cdot \sum_i | t_i |
/// ```
///
/// Write the definition as it stands in the paper, cell by cell and in double precision, with nothing of the model's own code. It is told the
/// parameters, widened, and knows the data.
///
/// # Errors
///
/// The [`Violation`], with both values.
///
/// # Examples
///
/// ```
/// use plca_em::{Model, Plca};
/// use plca_fit::laws::{Law, Terms, check_definition};
/// use plca_fit::{Parameters, State};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
///
/// let cells = [3.0, 1.0, 0.0, 2.0];
/// let v = DenseTensor::new(vec![2, 2], cells.to_vec(), Order::RowMajor)?;
/// let fit = Plca::new(2).fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// // Σ V ln P
/// let likelihood = |at: &Parameters<f64>| -> Terms {
///     let [weights, rows, columns] = [0, 1, 2].map(|j| at.at(j));
///     let p = |i, j| (0..2).map(|z| weights[z] * rows[(i, z)] * columns[(j, z)]).sum::<f64>();
///     let term = |(x, &v): (usize, &f64)| if v > 0.0 { v * p(x / 2, x % 2).ln() } else { 0.0 };
///     cells.iter().enumerate().map(term).collect()
/// };
/// assert!(check_definition(&fit, 1e-10, likelihood).is_ok());
/// // The fit of these parameters is not that of others.
/// let other = fit.change(|at| at.change(|j, block| if j == 1 { block.swap_rows(0, 1) }))?;
/// assert_eq!(check_definition(&other, 1e-10, likelihood).unwrap_err().law, Law::Definition);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_definition<S: State>(
    fit: &Fit<S>,
    relative: f64,
    definition: impl Fn(&Parameters<f64>) -> Terms,
) -> Result<(), Violation> {
    let told = fit.objective();
    let terms = definition(&fit.state().parameters().widened());
    let (sum, size) = (terms.sum(), terms.size());
    let broken = |details: String| Err(Violation::new(Law::Definition, details));
    let last = fit.trace().last().map(|point| point.objective);
    if last.is_some_and(|last| last.to_bits() != told.to_bits()) {
        return broken(format!("the value is {told}, its trace ends with {last:?}"));
    }
    let (apart, allowed) = ((told - sum).abs(), relative * size);
    // Beside a term that is infinite nothing is rounding.
    if told == sum || allowed.is_finite() && apart <= allowed {
        return Ok(());
    }
    broken(format!(
        "the value is told to be {told:e}, by its definition it is {sum:e}: {apart:e} apart after {} iterations, of which {allowed:e} is rounding",
        fit.iterations()
    ))
}
