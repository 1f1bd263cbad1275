//! Linear and quadratic penalties on rates.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::parallel::wide;
use plca_tensor::{CompensatedSum, Real};

use crate::simplex_prior::{domain, same_shape};
use crate::table::{number, refused};
use crate::{PriorError, PriorRules, RatePrior, Step};

/// The penalties on a block of rates that regressions call L1 and L2: an exponential prior times half a normal one.
///
/// ```math
/// \begin{aligned}
/// - \ln p(\theta) &= \sum \left( \lambda \theta + \tfrac{\mu}{2} \theta^2 \right) \\
/// \theta &\gets \frac{2 c}{b + \sqrt{b^2 + 4 \mu c}}, \qquad b = x + \lambda
/// \end{aligned}
/// ```
///
/// `c` are the counts and `x` the exposures of the entries. The M-step is the positive root of `μ θ² + b θ = c`, `c / b` where `μ = 0`: exact,
/// so that no objective gets worse. `λ >= 0` is in 1 over the units of `θ`, `μ >= 0` in 1 over their square. The normaliser is left out of
/// [`ln_density`](RatePrior::ln_density): with both at 0 the prior says nothing.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Penalty, RatePrior, Step};
/// let (counts, exposure) = (dmatrix![4.0, 6.0], dmatrix![1.0, 0.5]);
/// let mut theta = dmatrix![1.0, 1.0];
/// Penalty::new(1.0, 0.0)?.update(&counts, &exposure, &mut theta, &Step::at(1))?;
/// assert_eq!(theta, dmatrix![2.0, 4.0]);                              // 4 / (1 + 1), 6 / (0.5 + 1)
/// Penalty::new(0.5, 1.0)?.update(&counts, &exposure, &mut theta, &Step::at(1))?;
/// assert_eq!(theta[1], 2.0);                                          // 2² + (0.5 + 0.5) 2 = 6
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    linear: f64,
    quadratic: f64,
    lagged: bool,
}

impl Penalty {
    /// The penalties with these weights, `λ` and `μ`.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless both are finite and not negative.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_priors::{Penalty, PriorError};
    /// assert!(Penalty::new(0.5, 0.0).is_ok());
    /// assert_eq!(Penalty::new(0.5, -1.0), Err(PriorError::Domain { name: "quadratic", value: -1.0 }));
    /// ```
    pub fn new(linear: f64, quadratic: f64) -> Result<Self, PriorError> {
        for (name, value) in [("linear", linear), ("quadratic", quadratic)] {
            domain(name, value, value.is_finite() && value >= 0.0)?;
        }
        Ok(Self {
            linear,
            quadratic,
            lagged: false,
        })
    }

    /// The same penalties, the slope of the quadratic one taken at the old rates, as multiplicative updates usually do:
    ///
    /// ```math
    /// \theta \gets \frac{c}{x + \lambda + \mu \theta_{\mathrm{old}}}
    /// ```
    ///
    /// The fixed points are the same, but on the way the objective may get worse, so that no solver extrapolates such steps.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Penalty, PriorRules, RatePrior, Step};
    /// let lagged = Penalty::new(0.5, 1.0)?.lagged();
    /// let mut theta = dmatrix![2.0];
    /// lagged.update(&dmatrix![6.0], &dmatrix![0.5], &mut theta, &Step::at(1))?;
    /// assert_eq!((theta[0], lagged.steady(1)), (2.0, false));             // 6 / (0.5 + 0.5 + 2)
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    #[must_use]
    pub fn lagged(self) -> Self {
        Self {
            lagged: true,
            ..self
        }
    }

    /// Whether the slope of the quadratic penalty is taken at the old rates.
    pub fn is_lagged(&self) -> bool {
        self.lagged
    }

    /// The weight of the linear penalty, `λ`.
    pub fn linear(&self) -> f64 {
        self.linear
    }

    /// The weight of the quadratic penalty, `μ`.
    pub fn quadratic(&self) -> f64 {
        self.quadratic
    }
}

/// `L1`, `L1,L2` or `L1,L2,lagged`.
impl FromStr for Penalty {
    type Err = PriorError;

    fn from_str(text: &str) -> Result<Self, PriorError> {
        let parts: Vec<&str> = text.split(',').collect();
        Ok(match parts[..] {
            [linear] => Self::new(number(linear)?, 0.0)?,
            [linear, quadratic] => Self::new(number(linear)?, number(quadratic)?)?,
            [linear, quadratic, "lagged"] => {
                Self::new(number(linear)?, number(quadratic)?)?.lagged()
            }
            _ => return Err(refused(text, "L1[,L2[,lagged]]")),
        })
    }
}

/// The same.
impl fmt::Display for Penalty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.linear)?;
        if self.quadratic != 0.0 || self.lagged {
            write!(f, ",{}", self.quadratic)?;
        }
        f.write_str(if self.lagged { ",lagged" } else { "" })
    }
}

pub(crate) fn parse<T: Real>(
    text: &str,
    _: (usize, usize),
) -> Result<Arc<dyn RatePrior<T>>, PriorError> {
    Ok(Arc::new(text.parse::<Penalty>()?))
}

impl PriorRules for Penalty {
    fn steady(&self, _: usize) -> bool {
        !self.lagged || self.quadratic <= 0.0
    }
}

impl<T: Real> RatePrior<T> for Penalty {
    fn update(
        &self,
        counts: &DMatrix<T>,
        exposure: &DMatrix<T>,
        rate: &mut DMatrix<T>,
        _: &Step<'_>,
    ) -> Result<(), PriorError> {
        same_shape(counts.shape(), rate.shape())?;
        same_shape(exposure.shape(), rate.shape())?;
        let &Self {
            linear, quadratic, ..
        } = self;
        let mut new = rate.clone();
        let (theta, terms) = (new.as_mut_slice(), (counts.as_slice(), exposure.as_slice()));
        let finite = match (quadratic > 0.0, self.lagged) {
            (false, _) => wide(|| renew(theta, terms, |b, _, _| b, linear)),
            (true, true) => wide(|| renew(theta, terms, |b, _, old| b + quadratic * old, linear)),
            (true, false) => wide(|| {
                let root = 2.0 * quadratic.sqrt();
                let divisor = |b: f64, c: f64, _| 0.5 * (b + length(b, root * c.sqrt()));
                renew(theta, terms, divisor, linear)
            }),
        };
        if !finite {
            let at = new.iter().position(|x| !x.is_finite()).unwrap_or(0);
            return Err(PriorError::Overflow {
                column: at / rate.nrows(),
            });
        }
        *rate = new;
        Ok(())
    }

    fn ln_density(&self, rate: &DMatrix<T>, _: &Step<'_>) -> f64 {
        let terms = rate.iter().map(|x| {
            let x = x.to_f64();
            -(self.linear + 0.5 * self.quadratic * x) * x
        });
        terms.collect::<CompensatedSum>().value()
    }
}

/// `√(a² + b²)` of numbers `>= 0` whose squares may leave the range.
#[inline(always)]
fn length(a: f64, b: f64) -> f64 {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    let ratio = if most > 0.0 { least / most } else { 0.0 };
    most * (1.0 + ratio * ratio).sqrt()
}

/// `c / divisor(x + λ, c, θ)` in the place of every entry whose divisor is above 0; whether all are finite.
#[inline(always)]
fn renew<T: Real>(
    rate: &mut [T],
    (counts, exposure): (&[T], &[T]),
    divisor: impl Fn(f64, f64, f64) -> f64,
    linear: f64,
) -> bool {
    let mut finite = true;
    for ((theta, &c), &x) in rate.iter_mut().zip(counts).zip(exposure) {
        let divisor = divisor(x.to_f64() + linear, c.to_f64(), theta.to_f64());
        // Before the choice: the loop is compiled for whole registers.
        let quotient = T::lit(c.to_f64() / divisor);
        *theta = if divisor > 0.0 { quotient } else { *theta };
        finite &= theta.is_finite();
    }
    finite
}
