//! What the methods must not be confused with: slips of the paper and plausible mistakes, each caught by a property that the real
//! method has; and the definitions written out, cell by cell, against which the shortcuts are held.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_fit::{Init, Model, State};
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{ColumnNmf, Pntf, PntfState, Projection, project_onto_simplex, project_with};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::support::{self, after};

/// Algorithm 1 as printed: `per_round` is what the shift is divided by, and a coordinate that leaves is never set to 0.
fn as_printed(b: &[f64], divide_by_all: bool) -> Vec<f64> {
    let mut x = b.to_vec();
    let mut inside: Vec<usize> = (0..b.len()).collect();
    loop {
        let n = if divide_by_all { b.len() } else { inside.len() };
        let shift = (1.0 - inside.iter().map(|&i| x[i]).sum::<f64>()) / n as f64;
        inside.iter().for_each(|&i| x[i] += shift);
        let left: Vec<usize> = inside.iter().copied().filter(|&i| x[i] > 0.0).collect();
        if left == inside {
            return x;
        }
        inside = left;
    }
}

// [HS alg. 1] [PNTF 3]
#[test]
fn the_printed_algorithm_leaves_the_simplex() {
    let b = [0.9, 0.6, -1.0];
    let close = |x: &[f64], want: [f64; 3]| x.iter().zip(want).all(|(x, w)| (x - w).abs() < 5e-4);
    assert!(close(&as_printed(&b, true), [0.789, 0.489, -0.833]));
    assert!(close(&as_printed(&b, false), [0.65, 0.35, -0.833]));
    let mut mended = b;
    project_with(&mut mended, 1.0, Projection::ActiveSet).unwrap();
    assert!(close(&mended, [0.65, 0.35, 0.0]));
}

/// Alternating projections onto the plane and the orthant end at the nearest point here, though in general they need not.
// [PNTF 3]
#[test]
fn alternating_projections_end_at_the_same_point() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..50 {
        let b: Vec<f64> = (0..12)
            .map(|_| 3.0 * random::uniform(&mut rng) - 1.0)
            .collect();
        let mut x = b.clone();
        for _ in 0..5000 {
            let shift = (1.0 - x.iter().sum::<f64>()) / x.len() as f64;
            x.iter_mut().for_each(|x| *x = (*x + shift).max(0.0));
        }
        let mut nearest = b;
        project_onto_simplex(&mut nearest, 1.0).unwrap();
        for (a, b) in x.iter().zip(&nearest) {
            assert!((a - b).abs() <= 1e-14, "{a} {b}");
        }
    }
}

fn index(shape: &[usize], mut at: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for m in (0..shape.len()).rev() {
        index[m] = at % shape[m];
        at /= shape[m];
    }
    index
}

/// Weights and factors that can be written to.
#[derive(Clone)]
struct Parts {
    weights: Vec<f64>,
    factors: Vec<DMatrix<f64>>,
}

impl Parts {
    fn of(state: &PntfState<f64>) -> Self {
        Self {
            weights: state.weights().to_vec(),
            factors: state.factors().to_vec(),
        }
    }

    fn state(&self) -> PntfState<f64> {
        let weights = DVector::from_column_slice(&self.weights);
        PntfState::new(weights, self.factors.clone()).unwrap()
    }
}

/// `G - Σ_{j≠t} λ_j u_1^j ∘ … ∘ u_n^j`, row-major; with `t` none, the whole residual.
fn residual(g: &[f64], shape: &[usize], parts: &Parts, but: Option<usize>) -> Vec<f64> {
    let term = |index: &[usize], j: usize| -> f64 {
        let factors = parts.factors.iter().zip(index);
        parts.weights[j] * factors.map(|(f, &i)| f[(i, j)]).product::<f64>()
    };
    let components = 0..parts.weights.len();
    (g.iter().enumerate())
        .map(|(at, g)| {
            let index = index(shape, at);
            let others = components.clone().filter(|&j| Some(j) != but);
            g - others.map(|j| term(&index, j)).sum::<f64>()
        })
        .collect()
}

/// The best `u_mode^t` when all else stays, from the residual tensor.
fn best_column(g: &[f64], shape: &[usize], parts: &Parts, mode: usize, t: usize) -> Vec<f64> {
    let mut b = vec![0.0; shape[mode]];
    for (at, r) in residual(g, shape, parts, Some(t)).iter().enumerate() {
        let index = index(shape, at);
        let others = (0..shape.len()).filter(|&m| m != mode);
        b[index[mode]] += r * others
            .map(|m| parts.factors[m][(index[m], t)])
            .product::<f64>();
    }
    let others = (0..shape.len()).filter(|&m| m != mode);
    let squares: f64 = others
        .map(|m| parts.factors[m].column(t).norm_squared())
        .product();
    b.iter_mut().for_each(|b| *b /= parts.weights[t] * squares);
    project_onto_simplex(&mut b, 1.0).unwrap();
    b
}

fn objective(g: &[f64], shape: &[usize], parts: &Parts) -> f64 {
    residual(g, shape, parts, None).iter().map(|r| r * r).sum()
}

/// Only the factor of `mode` moves.
fn only(mode: usize, order: usize, k: usize) -> Pntf {
    let frozen = (0..order).filter(|&m| m != mode);
    let frozen = frozen.map(|m| format!("factor_{m}"));
    let pntf = frozen.fold(Pntf::new(k), |pntf, f| pntf.freeze(f));
    pntf.freeze("weights")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A sweep over one mode is the residual form, component after component, without the residual tensor; none of these updates
    /// raises the objective, and that is the sum of the residual's squares.
    // [HS alg. 1] [PNTF 1] [PNTF 2] [PNTF 5]
    #[test]
    fn a_sweep_is_the_residual_form(shape in prop::collection::vec(1..5usize, 2..5), k in 1..4usize, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut g: Vec<f64> = (0..shape.iter().product()).map(|_| random::exponential(&mut rng)).collect();
        let sum: f64 = g.iter().sum();
        g.iter_mut().for_each(|g| *g /= sum);
        let data = DenseTensor::new(shape.clone(), g.clone(), Order::RowMajor).unwrap();
        let mut state = Pntf::new(k).init(&data, Init::default(), &mut rng).unwrap();
        for mode in 0..shape.len() {
            let mut by_hand = Parts::of(&state);
            for t in 0..k {
                let column = best_column(&g, &shape, &by_hand, mode, t);
                let before = objective(&g, &shape, &by_hand);
                by_hand.factors[mode].column_mut(t).copy_from_slice(&column);
                prop_assert!(objective(&g, &shape, &by_hand) <= before + 1e-15);
            }
            let pntf = only(mode, shape.len(), k);
            state = after(&pntf, &data, &state, 1).into_state();
            // `num / ρ` is formed by hand and not here: its rounding is relative to the size of that quotient, at most K / Π min u.
            prop_assert!((state.factor(mode) - &by_hand.factors[mode]).amax() <= 1e-11);
            let (found, want) = (support::objective(&pntf, &data, &state), objective(&g, &shape, &Parts::of(&state)));
            prop_assert!((found - want).abs() <= 1e-15, "{} {}", found, want);
        }
    }

    /// With `U` fixed, every column `v` of `V` ends at the least `‖ḡ - U v‖²` on the simplex: of the slopes `Uᵀ (U v - ḡ)` none is
    /// below their mean under `v`, and those of the support equal it. The objective is the sum of squares.
    // [HS eq. 4] [PNTF 1]
    #[test]
    fn columns_of_v_are_optimal(rows in 1..7usize, columns in 1..6usize, k in 1..5usize, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut g = DMatrix::from_fn(rows, columns, |_, _| random::exponential(&mut rng));
        let data = DenseTensor::new(vec![rows, columns], g.as_slice().to_vec(), Order::ColumnMajor).unwrap();
        g.column_iter_mut().for_each(|mut g| g /= g.sum());
        let drawn = ColumnNmf::new(k).init(&data, Init::default(), &mut rng).unwrap();
        let nmf = ColumnNmf::new(k).freeze("u");
        let init = Init::default().block("u", drawn.u().clone());
        let start = nmf.init(&data, init, &mut rng).unwrap();
        let state = after(&nmf, &data, &start, 1).into_state();
        prop_assert_eq!(state.u(), drawn.u());
        let error = state.u() * state.v() - &g;
        let slopes = state.u().transpose() * &error;
        for (v, slopes) in state.v().column_iter().zip(slopes.column_iter()) {
            let mean = slopes.dot(&v);
            for (&v, &slope) in v.iter().zip(slopes.iter()) {
                prop_assert!(slope >= mean - 1e-12, "{slope} {mean}");
                prop_assert!(v == 0.0 || slope <= mean + 1e-12, "{slope} {mean}");
            }
        }
        let found = support::objective(&nmf, &data, &state);
        prop_assert!((found - error.norm_squared()).abs() <= 1e-14 * columns as f64, "{found}");
    }
}

/// The same where a mode is long enough for its products to be cut into parts, of rows and of columns.
// [PNTF 2]
#[test]
fn a_sweep_over_a_long_mode_is_the_residual_form() {
    let (rows, columns, k) = (2100, 30, 40);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let g = DMatrix::from_fn(rows, columns, |_, _| random::exponential(&mut rng));
    let g = &g / g.sum();
    let values = g.as_slice().to_vec();
    let data = DenseTensor::new(vec![rows, columns], values, Order::ColumnMajor).unwrap();
    let pntf = Pntf::new(k);
    let start = pntf.init(&data, Init::default(), &mut rng).unwrap();
    let (mut u, v) = (start.factor(0).clone(), start.factor(1));
    let w = DVector::from_column_slice(start.weights());
    for t in 0..k {
        let model = &u * DMatrix::from_diagonal(&w) * v.transpose();
        let own = u.column(t) * v.column(t).transpose() * w[t];
        let mut b: Vec<f64> = ((&g - model + own) * v.column(t)).as_slice().to_vec();
        let rho = w[t] * v.column(t).norm_squared();
        b.iter_mut().for_each(|b| *b /= rho);
        project_onto_simplex(&mut b, 1.0).unwrap();
        u.column_mut(t).copy_from_slice(&b);
    }
    let alone = only(0, 2, k);
    let state = after(&alone, &data, &start, 1).into_state();
    assert!((state.factor(0) - &u).amax() <= 1e-11);
    let model = &u * DMatrix::from_diagonal(&w) * v.transpose();
    let found = support::objective(&alone, &data, &state);
    assert!((found - (g - model).norm_squared()).abs() <= 1e-15);
}

/// All components of a mode at once, each as if the others stayed, overshoot: the objective rises where it falls by one after the other.
// [PNTF 2]
#[test]
fn simultaneous_updates_would_not_descend() {
    let column = |x: [f64; 4]| DMatrix::from_column_slice(4, 1, &x);
    let (u, v) = (column([0.3, 0.25, 0.25, 0.2]), column([0.4, 0.3, 0.2, 0.1]));
    let near = column([0.28, 0.27, 0.24, 0.21]);
    let thrice = |m: &DMatrix<f64>| DMatrix::from_fn(4, 3, |i, _| m[(i, 0)]);
    let shape = [4, 4];
    let g: Vec<f64> = (0..16).map(|at| u[(at / 4, 0)] * v[(at % 4, 0)]).collect();
    let data = DenseTensor::new(shape.to_vec(), g.clone(), Order::RowMajor).unwrap();
    let start = Parts {
        weights: vec![1.0 / 3.0; 3],
        factors: vec![thrice(&near), thrice(&v)],
    };
    let before = objective(&g, &shape, &start);
    let mut at_once = start.clone();
    for t in 0..3 {
        let column = best_column(&g, &shape, &start, 0, t);
        at_once.factors[0].column_mut(t).copy_from_slice(&column);
    }
    assert!(objective(&g, &shape, &at_once) > 2.0 * before);
    let in_turn = after(&only(0, 2, 3), &data, &start.state(), 1);
    let in_turn = Parts::of(in_turn.state());
    assert!(objective(&g, &shape, &in_turn) < 1e-6 * before);
}

/// Weights that are clipped and rescaled instead of projected are no minimiser.
#[test]
fn clipping_is_not_projecting() {
    let b = [0.9, 0.6, -1.0];
    let clipped: Vec<f64> = b.iter().map(|b: &f64| b.max(0.0) / 1.5).collect();
    let mut nearest = b;
    project_onto_simplex(&mut nearest, 1.0).unwrap();
    let distance = |x: &[f64]| x.iter().zip(b).map(|(x, b)| (x - b).powi(2)).sum::<f64>();
    assert!(distance(&nearest) < distance(&clipped) - 1e-3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Away from any optimum the residual is the definition: every column against its own best one, the weights against a step of the
    /// inverse of their curvature.
    // [PNTF 5]
    #[test]
    fn the_residual_is_its_definition(shape in prop::collection::vec(1..5usize, 1..4), k in 1..4usize, seed: u64, scale in -1..2i32) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let cells: usize = shape.iter().product();
        let values: Vec<f64> = (0..cells).map(|_| 0.01 + random::exponential(&mut rng)).collect();
        let total: f64 = values.iter().sum();
        let g: Vec<f64> = values.iter().map(|x| x / total).collect();
        let held = values.iter().map(|x| x * 2f64.powi(20 * scale)).collect();
        let data = DenseTensor::new(shape.clone(), held, Order::RowMajor).unwrap();
        let pntf = Pntf::new(k);
        let mut parts = Parts::of(&pntf.init(&data, Init::default(), &mut rng).unwrap());
        let drawn: Vec<f64> = (0..k).map(|_| 0.1 + random::exponential(&mut rng)).collect();
        parts.weights = drawn.iter().map(|x| x / drawn.iter().sum::<f64>()).collect();
        let mut columns = 0.0f64;
        for mode in 0..shape.len() {
            for t in 0..k {
                let best = best_column(&g, &shape, &parts, mode, t);
                let own = parts.factors[mode].column(t);
                let moved = best.iter().zip(own.iter()).map(|(b, u)| (b - u).abs());
                columns = moved.fold(columns, f64::max);
            }
        }
        // Half the gradient by the weights, over the trace of its matrix.
        let mut slope = vec![0.0; k];
        let mut trace = 0.0;
        for (at, r) in residual(&g, &shape, &parts, None).iter().enumerate() {
            let index = index(&shape, at);
            for (t, slope) in slope.iter_mut().enumerate() {
                let term: f64 = parts.factors.iter().zip(&index).map(|(f, &i)| f[(i, t)]).product();
                *slope -= r * term;
                trace += term * term;
            }
        }
        let mut moved: Vec<f64> = parts.weights.iter().zip(&slope).map(|(l, s)| l - s / trace).collect();
        project_onto_simplex(&mut moved, 1.0).unwrap();
        let weights = moved.iter().zip(parts.weights.iter()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * (1.0 + b);
        let state = parts.state();
        let got = support::residual(&pntf, &data, &state);
        prop_assert!(near(got, columns.max(weights)), "{got} {columns} {weights}");
        // Frozen blocks are no part of it.
        let all = (0..shape.len()).fold(Pntf::new(k), |pntf, m| pntf.freeze(format!("factor_{m}")));
        let got = support::residual(&all, &data, &state);
        prop_assert!(near(got, weights), "{got} {weights}");
        let factors = Pntf::new(k).freeze("weights");
        let got = support::residual(&factors, &data, &state);
        prop_assert!(near(got, columns), "{got} {columns}");
    }
}

/// More components than are carried from block to block of columns: still one after the other.
// [PNTF 2]
#[test]
fn many_components_move_one_after_the_other() {
    let (shape, k) = (vec![5, 4], 19);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut g: Vec<f64> = (0..20).map(|_| random::exponential(&mut rng)).collect();
    let sum: f64 = g.iter().sum();
    g.iter_mut().for_each(|g| *g /= sum);
    let data = DenseTensor::new(shape.clone(), g.clone(), Order::RowMajor).unwrap();
    let pntf = only(0, 2, k);
    let drawn = Pntf::new(k);
    let start = drawn.init(&data, Init::default(), &mut rng).unwrap();
    let mut by_hand = Parts::of(&start);
    for t in 0..k {
        let column = best_column(&g, &shape, &by_hand, 0, t);
        by_hand.factors[0].column_mut(t).copy_from_slice(&column);
    }
    let state = after(&pntf, &data, &start, 1).into_state();
    assert!((state.factor(0) - &by_hand.factors[0]).amax() <= 1e-10);
}

/// With all else fixed, one step puts the mass where the squared error over the observed cells is least; an extrapolated mass that
/// is none is not taken.
#[test]
fn the_mass_is_fitted_at_once() {
    let shape = vec![4, 5];
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let values: Vec<f64> = (0..20)
        .map(|at| {
            if at % 3 == 1 {
                f64::NAN
            } else {
                random::exponential(&mut rng)
            }
        })
        .collect();
    let data = DenseTensor::masked(shape, values.clone(), Order::RowMajor).unwrap();
    let drawn = Pntf::new(2);
    let drawn = drawn.init(&data, Init::default(), &mut rng).unwrap();
    let parts = Parts::of(&drawn);
    let (mut products, mut squares) = (0.0, 0.0);
    let total: f64 = values.iter().filter(|x| !x.is_nan()).sum();
    for (at, x) in values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        let p: f64 = (0..2)
            .map(|z| {
                parts.weights[z] * parts.factors[0][(at / 5, z)] * parts.factors[1][(at % 5, z)]
            })
            .sum();
        products += x / total * p;
        squares += p * p;
    }
    let frozen = Pntf::new(2)
        .freeze("factor_0")
        .freeze("factor_1")
        .freeze("weights");
    let start = Init::from(&drawn).block("mass", DMatrix::from_element(1, 1, 0.3));
    let state = after(&frozen, &data, start, 1).into_state();
    let want = products / squares;
    let mass = state.mass();
    assert!((mass - want).abs() <= 1e-12 * want, "{mass} {want}");
    let algorithm = frozen.bind(&data).unwrap();
    let at = state.parameters();
    let good: Vec<f64> = at.matrices().iter().flatten().copied().collect();
    for bad in [-1.0, 0.0, f64::NAN] {
        let mut flat = good.clone();
        *flat.last_mut().unwrap() = bad;
        let at = algorithm.extrapolated(at, &flat, &good);
        assert_eq!(PntfState::wrap(at).unwrap().mass(), mass);
    }
}

/// Columns that are no distributions: frozen ones keep their shape, others are projected, and distributions are not touched.
#[test]
fn frozen_columns_keep_their_shape() {
    let data = DenseTensor::new(
        vec![3, 2],
        vec![3.0, 1.0, 2.0, 2.0, 1.0, 5.0],
        Order::RowMajor,
    );
    let data = data.unwrap();
    let given = DMatrix::from_row_slice(3, 2, &[4.0, 0.5, 3.0, 0.25, 1.0, 0.25]);
    let started = |pntf: Pntf| {
        let init = Init::default().block("factor_0", given.clone());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let start = pntf.init(&data, init, &mut rng).unwrap();
        start.factor(0).clone()
    };
    let free = started(Pntf::new(2));
    assert_eq!(free.column(0).as_slice(), [1.0, 0.0, 0.0]);
    let frozen = Pntf::new(2).freeze("factor_0");
    let one = Pntf::new(2).freeze_components("factor_0", [0]);
    for pntf in [frozen, one] {
        let kept = started(pntf);
        assert_eq!(kept.column(0).as_slice(), [0.5, 0.375, 0.125]);
        assert_eq!(kept.column(1), given.column(1));
    }
}
