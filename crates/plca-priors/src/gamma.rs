//! Gamma prior.

use nalgebra::DMatrix;
use plca_dist::ln_gamma;
use plca_tensor::{CompensatedSum, Real};

use crate::simplex_prior::fitting;
use crate::{PriorError, PriorRules, RatePrior, Step};

/// A hyperparameter of a [`Gamma`] prior: one for all entries, one for each row, or one each.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Gamma, PriorRules, Values};
/// let by_row = Gamma::of(Values::PerRow(vec![1.0, 2.0]), Values::All(0.5))?;
/// assert!(by_row.check((2, 7)).is_ok() && by_row.check((3, 7)).is_err());
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// The same everywhere.
    All(f64),
    /// One for each row.
    PerRow(Vec<f64>),
    /// One for each entry.
    Each(DMatrix<f64>),
}

impl Values {
    /// That of the entry at this position of a column-major block of so many rows.
    fn get(&self, at: usize, rows: usize) -> f64 {
        match self {
            Self::All(x) => *x,
            Self::PerRow(each) => each[at % rows],
            Self::Each(m) => m[at],
        }
    }

    fn as_slice(&self) -> &[f64] {
        match self {
            Self::All(x) => std::slice::from_ref(x),
            Self::PerRow(each) => each,
            Self::Each(m) => m.as_slice(),
        }
    }

    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        match self {
            Self::All(_) => Ok(()),
            Self::PerRow(each) => fitting(each.len() == shape.0, (each.len(), 1), (shape.0, 1)),
            Self::Each(m) => fitting(m.shape() == shape, m.shape(), shape),
        }
    }
}

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
/// With `b = 0`, which is improper, `a ln b` is left out.
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
    shape: Values,
    rate: Values,
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
        Self::of(Values::All(shape), Values::All(rate))
    }

    /// The prior with shapes and rates that may differ between entries.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), for the first such value.
    pub fn of(shape: Values, rate: Values) -> Result<Self, PriorError> {
        let refuse = |name, values: &[f64], ok: fn(f64) -> bool| {
            let bad = values.iter().find(|&&x| !(x.is_finite() && ok(x)));
            bad.map_or(Ok(()), |&value| Err(PriorError::Domain { name, value }))
        };
        refuse("shape", shape.as_slice(), |x| x > 0.0)?;
        refuse("rate", rate.as_slice(), |x| x >= 0.0)?;
        Ok(Self {
            shape,
            rate,
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
        if !(floor.is_finite() && floor >= 0.0) {
            return Err(PriorError::Domain {
                name: "floor",
                value: floor,
            });
        }
        self.floor = floor;
        Ok(self)
    }
}

impl PriorRules for Gamma {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        self.shape.check(shape)?;
        self.rate.check(shape)
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
        for block in [counts, exposure] {
            if block.shape() != rate.shape() {
                return Err(PriorError::CountsShape {
                    got: block.shape(),
                    expected: rate.shape(),
                });
            }
        }
        let (floor, rows) = (T::lit(self.floor), rate.nrows());
        let mut new = rate.clone();
        let entries = new.iter_mut().zip(counts).zip(exposure).enumerate();
        for (at, ((theta, &c), &x)) in entries {
            // [SKELLAM 5] θ <- (c + a - 1) / (x + b)
            let numerator = c + T::lit(self.shape.get(at, rows) - 1.0);
            let below = numerator <= floor;
            let numerator = if below { floor } else { numerator };
            let divisor = T::lit(x.to_f64() + self.rate.get(at, rows));
            if divisor > T::zero() {
                *theta = numerator / divisor;
            }
        }
        match new.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(PriorError::Overflow { column: at / rows }),
            None => {
                *rate = new;
                Ok(())
            }
        }
    }

    fn ln_density(&self, rate: &DMatrix<T>, _: &Step<'_>) -> f64 {
        let normaliser = |a: f64, b: f64| {
            let power = if b > 0.0 { a * b.ln() } else { 0.0 };
            ln_gamma(a).unwrap_or(f64::NAN) - power
        };
        // One prior for all is the common case.
        let constant = match (&self.shape, &self.rate) {
            (&Values::All(a), &Values::All(b)) => Some(normaliser(a, b)),
            _ => None,
        };
        let rows = rate.nrows();
        let terms = rate.iter().enumerate().flat_map(|(at, x)| {
            let (a, b, x) = (
                self.shape.get(at, rows),
                self.rate.get(at, rows),
                x.to_f64(),
            );
            // Below 1, clipped entries are left out.
            let power = match a == 1.0 || (a < 1.0 && x == 0.0) {
                true => 0.0,
                false => (a - 1.0) * x.ln(),
            };
            // [SKELLAM eq. 26]
            [power - b * x, -constant.unwrap_or_else(|| normaliser(a, b))]
        });
        terms.collect::<CompensatedSum>().value()
    }
}
