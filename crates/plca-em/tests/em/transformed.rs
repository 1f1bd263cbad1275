//! Transformed models as they are by default: maps that leave the data and interpolate, hidden cells, priors.

use std::sync::Arc;

use nalgebra::{DMatrix, dmatrix};
use plca_em::{IndexMaps, Likelihood, MapEntry, Transformed};
use plca_fit::laws::check_threads;
use plca_fit::{Init, Model, Parameters, Solver, seed as rng};
use plca_priors::{Dirichlet, Entropic};
use plca_tensor::{Data, DenseTensor, Order, Real};
use proptest::prelude::*;

use crate::shifted::properties::obeys;
use crate::support::normalised;

const CELLS: usize = 6;
const KERNEL: usize = 2;

/// Shifts by fractions of a cell, of which some leave the data on either side: of every cell of the kernel the weights sum to 1.
fn entries() -> Vec<MapEntry> {
    let cell = |x: isize| usize::try_from(x).ok().filter(|&x| x < CELLS);
    let mut entries = Vec::new();
    for (map, place) in (-1..CELLS as isize).enumerate() {
        for from in 0..KERNEL {
            let to = place + from as isize;
            let share = if map % 2 == 0 { 0.75 } else { 0.4 };
            for (step, weight) in [(0, share), (1, 1.0 - share)] {
                entries.push(MapEntry {
                    map,
                    from,
                    to: cell(to + step),
                    weight,
                });
            }
        }
    }
    entries
}

fn model(components: usize) -> Transformed {
    let maps = IndexMaps::from_entries(CELLS, KERNEL, entries()).unwrap();
    Transformed::new(components, maps)
}

/// Complete where no value is NaN.
fn data<T: Real>(values: &[f64]) -> Box<dyn Data<T>> {
    let typed = values.iter().map(|&x| T::lit(x)).collect();
    if values.iter().any(|x| x.is_nan()) {
        return Box::new(DenseTensor::masked(vec![2, 3], typed, Order::RowMajor).unwrap());
    }
    Box::new(DenseTensor::new(vec![2, 3], typed, Order::RowMajor).unwrap())
}

/// What every term of the model expects of the data: counts of weights, kernels and impulses, and the likelihood.
struct Counts {
    weights: DMatrix<f64>,
    kernels: DMatrix<f64>,
    impulses: DMatrix<f64>,
    ln_lik: f64,
}

/// Term by term: what lies outside or is hidden has the model's share of `v / Σ_obs P`, nothing under the literal likelihood.
// [SPEC 4] [SPEC 5.2] [SPEC 5.7]
fn explicit(v: &[f64], at: &Parameters<f64>, likelihood: Likelihood) -> Counts {
    let [weights, kernels, impulses] = [0, 1, 2].map(|j| at.at(j));
    let k = weights.len();
    let term = |z: usize, e: &MapEntry| {
        e.weight * weights[z] * kernels[(e.from, z)] * impulses[(e.map, z)]
    };
    let mut p = [0.0; CELLS];
    for e in entries() {
        if let Some(x) = e.to {
            p[x] += (0..k).map(|z| term(z, &e)).sum::<f64>();
        }
    }
    let seen = || (0..CELLS).filter(|&x| !v[x].is_nan());
    let total: f64 = seen().map(|x| v[x]).sum();
    let mass: f64 = seen().map(|x| p[x]).sum();
    let conditional = likelihood == Likelihood::Conditional;
    let positive = seen().filter(|&x| v[x] > 0.0);
    let ln_lik = positive.map(|x| v[x] * p[x].ln()).sum::<f64>();
    let mut counts = Counts {
        weights: DMatrix::zeros(k, 1),
        kernels: DMatrix::zeros(KERNEL, k),
        impulses: DMatrix::zeros(impulses.nrows(), k),
        ln_lik: ln_lik - if conditional { total * mass.ln() } else { 0.0 },
    };
    for e in entries() {
        let ratio = match e.to {
            Some(x) if !v[x].is_nan() => v[x] / p[x],
            None if !conditional => 0.0,
            _ => total / mass,
        };
        for z in 0..k {
            let count = ratio * term(z, &e);
            counts.weights[z] += count;
            counts.kernels[(e.from, z)] += count;
            counts.impulses[(e.map, z)] += count;
        }
    }
    counts
}

/// Pseudo-counts that differ from entry to entry.
fn pseudo(rows: usize, columns: usize) -> DMatrix<f64> {
    DMatrix::from_fn(rows, columns, |i, z| 0.3 * i as f64 + 0.7 * z as f64 + 0.1)
}

fn close(what: &str, got: &[f64], want: &DMatrix<f64>) {
    for (got, want) in got.iter().zip(want.iter()) {
        assert!(
            (got - want).abs() < 1e-12,
            "{what}: {got} instead of {want}"
        );
    }
}

/// A step and its value, with and without priors, against sums over the terms.
#[test]
fn a_step_is_what_its_terms_sum_to() {
    let complete = vec![4.0, 1.0, 0.0, 7.0, 2.0, 5.0];
    let mut masked = complete.clone();
    [masked[1], masked[2], masked[5]] = [f64::NAN; 3];
    for (values, likelihood) in [
        (&complete, Likelihood::Conditional),
        (&complete, Likelihood::Literal),
        (&masked, Likelihood::Conditional),
    ] {
        for with_priors in [false, true] {
            let places = entries().iter().map(|e| e.map).max().unwrap() + 1;
            let blocks = [(3, 1), (KERNEL, 3), (places, 3)];
            let added = blocks.map(|(r, c)| pseudo(r, c) * if with_priors { 1.0 } else { 0.0 });
            let mut config = model(3).likelihood(likelihood);
            if with_priors {
                let prior = |at: usize| {
                    let alpha = added[at].map(|c| c + 1.0);
                    Arc::new(Dirichlet::per_entry(alpha).unwrap())
                };
                config = config.prior("weights", prior(0)).prior("kernels", prior(1));
                config = config.prior("impulses", prior(2));
            }
            let data = data::<f64>(values);
            let em = config.bind(&*data).unwrap();
            for seed in 0..4 {
                let start = Init::default().block("weights", dmatrix![0.2; 0.5; 0.3]);
                let mut at = start.parameters(&*em, &mut rng(seed)).unwrap();
                let want = explicit(values, &at, likelihood);
                let ln_lik = em.likelihood(&at).unwrap();
                assert!((ln_lik - want.ln_lik).abs() < 1e-11);
                em.step(&mut at, true).unwrap();
                let counts = [want.weights, want.kernels, want.impulses];
                for (((name, got), counts), added) in at.blocks().zip(counts).zip(&added) {
                    close(name, got.as_slice(), &normalised(counts + added));
                }
            }
        }
    }
}

/// Values of cells, of which the first is surely positive; a hidden one is NaN.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![2 => Just(0.0), 5 => 0.05..20.0f64, 1 => Just(f64::NAN)];
    prop::collection::vec(value, CELLS).prop_map(|mut values| {
        values[0] = if values[0] > 0.0 { values[0] } else { 1.0 };
        values
    })
}

fn monotone<T: Real>(
    values: &[f64],
    components: usize,
    seed: u64,
    beta: f64,
) -> Result<(), TestCaseError> {
    let data = data::<T>(values);
    for likelihood in [Likelihood::Conditional, Likelihood::Literal] {
        if likelihood == Likelihood::Literal && !data.is_complete() {
            continue;
        }
        for with_priors in [false, true] {
            let mut config = model(components).likelihood(likelihood);
            if with_priors {
                let entropic = Arc::new(Entropic::new(beta).unwrap());
                let dirichlet = Arc::new(Dirichlet::symmetric(1.5).unwrap());
                config = config
                    .prior("weights", dirichlet)
                    .prior("kernels", entropic.clone());
                config = config.prior("impulses", entropic);
            }
            let em = config.bind(&*data).unwrap();
            let start = Init::default().parameters(&*em, &mut rng(seed)).unwrap();
            obeys(&*em, Solver::Em, &start, "plain")?;
            obeys(&*em, Solver::Squarem, &start, "accelerated")?;
        }
    }
    Ok(())
}

proptest! {
    /// The objective never falls, whatever is hidden and whatever lies outside.
    // [SPEC 5.2] [SPEC 5.5]
    #[test]
    fn the_objective_never_falls_f64(v in values(), k in 1..=3usize, seed: u64, beta in -2.0..2.0f64) {
        monotone::<f64>(&v, k, seed, beta)?;
    }

    /// As for `f64`.
    #[test]
    fn the_objective_never_falls_f32(v in values(), k in 1..=3usize, seed: u64, beta in -2.0..2.0f64) {
        monotone::<f32>(&v, k, seed, beta)?;
    }

    /// Single numbers give what double ones do.
    #[test]
    fn precisions_agree(v in values(), k in 1..=3usize, seed: u64) {
        let (wide, narrow) = (data::<f64>(&v), data::<f32>(&v));
        let model = model(k);
        let (a, b) = (model.bind(&*wide).unwrap(), model.bind(&*narrow).unwrap());
        let mut x = Init::default().parameters(&*a, &mut rng(seed)).unwrap();
        let mut y = Init::default().parameters(&*b, &mut rng(seed)).unwrap();
        a.step(&mut x, false).unwrap();
        b.step(&mut y, false).unwrap();
        for (x, y) in x.at(1).iter().chain(x.at(2)).zip(y.at(1).iter().chain(y.at(2))) {
            prop_assert!((x - f64::from(*y)).abs() < 1e-4, "{x} and {y}");
        }
    }
}

/// The bits do not depend on the number of threads: more cells, maps and components than one part of the work.
#[test]
fn one_thread_is_many() {
    let (cells, kernel) = (700, 9);
    let table: Vec<i64> = (-4..cells as i64 - 4)
        .flat_map(|place| (0..kernel as i64).map(move |u| place + u))
        .map(|x| {
            if (0..cells as i64).contains(&x) {
                x
            } else {
                -1
            }
        })
        .collect();
    let values: Vec<f64> = (0..cells).map(|x| f64::from(x as u32 * 7 % 11)).collect();
    let data = DenseTensor::new(vec![cells], values, Order::RowMajor).unwrap();
    let config = Transformed::new(4, IndexMaps::new(cells, kernel, &table).unwrap());
    let end = || {
        let em = config.bind(&data).unwrap();
        let mut state = Init::default().parameters(&*em, &mut rng(2)).unwrap();
        for _ in 0..3 {
            em.step(&mut state, false).unwrap();
        }
        (em.objective(&state).unwrap(), state)
    };
    check_threads(end).unwrap();
}
