//! A likelihood of your own: negative-binomial counts with mean `p` and dispersion `r`, which vary more than Poisson counts,
//!
//! ```text
//! ln P(v | p) = v ln p - (v + r) ln(r + p) + const.
//! ```
//!
//! Its multiplicative update divides counts under the ratio `v / p` by counts under `(v + r) / (r + p)`. Each is one rule.

use plca_tensor::CellLikelihood;

/// The numerator of the update, and the log-likelihood.
#[derive(Clone, Copy, Debug)]
pub struct Numerator {
    /// `r > 0`.
    pub dispersion: f64,
}

/// The denominator.
#[derive(Clone, Copy, Debug)]
pub struct Denominator {
    /// `r > 0`.
    pub dispersion: f64,
}

impl CellLikelihood<f64> for Numerator {
    fn ratios(&self, v: &[f64], q: &mut [f64]) {
        q.iter_mut().zip(v).for_each(|(q, v)| *q = v / *q);
    }

    fn value(&self, v: &[f64], p: &[f64]) -> f64 {
        let r = self.dispersion;
        // 0 ln 0 = 0
        let seen = |v: f64, p: f64| if v > 0.0 { v * p.ln() } else { 0.0 };
        v.iter()
            .zip(p)
            .map(|(&v, &p)| seen(v, p) - (v + r) * (r + p).ln())
            .sum()
    }

    fn zero_is_inert(&self) -> bool {
        false
    }
}

impl CellLikelihood<f64> for Denominator {
    fn ratios(&self, v: &[f64], q: &mut [f64]) {
        let r = self.dispersion;
        q.iter_mut()
            .zip(v)
            .for_each(|(q, v)| *q = (v + r) / (r + *q));
    }

    fn value(&self, _: &[f64], _: &[f64]) -> f64 {
        0.0
    }

    fn zero_is_inert(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use plca_tensor::laws::check_likelihood;
    use plca_tensor::{Cp, Data, DenseTensor, Factor, Modes, Order, Request, Rule};

    use super::*;

    const RULES: (Numerator, Denominator) = (
        Numerator { dispersion: 3.0 },
        Denominator { dispersion: 3.0 },
    );

    #[test]
    fn it_obeys_the_laws() {
        let cells: Vec<(f64, f64)> = (0..20)
            .map(|i| (f64::from(i % 7), 0.3 + f64::from(i)))
            .collect();
        check_likelihood([&RULES.0, &RULES.1], &cells).unwrap();
    }

    /// Updates of one factor after the other: the likelihood rises.
    #[test]
    fn updates_are_monotone() {
        let values = (0..30).map(|i| f64::from(i * i % 11)).collect();
        let data = DenseTensor::new(vec![6, 5], values, Order::RowMajor).unwrap();
        let mut blocks =
            [6, 5].map(|n| DMatrix::from_fn(n, 2, |i, z| 1.0 + (3 * i + z) as f64 % 4.0));
        let mut last = f64::NEG_INFINITY;
        for iteration in 0..100 {
            let mode = iteration % 2;
            let ask = |rule| {
                let factors = [Factor::Columns(&blocks[0]), Factor::Columns(&blocks[1])];
                let model = Cp {
                    weights: None,
                    factors: &factors,
                };
                let request = Request::counts(Modes::one(mode))
                    .value(true)
                    .rule(Rule::Cell(rule));
                data.e_step(&model, &request).unwrap()
            };
            let [mut above, mut below] = [ask(&RULES.0), ask(&RULES.1)];
            assert!(
                above.value() >= last - 1e-9,
                "{last} became {}",
                above.value()
            );
            last = above.value();
            let ratio = above.take(mode).component_div(&below.take(mode));
            blocks[mode].component_mul_assign(&ratio);
        }
    }
}
