//! Compensated sums, for objectives that must be seen to rise.

use std::ops::AddAssign;

use crate::Real;

/// A running sum whose rounding error does not grow with the number of terms (Neumaier 1974).
///
/// ```
/// use plca_tensor::CompensatedSum;
/// let mut s = CompensatedSum::default();
/// for x in [1.0, 1e100, 1.0, -1e100] { s += x; }
/// assert_eq!(s.value(), 2.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompensatedSum {
    sum: f64,
    compensation: f64,
}

impl CompensatedSum {
    /// The sum so far; infinite terms give an infinite sum.
    ///
    /// ```
    /// use plca_tensor::CompensatedSum;
    /// let sum: CompensatedSum = std::iter::repeat_n(0.1, 10).collect();
    /// assert_eq!(sum.value(), 1.0);                                   // adding up plainly gives 0.9999999999999999
    /// ```
    pub fn value(self) -> f64 {
        if self.compensation.is_nan() {
            self.sum
        } else {
            self.sum + self.compensation
        }
    }
}

impl AddAssign<f64> for CompensatedSum {
    fn add_assign(&mut self, x: f64) {
        let sum = self.sum + x;
        let lost = if self.sum.abs() >= x.abs() {
            (self.sum - sum) + x
        } else {
            (x - sum) + self.sum
        };
        self.sum = sum;
        self.compensation += lost;
    }
}

impl Extend<f64> for CompensatedSum {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, terms: I) {
        terms.into_iter().for_each(|x| *self += x);
    }
}

impl FromIterator<f64> for CompensatedSum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        sum.extend(terms);
        sum
    }
}

/// A sum of numbers that are not negative, made as what it differs from a whole: at least what rounding leaves of the whole. An entry that is multiplied by it then
/// falls as far as can be told, and is not lost with data that have no other.
///
/// ```
/// use plca_tensor::above_rounding;
/// assert_eq!(above_rounding(0.25, 1.0), 0.25);
/// assert_eq!(above_rounding(-1e-17, 1.0), f64::EPSILON);
/// ```
#[inline]
pub fn above_rounding<T: Real>(sum: T, whole: T) -> T {
    let least = T::EPSILON * whole;
    // Not the other way round: what is no number stays that.
    if sum < least { least } else { sum }
}
