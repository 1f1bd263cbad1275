//! Real data with noise: the rate of noise, the bound, and what they are for.

use nalgebra::DMatrix;
use plca_dist::skellam_divergence;
use plca_fit::{Impossible, Init, Model, Reconstruct, Solver, State, Stop, Transform, seed as rng};
use plca_tensor::{DenseTensor, Order, Real};
use proptest::prelude::*;
use skellam_snmf::{Ding, Reach, Replicates, ShiftedSnmf, SignedCp, Snmf, SnmfState};

use crate::support::tensor;

const SOLVERS: [Solver; 4] = [
    Solver::Auto,
    Solver::Squarem,
    Solver::Parabolic,
    Solver::Momentum,
];

/// Patterns in bumps of time, and noise in every cell.
fn bumps(rows: usize, columns: usize, k: usize, noise: f64, seed: u64) -> DMatrix<f64> {
    let mut rng = rng(seed);
    let mut uniform = || plca_dist::random::uniform(&mut rng);
    let mut activations = DMatrix::zeros(k, columns);
    let width = columns / 5;
    for z in 0..k {
        for _ in 0..3 {
            let first = (uniform() * (columns - width) as f64) as usize;
            let size = 0.5 + uniform();
            for t in 0..width {
                let s = (std::f64::consts::PI * t as f64 / width as f64).sin();
                activations[(z, first + t)] += size * s * s;
            }
        }
    }
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let atoms = DMatrix::from_fn(rows, k, |_, _| normal());
    atoms * activations + DMatrix::from_fn(rows, columns, |_, _| noise * normal())
}

fn relative(v: &DMatrix<f64>, product: &DMatrix<f64>) -> f64 {
    (v - product).norm() / v.norm()
}

/// By every solver, the reconstruction is nearly as good as that of least squares, which the limit alone is not.
#[test]
fn near_least_squares() {
    for seed in 0..3 {
        let v = bumps(12, 100, 3, 0.08, seed);
        let data = tensor(&v);
        let run = Ding::new(3);
        let run = run.on(&data).unwrap().restarts(3);
        let fit = run.run(Init::default(), &mut rng(1)).unwrap();
        let best = relative(&v, &(fit.state().basis() * fit.state().activations()));
        let error = |m: Replicates, solver: Solver| {
            let model = Snmf::new(3).replicates(m);
            let run = model.on(&data).unwrap().solver(solver).restarts(3);
            let fit = run.run(Init::default(), &mut rng(1)).unwrap();
            relative(
                &v,
                &(fit.state().signed_atoms() * fit.state().activations()),
            )
        };
        for solver in SOLVERS {
            let found = error(Replicates::Auto, solver);
            assert!(found <= 1.1 * best, "{seed} {solver}: {found} {best}");
        }
        assert!(error(Replicates::Limit, Solver::Momentum) > 1.1 * best);
    }
}

/// Equal sides and huge activations reconstruct nothing: the best objective of the limit, and one beyond the bound. [SKELLAM 13]
#[test]
fn nothing_is_not_the_best() {
    let v = bumps(5, 40, 2, 0.1, 7);
    let data = tensor(&v);
    let even = DMatrix::from_element(5, 2, 0.1);
    let nothing = SnmfState::new(&even, &even, DMatrix::from_element(2, 40, 1e9)).unwrap();
    for (m, best) in [(Replicates::Limit, true), (Replicates::Auto, false)] {
        let model = Snmf::new(2).replicates(m);
        let fit = model.fit(&data, &mut rng(3)).unwrap();
        let at = model.bind(&data).unwrap();
        let of_nothing = at.objective(nothing.parameters()).unwrap();
        assert_eq!(of_nothing > fit.compared(), best, "{m:?}");
    }
}

/// Data without noise are reproduced.
#[test]
fn exact_data() {
    let v = bumps(6, 30, 1, 0.0, 4);
    let data = tensor(&v);
    let model = Snmf::new(1);
    let run = model.on(&data).unwrap().stop(Stop::default().tol(1e-13));
    let fit = run.run(Init::default(), &mut rng(0)).unwrap();
    let found = relative(
        &v,
        &(fit.state().signed_atoms() * fit.state().activations()),
    );
    assert!(found < 1e-4, "{found}");
}

fn masked(values: &DMatrix<f64>, shape: Vec<usize>, seed: u64) -> DenseTensor<f64> {
    let mut rng = rng(seed);
    let rows = values
        .row_iter()
        .flat_map(|row| row.iter().copied().collect::<Vec<_>>());
    let values = rows.map(|v| match plca_dist::random::uniform(&mut rng) < 0.1 {
        true => f64::NAN,
        false => v,
    });
    DenseTensor::masked(shape, values.collect(), Order::RowMajor).unwrap()
}

/// No iteration lowers the objective.
fn rises<M: Model<f64>>(model: &M, data: &DenseTensor<f64>, seed: u64) {
    for solver in SOLVERS {
        let stop = Stop::default().max_iter(25).check_every(1).tol(None);
        let run = model.on(data).unwrap().solver(solver).stop(stop);
        let fit = run.run(Init::default(), &mut rng(seed)).unwrap();
        for pair in fit.trace().windows(2) {
            let [a, b] = [pair[0].objective, pair[1].objective];
            assert!(b >= a - 1e-11 * a.abs(), "{solver}: {a} {b}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn monotone(seed: u64) {
        let v = bumps(6, 20, 2, 0.5, seed);
        rises(&Snmf::new(2), &masked(&v, vec![6, 20], seed), seed);
        let tensor = masked(&v, vec![6, 4, 5], seed);
        rises(&SignedCp::new(2), &tensor, seed);
        rises(&SignedCp::new(2).scale_mode(Some(2)), &tensor, seed);
        let shifted = ShiftedSnmf::new(2, vec![2, 3]).reach(vec![Reach::Full]);
        rises(&shifted, &masked(&v, vec![6, 20], seed), seed);
    }

    /// The objective is the one that is documented, and activations are within the bound. [SKELLAM 13]
    #[test]
    fn definition(seed: u64) {
        let v = bumps(6, 20, 2, 0.5, seed);
        let model = Snmf::new(2);
        let fit = model.fit(&tensor(&v), &mut rng(seed)).unwrap();
        let state = fit.state();
        let mean = v.abs().sum() / v.len() as f64;
        let noise = state.parameters().fact("noise").unwrap()[0];
        prop_assert!((noise - Replicates::NOISE * mean).abs() <= 1e-12 * mean);
        prop_assert_eq!(state.parameters().fact("bound").unwrap().to_vec(), vec![Replicates::BOUND]);
        let [p, q] = [state.plus(), state.minus()].map(|side| side * state.activations());
        let terms = (0..v.len()).map(|at| skellam_divergence(v[at], p[at] + noise, q[at] + noise).unwrap());
        let sum: f64 = terms.sum();
        prop_assert!((fit.objective() + sum).abs() <= 1e-10 * sum);
        for (h, v) in state.activations().column_iter().zip(v.column_iter()) {
            prop_assert!(h.sum() <= Replicates::BOUND * v.abs().sum() * (1.0 + 1e-12));
        }
    }

    /// What is taken does not depend on the order of rows and columns.
    #[test]
    fn permutations(seed: u64) {
        let v = bumps(5, 15, 2, 0.5, seed);
        let turned = DMatrix::from_fn(5, 15, |i, j| v[(4 - i, (j + 4) % 15)]);
        let model = Snmf::new(2);
        let fit = model.fit(&tensor(&v), &mut rng(seed)).unwrap();
        let (state, data) = (fit.state(), tensor(&turned));
        let rows = |m: DMatrix<f64>| DMatrix::from_fn(5, 2, |i, z| m[(4 - i, z)]);
        let activations = DMatrix::from_fn(2, 15, |z, j| state.activations()[(z, (j + 4) % 15)]);
        let [plus, minus] = [state.plus(), state.minus()].map(|side| rows(side.into_owned()));
        let other = SnmfState::new(&plus, &minus, activations).unwrap();
        let value = model.bind(&data).unwrap().objective(other.parameters()).unwrap();
        prop_assert!((value - fit.compared()).abs() <= 1e-11 * value.abs());
    }
}

/// A column of zeros has no activations; data of zeros alone are fitted.
#[test]
fn zeros() {
    let mut v = bumps(5, 12, 2, 0.3, 5);
    v.column_mut(3).fill(0.0);
    v.row_mut(2).fill(0.0);
    let model = Snmf::new(2);
    let fit = model.fit(&tensor(&v), &mut rng(0)).unwrap();
    assert_eq!(fit.state().activations().column(3).amax(), 0.0);
    assert_eq!(fit.state().cell(&[1, 3]), 0.0);
    let nothing = tensor::<f64>(&DMatrix::zeros(3, 4));
    // Of the best, 0, every iteration leaves less.
    let after = |iterations| {
        let stop = Stop::default().tol(None).max_iter(iterations);
        let run = model.on(&nothing).unwrap().stop(stop);
        run.run(Init::default(), &mut rng(0)).unwrap().compared()
    };
    let [few, many] = [20, 2000].map(after);
    assert!(many <= 0.0 && many > 1e-2 * few, "{few} {many}");
}

/// New data that no atom reaches are explained by noise: by every column as by a fit of that column alone with the atoms frozen.
#[test]
fn what_no_atom_reaches_is_noise() {
    let (plus, minus) = (
        nalgebra::dmatrix![0.0, 0.5; 0.5, 0.25],
        nalgebra::dmatrix![0.5, 0.25; 0.0, 0.0],
    );
    let learnt = SnmfState::new(&plus, &minus, DMatrix::from_element(2, 1, 1.0)).unwrap();
    // Nothing is minus in the second row.
    let column = tensor(&nalgebra::dmatrix![3.0; -2.0]);
    let model = Snmf::new(2);
    let how = Transform::default()
        .solver(Solver::Em)
        .stop(Stop::default().tol(None).max_iter(50));
    let explained = model.transform(&learnt, &column, &how).unwrap();
    assert_eq!(explained.dropped, 0.0);
    let frozen = Snmf::new(2).freeze("atoms");
    let even = DMatrix::from_element(2, 1, 5.0 / 2.0);
    let start = Init::from(&learnt).block("activations", even);
    let run = frozen.on(&column).unwrap().solver(Solver::Em);
    let run = run.stop(Stop::default().tol(None).max_iter(50));
    let alone = run.run(start, &mut rng(0)).unwrap();
    assert_eq!(
        explained.fit.state().activations(),
        alone.state().activations()
    );
    let limit = Snmf::new(2).replicates(Replicates::Limit);
    let drop = how.impossible(Impossible::Drop);
    let found = limit.transform(&learnt, &column, &drop).unwrap();
    assert_eq!(found.dropped, 2.0);
}

/// The activations of every column stay within the bound, in either precision and whatever the number of columns is, from a start beyond it too.
#[test]
fn bounds_hold() {
    fn of<T: Real>(rounding: f64) {
        let v = bumps(4, 6000, 2, 0.5, 9);
        let values = v.transpose().iter().map(|&x| T::lit(x)).collect();
        let data = DenseTensor::<T>::new(vec![4, 6000], values, Order::RowMajor).unwrap();
        let model = Snmf::new(6);
        for (iterations, from) in [(0, 1e3), (30, 1.0)] {
            let start =
                Init::default().block("activations", DMatrix::from_element(6, 6000, T::lit(from)));
            let run = model.on(&data).unwrap().solver(Solver::Momentum);
            let run = run.stop(Stop::default().tol(None).max_iter(iterations));
            let fit = run.run(start, &mut rng(2)).unwrap();
            for (y, column) in v.column_iter().enumerate() {
                let bound = 6.0 * column.iter().map(|x| x.abs()).sum::<f64>();
                let sum: f64 = fit
                    .state()
                    .activations()
                    .column(y)
                    .iter()
                    .map(|x| x.to_f64())
                    .sum();
                assert!(
                    sum <= bound * (1.0 + rounding),
                    "{iterations}, column {y}: {sum} {bound}"
                );
            }
        }
    }
    of::<f64>(1e-11);
    of::<f32>(1e-5);
}

/// The objective of new data is the sum of what each column has alone, with noise of its own: the columns here differ in loudness.
#[test]
fn objectives_of_new_data_are_those_of_each_column() {
    let v = bumps(4, 6, 2, 0.5, 9);
    let v = DMatrix::from_fn(4, 6, |i, y| v[(i, y)] * 10f64.powi(y as i32 - 3));
    let model = Snmf::new(2);
    let stop = Stop::default().max_iter(5);
    let data = tensor(&v);
    let run = model.on(&data).unwrap().stop(stop.clone());
    let learnt = run.run(Init::default(), &mut rng(1)).unwrap().into_state();
    let how = Transform::default().solver(Solver::Em).stop(stop);
    let objective = |v: &DMatrix<f64>| {
        let explained = model.transform(&learnt, &tensor(v), &how).unwrap();
        explained.fit.objective()
    };
    let alone = v
        .column_iter()
        .map(|c| objective(&DMatrix::from_columns(&[c])));
    let (sum, all) = (alone.sum::<f64>(), objective(&v));
    assert!((sum - all).abs() <= 1e-12 * all.abs(), "{sum} {all}");
}
