//! Fold-in: the certified gap bounds the true one, whatever the start.

use nalgebra::{DMatrix, DVector};
use plca_em::{
    EmError, Explained, FoldIn, Given, Impossible, NmfInit, ParamError, PlcaInit, PlsaInit, Solver,
    Stop,
    before::{Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState},
};
use plca_tensor::{Data, DenseTensor, Order, normalise_columns};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

fn after(iterations: usize) -> FoldIn {
    FoldIn {
        stop: Stop {
            max_iter: iterations,
            tol: 0.0,
            ..Stop::default()
        },
        impossible: Impossible::Refuse,
        solver: Solver::Em,
    }
}

fn fast(iterations: usize) -> FoldIn {
    FoldIn {
        solver: Solver::Fast,
        ..after(iterations)
    }
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
        PlcaState {
            weights: DVector::from_element(self.a.ncols(), 1.0),
            factors: vec![self.a.clone(), self.b.clone()],
            power: 1.0,
            iteration: 0,
        }
    }

    fn plsa(&self) -> PlsaState<f64> {
        let mixture = DMatrix::from_element(self.a.ncols(), 1, 1.0);
        PlsaState {
            basis: self.a.clone(),
            mixture,
            power: 1.0,
            iteration: 0,
        }
    }

    fn nmf(&self) -> NmfState<f64> {
        NmfState {
            w: 3.0 * &self.a,
            h: self.b.transpose(),
        }
    }
}

/// What is still to be gained after few iterations, against what is certified, in units of the log-likelihood.
fn bounded<S>(
    few: &Explained<S>,
    many: &Explained<S>,
    totals: &[f64],
) -> Result<(), TestCaseError> {
    let certified =
        |e: &Explained<S>| -> f64 { e.gap.iter().zip(totals).map(|(g, v)| g * v).sum() };
    let gained = (many.outcome.objective - few.outcome.objective).abs();
    let scale = 1.0 + few.outcome.objective.abs();
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
            let run = |n| model.fold_in(data, along, &after(n)).unwrap();
            bounded(&run(few), &run(400), &[data.total()])?;
            let model = p.nmf();
            let run = |n| model.fold_in(data, along, &after(n)).unwrap();
            if totals.iter().all(|&v| v > 0.0) {
                bounded(&run(few), &run(400), &totals)?;
            }
        }
        let model = p.plsa();
        let run = |n| model.fold_in(data, Given::Columns, &after(n)).unwrap();
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
            let run = |how| plca.fold_in(data, along, &how).unwrap();
            let ends = |e: &Explained<PlcaState<f64>>| (e.outcome.objective, e.gap[0] * data.total());
            let quick = run(fast(200));
            alike(ends(&run(after(2000))), ends(&quick))?;
            prop_assert_eq!(&quick.outcome.state.factors[1 - along], &plca.factors[1 - along]);
        }
        let totals = data.marginal(1).unwrap();
        let certified = |gaps: &[f64]| gaps.iter().zip(&totals).map(|(g, v)| g * v).sum::<f64>();
        let plsa = p.plsa();
        let run = |how| plsa.fold_in(data, Given::Columns, &how).unwrap();
        let (slow, quick) = (run(after(2000)), run(fast(200)));
        let ends = |e: &Explained<PlsaState<f64>>| (e.outcome.objective, certified(&e.gap));
        alike(ends(&slow), ends(&quick))?;
        prop_assert_eq!(&quick.outcome.state.basis, &plsa.basis);
        let nmf = p.nmf();
        let run = |how| nmf.fold_in(data, 1, &how).unwrap();
        let (slow, quick) = (run(after(2000)), run(fast(200)));
        let ends = |e: &Explained<NmfState<f64>>| (e.outcome.objective, certified(&e.gap));
        alike(ends(&slow), ends(&quick))?;
        prop_assert_eq!(&quick.outcome.state.w, &nmf.w);
    }

    /// A drawn start ends at the likelihood of the uniform one, to within what both certify.
    // [SPEC 1.5]
    #[test]
    fn the_start_does_not_matter(p in problem(), seed in 0..1000u64) {
        let data = p.complete();
        let k = p.a.ncols();
        let stop = after(400).stop;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let folded = p.plca().fold_in(&data, 1, &after(400)).unwrap();
        let init = PlcaInit { weights: None, factors: vec![Some(p.a.clone())] };
        let drawn = Plca::builder(k).freeze_factor(0).build().unwrap().fit(&data, &init, &stop, &mut rng).unwrap();
        prop_assert!(drawn.objective <= folded.outcome.objective + data.total() * folded.gap[0] + 1e-9 * data.total());

        let folded = p.plsa().fold_in(&data, Given::Columns, &after(400)).unwrap();
        let certified: f64 = folded.gap.iter().zip(data.marginal(1).unwrap()).map(|(g, v)| g * v).sum();
        let init = PlsaInit { basis: Some(p.a.clone()), mixture: None };
        let drawn = Plsa::builder(k).freeze_basis().build().unwrap().fit(&data, &init, &stop, &mut rng).unwrap();
        prop_assert!(drawn.objective <= folded.outcome.objective + certified + 1e-9 * data.total());

        let folded = p.nmf().fold_in(&data, 1, &after(400)).unwrap();
        let certified: f64 = folded.gap.iter().zip(data.marginal(1).unwrap()).map(|(g, v)| g * v).sum();
        let init = NmfInit { w: Some(p.nmf().w), h: None };
        let drawn = Nmf::builder(k).freeze_w().build().unwrap().fit(&data, &init, &stop, &mut rng).unwrap();
        prop_assert!(drawn.objective >= folded.outcome.objective - certified - 1e-9 * data.total());
    }
}

/// Negative control: away from the optimum the gap is that of the definition, not small.
#[test]
fn the_gap_of_a_start_is_not_small() {
    let data = DenseTensor::new(vec![2, 1], vec![9.0, 1.0], Order::RowMajor).unwrap();
    let model = PlsaState {
        basis: nalgebra::dmatrix![0.5, 1.0; 0.5, 0.0],
        mixture: nalgebra::dmatrix![1.0; 1.0],
        power: 1.0,
        iteration: 0,
    };
    let start = model.fold_in(&data, Given::Columns, &after(0)).unwrap();
    // At g = (1/2, 1/2): P = (3/4, 1/4), multipliers 8 and 12 of 10.
    assert!((start.gap[0] - 0.2).abs() < 1e-12, "{:?}", start.gap);
    let end = model
        .fold_in(&data, Given::Columns, &FoldIn::default())
        .unwrap();
    assert!(end.gap[0] <= 1e-6, "{:?}", end.gap);
    // The optimum explains the data exactly: P = (0.9, 0.1).
    assert!((end.outcome.state.mixture[(1, 0)] - 0.8f64).abs() < 1e-5);
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
    let plca = PlcaState {
        weights: DVector::from_element(2, 0.5),
        factors: vec![thirds.clone(), DMatrix::from_element(2, 2, 0.5)],
        power: 1.0,
        iteration: 0,
    };
    let explained = plca.fold_in(&data, 1, &after(5)).unwrap();
    assert_eq!(explained.outcome.state.factors[0], thirds);
    let plsa = PlsaState {
        basis: thirds.clone(),
        mixture: DMatrix::zeros(2, 0),
        power: 1.0,
        iteration: 0,
    };
    let explained = plsa.fold_in(&data, Given::Columns, &after(5)).unwrap();
    assert_eq!(explained.outcome.state.basis, thirds);
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
    let model = PlsaState {
        basis: nalgebra::dmatrix![0.0, 0.0; 1.0, 1.0],
        mixture: DMatrix::zeros(2, 0),
        power: 1.0,
        iteration: 0,
    };
    let refused = model.fold_in(&data, Given::Columns, &after(5)).unwrap_err();
    let impossible = EmError::Impossible {
        index: vec![0, 0],
        value: 3.0,
    };
    assert_eq!(refused, impossible);
    let drop = FoldIn {
        impossible: Impossible::Drop,
        ..after(5)
    };
    let explained = model.fold_in(&data, Given::Columns, &drop).unwrap();
    assert_eq!((explained.dropped, explained.empty), (4.0, vec![1, 2]));
    assert_eq!(
        explained.outcome.state.mixture.column(1),
        DVector::from_element(2, 0.5)
    );
    let other = DenseTensor::new(vec![3, 1], vec![1.0; 3], Order::RowMajor).unwrap();
    let error = model
        .fold_in(&other, Given::Columns, &after(5))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the data have shape [3, 1], the model explains 2 x any"
    );
}

/// A mode that is not there, and a model without components, are refused by name.
#[test]
fn of_nothing() {
    let data = DenseTensor::new(vec![2, 3], vec![1.0f64; 6], Order::RowMajor).unwrap();
    let how = FoldIn::default();
    let refused = |k: usize, along: usize| {
        let plca = PlcaState {
            weights: DVector::from_element(k, 1.0),
            factors: vec![DMatrix::from_element(2, k, 0.5), DMatrix::zeros(3, k)],
            power: 1.0,
            iteration: 0,
        };
        let nmf = NmfState {
            w: DMatrix::from_element(2, k, 1.0),
            h: DMatrix::from_element(k, 3, 1.0),
        };
        [
            plca.fold_in(&data, along, &how).map(drop).unwrap_err(),
            nmf.fold_in(&data, along, &how).map(drop).unwrap_err(),
        ]
    };
    for mode in [2, 3] {
        for error in refused(1, mode) {
            assert_eq!(error, EmError::Mode { mode, modes: 2 });
        }
    }
    let none = EmError::from(ParamError::NoComponents);
    for along in 0..2 {
        for error in refused(0, along) {
            assert_eq!(error, none, "{along}");
        }
    }
    let plsa = PlsaState {
        basis: DMatrix::zeros(2, 0),
        mixture: DMatrix::zeros(0, 3),
        power: 1.0,
        iteration: 0,
    };
    let error = plsa.fold_in(&data, Given::Columns, &how).map(drop);
    assert_eq!(error.unwrap_err(), none);
}
