//! Shapes far below 1: variational Bayes fits the prior that it was given, in both precisions.

use nalgebra::{DMatrix, dmatrix};
use plca_dist::{digamma, ln_gamma, skellam_divergence, skellam_limit_ratios};
use plca_dist::{skellam_ln_pmf, skellam_ratios};
use plca_fit::{FitError, Init, Model};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Entries, Posterior, Prior, Replicates, SnmfState, SnmfVb};

use crate::support::{At, masked, tensor};

use crate::properties::problem::{Problem, distance, problem, replicates};

fn prior(shape: f64) -> Prior {
    Prior {
        plus: Entries::All(shape),
        minus: Entries::All(shape),
        shape: Entries::All(shape),
        rate: Entries::All(0.1),
    }
}

fn wide(q: &Posterior<f32>) -> Posterior<f64> {
    let wide = |m: &DMatrix<f32>| m.map(f64::from);
    Posterior {
        plus: wide(&q.plus),
        minus: wide(&q.minus),
        shape: wide(&q.shape),
        rate: wide(&q.rate),
    }
}

/// The largest difference of the shapes, relative to the largest of each block.
fn apart(a: &Posterior<f64>, b: &Posterior<f64>) -> f64 {
    let atoms = distance(&a.plus, &b.plus).max(distance(&a.minus, &b.minus));
    atoms.max(distance(&a.shape, &b.shape))
}

fn vb(problem: &Problem, m: Replicates, shape: f64) -> SnmfVb {
    SnmfVb::new(problem.k).replicates(m).priors(prior(shape))
}

/// One update of `[SKELLAM 6]` and the bound of `[SKELLAM 7]` before it, term by term with logarithms.
fn by_definition(
    problem: &Problem,
    m: Replicates,
    shape: f64,
    q: &Posterior<f64>,
) -> (Posterior<f64>, f64) {
    let (f, n) = problem.values.shape();
    let psi = |x: f64| digamma(x).unwrap();
    let gamma = |x: f64| ln_gamma(x).unwrap();
    let total = |k: usize| q.plus.column(k).sum() + q.minus.column(k).sum();
    let ln_t = |s: usize, i: usize, k: usize| psi([&q.plus, &q.minus][s][(i, k)]) - psi(total(k));
    let ln_h = |k: usize, j: usize| psi(q.shape[(k, j)]) - q.rate[(k, j)].ln();
    let mut next = Posterior {
        plus: DMatrix::from_element(f, problem.k, shape),
        minus: DMatrix::from_element(f, problem.k, shape),
        shape: DMatrix::from_element(problem.k, n, shape),
        rate: DMatrix::from_element(problem.k, n, 1.1),
    };
    let mut bound = 0.0;
    for i in 0..f {
        for j in 0..n {
            let terms = [0, 1].map(|s| {
                (0..problem.k)
                    .map(|k| ln_t(s, i, k) + ln_h(k, j))
                    .collect::<Vec<_>>()
            });
            let ln = terms.each_ref().map(|t| {
                let largest = t.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                largest + t.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
            });
            let [p, r] = ln.map(f64::exp);
            bound += p + r;
            let mut counts = [p, r];
            if problem.seen[(i, j)] {
                let (v, number) = (problem.values[(i, j)], m.number());
                let limit = m == Replicates::Limit;
                let own = usize::from(v < 0.0);
                if v != 0.0 && [p, r][own] < 1e-250 {
                    counts = [v.max(0.0), (-v).max(0.0)];
                    let size = v.abs();
                    bound -= p + r;
                    bound += size * ln[own];
                    bound += if limit {
                        size - size * size.ln()
                    } else {
                        size * number.ln() - gamma(number * size + 1.0) / number
                    };
                } else if limit {
                    let (a, b) = skellam_limit_ratios(v, p, r).unwrap();
                    counts = [p * a, r * b];
                    bound -= skellam_divergence(v, p, r).unwrap();
                } else {
                    let (a, b) = skellam_ratios(number * v, number * p, number * r).unwrap();
                    counts = [p * a, r * b];
                    bound += skellam_ln_pmf(number * v, number * p, number * r).unwrap() / number;
                }
            }
            (0..problem.k).for_each(|k| {
                let share = [0, 1].map(|s| {
                    if counts[s] > 0.0 {
                        counts[s] * (terms[s][k] - ln[s]).exp()
                    } else {
                        0.0
                    }
                });
                next.plus[(i, k)] += share[0];
                next.minus[(i, k)] += share[1];
                next.shape[(k, j)] += share[0] + share[1];
            });
        }
    }
    for (s, b) in q.shape.iter().zip(&q.rate) {
        let kl = (s - shape) * psi(*s) - gamma(*s)
            + gamma(shape)
            + shape * (b / 0.1).ln()
            + s * (0.1 - b) / b;
        bound -= s / b + kl;
    }
    for k in 0..problem.k {
        bound -= gamma(total(k)) - gamma(2.0 * f as f64 * shape);
        for x in q.plus.column(k).iter().chain(q.minus.column(k).iter()) {
            bound -= gamma(shape) - gamma(*x) + (x - shape) * (psi(*x) - psi(total(k)));
        }
    }
    (next, bound)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Every step and every bound is that of the definition, from starts where no rate is a number.
    /// [SKELLAM 6] [SKELLAM 7] [SKELLAM 11]
    #[test]
    fn steps_are_those_of_the_definition(problem in problem(), m in replicates(), shape in prop_oneof![Just(0.02), Just(1e-3), Just(1e-5), Just(1e-9)]) {
        let data = problem.tensor();
        let config = vb(&problem, m, shape);
        let start = config.at_prior(&data, 0.1 * shape, &mut problem.rng()).unwrap();
        let mut at = At::start(&config, &data, &start);
        for _ in 0..6 {
            let (want, value) = by_definition(&problem, m, shape, &at.state().posterior());
            let size = problem.values.abs().sum() * (1.0 + 1.0 / shape);
            let got = at.objective();
            prop_assert!((got - value).abs() <= 1e-12 * (size + value.abs()), "{got} {value}");
            let measured = at.measured();
            prop_assert!((measured - got).abs() <= 1e-12 * (size + value.abs()), "{measured} {got}");
            let state = at.state().posterior();
            // Where ψ is steep, so are shares in the shapes' rounding.
            prop_assert!(apart(&state, &want) <= 1e-9_f64.max(1e-15 / shape), "{}", apart(&state, &want));
        }
    }

    /// Single precision follows double precision, its bound too.
    #[test]
    fn single_precision_follows_double(problem in problem(), m in replicates(), shape in prop_oneof![Just(0.02), Just(0.01), Just(1e-3)]) {
        let data = problem.tensor();
        let single = masked(&problem.values.map(|x| x as f32), &problem.seen);
        let vb = vb(&problem, m, shape);
        let start = problem.factors();
        let means = SnmfState::new(&start.plus, &start.minus, start.activations.clone()).unwrap();
        let mut a = At::start(&vb, &data, &vb.at_means(&data, &means).unwrap());
        let cut = |m: &DMatrix<f64>| m.map(|x| x as f32);
        let means = SnmfState::new(&cut(&start.plus), &cut(&start.minus), cut(&start.activations)).unwrap();
        let mut b = At::start(&vb, &single, &vb.at_means(&single, &means).unwrap());
        let size = problem.values.abs().sum() + problem.values.len() as f64;
        let mut before = f64::NEG_INFINITY;
        for _ in 0..8 {
            let (x, y) = (a.state().posterior(), wide(&b.state().posterior()));
            prop_assert!(apart(&x, &y) <= 1e-3, "{}", apart(&x, &y));
            let (u, v) = (a.objective(), b.objective());
            prop_assert!((u - v).abs() <= 1e-4 * (size + u.abs()), "{u} {v}");
            prop_assert!(v >= before - 1e-5 * (size + v.abs()), "{before} {v}");
            before = v;
            a.step();
            b.step();
        }
        // What no datum asks for stays at the prior, not above it.
        let hidden: Vec<usize> = (0..problem.values.ncols()).filter(|&n| !problem.seen.column(n).iter().any(|&s| s)).collect();
        for n in hidden {
            prop_assert!(b.state().activations_shape().column(n).iter().all(|&s| s >= shape as f32));
        }
    }
}

/// A start at the prior is the prior, and has no divergence from it.
#[test]
fn the_prior_is_that_which_was_given() {
    let v = tensor(&dmatrix![2.0f32, 5.0; -4.0, 0.0]);
    for shape in [0.02, 0.01, 1e-3, 1e-10, 1e-19] {
        let config = SnmfVb::new(2).priors(prior(shape));
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let start = config.at_prior(&v, 0.0, &mut rng).unwrap();
        let q = start.posterior();
        assert!(q.plus.iter().chain(&q.shape).all(|&x| x == shape as f32));
        let at_prior = Posterior {
            rate: q.rate.map(|_| 0.1f32),
            ..q
        };
        let divergence = at_prior.divergence(&prior(shape)).unwrap();
        assert!(divergence.abs() < 1e-4, "{shape}: {divergence}");
        let mut at = At::start(&config, &v, &start);
        let before = at.measured();
        let after = at.objective();
        assert!(
            before.is_finite() && after >= before,
            "{shape}: {before} {after}"
        );
    }
}

/// Smaller shapes are refused, in a prior and in a start, with the least there is.
#[test]
fn shapes_that_cannot_be_held_are_refused() {
    let v = dmatrix![2.0, -5.0];
    let (double, single) = (tensor(&v), tensor(&v.map(|x| x as f32)));
    fn config(shape: f64) -> SnmfVb {
        SnmfVb::new(1).priors(prior(shape))
    }
    assert!(config(1e-150).on(&double).is_ok() && config(1e-19).on(&single).is_ok());
    let small = config(1e-20);
    let refused = small.on(&single).unwrap_err();
    assert!(matches!(refused, FitError::Range { value: 1e-20, .. }));
    let least =
        "in row 0, column 0, expected a finite number >= 1e-19, the least in single precision";
    assert!(refused.to_string().ends_with(least), "{refused}");
    let small = config(1e-300);
    let refused = small.on(&double).unwrap_err().to_string();
    assert!(
        refused.ends_with("expected a finite number >= 1e-150"),
        "{refused}"
    );
    let config = config(0.5);
    let start = Init::default().block("atoms_shape", dmatrix![1.0f32; 1e-30]);
    let refused = config.init(&single, start, &mut ChaCha8Rng::seed_from_u64(0));
    let refused = refused.unwrap_err();
    let named = matches!(
        refused,
        FitError::Range {
            row: 1,
            column: 0,
            ..
        }
    );
    assert!(named, "{refused}");
}
