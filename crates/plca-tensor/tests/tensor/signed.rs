//! The pass over signed data against its definition.

use nalgebra::DMatrix;
use plca_tensor::arrange::Signed;
use plca_tensor::{
    Coordinates, Data, DataError, DenseTensor, Order, Real, SignedModel, SignedSums, SignedWanted,
    SparseTensor, SplitRule,
};

use crate::support::noise;

/// `G⁺ = (v² + q)/p`, `G⁻ = (p + 1)/(q + v²)`, value `v p - q`: no symmetry that could hide an exchange.
#[derive(Debug)]
struct Lopsided;

fn multipliers(v: f64, p: f64, q: f64) -> (f64, f64) {
    if v.is_nan() {
        return (1.0, 1.0);
    }
    ((v * v + q) / p, (p + 1.0) / (q + v * v))
}

impl<T: Real> SplitRule<T> for Lopsided {
    fn multipliers(&self, cells: &[T], plus: &mut [T], minus: &mut [T]) {
        for ((v, p), q) in cells.iter().zip(plus).zip(minus) {
            let (a, b) = multipliers(v.to_f64(), p.to_f64(), q.to_f64());
            (*p, *q) = (T::lit(a), T::lit(b));
        }
    }

    fn value(&self, cells: &[T], plus: &[T], minus: &[T]) -> f64 {
        let cells = cells.iter().zip(plus).zip(minus);
        cells
            .filter(|((v, _), _)| !v.to_f64().is_nan())
            .map(|((v, p), q)| v.to_f64() * p.to_f64() - q.to_f64())
            .sum()
    }
}

struct Problem<T: Real> {
    values: DMatrix<T>,
    seen: DMatrix<bool>,
    plus: DMatrix<T>,
    minus: DMatrix<T>,
    right: DMatrix<T>,
}

impl<T: Real> Problem<T> {
    fn new(f: usize, n: usize, k: usize) -> Self {
        let mut next = noise((f * 1000 + n * 10 + k) as u64);
        let mut factor = |r, c| DMatrix::from_fn(r, c, |_, _| T::lit(0.1 + next()));
        let (plus, minus, right) = (factor(f, k), factor(f, k), factor(k, n));
        Self {
            values: factor(f, n).map(|x| x - T::lit(0.6)),
            seen: DMatrix::from_fn(f, n, |_, _| next() > 0.2),
            plus,
            minus,
            right,
        }
    }

    fn model(&self) -> SignedModel<'_, T> {
        SignedModel {
            plus: &self.plus,
            minus: &self.minus,
            right: &self.right,
        }
    }

    fn cells(&self) -> Signed<T> {
        let all =
            (0..self.values.nrows()).flat_map(|f| (0..self.values.ncols()).map(move |n| [f, n]));
        let seen: Vec<_> = all.filter(|&[f, n]| self.seen[(f, n)]).collect();
        let cells = Coordinates {
            shape: vec![self.values.nrows(), self.values.ncols()],
            indices: seen.iter().flatten().map(|&i| i as u32).collect(),
            values: seen.iter().map(|&[f, n]| self.values[(f, n)]).collect(),
        };
        Signed::new(&SparseTensor::stored_only(cells).unwrap()).unwrap()
    }

    fn tensor(&self, order: Order) -> DenseTensor<T> {
        let (rows, columns) = self.values.shape();
        let (mut values, mut seen) = (self.values.clone(), self.seen.clone());
        if order == Order::RowMajor {
            (values, seen) = (values.transpose(), seen.transpose());
        }
        let values = values.as_slice().to_vec();
        DenseTensor::with_mask(vec![rows, columns], values, order, seen.as_slice()).unwrap()
    }

    fn data(&self) -> Signed<T> {
        Signed::from_dense(self.tensor(Order::ColumnMajor)).unwrap()
    }

    /// Every sum in `f64`, cell by cell.
    fn definition(&self) -> SignedSums<f64> {
        let wide = |m: &DMatrix<T>| m.map(|x| x.to_f64());
        let (plus, minus, right) = (wide(&self.plus), wide(&self.minus), wide(&self.right));
        let (mut p, mut q) = (&plus * &right, &minus * &right);
        let mut value = 0.0;
        for f in 0..p.nrows() {
            for n in 0..p.ncols() {
                let v = if self.seen[(f, n)] {
                    self.values[(f, n)].to_f64()
                } else {
                    f64::NAN
                };
                if self.seen[(f, n)] {
                    value += v * p[(f, n)] - q[(f, n)];
                }
                (p[(f, n)], q[(f, n)]) = multipliers(v, p[(f, n)], q[(f, n)]);
            }
        }
        SignedSums {
            plus: &p * right.transpose(),
            minus: &q * right.transpose(),
            right: plus.transpose() * &p + minus.transpose() * &q,
            value,
        }
    }
}

const ALL: SignedWanted = SignedWanted {
    left: true,
    right: true,
    value: true,
};

fn check<T: Real>(tolerance: f64) {
    for (f, n) in [
        (1, 1),
        (3, 5),
        (16, 32),
        (17, 33),
        (2, 70),
        (35, 31),
        (50, 100),
    ] {
        for k in [1, 2, 3, 4, 5, 7, 8, 9, 20] {
            let problem = Problem::<T>::new(f, n, k);
            let dense = problem.data().pass(&problem.model(), &Lopsided, ALL);
            let cells = problem.cells().pass(&problem.model(), &Lopsided, ALL);
            let want = problem.definition();
            for got in [dense, cells] {
                for (got, want) in [
                    (&got.plus, &want.plus),
                    (&got.minus, &want.minus),
                    (&got.right, &want.right),
                ] {
                    assert_eq!(got.shape(), want.shape());
                    for (got, want) in got.iter().zip(want) {
                        let error = (got.to_f64() - want).abs() / want.abs();
                        assert!(error <= tolerance, "{f}x{n}, K = {k}: {got} {want}");
                    }
                }
                let size = (f * n * k) as f64;
                assert!((got.value - want.value).abs() <= tolerance * size);
            }
        }
    }
}

#[test]
fn meets_its_definition() {
    check::<f64>(1e-13);
    check::<f32>(1e-4);
}

/// Multipliers far below the rounding of 1, of data that may be hidden.
#[derive(Debug)]
struct Faint;

impl<T: Real> SplitRule<T> for Faint {
    fn multipliers(&self, cells: &[T], plus: &mut [T], minus: &mut [T]) {
        for side in [plus, minus] {
            let observed = side.iter_mut().zip(cells).filter(|(_, v)| !v.is_nan());
            observed.for_each(|(g, _)| *g = T::lit(1e-30));
        }
    }

    fn value(&self, _: &[T], _: &[T], _: &[T]) -> f64 {
        0.0
    }
}

fn check_faint<T: Real>() {
    let mut problem = Problem::<T>::new(7, 9, 3);
    problem.seen.fill(true);
    problem.seen[(0, 0)] = false;
    let got = problem.cells().pass(&problem.model(), &Faint, ALL);
    let most = 2.0 * 9.0 * T::EPSILON.to_f64();
    let is_faint = |x: &T| *x > T::zero() && x.to_f64() < 2.0 * most;
    // Row and column of the hidden cell have more.
    for rows in [&got.plus, &got.minus] {
        assert!(rows.rows(1, 6).iter().all(is_faint), "{rows}");
        assert!(!rows.row(0).iter().any(is_faint), "{rows}");
    }
    assert!(
        got.right.columns(1, 8).iter().all(is_faint),
        "{}",
        got.right
    );
    assert!(!got.right.column(0).iter().any(is_faint), "{}", got.right);
}

/// Where every cell is observed and multiplies by almost nothing, nothing is lost of an entry but what rounding hides.
#[test]
fn faint_multipliers_leave_something() {
    check_faint::<f64>();
    check_faint::<f32>();
}

/// What is not wanted is empty, and the rest has the same bits.
#[test]
fn parts_are_the_whole() {
    let problem = Problem::<f64>::new(20, 50, 3);
    check_parts(&problem, &problem.data());
    check_parts(&problem, &problem.cells());
}

fn check_parts(problem: &Problem<f64>, data: &Signed<f64>) {
    let all = data.pass(&problem.model(), &Lopsided, ALL);
    for bits in 0..8 {
        let wanted = SignedWanted {
            left: bits & 1 > 0,
            right: bits & 2 > 0,
            value: bits & 4 > 0,
        };
        let got = data.pass(&problem.model(), &Lopsided, wanted);
        let none = DMatrix::zeros(0, 0);
        assert_eq!(&got.plus, if wanted.left { &all.plus } else { &none });
        assert_eq!(&got.minus, if wanted.left { &all.minus } else { &none });
        assert_eq!(&got.right, if wanted.right { &all.right } else { &none });
        assert_eq!(got.value, if wanted.value { all.value } else { 0.0 });
    }
}

/// One thread and three give the same bits, on data large enough for several blocks of rows and of columns.
#[test]
fn threads_change_no_bit() {
    let problem = Problem::<f64>::new(150, 1400, 9);
    let data = problem.data();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap()
            .install(|| data.pass(&problem.model(), &Lopsided, ALL))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn hidden_values_are_not_read() {
    let mut problem = Problem::<f64>::new(10, 40, 2);
    let before = problem.data();
    for (x, seen) in problem.values.iter_mut().zip(problem.seen.iter()) {
        *x = if *seen { *x } else { f64::INFINITY };
    }
    let after = problem.data();
    let pass = |data: &Signed<f64>| data.pass(&problem.model(), &Lopsided, ALL);
    assert_eq!(pass(&before), pass(&after));
    let hidden = problem.seen.iter().filter(|x| !**x).count();
    assert_eq!(after.observed() + hidden, 400);
    let mut visited = 0;
    after.for_each(&mut |f, n, v| {
        assert_eq!(v, problem.values[(f, n)]);
        visited += 1;
    });
    assert_eq!(visited, after.observed());
}

#[test]
fn refusals() {
    let bad = DMatrix::from_row_slice(2, 2, &[0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY]);
    let refused = Signed::from_matrix(bad).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "entry [1, 0] is -inf, not a finite number"
    );
    let nan = DMatrix::from_element(2, 2, f64::NAN);
    let values = nan.as_slice().to_vec();
    let refused = DenseTensor::with_mask(vec![2, 2], values, Order::RowMajor, &[true; 4]);
    assert!(matches!(refused, Err(DataError::NotFinite { index, .. }) if index == [0, 0]));
    assert_eq!(Signed::from_matrix(nan).unwrap().observed(), 0);
    assert!(Signed::<f64>::from_matrix(DMatrix::zeros(0, 3)).is_err());
    let cube = DenseTensor::new(vec![2, 1, 2], vec![1.0; 4], Order::RowMajor).unwrap();
    let shape = vec![2, 1, 2];
    let refused = DataError::NotAMatrix { shape };
    assert_eq!(Signed::new(&cube).unwrap_err(), refused);
    assert_eq!(Signed::from_dense(cube).unwrap_err(), refused);
}

/// Copied or arranged in place, in either memory order, dense or sparse with zeros: the same cells in the same places.
#[test]
fn every_way_is_one_arrangement() {
    for (f, n) in [(1, 1), (3, 5), (16, 32), (17, 33), (2, 170), (35, 31)] {
        let problem = Problem::<f64>::new(f, n, 1);
        let whole = problem.data();
        let mut hidden = Coordinates {
            shape: vec![f, n],
            indices: Vec::new(),
            values: Vec::new(),
        };
        for order in [Order::RowMajor, Order::ColumnMajor] {
            let tensor = problem.tensor(order);
            hidden.indices.clear();
            tensor
                .visit_mask(&mut |index| hidden.indices.extend(index.iter().map(|&i| i as u32)))
                .unwrap();
            let ways = [Signed::new(&tensor), Signed::from_dense(tensor)];
            for way in ways {
                assert_cells(&way.unwrap(), &whole);
            }
        }
        hidden.values = vec![0.0; hidden.indices.len() / 2];
        let all = (0..f as u32).flat_map(|i| (0..n as u32).flat_map(move |j| [i, j]));
        let entries = Coordinates {
            shape: vec![f, n],
            indices: all.collect(),
            values: problem.values.transpose().as_slice().to_vec(),
        };
        let sparse = SparseTensor::all_but(entries, hidden).unwrap();
        assert_cells(&Signed::new(&sparse).unwrap(), &whole);
    }
}

fn assert_cells(got: &Signed<f64>, want: &Signed<f64>) {
    let cells = |data: &Signed<f64>| {
        let mut cells = Vec::new();
        data.for_each(&mut |i, j, x| cells.push((i, j, x)));
        (data.shape(), data.observed(), cells)
    };
    assert_eq!(cells(got), cells(want));
    let k = DMatrix::from_element(want.shape().0, 1, 0.5);
    let h = DMatrix::from_element(1, want.shape().1, 0.5);
    let model = SignedModel {
        plus: &k,
        minus: &k,
        right: &h,
    };
    let pass = |data: &Signed<f64>| data.pass(&model, &Lopsided, ALL);
    assert_eq!(pass(got), pass(want));
}
