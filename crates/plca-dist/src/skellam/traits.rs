//! The Skellam law under the traits of `statrs` (feature `distributions`).

use statrs::{
    distribution::{Discrete, DiscreteCDF},
    statistics::{DiscreteDistribution, Max, Min},
};

use super::{Skellam, density::ln_pmf_of, tail::upper_tail};

impl Discrete<i64, f64> for Skellam {
    fn pmf(&self, v: i64) -> f64 {
        self.ln_pmf(v).exp()
    }

    /// As [`skellam_ln_pmf`](crate::skellam_ln_pmf).
    fn ln_pmf(&self, v: i64) -> f64 {
        ln_pmf_of(v as f64, self.plus(), self.minus())
    }
}

impl Skellam {
    /// `P(V ≤ v)` and `P(V > v)`, the smaller one computed.
    fn tails(&self, v: i64) -> [f64; 2] {
        let x = v as f64;
        if x < self.mean() {
            let lower = upper_tail(-x, self.minus(), self.plus());
            [lower, 1.0 - lower]
        } else {
            let upper = upper_tail(x + 1.0, self.plus(), self.minus());
            [1.0 - upper, upper]
        }
    }
}

impl DiscreteCDF<i64, f64> for Skellam {
    /// `P(V ≤ v)`; relative error below 1e-12 up to the mean, absolute above it. Some fifty points of a contour integral,
    /// or a sum of at most a few hundred terms where the law is narrow.
    fn cdf(&self, v: i64) -> f64 {
        self.tails(v)[0]
    }

    /// `P(V > v)`; relative error below 1e-12 above the mean, absolute up to it.
    fn sf(&self, v: i64) -> f64 {
        self.tails(v)[1]
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
        let reach = self.variance().sqrt() as i64 + 1;
        let (mut low, mut high) = (reach, reach);
        while reached(centre - low) {
            low *= 2;
        }
        while !reached(centre + high) {
            high *= 2;
        }
        (low, high) = (centre - low, centre + high);
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
        if self.minus() > 0.0 { i64::MIN } else { 0 }
    }
}

impl Max<i64> for Skellam {
    /// 0 if there are no positive counts.
    fn max(&self) -> i64 {
        if self.plus() > 0.0 { i64::MAX } else { 0 }
    }
}

impl DiscreteDistribution<f64> for Skellam {
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
