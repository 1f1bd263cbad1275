//! New observations are explained one by one: whatever is beside them, each to its own gap.

use std::time::Duration;

use nalgebra::{DMatrix, DVector};
use plca_em::{Given, NmfState, PlcaState, PlsaState};
use plca_fit::{Explained, Impossible, State, Status, Transform};
use plca_tensor::strategies::permutations;
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor, normalise_columns};
use proptest::prelude::*;

/// Data `I x J` of new observations in columns, of which some are empty, and a learnt basis `I x K`.
#[derive(Clone, Debug)]
struct Problem {
    v: DMatrix<f64>,
    basis: DMatrix<f64>,
    hidden: DMatrix<bool>,
}

prop_compose! {
    fn problem()(rows in 1..=30usize, columns in 1..=7usize, k in 1..=5usize)(
        v in prop::collection::vec(prop_oneof![1 => Just(0.0), 2 => 0.5..20.0f64], rows * columns),
        basis in prop::collection::vec(prop_oneof![1 => Just(0.0), 6 => 0.01..1.0f64], rows * k),
        empty in prop::collection::vec(prop::bool::weighted(0.2), columns),
        hidden in prop::collection::vec(prop::bool::weighted(0.3), rows * columns),
        rows in Just(rows), columns in Just(columns), k in Just(k),
    ) -> Problem {
        let mut v = DMatrix::from_column_slice(rows, columns, &v);
        let mut hidden = DMatrix::from_column_slice(rows, columns, &hidden);
        for (y, _) in empty.iter().enumerate().filter(|(_, empty)| **empty) {
            v.column_mut(y).fill(0.0);
        }
        // Something was seen, and some component is everywhere.
        (v[(0, 0)], hidden[(0, 0)]) = (3.0, false);
        let mut basis = DMatrix::from_column_slice(rows, k, &basis);
        basis.column_mut(0).apply(|x| *x += 0.1);
        basis.row_mut(0).apply(|x| *x += 0.1);
        normalise_columns(&mut basis);
        Problem { v, basis, hidden }
    }
}

/// Data as they are, and the same with rows and columns exchanged.
fn both_ways<T: Real>(v: &DMatrix<f64>, sparse: bool) -> [Box<dyn Data<T>>; 2] {
    [v.clone(), v.transpose()].map(|v| -> Box<dyn Data<T>> {
        let shape = vec![v.nrows(), v.ncols()];
        let values: Vec<T> = v.iter().map(|&x| T::lit(x)).collect();
        if !sparse {
            return Box::new(DenseTensor::new(shape, values, Order::ColumnMajor).unwrap());
        }
        let at = |at: usize| [(at % v.nrows()) as u32, (at / v.nrows()) as u32];
        let positive = || (0..values.len()).filter(|&at| values[at] > T::zero());
        Box::new(
            SparseTensor::new(Coordinates {
                indices: positive().flat_map(at).collect(),
                values: positive().map(|at| values[at]).collect(),
                shape,
            })
            .unwrap(),
        )
    })
}

fn plsa<T: Real>(basis: &DMatrix<f64>, given: Given) -> PlsaState<T> {
    let mixture = DMatrix::from_element(basis.ncols(), 1, T::lit(1.0 / basis.ncols() as f64));
    let mut basis = basis.map(T::lit);
    normalise_columns(&mut basis);
    PlsaState::new(given, basis, mixture, vec![T::one()]).unwrap()
}

/// Of NMF with its observations along either mode; the learnt factor has units of its own.
fn nmf<T: Real>(basis: &DMatrix<f64>, along: usize) -> NmfState<T> {
    let (k, learnt) = (basis.ncols(), basis.map(|x| T::lit(3.0 * x)));
    match along {
        0 => NmfState::new(DMatrix::from_element(1, k, T::one()), learnt.transpose()).unwrap(),
        _ => NmfState::new(learnt, DMatrix::from_element(k, 1, T::one())).unwrap(),
    }
}

fn how(gap: f64) -> Transform {
    let how = Transform::default().impossible(Impossible::Drop);
    let stop = how.stop.clone().residual_tol(gap);
    how.stop(stop)
}

/// What every model finds of the columns, `K x J`, with their gaps.
fn found<T: Real>(p: &Problem, v: &DMatrix<f64>, sparse: bool) -> Vec<(DMatrix<T>, Vec<f64>)> {
    let [columns, rows] = both_ways::<T>(v, sparse);
    let how = how(1e-5);
    let of_plsa = |given: Given, data: &dyn Data<T>| {
        let e = plsa(&p.basis, given).transform(data, &how).unwrap();
        (e.fit.state().mixture().clone(), e.gap)
    };
    let of_nmf = |along: usize, data: &dyn Data<T>| {
        let how = how.clone().along(along);
        let e = nmf(&p.basis, along).transform(data, &how).unwrap();
        let state = e.fit.state();
        let block = [state.w().transpose(), state.h().clone()][along].clone();
        (block, e.gap)
    };
    vec![
        of_plsa(Given::Columns, &*columns),
        of_plsa(Given::Rows, &*rows),
        of_nmf(1, &*columns),
        of_nmf(0, &*rows),
    ]
}

fn alone<T: Real>(p: &Problem, order: &[usize]) -> Result<(), TestCaseError> {
    let whole = found::<T>(p, &p.v, false);
    let same = |v: &DMatrix<f64>, places: &[usize], sparse: bool| {
        for (model, (some, all)) in found::<T>(p, v, sparse).iter().zip(&whole).enumerate() {
            for (at, &y) in places.iter().enumerate() {
                prop_assert_eq!(some.0.column(at), all.0.column(y), "{} {}", model, y);
                prop_assert_eq!(some.1[at], all.1[y], "{} {}", model, y);
            }
        }
        Ok(())
    };
    for sparse in [false, true] {
        same(&p.v.select_columns(order), order, sparse)?;
        // An observation that no component reaches is refused on its own.
        for y in (0..p.v.ncols()).filter(|&y| p.v[(0, y)] > 0.0) {
            same(&p.v.select_columns(&[y]), &[y], sparse)?;
        }
    }
    Ok(())
}

/// `max_z m_z / s_z · Σ s x / v - 1` of column `y`, cell by cell over what was seen and is explained.
fn gap(p: &Problem, x: &DMatrix<f64>, y: usize, hidden: bool) -> Option<f64> {
    let (rows, k) = p.basis.shape();
    let seen: Vec<_> = (0..rows)
        .filter(|&i| !hidden || !p.hidden[(i, y)])
        .collect();
    let model = |i: usize| (0..k).map(|z| p.basis[(i, z)] * x[(z, y)]).sum::<f64>();
    let reached = |i: usize| (0..k).any(|z| p.basis[(i, z)] > 0.0);
    let counts: Vec<_> = (seen.iter().copied())
        .filter(|&i| p.v[(i, y)] > 0.0 && reached(i))
        .collect();
    let total: f64 = counts.iter().map(|&i| p.v[(i, y)]).sum();
    let mass: f64 = seen.iter().map(|&i| model(i)).sum();
    let multiplier = |z: usize| {
        let share: f64 = seen.iter().map(|&i| p.basis[(i, z)]).sum();
        let slope = counts
            .iter()
            .map(|&i| p.v[(i, y)] * p.basis[(i, z)] / model(i));
        (share > 0.0).then(|| slope.sum::<f64>() / share)
    };
    let largest = (0..k).filter_map(multiplier).fold(0.0, f64::max);
    (total > 0.0).then(|| largest * mass / total - 1.0)
}

fn masked(p: &Problem) -> DenseTensor<f64> {
    let cells = p.v.iter().zip(&p.hidden);
    let values = cells.map(|(&x, &hidden)| if hidden { f64::NAN } else { x });
    let shape = vec![p.v.nrows(), p.v.ncols()];
    DenseTensor::masked(shape, values.collect(), Order::ColumnMajor).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// In another order, alone, dense or sparse: the same bits.
    // [SPEC 1.5]
    #[test]
    fn an_observation_knows_nothing_of_the_others(
        (p, order) in problem().prop_flat_map(|p| { let n = p.v.ncols(); (Just(p), permutations(n)) }),
    ) {
        alone::<f64>(&p, &order)?;
        alone::<f32>(&p, &order)?;
    }

    /// Every gap is within the tolerance, and that of the definition; hidden cells and empty observations among them.
    // [SPEC 1.5]
    #[test]
    fn every_gap_is_small(p in problem(), hidden: bool, tol in prop_oneof![Just(1e-3), Just(1e-6), Just(1e-9)]) {
        let data: Box<dyn Data<f64>> = match hidden {
            true => Box::new(masked(&p)),
            false => { let [columns, _] = both_ways(&p.v, false); columns }
        };
        let check = |x: &DMatrix<f64>, gaps: &[f64], status: &Status| {
            prop_assert_eq!(status, &Status::Stationary);
            for (y, &certified) in gaps.iter().enumerate() {
                prop_assert!(certified <= tol, "{y}: {certified}");
                if let Some(gap) = gap(&p, x, y, hidden) {
                    prop_assert!((gap - certified).abs() <= 1e-11, "{y}: {gap} {certified}");
                }
            }
            Ok(())
        };
        let e = plsa(&p.basis, Given::Columns).transform(&*data, &how(tol)).unwrap();
        check(e.fit.state().mixture(), &e.gap, e.fit.status())?;
        let e = nmf(&p.basis, 1).transform(&*data, &how(tol)).unwrap();
        check(e.fit.state().h(), &e.gap, e.fit.status())?;
        // The observations of PLCA have one gap, the largest.
        let k = p.basis.ncols();
        let weights = DVector::from_element(k, 1.0 / k as f64);
        // [SPEC 1] P(z) P(y | z)
        let plca = PlcaState::new(weights, vec![p.basis.clone(), DMatrix::from_element(1, k, 1.0)]).unwrap();
        let e = plca.transform(&*data, &how(tol)).unwrap();
        let state = e.fit.state();
        let x = DMatrix::from_fn(k, p.v.ncols(), |z, y| state.weights()[z] * state.factor(1)[(y, z)]);
        let gaps = (0..p.v.ncols()).filter_map(|y| gap(&p, &x, y, hidden));
        let largest = gaps.fold(0.0, f64::max);
        prop_assert!(e.gap[0] <= tol && (largest - e.gap[0]).abs() <= 1e-11, "{largest} {:?}", e.gap);
    }
}

/// Observations without a count are even mixtures and have rates 0; without time all make one iteration.
#[test]
fn without_counts_and_without_time() {
    let v = DMatrix::from_fn(4, 3, |i, y| if y == 1 { 0.0 } else { (1 + i * y) as f64 });
    let mut basis = DMatrix::from_fn(4, 2, |i, z| (1 + i + 3 * z * (i % 2)) as f64);
    normalise_columns(&mut basis);
    let [data, _] = both_ways::<f64>(&v, true);
    let plsa = plsa(&basis, Given::Columns);
    let explained = plsa.transform(&*data, &how(1e-6)).unwrap();
    assert_eq!(explained.empty, [1]);
    let even = DVector::from_element(2, 0.5);
    assert_eq!(explained.fit.state().mixture().column(1), even);
    let explained = nmf(&basis, 1).transform(&*data, &how(1e-6)).unwrap();
    assert!(
        explained
            .fit
            .state()
            .h()
            .column(1)
            .iter()
            .all(|&x| x == 0.0)
    );
    let how = how(1e-12);
    let stop = how.stop.clone().time_limit(Duration::ZERO);
    let late: Explained<PlsaState<f64>> = plsa.transform(&*data, &how.stop(stop)).unwrap();
    assert_eq!(late.fit.status(), &Status::TimeLimit);
    assert_eq!(
        (
            late.fit.iterations(),
            late.fit.state().parameters().iteration()
        ),
        (1, 1)
    );
}
