//! Hyperparameters learnt from one data set after another, and how far they and the factors are off.

use plca_dist::random::uniform;
use plca_fit::{Model, Solver, Stop};
use plca_tensor::DenseTensor;
use rand_chacha::ChaCha8Rng;
use skellam_snmf::{Hyperparameters, Learner, Rate, Replicates, Sharing, SnmfVb, SnmfVbState};

use super::sk_known::{F, K, counts, errors, factors};
use super::support::{mean_sd, permutations, rng};
use crate::Result;

/// How learning is kept from going astray: the paper's two leads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Guard {
    /// This number of data sets come first, with their factors.
    pub(super) supervised: usize,
    pub(super) rate: Rate,
    /// The last iterations of a fit are under the prior to this power.
    pub(super) weakened: Option<f64>,
}

/// Sizes of an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Columns of a data set.
    pub(super) n: usize,
    pub(super) sets: usize,
    /// Accelerated iterations for each, at most.
    pub(super) max_iter: usize,
}

/// Iterations under a weakened prior.
const WEAKENED: usize = 20;
/// Change of the objective per iteration that ends a fit, in nats per count.
const TOL: f64 = 1e-10;
/// Weight of a new data set in the paper.
pub(super) const RATE: f64 = 0.02;

/// Squared errors after a data set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Mean over the entries of `α`, `a` and `b`.
    pub(super) hyper: [f64; 3],
    /// Of the sources and of their variances.
    pub(super) sources: [f64; 2],
}

pub(super) const QUANTITIES: [&str; 5] = ["alpha", "a", "b", "mse_m", "mse_v"];

impl Point {
    pub(super) fn get(&self, quantity: usize) -> f64 {
        match quantity {
            0..3 => self.hyper[quantity],
            _ => self.sources[quantity - 3],
        }
    }
}

/// Mean squared differences under a matching of the components.
fn hyper_errors(truth: &Hyperparameters, found: &Hyperparameters, order: &[usize]) -> [f64; 3] {
    let mut alpha = 0.0;
    for f in 0..F {
        for (k, &z) in order.iter().enumerate() {
            for s in 0..2 {
                let at = |k: usize| 2 * (f * K + k) + s;
                alpha += (truth.alpha[at(k)] - found.alpha[at(z)]).powi(2);
            }
        }
    }
    let by_component = |t: &[f64], e: &[f64]| {
        let squares = order
            .iter()
            .enumerate()
            .map(|(k, &z)| (t[k] - e[z]).powi(2));
        squares.sum::<f64>() / K as f64
    };
    [
        alpha / (2 * F * K) as f64,
        by_component(&truth.shape, &found.shape),
        by_component(&truth.rate, &found.rate),
    ]
}

fn fit(
    learner: &Learner,
    data: &DenseTensor<f64>,
    guard: Guard,
    max_iter: usize,
    draws: &mut ChaCha8Rng,
) -> Result<SnmfVbState<f64>> {
    let prior = learner.prior()?;
    let vb = |priors| SnmfVb::new(K).replicates(Replicates::One).priors(priors);
    let fitted = vb(prior.clone());
    let start = fitted.at_prior(data, 0.0, draws)?;
    let stop = Stop::default().max_iter(max_iter).tol(TOL);
    let run = fitted.on(data)?.solver(Solver::Squarem).stop(stop);
    let fit = run.run(&start, draws)?;
    let Some(power) = guard.weakened else {
        return Ok(fit.into_state());
    };
    let weak = vb(prior.weakened(power));
    let last = Stop::default().max_iter(WEAKENED).tol(None);
    let run = weak.on(data)?.solver(Solver::Em).stop(last);
    Ok(run.run(fit.state(), draws)?.into_state())
}

/// Learns from data sets drawn one after another; the errors after each, those of the start first.
pub(super) fn learn(
    truth: &Hyperparameters,
    guard: Guard,
    sizes: Sizes,
    seed: u64,
) -> Result<Vec<Point>> {
    let sharing = Sharing::by_component(F, K);
    let mut start = rng(seed, 90);
    let hyper = Hyperparameters {
        alpha: (0..2 * F * K)
            .map(|_| 1.0 + 1e-5 * uniform(&mut start))
            .collect(),
        shape: vec![1.0; K],
        rate: vec![1e-3; K],
    };
    let mut learner = Learner::new(sharing, hyper, guard.rate)?;
    let orders = permutations(K);
    let mut points = Vec::new();
    for t in 0..sizes.sets {
        let mut draws = rng(seed, 1000 + t as u64);
        let known = factors(truth, sizes.n, &mut draws)?;
        let data = counts(&known, &mut draws)?;
        let fitted = fit(&learner, &data, guard, sizes.max_iter, &mut draws)?;
        let means = fitted.means()?;
        let scored = orders.iter().map(|o| (o, errors(&known, &means, o)));
        let best = scored.min_by(|x, y| x.1[0].total_cmp(&y.1[0]));
        let (order, sources) = best.ok_or("no components")?;
        // The hyperparameters that this fit was made under.
        let hyper = hyper_errors(truth, learner.hyperparameters(), order);
        points.push(Point { hyper, sources });
        if t < guard.supervised {
            learner.learn_known(&known.to_factors())?;
        } else {
            learner.learn(&fitted.posterior())?;
        }
    }
    Ok(points)
}

/// Mean of a quantity over `width` data sets that end before `end`.
pub(super) fn average(points: &[Point], quantity: usize, end: usize, width: usize) -> f64 {
    let part = &points[end.saturating_sub(width)..end];
    part.iter().map(|p| p.get(quantity)).sum::<f64>() / part.len() as f64
}

/// Whether every error ends below its start, that of `plain` learning, and has settled: the last two windows differ by at most a
/// fifth or by a hundredth of the start; errors of sources, which fluctuate, also by two standard errors of the difference.
/// Without `settle` the fall alone counts.
pub(super) fn succeeded(points: &[Point], plain: &[Point], width: usize, settle: bool) -> bool {
    let n = points.len();
    let window = |points: &[Point], q: usize, end: usize| {
        let part = points[end - width..end].iter();
        mean_sd(&part.map(|p| p.get(q)).collect::<Vec<_>>())
    };
    (0..QUANTITIES.len()).all(|q| {
        let noisy = q >= 3;
        // Hyperparameters start at one point, sources with the first window.
        let start = if noisy {
            window(plain, q, width).0
        } else {
            plain[0].get(q)
        };
        let (before, last) = (window(points, q, n - width), window(points, q, n));
        let spread = (before.1 * before.1 + last.1 * last.1) / width as f64;
        let noise = if noisy { 2.0 * spread.sqrt() } else { 0.0 };
        let room = (0.2 * before.0.max(last.0)).max(0.01 * start).max(noise);
        last.0 < start && (!settle || (last.0 - before.0).abs() <= room)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(f: impl Fn(usize) -> f64) -> Vec<Point> {
        let point = |t| Point {
            hyper: [f(t); 3],
            sources: [f(t); 2],
        };
        (0..100).map(point).collect()
    }

    #[test]
    fn success_is_a_fall_that_has_settled() {
        let success = |f: &dyn Fn(f64) -> f64| {
            let points = course(|t| f(t as f64));
            succeeded(&points, &points, 20, true)
        };
        assert!(success(&|t| 1.0 + (-t / 10.0).exp()));
        assert!(!success(&|t| 1.0 + t / 100.0));
        assert!(!success(&|t| 2.0 - t / 60.0));
        // What is small against the start may wander.
        assert!(success(&|t| 0.001 * t.sin() + (-t / 3.0).exp()));
    }

    #[test]
    fn errors_of_hyperparameters_follow_the_matching() {
        let truth = Hyperparameters {
            alpha: (0..2 * F * K).map(|i| i as f64).collect(),
            shape: vec![1.0, 2.0],
            rate: vec![3.0, 5.0],
        };
        assert_eq!(hyper_errors(&truth, &truth, &[0, 1]), [0.0; 3]);
        assert_eq!(hyper_errors(&truth, &truth, &[1, 0]), [4.0, 1.0, 4.0]);
    }
}
