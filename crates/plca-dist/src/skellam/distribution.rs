//! The Skellam law of whole numbers as a distribution.

use rand::{Rng, distr::Distribution};
use statrs::{
    distribution::{Discrete, DiscreteCDF},
    statistics::{Max, Min},
};

use super::{density::ln_pmf_of, fit, tail::upper_tail};
use crate::{
    DistError,
    counts::{LARGEST, poisson_of},
    error::domain,
};

/// The law of `S⁺ - S⁻` for independent `S⁺ ~ Poisson(p)`, `S⁻ ~ Poisson(q)`.
///
/// Rates from 0 to 2^52, so that every draw is a whole double and fits `i64`. Implements the traits `Discrete`,
/// `DiscreteCDF`, `Min`, `Max` and `DiscreteDistribution` of `statrs` and `Distribution<i64>` of `rand`.
///
/// ```
/// use plca_dist::Skellam;
/// use statrs::distribution::{Discrete, DiscreteCDF};
/// let law = Skellam::new(3.0, 1.0)?;
/// assert_eq!((law.mean(), law.variance()), (2.0, 4.0));
/// let mass: f64 = (-40..=2).map(|v| law.pmf(v)).sum();
/// assert!((mass - law.cdf(2)).abs() < 1e-14);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skellam {
    plus: f64,
    minus: f64,
}

impl Skellam {
    /// The law with these rates.
    ///
    /// # Errors
    ///
    /// [`DistError::Domain`] for a rate outside `[0, 2^52]`.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_dist::Skellam;
    /// assert!(Skellam::new(3.0, 0.0).is_ok());                            // a Poisson law
    /// assert!(Skellam::new(3.0, -1.0).is_err() && Skellam::new(1e16, 0.0).is_err());
    /// ```
    pub fn new(plus: f64, minus: f64) -> Result<Self, DistError> {
        domain("plus", plus, (0.0..=0.5 * LARGEST).contains(&plus))?;
        domain("minus", minus, (0.0..=0.5 * LARGEST).contains(&minus))?;
        Ok(Self { plus, minus })
    }

    /// The law under which the samples are most likely.
    ///
    /// Its mean is that of the samples [SKELLAM 1]; what remains is the root of one derivative, bracketed and then found by
    /// the Illinois variant of false position, `O(n)` a step. Samples that are less spread than a Poisson law have a rate
    /// of 0.
    ///
    /// # Errors
    ///
    /// [`DistError::Domain`] without samples, and for samples beyond ±2^51.
    ///
    /// ```
    /// let law = plca_dist::Skellam::fit(&[1, 3, -2, 0, 2, 2, 5, -1])?;
    /// assert!((law.mean() - 1.25).abs() < 1e-14);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn fit(samples: &[i64]) -> Result<Self, DistError> {
        let (plus, minus) = fit::maximum_likelihood(samples)?;
        Self::new(plus, minus)
    }

    /// Rate of the positive counts.
    ///
    /// ```
    /// assert_eq!(plca_dist::Skellam::new(3.0, 1.0)?.plus(), 3.0);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn plus(&self) -> f64 {
        self.plus
    }

    /// Rate of the negative counts.
    ///
    /// ```
    /// assert_eq!(plca_dist::Skellam::new(3.0, 1.0)?.minus(), 1.0);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn minus(&self) -> f64 {
        self.minus
    }

    /// `p - q`.
    ///
    /// ```
    /// assert_eq!(plca_dist::Skellam::new(3.0, 1.0)?.mean(), 2.0);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn mean(&self) -> f64 {
        // [SKELLAM eq. 3]
        self.plus - self.minus
    }

    /// `p + q`.
    ///
    /// ```
    /// assert_eq!(plca_dist::Skellam::new(3.0, 1.0)?.variance(), 4.0);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn variance(&self) -> f64 {
        // [SKELLAM eq. 4]
        self.plus + self.minus
    }

    /// `(p - q) / (p + q)^(3/2)`; NaN if both rates are 0.
    ///
    /// ```
    /// let law = plca_dist::Skellam::new(3.0, 1.0)?;
    /// assert!((law.skewness() - 0.25).abs() < 1e-15);                     // 2 / 8
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn skewness(&self) -> f64 {
        // Every cumulant is p + q or p - q.
        self.mean() / self.variance().powf(1.5)
    }

    /// `1 / (p + q)`; infinite if both rates are 0.
    ///
    /// ```
    /// assert_eq!(plca_dist::Skellam::new(3.0, 1.0)?.excess_kurtosis(), 0.25);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn excess_kurtosis(&self) -> f64 {
        1.0 / self.variance()
    }
}

impl Discrete<i64, f64> for Skellam {
    fn pmf(&self, v: i64) -> f64 {
        self.ln_pmf(v).exp()
    }

    /// As [`skellam_ln_pmf`](crate::skellam_ln_pmf).
    fn ln_pmf(&self, v: i64) -> f64 {
        ln_pmf_of(v as f64, self.plus, self.minus)
    }
}

impl DiscreteCDF<i64, f64> for Skellam {
    /// `P(V ≤ v)`; relative error below 1e-12 up to the mean, absolute above it. Some fifty points of a contour integral,
    /// or a sum of at most a few hundred terms where the law is narrow.
    fn cdf(&self, v: i64) -> f64 {
        let x = v as f64;
        if x < self.mean() {
            upper_tail(-x, self.minus, self.plus)
        } else {
            1.0 - upper_tail(x + 1.0, self.plus, self.minus)
        }
    }

    /// `P(V > v)`; relative error below 1e-12 above the mean, absolute up to it.
    fn sf(&self, v: i64) -> f64 {
        let x = v as f64;
        if x < self.mean() {
            1.0 - upper_tail(-x, self.minus, self.plus)
        } else {
            upper_tail(x + 1.0, self.plus, self.minus)
        }
    }

    /// The least `v` with `P(V ≤ v) ≥ u`, by bisection. `u ≤ 0` or NaN gives [`min`](Min::min), `u ≥ 1`
    /// [`max`](Max::max).
    fn inverse_cdf(&self, u: f64) -> i64 {
        if u.is_nan() || u <= 0.0 {
            return self.min();
        }
        if u >= 1.0 {
            return self.max();
        }
        let reached = |v: i64| self.cdf(v) >= u;
        let centre = self.mean().floor() as i64;
        let mut reach = self.variance().sqrt() as i64 + 1;
        while !reached(centre + reach) {
            reach *= 2;
        }
        let mut high = centre + reach;
        reach = self.variance().sqrt() as i64 + 1;
        while reached(centre - reach) {
            reach *= 2;
        }
        let mut low = centre - reach;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if reached(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

impl Min<i64> for Skellam {
    /// 0 if there are no negative counts.
    fn min(&self) -> i64 {
        if self.minus > 0.0 { i64::MIN } else { 0 }
    }
}

impl Max<i64> for Skellam {
    /// 0 if there are no positive counts.
    fn max(&self) -> i64 {
        if self.plus > 0.0 { i64::MAX } else { 0 }
    }
}

impl statrs::statistics::DiscreteDistribution<f64> for Skellam {
    fn mean(&self) -> Option<f64> {
        Some(self.mean())
    }

    fn variance(&self) -> Option<f64> {
        Some(self.variance())
    }

    fn skewness(&self) -> Option<f64> {
        (self.variance() > 0.0).then(|| self.skewness())
    }
}

impl Distribution<i64> for Skellam {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let plus = poisson_of(self.plus, rng);
        (plus - poisson_of(self.minus, rng)) as i64
    }
}
