//! What several figures need: generated data, moments, matchings.

use nalgebra::{DMatrix, DVectorView};
use plca_dist::random::{exponential, uniform};
use plca_em::{Given, PlsaState, TracePoint};
use plca_fit::{Impossible, Transform};
use plca_tensor::Data;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::Result;

/// A generator for one purpose: streams of one seed are independent.
pub(super) fn rng(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// `D / v`, the divergence between the data's distribution and a model of this log-likelihood.
pub(super) fn divergence(data: &dyn Data<f64>, ln_lik: f64) -> f64 {
    let v = data.total();
    (data.self_information().expect("data in memory") - v * v.ln() - ln_lik) / v
}

/// The divergence along a run, from iteration 1 on.
pub(super) fn divergence_trace(data: &dyn Data<f64>, trace: &[TracePoint]) -> Vec<(f64, f64)> {
    trace
        .iter()
        .filter(|p| p.iteration > 0)
        .map(|p| (p.iteration as f64, divergence(data, p.objective)))
        .collect()
}

/// Mixtures of new observations, columns of `data`, under a learnt basis; counts that no component explains are left out.
pub(super) fn mixtures(basis: &DMatrix<f64>, data: &dyn Data<f64>) -> Result<DMatrix<f64>> {
    let k = basis.ncols();
    let even = DMatrix::from_element(k, 1, 1.0 / k as f64);
    let learnt = PlsaState::new(Given::Columns, basis.clone(), even, vec![1.0])?;
    let how = Transform::default().impossible(Impossible::Drop);
    Ok(learnt.transform(data, &how)?.fit.state().mixture().clone())
}

/// `N(x; mean, variance)`.
pub(super) fn gaussian(x: f64, mean: f64, variance: f64) -> f64 {
    (-(x - mean).powi(2) / (2.0 * variance)).exp() / (2.0 * std::f64::consts::PI * variance).sqrt()
}

/// Mean and variance of a distribution over the points of a grid.
pub(super) fn moments(grid: &[f64], p: DVectorView<'_, f64>) -> (f64, f64) {
    let mean: f64 = grid.iter().zip(p.iter()).map(|(x, p)| x * p).sum();
    let variance = (grid.iter().zip(p.iter()))
        .map(|(x, p)| (x - mean).powi(2) * p)
        .sum();
    (mean, variance)
}

/// The largest of numbers that are not negative, 0 of none; NaN if there is one: it must not pass for a good value.
pub(super) fn largest(of: impl IntoIterator<Item = f64>) -> f64 {
    let greater = |a: f64, b: f64| if b <= a { a } else { b };
    of.into_iter()
        .fold(0.0, |a, b| if a.is_nan() { a } else { greater(a, b) })
}

/// The smallest of numbers, infinity of none; NaN if there is one.
pub(super) fn smallest(of: impl IntoIterator<Item = f64>) -> f64 {
    let less = |a: f64, b: f64| if b >= a { a } else { b };
    let of = of.into_iter();
    of.fold(
        f64::INFINITY,
        |a, b| if a.is_nan() { a } else { less(a, b) },
    )
}

/// Cosine of the angle between two vectors.
pub(super) fn cosine(a: DVectorView<'_, f64>, b: DVectorView<'_, f64>) -> f64 {
    a.dot(&b) / (a.norm() * b.norm())
}

/// All orders of `0..k`.
pub(super) fn permutations(k: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for n in 0..k {
        all = all
            .into_iter()
            .flat_map(|p: Vec<usize>| {
                (0..=p.len()).map(move |at| {
                    let mut longer = p.clone();
                    longer.insert(at, n);
                    longer
                })
            })
            .collect();
    }
    all
}

/// The assignment of components to truths with the least cost.
pub(super) fn best_matching(k: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    let total = |p: &Vec<usize>| -> f64 { p.iter().enumerate().map(|(t, &z)| cost(t, z)).sum() };
    permutations(k)
        .into_iter()
        .min_by(|a, b| total(a).total_cmp(&total(b)))
        .unwrap_or_default()
}

/// A draw from `Gamma(shape, 1)`, `0 < shape <= 1`, by rejection (Ahrens and Dieter's algorithm GS).
fn gamma_of_fraction(shape: f64, rng: &mut ChaCha8Rng) -> f64 {
    let b = 1.0 + shape / std::f64::consts::E;
    loop {
        let p = b * uniform(rng);
        let accept = uniform(rng);
        if p <= 1.0 {
            let x = p.powf(1.0 / shape);
            if accept <= (-x).exp() {
                return x;
            }
        } else {
            let x = -((b - p) / shape).ln();
            if accept <= x.powf(shape - 1.0) {
                return x;
            }
        }
    }
}

/// A draw from `Gamma(shape, 1)`, `shape > 0`: exponential draws, and one of the fraction that is left.
pub(super) fn gamma(shape: f64, rng: &mut ChaCha8Rng) -> f64 {
    let whole = shape.ceil() - 1.0;
    let sum: f64 = (0..whole as u64).map(|_| exponential(rng)).sum();
    sum + gamma_of_fraction(shape - whole, rng)
}

/// A draw from the normal distribution of mean 0 and variance 1 (Box and Muller).
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (2.0 * exponential(rng)).sqrt();
    radius * (2.0 * std::f64::consts::PI * uniform(rng)).cos()
}

/// Mean and standard deviation (divided by the number).
pub(super) fn mean_sd(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// What is known of a quantity after some runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    pub(super) mean: f64,
    /// Standard deviation (divided by the number).
    pub(super) deviation: f64,
    pub(super) number: f64,
}

impl Runs {
    pub(super) fn of(x: &[f64]) -> Self {
        let (mean, deviation) = mean_sd(x);
        let number = x.len() as f64;
        Self {
            mean,
            deviation,
            number,
        }
    }

    /// Square of the standard error of the mean; NaN of a single run.
    fn error(&self) -> f64 {
        self.deviation.powi(2) / (self.number - 1.0)
    }

    /// Half of the two-sided interval of this `level` for the mean (Student).
    pub(super) fn half(&self, level: f64) -> Result<f64> {
        Ok(quantile(self.number - 1.0, level)? * self.error().sqrt())
    }

    /// The same for the difference from the mean of other runs, which may spread otherwise (Welch).
    pub(super) fn half_against(&self, other: &Self, level: f64) -> Result<f64> {
        let errors = [self, other].map(|runs| (runs.error(), runs.number - 1.0));
        let sum = errors[0].0 + errors[1].0;
        if sum == 0.0 {
            return Ok(0.0);
        }
        // Satterthwaite's degrees of freedom.
        let freedom = sum * sum / errors.iter().map(|(e, n)| e * e / n).sum::<f64>();
        Ok(quantile(freedom, level)? * sum.sqrt())
    }
}

/// What Student's distribution exceeds on either side with `1 - level` in all.
fn quantile(freedom: f64, level: f64) -> Result<f64> {
    Ok(StudentsT::new(0.0, 1.0, freedom)?.inverse_cdf(0.5 + 0.5 * level))
}

/// Columns drawn from a symmetric Dirichlet distribution of this `concentration`.
pub(super) fn dirichlet(
    rows: usize,
    columns: usize,
    concentration: f64,
    rng: &mut ChaCha8Rng,
) -> DMatrix<f64> {
    let mut m = DMatrix::from_fn(rows, columns, |_, _| gamma(concentration, rng));
    plca_tensor::normalise_columns(&mut m);
    m
}

/// Rows of a picture from a function of (row, column).
pub(super) fn rows(m: usize, n: usize, f: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    (0..m).map(|i| (0..n).map(|j| f(i, j)).collect()).collect()
}

/// A matrix as a picture: row 0 at the top, as matrices are written.
pub(super) fn matrix_rows(m: &DMatrix<f64>) -> Vec<Vec<f64>> {
    rows(m.nrows(), m.ncols(), |i, j| m[(m.nrows() - 1 - i, j)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_undoes_a_permutation() {
        let truth = [3.0, 1.0, 2.0];
        let found = [1.0, 2.0, 3.0];
        let m = best_matching(3, |t, z| f64::abs(truth[t] - found[z]));
        assert_eq!(m, [2, 0, 1]);
        assert_eq!(permutations(4).len(), 24);
    }

    #[test]
    fn intervals_are_those_of_tables() {
        // Student: 2.262 of 9 degrees of freedom.
        let x: Vec<f64> = (1..=10).map(f64::from).collect();
        let runs = Runs::of(&x);
        let error = (x.iter().map(|x| (x - 5.5).powi(2)).sum::<f64>() / 90.0).sqrt();
        assert!((runs.half(0.95).unwrap() / error - 2.262_157).abs() < 1e-5);
        // Of the same spread and number, twice the degrees of freedom: 2.101 of 18.
        let both = runs.half_against(&runs, 0.95).unwrap();
        assert!((both / (error * 2f64.sqrt()) - 2.100_922).abs() < 1e-5);
        // What does not spread is known.
        let fixed = Runs::of(&[3.0; 10]);
        assert_eq!(fixed.half_against(&fixed, 0.95).unwrap(), 0.0);
        let against = runs.half_against(&fixed, 0.95).unwrap();
        assert!((against - runs.half(0.95).unwrap()).abs() < 1e-9);
        // Of one run nothing.
        assert!(!Runs::of(&[1.0]).half(0.95).is_ok_and(f64::is_finite));
    }

    #[test]
    fn gamma_and_normal_draws_have_their_means_and_variances() {
        let mut rng = rng(1, 0);
        let n = 200_000;
        let mut check =
            |draw: &dyn Fn(&mut ChaCha8Rng) -> f64, mean: f64, variance: f64, fourth: f64| {
                let draws: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
                let (m, sd) = mean_sd(&draws);
                // Five standard errors, of the variance from the fourth central moment.
                let error = (variance / f64::from(n)).sqrt();
                assert!((m - mean).abs() < 5.0 * error, "{m}");
                let error = ((fourth - variance * variance) / f64::from(n)).sqrt();
                assert!((sd * sd - variance).abs() < 5.0 * error, "{sd}");
            };
        for shape in [0.6, 1.0, 5.0, 7.3] {
            check(
                &|rng| gamma(shape, rng),
                shape,
                shape,
                3.0 * shape * (shape + 2.0),
            );
        }
        check(&|rng| normal(rng), 0.0, 1.0, 3.0);
    }
}
