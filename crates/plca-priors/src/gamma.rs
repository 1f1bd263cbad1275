//! Gamma prior.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_dist::ln_gamma;
use plca_tensor::parallel::wide;
use plca_tensor::{CompensatedSum, Real};

use crate::simplex_prior::{domain, same_shape};
use crate::table::{number, refused};
use crate::{Components, Entries, PriorError, PriorRules, RatePrior, Step};

/// The gamma prior of a block of rates.
///
/// ```math
/// \begin{aligned}
/// \ln p(\theta) &= \sum \left( (a - 1) \ln \theta - b \theta + a \ln b - \ln \Gamma(a) \right) \\
/// \theta &\gets \frac{\max(c + a - 1, \, \text{floor})}{x + b}
/// \end{aligned}
/// ```
///
/// `c` are the counts and `x` the exposures of the entries; shapes `a > 0` have no unit, rates `b >= 0` are in 1 over the units of `θ`.
/// With `b = 0`, which is improper, `a ln b` is left out. The last two terms, which depend on no entry, are the [`ln_constant`](PriorRules::ln_constant).
///
/// With a shape below 1 the density is unbounded at 0: without a floor, clipped entries are a
/// convention and do not enter [`ln_density`](RatePrior::ln_density).
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Gamma, RatePrior, Step};
/// let mut theta = dmatrix![1.0, 1.0];
/// Gamma::new(3.0, 1.0)?.update(&dmatrix![4.0, 0.0], &dmatrix![1.0, 3.0], &mut theta, &Step::at(1))?;
/// assert_eq!(theta, dmatrix![3.0, 0.5]);                          // (4 + 2) / (1 + 1), (0 + 2) / (3 + 1)
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Gamma {
    shape: Entries,
    rate: Entries,
    floor: f64,
}

impl Gamma {
    /// The prior with the same shape and rate for every entry.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless the shape is positive, the rate not negative, and both finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_priors::{Gamma, PriorError};
    /// assert!(Gamma::new(0.5, 0.0).is_ok());
    /// assert_eq!(Gamma::new(0.0, 1.0), Err(PriorError::Domain { name: "shape", value: 0.0 }));
    /// ```
    pub fn new(shape: f64, rate: f64) -> Result<Self, PriorError> {
        Self::of(Entries::All(shape), Entries::All(rate))
    }

    /// The prior with shapes and rates that may differ between entries.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), for the first such value.
    pub fn of(shape: Entries, rate: Entries) -> Result<Self, PriorError> {
        Ok(Self {
            shape: shape.within("shape", |a| a > 0.0)?,
            rate: rate.within("rate", |b| b >= 0.0)?,
            floor: 0.0,
        })
    }

    /// The same prior with a least numerator (default 0).
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless it is finite and not negative.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Gamma, PriorRules, RatePrior, Step};
    /// let sparse = Gamma::new(0.5, 0.0)?;
    /// assert!(sparse.may_empty());
    /// let mut theta = dmatrix![1.0];
    /// sparse.with_floor(1e-20)?.update(&dmatrix![0.25], &dmatrix![1.0], &mut theta, &Step::at(1))?;
    /// assert_eq!(theta, dmatrix![1e-20]);                             // 0.25 + 0.5 - 1 < 0
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn with_floor(mut self, floor: f64) -> Result<Self, PriorError> {
        domain("floor", floor, floor.is_finite() && floor >= 0.0)?;
        self.floor = floor;
        Ok(self)
    }

    /// Shapes and rates, if they are all that it has.
    pub(crate) fn laws(&self) -> Option<(Entries, Entries)> {
        (self.floor <= 0.0).then(|| (self.shape.clone(), self.rate.clone()))
    }

    /// Shape and rate of the entry at this position of a block with this number of rows.
    fn at(&self, at: usize, rows: usize) -> (f64, f64) {
        let rows = Components::Rows(rows);
        (self.shape.get(at, rows), self.rate.get(at, rows))
    }
}

/// `SHAPE,RATE`.
pub(crate) fn parse<T: Real>(
    text: &str,
    _: (usize, usize),
) -> Result<Arc<dyn RatePrior<T>>, PriorError> {
    let both = text.split_once(',');
    let (shape, rate) = both.ok_or_else(|| refused(text, "SHAPE,RATE"))?;
    Ok(Arc::new(Gamma::new(number(shape)?, number(rate)?)?))
}

/// `(a - 1) ln x`; below 1, clipped entries are left out.
pub(crate) fn power(a: f64, x: f64) -> f64 {
    match a == 1.0 || (a < 1.0 && x == 0.0) {
        true => 0.0,
        false => (a - 1.0) * x.ln(),
    }
}

impl PriorRules for Gamma {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        self.shape.check(shape)?;
        self.rate.check(shape)
    }

    /// `Σ (a ln b - ln Γ(a))`.
    fn ln_constant(&self, (rows, columns): (usize, usize)) -> f64 {
        let normaliser = |(a, b): (f64, f64)| {
            let scale = if b > 0.0 { a * b.ln() } else { 0.0 };
            // [SKELLAM eq. 26]
            scale - ln_gamma(a).unwrap_or(f64::NAN)
        };
        let entries = rows * columns;
        // One prior for all is the common case.
        if let (&Entries::All(a), &Entries::All(b)) = (&self.shape, &self.rate) {
            return entries as f64 * normaliser((a, b));
        }
        let terms = (0..entries).map(|at| normaliser(self.at(at, rows)));
        terms.collect::<CompensatedSum>().value()
    }

    fn may_empty(&self) -> bool {
        self.floor <= 0.0 && self.shape.as_slice().iter().any(|&a| a < 1.0)
    }
}

impl<T: Real> RatePrior<T> for Gamma {
    fn update(
        &self,
        counts: &DMatrix<T>,
        exposure: &DMatrix<T>,
        rate: &mut DMatrix<T>,
        _: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.check(rate.shape())?;
        same_shape(counts.shape(), rate.shape())?;
        same_shape(exposure.shape(), rate.shape())?;
        let rows = rate.nrows();
        let mut new = rate.clone();
        let terms = (counts.as_slice(), exposure.as_slice());
        // One prior for all is the common case, and a loop without branches.
        let finite = match (&self.shape, &self.rate) {
            (&Entries::All(a), &Entries::All(b)) => {
                wide(|| renew(new.as_mut_slice(), terms, self.floor, |_| (a, b)))
            }
            _ => {
                let prior = |at| self.at(at, rows);
                renew(new.as_mut_slice(), terms, self.floor, prior)
            }
        };
        if !finite {
            let at = new.iter().position(|x| !x.is_finite()).unwrap_or(0);
            return Err(PriorError::Overflow { column: at / rows });
        }
        *rate = new;
        Ok(())
    }

    fn ln_density(&self, rate: &DMatrix<T>, _: &Step<'_>) -> f64 {
        let rows = rate.nrows();
        let terms = rate.iter().enumerate().map(|(at, x)| {
            let ((a, b), x) = (self.at(at, rows), x.to_f64());
            // [SKELLAM eq. 26]
            power(a, x) - b * x
        });
        terms.collect::<CompensatedSum>().value()
    }
}

/// `(c + a - 1) / (x + b)` in the place of every entry whose divisor is above 0; whether all are finite.
#[inline(always)]
fn renew<T: Real>(
    rate: &mut [T],
    (counts, exposure): (&[T], &[T]),
    floor: f64,
    prior: impl Fn(usize) -> (f64, f64),
) -> bool {
    let floor = T::lit(floor);
    let mut finite = true;
    for (at, ((theta, &c), &x)) in rate.iter_mut().zip(counts).zip(exposure).enumerate() {
        let (a, b) = prior(at);
        // [SKELLAM 5] θ <- (c + a - 1) / (x + b)
        let numerator = c + T::lit(a - 1.0);
        let numerator = if numerator <= floor { floor } else { numerator };
        let divisor = T::lit(x.to_f64() + b);
        // Before the choice: the loop is compiled for whole registers.
        let quotient = numerator / divisor;
        let known = divisor > T::zero();
        *theta = if known { quotient } else { *theta };
        finite &= theta.is_finite();
    }
    finite
}
