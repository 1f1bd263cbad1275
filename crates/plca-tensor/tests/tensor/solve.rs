//! Rows solved to their end, against their definition.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use nalgebra::{DMatrix, dmatrix};
use plca_tensor::arrange::{Ending, RowEnd, Rows, Until};
use plca_tensor::strategies::permutations;
use plca_tensor::{Coordinates, Data, DenseTensor, Factor, Modes, Order, Real, SparseTensor};
use proptest::prelude::*;

/// So many iterations at most, to a gap.
fn until(gap: Option<f64>, iterations: usize) -> Until {
    Until {
        gap,
        change: None,
        patience: 1,
        both: false,
        iterations,
    }
}

fn dense<T: Real>(v: &DMatrix<f64>, order: Order) -> DenseTensor<T> {
    let values: Vec<T> = match order {
        Order::RowMajor => v.transpose().iter().map(|&x| T::lit(x)).collect(),
        Order::ColumnMajor => v.iter().map(|&x| T::lit(x)).collect(),
    };
    DenseTensor::new(vec![v.nrows(), v.ncols()], values, order).unwrap()
}

fn sparse<T: Real>(v: &DMatrix<f64>) -> SparseTensor<T> {
    let mut entries = Coordinates {
        shape: vec![v.nrows(), v.ncols()],
        indices: Vec::new(),
        values: Vec::new(),
    };
    for (j, column) in v.column_iter().enumerate() {
        for (i, &x) in column.iter().enumerate().filter(|(_, x)| **x > 0.0) {
            entries.indices.extend([i as u32, j as u32]);
            entries.values.push(T::lit(x));
        }
    }
    SparseTensor::new(entries).unwrap()
}

/// The rows of a matrix under the other factor `h`, `J x K`, from an even start.
fn solve<T: Real>(
    data: &dyn Data<T>,
    h: &DMatrix<f64>,
    until: &Until,
) -> (DMatrix<T>, Vec<RowEnd>) {
    let (h, k) = (h.map(T::lit), h.ncols());
    let linear = DMatrix::from_fn(k, 1, |z, _| T::lit(sum(&h, z)));
    let mut block = DMatrix::from_element(k, data.shape()[0], T::one());
    let own = block.transpose();
    let factors = [Factor::Columns(&own), Factor::Columns(&h)];
    let rows = Rows::new(data, Modes::one(0)).unwrap();
    let ends = rows.solve(0, &factors, &linear, &mut block, until, &|| false);
    (block, ends)
}

fn sum<T: Real>(h: &DMatrix<T>, z: usize) -> f64 {
    h.column(z).iter().map(|x| x.to_f64()).sum()
}

/// `Σ v ln p - Σ s w` of row `i`, and its gap, cell by cell.
fn definition(v: &DMatrix<f64>, h: &DMatrix<f64>, w: &DMatrix<f64>, i: usize) -> (f64, f64) {
    let k = h.ncols();
    let p = |j: usize| (0..k).map(|z| w[(z, i)] * h[(j, z)]).sum::<f64>();
    let cells: Vec<_> = (0..v.ncols()).filter(|&j| v[(i, j)] > 0.0).collect();
    let total: f64 = v.row(i).sum();
    let mass: f64 = (0..k).map(|z| w[(z, i)] * sum(h, z)).sum();
    let slope = |z: usize| {
        let terms = cells.iter().map(|&j| v[(i, j)] * h[(j, z)] / p(j));
        terms.sum::<f64>() / sum(h, z)
    };
    let largest = (0..k).map(slope).fold(0.0, f64::max);
    let ln_lik: f64 = cells.iter().map(|&j| v[(i, j)] * p(j).ln()).sum();
    (ln_lik - mass, mass / total * largest - 1.0)
}

/// Data of which some rows are half full, some full and some empty, and the factor of the columns, some of whose components resemble each
/// other.
#[derive(Clone, Debug)]
struct Problem {
    v: DMatrix<f64>,
    h: DMatrix<f64>,
}

prop_compose! {
    fn problem()(rows in 1..=8usize, columns in 1..=70usize, k in 1..=6usize)(
        values in prop::collection::vec(1..=9u8, rows * columns),
        kept in prop::collection::vec(0.0..1.0f64, rows * columns),
        fill in prop::collection::vec(prop_oneof![Just(0.0), Just(0.5), Just(1.0), 0.0..1.0f64], rows),
        h in prop::collection::vec(prop_oneof![1 => Just(1e-6), 4 => 0.01..1.0f64], columns * k),
        close in prop_oneof![Just(1.0), Just(1e-2), Just(1e-4)],
        rows in Just(rows), columns in Just(columns), k in Just(k),
    ) -> Problem {
        let value = |i: usize, j: usize| {
            let at = i * columns + j;
            // Data of no mass at all are none.
            let is_kept = (i, j) == (0, 0) || kept[at] < fill[i];
            if is_kept { f64::from(values[at]) } else { 0.0 }
        };
        let h = DMatrix::from_column_slice(columns, k, &h);
        // The last component is close to the first.
        let h = DMatrix::from_fn(columns, k, |j, z| match z + 1 == k {
            true => h[(j, 0)] + close * (h[(j, z)] - h[(j, 0)]),
            false => h[(j, z)],
        });
        Problem { v: DMatrix::from_fn(rows, columns, value), h }
    }
}

/// The same row on its own, in another order and in other storages: the same bits.
fn alone<T: Real>(p: &Problem, order: &[usize], until: &Until) -> Result<(), TestCaseError> {
    let (whole, ends) = solve::<T>(&dense(&p.v, Order::RowMajor), &p.h, until);
    let same = |data: &dyn Data<T>, rows: &[usize]| {
        let (block, own) = solve(data, &p.h, until);
        for (at, &i) in rows.iter().enumerate() {
            prop_assert_eq!(block.column(at), whole.column(i), "row {}", i);
            prop_assert_eq!(own[at].gap, ends[i].gap, "row {}", i);
            prop_assert_eq!(own[at].iterations, ends[i].iterations, "row {}", i);
        }
        Ok(())
    };
    let given: Vec<usize> = (0..p.v.nrows()).collect();
    same(&dense(&p.v, Order::ColumnMajor), &given)?;
    same(&sparse(&p.v), &given)?;
    let moved = p.v.select_rows(order);
    same(&dense(&moved, Order::RowMajor), order)?;
    same(&sparse(&moved), order)?;
    for i in (0..p.v.nrows()).filter(|&i| p.v.row(i).sum() > 0.0) {
        let row = p.v.select_rows(&[i]);
        same(&dense(&row, Order::RowMajor), &[i])?;
        same(&sparse(&row), &[i])?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    // [SPEC 10.1]
    #[test]
    fn a_row_knows_nothing_of_the_others(
        (p, order) in problem().prop_flat_map(|p| { let n = p.v.nrows(); (Just(p), permutations(n)) }),
        gap in prop_oneof![Just(None), Just(Some(1e-6)), Just(Some(1e-2))],
        iterations in 0..30usize,
    ) {
        let until = until(gap, iterations);
        alone::<f64>(&p, &order, &until)?;
        alone::<f32>(&p, &order, &until)?;
    }

    /// Every row ends by its gap, however alike its components; the gap is that of the definition and bounds what is left.
    // [SPEC 1.5] [SPEC 10.1]
    #[test]
    fn gaps_are_certified(p in problem(), tol in prop_oneof![Just(1e-2), Just(1e-6), Just(1e-10)]) {
        let data = dense::<f64>(&p.v, Order::RowMajor);
        let (block, ends) = solve(&data, &p.h, &until(Some(tol), 200));
        let (best, _) = solve(&data, &p.h, &until(Some(1e-13), 400));
        for (i, end) in ends.iter().enumerate() {
            let total = p.v.row(i).sum();
            if total <= 0.0 {
                prop_assert!(block.column(i).iter().all(|&w| w == 0.0) && end.gap == 0.0 && end.iterations == 0);
                continue;
            }
            prop_assert_eq!(end.ending, Ending::Near, "row {}: {:?}", i, end);
            let (value, gap) = definition(&p.v, &p.h, &block, i);
            prop_assert!((gap - end.gap).abs() < 1e-11 && end.gap <= tol, "row {i}: {gap:e} {end:?}");
            let (most, _) = definition(&p.v, &p.h, &best, i);
            prop_assert!(most - value <= total * (gap + 1e-13), "row {i}: {}", most - value);
        }
    }

    /// No iteration makes a row worse.
    // [SPEC 10.1]
    #[test]
    fn rows_never_get_worse(p in problem()) {
        let data = dense::<f64>(&p.v, Order::RowMajor);
        let mut last = vec![f64::NEG_INFINITY; p.v.nrows()];
        for iterations in 0..16 {
            let (block, ends) = solve(&data, &p.h, &until(None, iterations));
            for i in (0..p.v.nrows()).filter(|&i| p.v.row(i).sum() > 0.0) {
                prop_assert_eq!((ends[i].iterations, ends[i].ending), (iterations, Ending::Exhausted));
                let (value, _) = definition(&p.v, &p.h, &block, i);
                prop_assert!(value >= last[i] - 1e-12 * (1.0 + value.abs()), "row {i}: {value} {}", last[i]);
                last[i] = value;
            }
        }
    }
}

/// Components that are all but the same: Newton's steps need few iterations where passes need very many.
#[test]
fn components_that_resemble_each_other() {
    let h = DMatrix::from_fn(30, 3, |j, z| {
        1.0 + ((j * j) % 7) as f64 + 1e-3 * ((j * (z + 2)) % 5) as f64
    });
    let v = DMatrix::from_fn(2, 30, |i, j| {
        h[(j, 0)] + 2.0 * h[(j, 1)] + 1e-3 * ((i + j) % 3) as f64
    });
    let data = dense::<f64>(&v, Order::RowMajor);
    let (_, ends) = solve(&data, &h, &until(Some(1e-9), 20));
    assert!(
        ends.iter().all(|end| end.ending == Ending::Near),
        "{ends:?}"
    );
    // Negative control: three passes are not enough.
    let (_, ends) = solve(&data, &h, &until(Some(1e-9), 3));
    assert!(
        ends.iter().all(|end| end.ending == Ending::Exhausted),
        "{ends:?}"
    );
}

/// What nothing was seen of keeps its values, what was seen to be empty becomes 0, and zeros stay.
#[test]
fn rows_without_data() {
    let v = dmatrix![0.0, 0.0; 1.0, 3.0; 6.0, 6.0];
    let h = DMatrix::from_element(2, 2, 0.5);
    let linear = dmatrix![1.0, 1.0, 1.0; 0.0, 1.0, 1.0];
    for data in [
        &dense::<f64>(&v, Order::RowMajor) as &dyn Data<f64>,
        &sparse(&v),
    ] {
        let mut block = dmatrix![0.1, 0.0, 0.2; 0.2, 0.3, 0.0];
        let own = block.transpose();
        let factors = [Factor::Columns(&own), Factor::Columns(&h)];
        let rows = Rows::new(data, Modes::one(0)).unwrap();
        let until = until(Some(1e-9), 10);
        let ends = rows.solve(0, &factors, &linear, &mut block, &until, &|| false);
        assert_eq!(block, dmatrix![0.0, 0.0, 12.0; 0.2, 4.0, 0.0]);
        assert!(ends.iter().all(|end| end.ending == Ending::Near));
    }
}

/// Rows that are told to end make one iteration, and are those after one iteration; changes end rows, too.
#[test]
fn endings() {
    let v = DMatrix::from_fn(6, 9, |i, j| 1.0 + ((3 * i + 2 * j) % 7) as f64);
    let h = DMatrix::from_fn(9, 3, |j, z| 0.1 + ((5 * j + 3 * z) % 11) as f64);
    let data = dense::<f64>(&v, Order::RowMajor);
    let (once, _) = solve(&data, &h, &until(None, 1));
    let asked = AtomicUsize::new(0);
    let mut block = DMatrix::from_element(3, 6, 1.0);
    let own = block.transpose();
    let linear = DMatrix::from_fn(3, 1, |z, _| sum(&h, z));
    let factors = [Factor::Columns(&own), Factor::Columns(&h)];
    let rows = Rows::new(&data, Modes::one(0)).unwrap();
    let cut = || asked.fetch_add(1, Relaxed) < usize::MAX;
    let ends = rows.solve(0, &factors, &linear, &mut block, &until(None, 50), &cut);
    assert!(
        ends.iter()
            .all(|end| (end.iterations, end.ending) == (1, Ending::Cut))
    );
    assert_eq!((block, asked.into_inner()), (once, 6));
    let still = Until {
        change: Some(1e-9),
        ..until(None, 200)
    };
    let (_, ends) = solve(&data, &h, &still);
    assert!(
        ends.iter()
            .all(|end| end.ending == Ending::Still && end.iterations < 50),
        "{ends:?}"
    );
    let both = Until {
        both: true,
        gap: Some(0.5),
        ..still
    };
    let (_, later) = solve(&data, &h, &both);
    let (_, sooner) = solve(&data, &h, &until(Some(0.5), 200));
    for (later, sooner) in later.iter().zip(&sooner) {
        assert_eq!((later.ending, sooner.ending), (Ending::Still, Ending::Near));
        assert!(later.iterations > sooner.iterations);
    }
}

#[test]
fn threads_change_no_bit() {
    let value = |i: usize, j: usize| ((7 * i + 3 * j) % 17) as f64;
    let v = DMatrix::from_fn(211, 190, |i, j| match (i + j) % 3 {
        0 => value(i, j),
        _ if i.is_multiple_of(4) => 1.0 + value(i, j),
        _ => 0.0,
    });
    let h = DMatrix::from_fn(190, 5, |j, z| 0.1 + ((7 * j + 3 * z) % 11) as f64);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let data = sparse::<f64>(&v);
            let (block, ends) = solve(&data, &h, &until(Some(1e-7), 60));
            let gaps: Vec<f64> = ends.iter().map(|end| end.gap).collect();
            (block, gaps)
        })
    };
    assert_eq!(run(1), run(3));
}
