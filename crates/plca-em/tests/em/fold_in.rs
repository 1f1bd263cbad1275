//! New data under learnt factors: the certified gap bounds the true one, whatever the start.

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_em::{Given, Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState};
use plca_fit::{
    Explained, FitError, Impossible, Init, Interrupt, Model, Reconstruct, Solver, State, Status,
    Transform,
};
use plca_tensor::{Data, DenseTensor, Order, normalise_columns, times_power_of_two};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::support::exactly;

fn after(iterations: usize) -> Transform {
    let how = Transform::default().solver(Solver::Em);
    how.stop(exactly(iterations))
}

fn fast(iterations: usize) -> Transform {
    after(iterations).solver(Solver::Fast)
}

/// Positive factors, and data of which some cells may be hidden.
#[derive(Clone, Debug)]
struct Problem {
    a: DMatrix<f64>,
    b: DMatrix<f64>,
    data: Vec<f64>,
    hidden: Vec<bool>,
}

const ROWS: usize = 5;
const COLUMNS: usize = 4;

prop_compose! {
    fn problem()(k in 1..4usize)(
        a in prop::collection::vec(0.01..1.0f64, ROWS * k),
        b in prop::collection::vec(0.01..1.0f64, COLUMNS * k),
        data in prop::collection::vec(0..20u32, ROWS * COLUMNS),
        // The first row is always seen and positive, so that every observation has some mass.
        hidden in prop::collection::vec(prop::bool::weighted(0.3), ROWS * COLUMNS),
        k in Just(k),
    ) -> Problem {
        let mut data: Vec<f64> = data.into_iter().map(f64::from).collect();
        let mut hidden = hidden;
        for j in 0..COLUMNS {
            data[j] += 1.0;
            hidden[j] = false;
        }
        let mut a = DMatrix::from_vec(ROWS, k, a);
        let mut b = DMatrix::from_vec(COLUMNS, k, b);
        normalise_columns(&mut a);
        normalise_columns(&mut b);
        Problem { a, b, data, hidden }
    }
}

impl Problem {
    fn complete(&self) -> DenseTensor<f64> {
        DenseTensor::new(vec![ROWS, COLUMNS], self.data.clone(), Order::RowMajor).unwrap()
    }

    fn masked(&self) -> DenseTensor<f64> {
        let seen: Vec<bool> = self.hidden.iter().map(|h| !h).collect();
        let (shape, data) = (vec![ROWS, COLUMNS], self.data.clone());
        DenseTensor::with_mask(shape, data, Order::RowMajor, &seen).unwrap()
    }

    fn plca(&self) -> PlcaState<f64> {
        let k = self.a.ncols();
        let factors = vec![self.a.clone(), self.b.clone()];
        PlcaState::new(DVector::from_element(k, 1.0 / k as f64), factors).unwrap()
    }

    fn plsa(&self) -> PlsaState<f64> {
        of_basis(self.a.clone())
    }

    fn nmf(&self) -> NmfState<f64> {
        NmfState::new(3.0 * &self.a, self.b.transpose()).unwrap()
    }
}

/// A PLSA of which only the basis matters.
fn of_basis(basis: DMatrix<f64>) -> PlsaState<f64> {
    let k = basis.ncols();
    let mixture = DMatrix::from_element(k, 1, 1.0 / k as f64);
    PlsaState::new(Given::Columns, basis, mixture, vec![1.0]).unwrap()
}

/// What is still to be gained after few iterations, against what is certified, in units of the log-likelihood.
fn bounded<S: State>(
    few: &Explained<S>,
    many: &Explained<S>,
    totals: &[f64],
) -> Result<(), TestCaseError> {
    let certified =
        |e: &Explained<S>| -> f64 { e.gap.iter().zip(totals).map(|(g, v)| g * v).sum() };
    let gained = (many.fit.objective() - few.fit.objective()).abs();
    let scale = 1.0 + few.fit.objective().abs();
    prop_assert!(
        gained <= certified(few) + 1e-9 * scale,
        "{gained} {:?}",
        few.gap
    );
    prop_assert!(certified(many) <= certified(few) + 1e-9 * scale);
    Ok(())
}

fn check(p: &Problem, data: &dyn Data<f64>) -> Result<(), TestCaseError> {
    for few in [0, 1, 3] {
        for along in 0..2 {
            let totals = data.marginal(along).unwrap();
            let model = p.plca();
            let run = |n| model.transform(data, &after(n).along(along)).unwrap();
            bounded(&run(few), &run(400), &[data.total()])?;
            let model = p.nmf();
            let run = |n| model.transform(data, &after(n).along(along)).unwrap();
            if totals.iter().all(|&v| v > 0.0) {
                bounded(&run(few), &run(400), &totals)?;
            }
        }
        let model = p.plsa();
        let run = |n| model.transform(data, &after(n)).unwrap();
        bounded(&run(few), &run(400), &data.marginal(1).unwrap())?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// `L* - L <= Σ_y v_y gap_y` after 0, 1 and 3 iterations, for all models, complete and masked.
    // [SPEC 1.5]
    #[test]
    fn certified_gap_bounds_the_true_gap(p in problem()) {
        check(&p, &p.complete())?;
        check(&p, &p.masked())?;
    }

    /// Coordinate descent ends at the likelihood of EM, to within what both certify, and learned factors keep their bits.
    // [SPEC 1.5] [SPEC 10.1]
    #[test]
    fn both_solvers_end_alike(p in problem(), hidden: bool) {
        let (complete, masked) = (p.complete(), p.masked());
        let data: &dyn Data<f64> = if hidden { &masked } else { &complete };
        let alike = |em: (f64, f64), fast: (f64, f64)| {
            let certified = em.1.max(fast.1) + 1e-9 * data.total();
            prop_assert!((em.0 - fast.0).abs() <= certified, "{em:?} {fast:?}");
            prop_assert!(fast.1 <= 1e-6 * data.total(), "{fast:?}");
            Ok(())
        };
        for along in 0..2 {
            let plca = p.plca();
            let run = |how: Transform| plca.transform(data, &how.along(along)).unwrap();
            let ends = |e: &Explained<PlcaState<f64>>| (e.fit.objective(), e.gap[0] * data.total());
            let quick = run(fast(200));
            alike(ends(&run(after(2000))), ends(&quick))?;
            prop_assert_eq!(quick.fit.state().factor(1 - along), plca.factor(1 - along));
        }
        let totals = data.marginal(1).unwrap();
        let certified = |gaps: &[f64]| gaps.iter().zip(&totals).map(|(g, v)| g * v).sum::<f64>();
        let plsa = p.plsa();
        let run = |how: Transform| plsa.transform(data, &how).unwrap();
        let (slow, quick) = (run(after(2000)), run(fast(200)));
        let ends = |e: &Explained<PlsaState<f64>>| (e.fit.objective(), certified(&e.gap));
        alike(ends(&slow), ends(&quick))?;
        prop_assert_eq!(quick.fit.state().basis(), plsa.basis());
        let nmf = p.nmf();
        let run = |how: Transform| nmf.transform(data, &how).unwrap();
        let (slow, quick) = (run(after(2000)), run(fast(200)));
        let ends = |e: &Explained<NmfState<f64>>| (e.fit.objective(), certified(&e.gap));
        alike(ends(&slow), ends(&quick))?;
        prop_assert_eq!(quick.fit.state().w(), nmf.w());
    }

    /// A drawn start ends at the likelihood of the uniform one, to within what both certify.
    // [SPEC 1.5]
    #[test]
    fn the_start_does_not_matter(p in problem(), seed in 0..1000u64) {
        let data = p.complete();
        let k = p.a.ncols();
        fn ends<M: Model<f64>>(model: &M, data: &dyn Data<f64>, block: &str, given: &DMatrix<f64>, seed: u64) -> f64 {
            let run = model.on(data).unwrap().solver(Solver::Em).stop(exactly(400));
            let init = Init::default().block(block, given.clone());
            run.run(init, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap().objective()
        }
        let certified = |gap: &[f64]| -> f64 {
            gap.iter().zip(data.marginal(1).unwrap()).map(|(g, v)| g * v).sum::<f64>() + 1e-9 * data.total()
        };
        let found = p.plca().transform(&data, &after(400)).unwrap();
        let end = ends(&Plca::new(k).freeze("factor_0"), &data, "factor_0", &p.a, seed);
        prop_assert!(end <= found.fit.objective() + data.total() * (found.gap[0] + 1e-9));
        let found = p.plsa().transform(&data, &after(400)).unwrap();
        let end = ends(&Plsa::new(k).freeze("basis"), &data, "basis", &p.a, seed);
        prop_assert!(end <= found.fit.objective() + certified(&found.gap));
        let found = p.nmf().transform(&data, &after(400)).unwrap();
        let end = ends(&Nmf::new(k).freeze("w"), &data, "w", p.nmf().w(), seed);
        prop_assert!(end >= found.fit.objective() - certified(&found.gap));
    }

    /// In the scale of the new data: the cells that were seen sum to them.
    #[test]
    fn reconstructions_have_the_scale_of_the_new_data(p in problem()) {
        let data = p.masked();
        let near = |cell: &dyn Fn(&[usize]) -> f64| {
            let seen = (0..ROWS * COLUMNS).filter(|&at| !p.hidden[at]);
            let sum: f64 = seen.map(|at| cell(&[at / COLUMNS, at % COLUMNS])).sum();
            prop_assert!((sum - data.total()).abs() < 1e-9 * data.total(), "{} {}", sum, data.total());
            Ok(())
        };
        let plca = p.plca().transform(&data, &after(50)).unwrap();
        near(&|index| plca.fit.state().cell(index))?;
        let plsa = p.plsa().transform(&data, &after(50)).unwrap();
        near(&|index| plsa.fit.state().cell(index))?;
    }
}

/// Negative control: away from the optimum the gap is that of the definition, not small.
#[test]
fn the_gap_of_a_start_is_not_small() {
    let data = DenseTensor::new(vec![2, 1], vec![9.0, 1.0], Order::RowMajor).unwrap();
    let model = of_basis(dmatrix![0.5, 1.0; 0.5, 0.0]);
    let start = model.transform(&data, &after(0)).unwrap();
    // At g = (1/2, 1/2): P = (3/4, 1/4), multipliers 8 and 12 of 10.
    assert!((start.gap[0] - 0.2).abs() < 1e-12, "{:?}", start.gap);
    let end = model.transform(&data, &Transform::default()).unwrap();
    assert!(end.gap[0] <= 1e-6, "{:?}", end.gap);
    // The optimum explains the data exactly: P = (0.9, 0.1).
    assert!((end.fit.state().mixture()[(1, 0)] - 0.8).abs() < 1e-5);
}

/// A raised flag ends the work after one iteration, and what is certified holds for its end; a flag that is not raised changes no bit.
#[test]
fn a_raised_flag_ends_the_explanation() {
    let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let data = DenseTensor::new(vec![3, 2], values, Order::RowMajor).unwrap();
    let basis = dmatrix![0.6, 0.1; 0.3, 0.2; 0.1, 0.7];
    let factors = vec![basis.clone(), DMatrix::from_element(2, 2, 0.5)];
    let plca = PlcaState::new(DVector::from_element(2, 0.5), factors).unwrap();
    let nmf = NmfState::new(basis.clone(), DMatrix::from_element(2, 2, 1.0)).unwrap();
    let plsa = of_basis(basis);
    let explained = |how: &Transform| {
        [
            plca.transform(&data, how).unwrap().untyped(),
            nmf.transform(&data, how).unwrap().untyped(),
            plsa.transform(&data, how).unwrap().untyped(),
        ]
    };
    for solver in [Solver::Em, Solver::Squarem, Solver::Fast] {
        let how = |iterations: usize| after(iterations).solver(solver);
        let flag = Interrupt::default();
        let watched = how(40).interrupt(flag.clone());
        for (with, without) in explained(&watched).iter().zip(&explained(&how(40))) {
            assert_eq!(with.fit.state(), without.fit.state(), "{solver}");
            assert_eq!(with.fit.status(), without.fit.status(), "{solver}");
        }
        flag.raise();
        for (cut, one) in explained(&watched).iter().zip(&explained(&how(1))) {
            assert_eq!(cut.fit.status(), &Status::Interrupted, "{solver}");
            assert_eq!(cut.fit.iterations(), 1, "{solver}");
            assert_eq!(cut.fit.state(), one.fit.state(), "{solver}");
            assert_eq!(cut.gap, one.gap, "{solver}");
        }
    }
}

#[test]
fn learned_factors_stay_to_the_bit() {
    let data = DenseTensor::new(
        vec![3, 2],
        vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        Order::RowMajor,
    )
    .unwrap();
    let thirds = DMatrix::from_element(3, 2, 1.0 / 3.0 + 1e-17);
    let factors = vec![thirds.clone(), DMatrix::from_element(2, 2, 0.5)];
    let plca = PlcaState::new(DVector::from_element(2, 0.5), factors).unwrap();
    let explained = plca.transform(&data, &after(5)).unwrap();
    assert_eq!(explained.fit.state().factor(0), &thirds);
    let explained = of_basis(thirds.clone()).transform(&data, &after(5));
    assert_eq!(explained.unwrap().fit.state().basis(), &thirds);
}

// [SPEC 1.5]
#[test]
fn impossible_observations_are_refused_or_dropped_and_empty_ones_flagged() {
    let data = DenseTensor::new(
        vec![2, 3],
        vec![3.0, 0.0, 1.0, 4.0, 0.0, 0.0],
        Order::RowMajor,
    )
    .unwrap();
    let model = of_basis(dmatrix![0.0, 0.0; 1.0, 1.0]);
    let plca = PlcaState::new(
        DVector::from_element(2, 0.5),
        vec![
            dmatrix![0.0, 0.0; 1.0, 1.0],
            DMatrix::from_element(3, 2, 1.0 / 3.0),
        ],
    );
    let plca = plca.unwrap();
    let impossible = FitError::Impossible {
        index: vec![0, 0],
        value: 3.0,
    };
    assert_eq!(model.transform(&data, &after(5)).unwrap_err(), impossible);
    assert_eq!(plca.transform(&data, &after(5)).unwrap_err(), impossible);
    let drop = after(5).impossible(Impossible::Drop);
    let explained = model.transform(&data, &drop).unwrap();
    assert_eq!((explained.dropped, explained.empty), (4.0, vec![1, 2]));
    let even = DVector::from_element(2, 0.5);
    assert_eq!(explained.fit.state().mixture().column(1), even);
    let explained = plca.transform(&data, &drop).unwrap();
    assert_eq!((explained.dropped, explained.empty), (4.0, vec![1, 2]));
    let other = DenseTensor::new(vec![3, 1], vec![1.0; 3], Order::RowMajor).unwrap();
    let expected = "the data are 3 x 1, expected 2 x any";
    let error = model.transform(&other, &after(5)).unwrap_err();
    assert_eq!(error.to_string(), expected);
    let error = plca.transform(&other, &after(5)).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

/// A mode that is not there is refused by name; PLSA explains along the given mode alone.
#[test]
fn of_other_modes() {
    let data = DenseTensor::new(vec![2, 3], vec![1.0f64; 6], Order::RowMajor).unwrap();
    let even = |rows: usize| DMatrix::from_element(rows, 1, 1.0 / rows as f64);
    let plca = PlcaState::new(DVector::from_element(1, 1.0), vec![even(2), even(3)]).unwrap();
    let nmf = NmfState::new(even(2), even(3).transpose()).unwrap();
    for mode in [2, 3] {
        let how = Transform::default().along(mode);
        let expected = FitError::Mode { mode, modes: 2 };
        assert_eq!(plca.transform(&data, &how).unwrap_err(), expected);
        assert_eq!(nmf.transform(&data, &how).unwrap_err(), expected);
    }
    let rows = Transform::default().along(0);
    let refused = of_basis(even(2)).transform(&data, &rows).unwrap_err();
    assert!(matches!(refused, FitError::Conflict { .. }), "{refused}");
}

/// Which of its two factors has the scale of a learnt component changes nothing that NMF says of new data, by any solver.
#[test]
fn the_scale_of_a_learnt_component_changes_nothing() {
    let w = DMatrix::from_fn(6, 2, |i, z| 1.0 + ((3 * i + 5 * z) % 7) as f64);
    let h = DMatrix::from_fn(2, 3, |z, j| 1.0 + ((z + 2 * j) % 3) as f64);
    let cells = (0..18).map(|i| ((7 * i) % 11) as f64).collect();
    let data = DenseTensor::new(vec![6, 3], cells, Order::RowMajor).unwrap();
    for (along, solver) in [0, 1]
        .into_iter()
        .flat_map(|mode| Solver::ALL.iter().map(move |&s| (mode, s)))
    {
        let how = Transform::default().solver(solver).along(along);
        let end = |e: i32| {
            let (mut w, mut h) = (w.clone(), h.clone());
            w.column_mut(0).apply(|x| *x = times_power_of_two(*x, e));
            h.row_mut(0).apply(|x| *x = times_power_of_two(*x, -e));
            let learnt = NmfState::new(w, h).unwrap();
            let explained = learnt.transform(&data, &how).unwrap();
            let kept = [learnt.w(), learnt.h()];
            let state = explained.fit.state();
            assert_eq!([state.w(), state.h()][1 - along], kept[1 - along]);
            (state.w() * state.h(), explained.gap)
        };
        let (one, _) = end(0);
        for e in [-830, -70, 12, 70, 830] {
            let (other, gap) = end(e);
            let apart = (&other - &one).amax();
            assert!(apart < 1e-2, "{solver} along {along}, 2^{e}: {other} {one}");
            assert!(gap.iter().all(|&gap| gap < 1e-5), "{solver} 2^{e}: {gap:?}");
        }
        // Of a component that has died its rates stay numbers.
        let (dead, _) = end(-1020);
        assert!(dead.iter().all(|x| x.is_finite()), "{solver}: {dead}");
    }
}

/// Two components that hardly show in the observed cells, with 1e-73 and less: in large units their masses in the hidden cell leave the range of numbers, their
/// shares do not.
// [SPEC 1.5]
#[test]
fn shares_have_no_unit() {
    let basis = dmatrix![1.0, 1.0; 2e-97, 7e-74; 7e-74, 3e-80];
    let plsa = of_basis(basis.clone());
    let plca = PlcaState::new(
        DVector::from_element(2, 0.5),
        vec![basis, dmatrix![1.0, 1.0]],
    )
    .unwrap();
    let found = |unit: f64| {
        let values = [f64::NAN, 1.0, 2.0].map(|v: f64| v * unit);
        let data = DenseTensor::masked(vec![3, 1], values.to_vec(), Order::RowMajor).unwrap();
        let plsa = plsa.transform(&data, &fast(20)).unwrap();
        let plca = plca.transform(&data, &fast(20)).unwrap();
        [
            plsa.fit.state().mixture().clone(),
            plca.fit.state().parameters().at(0).clone(),
        ]
    };
    let here = found(1.0);
    for exponent in [-800, 300, 790, 820] {
        assert_eq!(found(2f64.powi(exponent)), here, "{exponent}");
    }
}
