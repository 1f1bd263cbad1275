//! Row problems against their definition.

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_tensor::arrange::Rows;
use plca_tensor::strategies::{Start, Table, permutations, problems};
use plca_tensor::{Data, DenseTensor, Factor, Modes, Order, Real, RowTerms};
use proptest::prelude::*;

/// The weighted factor of a mode, `K x I`, and the sums of the other factors' products.
fn problem(start: &Start<f64>, mode: usize) -> (DMatrix<f64>, DMatrix<f64>) {
    let k = start.weights.len();
    let block = DMatrix::from_fn(k, start.factors[mode].nrows(), |z, i| {
        start.weights[z] * start.factors[mode][(i, z)]
    });
    let others = start.factors.iter().enumerate().filter(|&(m, _)| m != mode);
    let sums = others.fold(DMatrix::from_element(k, 1, 1.0), |s, (_, f)| {
        DMatrix::from_fn(k, 1, |z, _| s[z] * f.column(z).sum())
    });
    (block, sums)
}

/// `Σ_k s w - Σ (V/v) ln p - Σ (c/v) ln w` of every row, cell by cell.
fn objectives(
    table: &Table<f64>,
    start: &Start<f64>,
    mode: usize,
    block: &DMatrix<f64>,
    linear: &DMatrix<f64>,
    pseudo: Option<&DMatrix<f64>>,
) -> Vec<f64> {
    let total: f64 = table.values.iter().sum();
    let mut out: Vec<f64> = (block.column_iter())
        .map(|w| w.dot(&linear.column(0)))
        .collect();
    for (at, &v) in table.values.iter().enumerate().filter(|(_, v)| **v > 0.0) {
        let index = table.index(at);
        let p: f64 = (0..block.nrows())
            .map(|z| {
                let others = index.iter().enumerate().filter(|&(m, _)| m != mode);
                others.fold(block[(z, index[mode])], |p, (m, &i)| {
                    p * start.factors[m][(i, z)]
                })
            })
            .sum();
        out[index[mode]] -= v / total * p.ln();
    }
    for (i, out) in out.iter_mut().enumerate() {
        for (w, c) in block.column(i).iter().zip(
            pseudo
                .iter()
                .flat_map(|c| c.column(i).iter().copied().collect::<Vec<_>>()),
        ) {
            *out -= c / total * w.ln();
        }
    }
    out
}

fn improve(
    data: &dyn Data<f64>,
    start: &Start<f64>,
    mode: usize,
    pseudo: Option<&DMatrix<f64>>,
    passes: usize,
) -> (DMatrix<f64>, f64) {
    let (mut block, linear) = problem(start, mode);
    let modes = Modes::one(mode);
    let rows = Rows::new(data, modes).unwrap();
    let factors: Vec<_> = start.factors.iter().map(Factor::Columns).collect();
    let terms = RowTerms {
        linear: &linear,
        pseudo,
    };
    let ln_lik = rows.improve(mode, &factors, terms, &mut block, passes, true);
    (block, ln_lik)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The logarithm returned is that of the result; without pseudo-counts every row has its share of the data.
    // [SPEC 10.1]
    #[test]
    fn the_likelihood_is_that_of_the_result((table, start) in problems::<f64>(1..=4, 1..=5, 1..=4), dense: bool) {
        let table = table.unmasked();
        let data: Box<dyn Data<f64>> = if dense {
            Box::new(table.dense(Order::ColumnMajor).unwrap())
        } else {
            Box::new(table.sparse().unwrap())
        };
        for mode in 0..table.shape.len() {
            let (block, ln_lik) = improve(&*data, &start, mode, None, 1);
            let (_, linear) = problem(&start, mode);
            let value: f64 = objectives(&table, &start, mode, &block, &linear, None).iter().sum();
            let total = data.total();
            prop_assert!(((1.0 - value) * total - ln_lik).abs() <= 1e-11 * (1.0 + ln_lik.abs()));
            for (w, v) in block.column_iter().zip(data.marginal(mode).unwrap()) {
                prop_assert!((w.dot(&linear.column(0)) - v / total).abs() <= 1e-12);
            }
        }
    }

    /// Passes end where every coordinate is optimal: `G = s` where `w` is not at its floor, `G <= s` where it is.
    // [SPEC 10.1]
    #[test]
    fn many_passes_reach_the_conditions(
        (table, start) in problems::<f64>(2..=3, 1..=5, 1..=4), alpha in prop::option::of(0.1..2.0f64),
    ) {
        let table = table.unmasked();
        for mode in 0..table.shape.len() {
            let k = start.weights.len();
            let pseudo = alpha.map(|c| DMatrix::from_element(k, table.shape[mode], c));
            conditions(&table, &start, mode, pseudo.as_ref(), 3000)?;
        }
    }
}

/// No row gains more along a coordinate than a rounding error, or than one pass more gives it: where the components of a row are nearly
/// tied a pass moves them by the difference alone, and the conditions hold later.
fn conditions(
    table: &Table<f64>,
    start: &Start<f64>,
    mode: usize,
    pseudo: Option<&DMatrix<f64>>,
    passes: usize,
) -> Result<(), TestCaseError> {
    let data = table.sparse().unwrap();
    let (block, _) = improve(&data, start, mode, pseudo, passes);
    let (next, _) = improve(&data, start, mode, pseudo, passes + 1);
    let (_, linear) = problem(start, mode);
    let of = |block: &DMatrix<f64>| objectives(table, start, mode, block, &linear, pseudo);
    let (now, later, seen) = (of(&block), of(&next), data.marginal(mode).unwrap());
    let rows = (0..now.len()).filter(|&i| seen[i] > 0.0 || pseudo.is_some());
    for i in rows {
        let allowed = 1e-11 * (1.0 + now[i].abs()) + 4.0 * (now[i] - later[i]).max(0.0);
        for z in 0..block.nrows() {
            // A convex function: no point along a coordinate is lower.
            for by in [0.5, 0.9, 0.999, 1.001, 1.1, 2.0] {
                let mut moved = block.clone();
                moved[(z, i)] *= by;
                let gain = now[i] - of(&moved)[i];
                prop_assert!(gain <= allowed, "{mode} {i} {z} {by}: {gain:e} {allowed:e}");
            }
        }
    }
    Ok(())
}

/// Two components of which the second explains the only positive cell of a row by a share less: at first passes move what that share is,
/// until it is gone.
// [SPEC 10.1]
#[test]
fn components_that_are_nearly_tied() {
    let table = Table {
        shape: vec![1, 2],
        values: vec![3.0, 0.0],
        observed: vec![true; 2],
    };
    for by in [1e-2, 1e-4, 7e-5, 1e-6] {
        let second = 0.6 * (1.0 - by);
        let start = Start {
            weights: DVector::from_vec(vec![0.5, 0.5]),
            factors: vec![dmatrix![1.0, 1.0], dmatrix![0.6, second; 0.4, 1.0 - second]],
        };
        for passes in [30, 3000, 30_000] {
            conditions(&table, &start, 0, None, passes).unwrap();
        }
        let tied = improve(&table.sparse().unwrap(), &start, 0, None, 3000).0[(1, 0)];
        assert_eq!(tied < 1e-12, by > 5e-4, "{by}: {tied}");
    }
}

/// A component that a row has no use for ends at half a unit of rounding of the row's total: its share `s w`, `s` the largest of the row.
// [SPEC 10.1]
#[test]
fn useless_components_end_at_their_floor() {
    let data = DenseTensor::new(vec![2, 2], vec![1.0, 3.0, 2.0, 10.0], Order::RowMajor).unwrap();
    let (one, h) = (
        DMatrix::from_element(2, 2, 1.0),
        dmatrix![0.5, 0.9; 0.5, 0.1],
    );
    for s in [0.01, 0.5, 1.0, 4.0] {
        let h = &h * s;
        let mut block = DMatrix::from_element(2, 2, 0.2);
        let terms = RowTerms {
            linear: &dmatrix![s; s],
            pseudo: None,
        };
        let factors = [Factor::Columns(&one), Factor::Columns(&h)];
        Rows::new(&data, Modes::one(0))
            .unwrap()
            .improve(0, &factors, terms, &mut block, 60, false);
        for (i, total) in [4.0, 12.0].into_iter().enumerate() {
            let floor = total / 16.0 * f64::EPSILON / 2.0 / s;
            let w = block[(1, i)];
            assert!((w - floor).abs() < 1e-9 * floor, "{s} {i}: {w:e} {floor:e}");
        }
    }
}

/// A number from 1e-6 to 1.
fn wide() -> impl Strategy<Value = f64> {
    (-6.0..0.0f64).prop_map(|e| 10f64.powf(e))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// One pass over any row is the one in which every sum is computed anew.
    // [SPEC 10.1]
    #[test]
    fn a_pass_has_its_digits_in_any_row(
        (cells, k) in (1..=40usize, 1..=12usize),
        values in prop::collection::vec(prop_oneof![Just(0.0), wide()], 40),
        u in prop::collection::vec(prop_oneof![1 => Just(1e-12), 4 => wide()], 40 * 12),
        w in prop::collection::vec(wide(), 12),
    ) {
        let mut values = values[..cells].to_vec();
        values[0] = values[0].max(1e-6);
        let held = |x: f64| f64::from(x as f32);
        let mut u = DMatrix::from_fn(cells, k, |j, z| held(u[40 * z + j]));
        u.row_mut(0).apply(|x| *x = x.max(held(1e-6)));
        let double = apart::<f64>(&values, &u, &w[..k]);
        prop_assert!(double < 1e-12, "{double:e}");
        let single = apart::<f32>(&values, &u, &w[..k]);
        prop_assert!(single < 1e-4, "{single:e}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No row sees its neighbours: in another order, beside others, empty ones and such that stand still among them, it has the same bits.
    /// Among the other factor's entries some are so small that a component is alone in its cell: where it falls, sums are computed anew.
    // [SPEC 10.1]
    #[test]
    fn the_order_of_rows_changes_no_bit(
        (rows, columns, order) in (1..=7usize, 1..=70usize).prop_flat_map(|(n, m)| (Just(n), Just(m), permutations(n))),
        k in 1..=5usize,
        counts in prop::collection::vec(1..=9u8, 7 * 70),
        empty in prop::collection::vec(prop::bool::weighted(0.2), 7),
        own in prop::collection::vec(prop_oneof![1 => Just(0.0), 6 => 1e-9..1.0f64], 7 * 5),
        other in prop::collection::vec(prop_oneof![Just(1e-20), 0.01..1.0f64], 70 * 5),
        passes in 1..=3usize,
    ) {
        let h = DMatrix::from_column_slice(columns, k, &other[..columns * k]);
        let linear = DMatrix::from_fn(k, 1, |z, _| h.column(z).sum());
        let solve = |order: &[usize]| {
            let value = |i: usize, j: usize| if i > 0 && empty[i] { 0.0 } else { f64::from(counts[i * columns + j]) };
            let values = order.iter().flat_map(|&i| (0..columns).map(move |j| value(i, j)));
            let data = DenseTensor::new(vec![rows, columns], values.collect(), Order::RowMajor).unwrap();
            let mut block = DMatrix::from_fn(k, rows, |z, at| own[order[at] * k + z]);
            let w = block.transpose();
            let terms = RowTerms { linear: &linear, pseudo: None };
            let factors = [Factor::Columns(&w), Factor::Columns(&h)];
            Rows::new(&data, Modes::one(0)).unwrap().improve(0, &factors, terms, &mut block, passes, true);
            block
        };
        let given: Vec<usize> = (0..rows).collect();
        let (one, two) = (solve(&given), solve(&order));
        for (at, &i) in order.iter().enumerate() {
            prop_assert_eq!(one.column(i), two.column(at), "row {}", i);
        }
    }
}

/// One pass over a row, every sum over the components computed anew; in double precision, with the floor and the rounding of the slopes of `T`.
fn one_pass<T: Real>(values: &[f64], u: &DMatrix<f64>, linear: &[f64], w: &[f64]) -> Vec<f64> {
    let (goal, epsilon) = (values.iter().sum::<f64>(), T::EPSILON.to_f64());
    let largest = linear.iter().copied().fold(0.0, f64::max);
    let stretched = |w: Vec<f64>| -> Vec<f64> {
        let mass: f64 = w.iter().zip(linear).map(|(w, s)| w * s).sum();
        w.iter().map(|w| w * goal / mass).collect()
    };
    let mut w = stretched(w.to_vec());
    for z in 0..w.len() {
        let p = |j: usize| -> f64 { (0..w.len()).map(|z| w[z] * u[(j, z)]).sum() };
        let q: Vec<f64> = (0..values.len()).map(|j| u[(j, z)] / p(j)).collect();
        let g: f64 = values.iter().zip(&q).map(|(v, q)| v * q).sum();
        let h: f64 = values.iter().zip(&q).map(|(v, q)| v * q * q).sum();
        let slope = (g - linear[z]) / linear[z];
        if slope.abs() > 8.0 * epsilon {
            w[z] = (w[z] + g / h * slope).max(goal * epsilon / 2.0 / largest);
        }
    }
    stretched(w)
}

/// How far the shares `s w` of the components of a row are from that pass, in parts of the row.
fn apart<T: Real>(values: &[f64], u: &DMatrix<f64>, w: &[f64]) -> f64 {
    let held = |x: &f64| T::lit(*x);
    let data = DenseTensor::new(
        vec![1, values.len()],
        values.iter().map(held).collect(),
        Order::RowMajor,
    );
    let data = data.unwrap();
    let linear: Vec<f64> = u.column_iter().map(|u| u.sum()).collect();
    let own = DMatrix::from_iterator(w.len(), 1, w.iter().map(held));
    let (mut block, row, u_held) = (own.clone(), own.transpose(), u.map(|x| T::lit(x)));
    let s = DMatrix::from_iterator(w.len(), 1, linear.iter().map(held));
    let terms = RowTerms {
        linear: &s,
        pseudo: None,
    };
    let factors = [Factor::Columns(&row), Factor::Columns(&u_held)];
    let rows = Rows::new(&data, Modes::one(0)).unwrap();
    rows.improve(0, &factors, terms, &mut block, 1, false);
    let goal: f64 = values.iter().sum();
    let expected = one_pass::<T>(values, u, &linear, w);
    let both = block.iter().zip(&expected).zip(&linear);
    let apart = both.map(|((w, x), s)| (w.to_f64() - x / goal).abs() * s);
    apart.fold(0.0, f64::max)
}

/// Components that fall in turn, each nearly all of what the ones before left in a cell.
// [SPEC 10.1]
#[test]
fn a_pass_has_the_digits_of_its_sums() {
    for k in 3..=12usize {
        for share in [2.1, 3.0, 14.0, 17.0, 1e3] {
            // Cell 0 is filled by all but the last, each component has a cell of its own, without data for those that fall.
            let u = DMatrix::from_fn(k + 1, k, |j, z| match j {
                0 if z < k - 1 => 0.01 * f64::powi(share, -(z as i32)),
                0 => 0.0,
                _ => f64::from(u8::from(z == j - 1)),
            });
            let mut values = vec![0.0; k + 1];
            (values[0], values[k - 1], values[k]) = (0.01, 1.0, 1.0);
            let w = vec![1.0; k];
            let double = apart::<f64>(&values, &u, &w);
            assert!(double < 1e-13, "{k} {share}: {double:e}");
            let single = apart::<f32>(&values, &u.map(|x| f64::from(x as f32)), &w);
            assert!(single < 1e-5, "{k} {share}: {single:e}");
        }
    }
}

/// Where one component alone explains a row, one step is exact from either side, however far: to the half of the digits that its slope
/// has, and the next one to the rest. From beyond the numbers' range a step before these goes to where the slope is a number.
// [SPEC 10.1]
#[test]
fn one_term_is_solved_at_once() {
    let v = DenseTensor::new(vec![1, 2], vec![3.0, 5.0], Order::RowMajor).unwrap();
    let rows = Rows::new(&v, Modes::one(0)).unwrap();
    let starts = [1e-200f64, 1e-3, 1.0, 1e3, 1e200];
    // In what unit the other factor is does not matter.
    for (start, unit) in (starts.into_iter()).flat_map(|s| [1e-20, 1.0, 1e20].map(|u| (s, u))) {
        let h = DMatrix::from_diagonal_element(2, 2, unit);
        let linear = DMatrix::from_element(2, 1, unit);
        let terms = RowTerms {
            linear: &linear,
            pseudo: None,
        };
        let near = if (1e-100..1e100).contains(&start) {
            1
        } else {
            2
        };
        for (passes, within) in [(near, 2f64.powi(-25)), (near + 1, 1e-14)] {
            let mut block = DMatrix::from_column_slice(2, 1, &[start, 1.0]) / unit;
            let own = block.transpose();
            let factors = [Factor::Columns(&own), Factor::Columns(&h)];
            rows.improve(0, &factors, terms, &mut block, passes, false);
            let shares = block * unit;
            assert!(
                (shares[0] - 0.375).abs() < within && (shares[1] - 0.625).abs() < within,
                "{start} {unit} {passes}: {shares}"
            );
        }
    }
}

/// What nothing was seen of keeps its values, what was seen to be empty becomes 0, and zeros stay.
#[test]
fn rows_without_data() {
    let values = [[0.0, 0.0], [1.0, 3.0], [6.0, 6.0]];
    let linear = [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]];
    let starts = [[0.1, 0.2], [0.0, 0.3], [0.2, 0.0]];
    let h = DMatrix::from_element(2, 2, 0.5);
    // As a list, and as a matrix, whose rows are solved side by side: the one without data first, and second.
    for order in [&[0, 1][..], &[0, 2, 1], &[2, 0, 1]] {
        let of =
            |rows: &[[f64; 2]; 3]| -> Vec<f64> { order.iter().flat_map(|&i| rows[i]).collect() };
        let v = DenseTensor::new(vec![order.len(), 2], of(&values), Order::RowMajor).unwrap();
        let s = DMatrix::from_column_slice(2, order.len(), &of(&linear));
        let mut block = DMatrix::from_column_slice(2, order.len(), &of(&starts));
        let own = block.transpose();
        let terms = RowTerms {
            linear: &s,
            pseudo: None,
        };
        let factors = [Factor::Columns(&own), Factor::Columns(&h)];
        Rows::new(&v, Modes::one(0))
            .unwrap()
            .improve(0, &factors, terms, &mut block, 1, false);
        let total = v.total();
        let expected = of(&[[0.0, 0.2], [0.0, 4.0 / total], [12.0 / total, 0.0]]);
        assert_eq!(block.as_slice(), expected, "{order:?}");
    }
}

fn threads<T: Real>(data: &dyn Data<T>) {
    let k = 5;
    let value = |i: usize, z: usize| T::lit(0.1 + ((7 * i + 3 * z) % 11) as f64);
    let factors: Vec<_> = data
        .shape()
        .iter()
        .map(|&n| DMatrix::from_fn(n, k, value))
        .collect();
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let linear = DMatrix::from_element(k, 1, T::one());
    let run = |threads: usize, mode: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let modes = Modes::all(factors.len());
        let rows = Rows::new(data, modes).unwrap();
        let mut block = DMatrix::from_fn(k, data.shape()[mode], |z, i| value(i, z));
        let terms = RowTerms {
            linear: &linear,
            pseudo: None,
        };
        let ln_lik = pool.install(|| rows.improve(mode, &factors, terms, &mut block, 2, true));
        (block, ln_lik)
    };
    for mode in 0..data.shape().len() {
        assert_eq!(run(1, mode), run(3, mode));
    }
}

#[test]
fn threads_change_no_bit() {
    let value = |at: usize| {
        if at.is_multiple_of(3) {
            (at % 17) as f64
        } else {
            0.0
        }
    };
    let shape = vec![211, 190];
    let single: Vec<f32> = (0..211 * 190).map(|at| value(at) as f32).collect();
    threads(&DenseTensor::new(shape.clone(), single, Order::RowMajor).unwrap());
    let all = (0..211 * 190).map(|at| 1.0 + value(at)).collect();
    threads::<f64>(&DenseTensor::new(shape, all, Order::RowMajor).unwrap());
}
