//! The models on the engine against those that they replace: the same bits.

use std::ops::ControlFlow;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::engine::{Nmf, Plca, PlcaState, Plsa};
use plca_em::{
    Accelerate, Algorithm, Fast, FastState, FoldIn, Given, Missing, NmfInit, PlcaInit, PlsaInit,
    Separable, Squarem, Update,
};
use plca_fit::engine::{
    Cooling, Fit, FitError, Impossible, Init, Iteration, Model, Reconstruct, Solver, State, Status,
    Stop, Transform,
};
use plca_priors::{Dirichlet, Entropic, SimplexPrior};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

type Old<T> = plca_em::before::Plca<T>;
type Prior<T> = Arc<dyn SimplexPrior<T>>;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(3)
}

fn storages<T: Real>(shape: &[usize]) -> Vec<(&'static str, Box<dyn Data<T>>)> {
    let cells: usize = shape.iter().product();
    let values: Vec<T> = (0..cells)
        .map(|i| T::lit(((i * i * 7 + 3 * i) % 11) as f64))
        .collect();
    let hidden = |(i, v): (usize, &T)| if i % 7 == 3 { T::lit(f64::NAN) } else { *v };
    let masked = values.iter().enumerate().map(hidden).collect();
    let dense = DenseTensor::new(shape.to_vec(), values, Order::RowMajor).unwrap();
    let mut entries = Coordinates {
        shape: shape.to_vec(),
        indices: Vec::new(),
        values: Vec::new(),
    };
    let mut push = |index: &[usize], value: f64| {
        entries.indices.extend(index.iter().map(|&i| i as u32));
        entries.values.push(T::lit(value));
    };
    dense.visit(&mut push).unwrap();
    let masked = DenseTensor::masked(shape.to_vec(), masked, Order::RowMajor).unwrap();
    vec![
        ("dense", Box::new(dense) as Box<dyn Data<T>>),
        ("sparse", Box::new(SparseTensor::new(entries).unwrap())),
        ("masked", Box::new(masked)),
    ]
}

fn exactly(n: usize) -> (Stop, plca_em::Stop) {
    let old = plca_em::Stop {
        max_iter: n,
        tol: 0.0,
        ..plca_em::Stop::default()
    };
    (Stop::default().max_iter(n).tol(None), old)
}

/// What the old run of an algorithm ends with.
fn old<A, T: Real>(em: A, start: A::State, solver: Solver, n: usize) -> (A::State, f64)
where
    A: Accelerate + Separable<T> + Algorithm<Error = plca_em::EmError>,
    A::State: Clone,
{
    let stop = exactly(n).1;
    match solver {
        Solver::Em => {
            let end = plca_em::run(&em, start, &stop, ()).unwrap();
            (end.state, end.objective)
        }
        Solver::Squarem => {
            let end = plca_em::run(&Squarem(em), start, &stop, ()).unwrap();
            (end.state, end.objective)
        }
        _ => {
            let fast = Fast::new(em).unwrap();
            let end = plca_em::run(&fast, FastState::new(start), &stop, ()).unwrap();
            (end.state.into_model(), end.objective)
        }
    }
}

/// What the run of a model ends with.
fn new<M: Model>(model: &M, data: &dyn Data<M::Scalar>, solver: Solver, n: usize) -> Fit<M::State> {
    let run = model.on(data).unwrap().solver(solver).stop(exactly(n).0);
    run.run(Init::default(), &mut rng()).unwrap()
}

fn blocks<S: State>(fit: &Fit<S>, count: usize) -> Vec<DMatrix<S::Scalar>> {
    let blocks = fit.state().parameters().blocks();
    blocks.take(count).map(|(_, block)| block.clone()).collect()
}

fn agree<T: Real>(
    what: &str,
    data: &dyn Data<T>,
    before: &Old<T>,
    now: &Plca<T>,
    solvers: &[Solver],
) {
    let start = before.init(data, &PlcaInit::default(), &mut rng()).unwrap();
    for &solver in solvers {
        let (state, objective) = old(before.on(data).unwrap(), start.clone(), solver, 12);
        let fit = new(now, data, solver, 12);
        let mut expected = vec![DMatrix::from_column_slice(3, 1, state.weights.as_slice())];
        expected.extend(state.factors);
        assert_eq!(blocks(&fit, usize::MAX), expected, "{what}, {solver}");
        assert_eq!(fit.objective(), objective, "{what}, {solver}");
    }
}

fn all_plca<T: Real>() {
    use Solver::{Em, Fast, Squarem};
    for shape in [vec![7, 5], vec![4, 3, 5], vec![3, 2, 4, 2]] {
        for (storage, data) in storages::<T>(&shape) {
            let (old, new) = (|| Old::<T>::builder(3), || Plca::<T>::builder(3));
            let what = |case: &str| format!("{case}, {storage}, {shape:?}");
            let check =
                |case: &str, old: plca_em::before::PlcaBuilder<T>, new: Plca<T>, solvers: &[_]| {
                    agree(&what(case), &*data, &old.build().unwrap(), &new, solvers);
                };
            check("plain", old(), new().build().unwrap(), &[Em, Squarem, Fast]);
            let tempered = new().temper(0.8).build().unwrap();
            check("tempered", old().temper(0.8), tempered, &[Em]);
            let tempered = new().temper(0.8).temper_prior(true).build().unwrap();
            check(
                "tempered weights",
                old().temper(0.8).temper_prior(true),
                tempered,
                &[Em],
            );
            let smooth: Prior<T> = Arc::new(Dirichlet::symmetric(1.5).unwrap());
            let sparse: Prior<T> = Arc::new(Entropic::new(2.0).unwrap());
            let new_smooth = new()
                .prior("factor_1", smooth.clone())
                .prior("weights", smooth.clone());
            let old_smooth = old().factor_prior(1, smooth.clone()).weights_prior(smooth);
            check(
                "smooth",
                old_smooth,
                new_smooth.build().unwrap(),
                &[Em, Squarem, Fast],
            );
            let new_sparse = new().prior("factor_0", sparse.clone());
            let old_sparse = old().factor_prior(0, sparse);
            check(
                "sparse",
                old_sparse,
                new_sparse.build().unwrap(),
                &[Em, Squarem],
            );
            if shape.len() == 2 {
                let old = old().missing(Missing::Multiplicative);
                let new = new().missing(Missing::Multiplicative).build().unwrap();
                check("multiplicative", old, new, &[Em, Squarem, Fast]);
            }
        }
    }
}

fn all_plsa<T: Real>() {
    use Solver::{Em, Fast, Squarem};
    type OldPlsa<T> = plca_em::before::Plsa<T>;
    for (storage, data) in storages::<T>(&[7, 5]) {
        for given in [Given::Rows, Given::Columns] {
            let smooth: Prior<T> = Arc::new(Dirichlet::symmetric(1.5).unwrap());
            let sparse: Prior<T> = Arc::new(Entropic::new(2.0).unwrap());
            let before = || OldPlsa::<T>::builder(3).given(given);
            let now = || Plsa::<T>::builder(3).given(given);
            let all: &[Solver] = &[Em, Squarem, Fast];
            let cases = [
                ("plain", before(), now(), all),
                ("tempered", before().temper(0.8), now().temper(0.8), &[Em]),
                (
                    "smooth",
                    before()
                        .basis_prior(smooth.clone())
                        .mixture_prior(smooth.clone()),
                    now()
                        .prior("basis", smooth.clone())
                        .prior("mixture", smooth),
                    all,
                ),
                (
                    "sparse",
                    before().mixture_prior(sparse.clone()),
                    now().prior("mixture", sparse),
                    &[Em, Squarem],
                ),
            ];
            for (case, before, now, solvers) in cases {
                let (before, now) = (before.build().unwrap(), now.build().unwrap());
                let start = before
                    .init(&*data, &PlsaInit::default(), &mut rng())
                    .unwrap();
                for &solver in solvers {
                    let em = before.on(&*data).unwrap();
                    let (state, objective) = old(em, start.clone(), solver, 12);
                    let fit = new(&now, &*data, solver, 12);
                    let what = format!("{case}, {storage}, {given:?}, {solver}");
                    assert_eq!(blocks(&fit, 2), [state.basis, state.mixture], "{what}");
                    assert_eq!(fit.objective(), objective, "{what}");
                    assert_eq!(fit.state().given(), given);
                }
            }
        }
    }
}

fn all_nmf<T: Real>() {
    use Missing::{Imputation, Multiplicative};
    use Solver::{Em, Fast, Squarem};
    use Update::{Sequential, Simultaneous};
    for (storage, data) in storages::<T>(&[7, 5]) {
        let before = || plca_em::before::Nmf::builder(3);
        let now = || Nmf::<T>::builder(3);
        for (case, before, now) in [
            ("plain", before(), now()),
            (
                "together",
                before().update(Simultaneous),
                now().update(Simultaneous),
            ),
            (
                "in turn",
                before().update(Sequential),
                now().update(Sequential),
            ),
            (
                "imputed",
                before().missing(Imputation),
                now().missing(Imputation),
            ),
            (
                "masked",
                before().missing(Multiplicative),
                now().missing(Multiplicative),
            ),
        ] {
            let (before, now) = (before.build().unwrap(), now.build().unwrap());
            let start = before
                .init(&*data, &NmfInit::default(), &mut rng())
                .unwrap();
            for solver in [Em, Squarem, Fast] {
                let em = before.on(&*data).unwrap();
                let (state, objective) = old(em, start.clone(), solver, 12);
                let fit = new(&now, &*data, solver, 12);
                let what = format!("{case}, {storage}, {solver}");
                assert_eq!(
                    blocks(&fit, 2),
                    [state.w.clone(), state.h.clone()],
                    "{what}"
                );
                assert_eq!(fit.objective(), objective, "{what}");
                let algorithm = now.bind(&*data).unwrap();
                let residual = algorithm.residual(fit.state().parameters()).unwrap();
                let em = before.on(&*data).unwrap();
                assert_eq!(Some(residual), em.residual(&state).unwrap(), "{what}");
            }
        }
    }
}

#[test]
fn models_f64() {
    all_plca::<f64>();
    all_plsa::<f64>();
    all_nmf::<f64>();
}

#[test]
fn models_f32() {
    all_plca::<f32>();
    all_plsa::<f32>();
    all_nmf::<f32>();
}

/// Frozen blocks are taken from the start, and the residual is that of the conditions.
#[test]
fn frozen_blocks_and_residuals() {
    for (storage, data) in storages::<f64>(&[6, 5]) {
        let state = Old::builder(2).build().unwrap();
        let state = state
            .init(&*data, &PlcaInit::default(), &mut rng())
            .unwrap();
        let given = PlcaInit {
            weights: Some(state.weights.clone()),
            factors: state.factors.iter().cloned().map(Some).collect(),
        };
        let start = PlcaState::new(state.weights.clone(), state.factors.clone()).unwrap();
        for frozen in [
            vec!["weights"],
            vec!["factor_0"],
            vec!["factor_0", "factor_1"],
            vec![],
        ] {
            let (mut old, mut new) = (Old::builder(2), Plca::builder(2));
            for name in &frozen {
                new = new.freeze(*name);
                old = match *name {
                    "weights" => old.freeze_weights(),
                    "factor_0" => old.freeze_factor(0),
                    _ => old.freeze_factor(1),
                };
            }
            let (old, new) = (old.build().unwrap(), new.build().unwrap());
            let (stop, old_stop) = exactly(9);
            let run = new.on(&*data).unwrap().solver(Solver::Em).stop(stop);
            let fit = run.run(&start, &mut rng()).unwrap();
            let em = old.on(&*data).unwrap();
            let at = old.init(&*data, &given, &mut rng()).unwrap();
            let end = plca_em::run(&em, at, &old_stop, ()).unwrap();
            let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14);
            assert!(
                near(fit.state().weights(), end.state.weights.as_slice()),
                "{storage} {frozen:?}"
            );
            let residual = new
                .bind(&*data)
                .unwrap()
                .residual(fit.state().parameters())
                .unwrap();
            let old = Algorithm::residual(&em, &end.state).unwrap().unwrap();
            assert!(
                (residual - old).abs() < 1e-13,
                "{storage} {frozen:?}: {residual}, {old}"
            );
        }
    }
}

/// What does not go together is refused with its reason.
#[test]
fn settings_that_do_not_go_together() {
    let setting = |plca: Result<Plca<f64>, FitError>| match plca.unwrap_err() {
        FitError::Setting { name, .. } => name,
        error => panic!("{error}"),
    };
    assert_eq!(setting(Plca::builder(0).build()), "components");
    assert_eq!(setting(Plca::builder(1).temper(0.0).build()), "temper");
    let multiplicative = || Plca::<f64>::builder(2).missing(Missing::Multiplicative);
    for plca in [
        multiplicative().temper(0.9),
        multiplicative().freeze("weights"),
        multiplicative().freeze("factor_0").freeze("factor_1"),
        multiplicative().freeze_components("factor_1", [0]),
    ] {
        assert!(matches!(plca.build(), Err(FitError::Conflict { .. })));
    }
    let (_, data) = storages::<f64>(&[3, 2, 4]).pop().unwrap();
    let error = multiplicative().build().unwrap().on(&*data).err().unwrap();
    assert!(error.to_string().contains("order 3"), "{error}");
    let plca = Plca::<f64>::builder(2).freeze("factor_3").build().unwrap();
    let error = plca.on(&*data).err().unwrap();
    assert_eq!(
        error.to_string(),
        "no block is called `factor_3`, expected weights, factor_0, factor_1, factor_2"
    );
    let tempered = Plca::<f64>::builder(2).temper(0.9).build().unwrap();
    for solver in [Solver::Squarem, Solver::Momentum, Solver::Fast] {
        let run = tempered.on(&*data).unwrap().solver(solver);
        let error = run.run(Init::default(), &mut rng()).unwrap_err();
        assert!(error.to_string().contains("tempering"), "{solver}: {error}");
    }
    assert!(tempered.fit(&*data, &mut rng()).is_ok());
}

fn how(solver: Solver) -> (Transform, FoldIn) {
    let stop = Stop::default().max_iter(15).tol(None).residual_tol(None);
    let before = FoldIn {
        stop: plca_em::Stop {
            max_iter: 15,
            tol: 0.0,
            residual_tol: None,
            ..plca_em::Stop::default()
        },
        solver: match solver {
            Solver::Em => plca_em::Solver::Em,
            _ => plca_em::Solver::Fast,
        },
        ..FoldIn::default()
    };
    (Transform::default().stop(stop).solver(solver), before)
}

fn near(now: &[f64], before: &[f64], what: &str) {
    assert_eq!(now.len(), before.len(), "{what}");
    let pairs = now.iter().zip(before);
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= 1e-11, "{what}: {worst}");
}

/// New data under learnt factors: the same values and certificates as before, but for the bits of learnt columns that are no longer
/// normalised again.
#[test]
fn new_data_are_explained_as_before() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let (_, other) = storages::<f64>(&[7, 9]).swap_remove(1);
        let (_, upright) = storages::<f64>(&[8, 5]).swap_remove(2);
        for solver in [Solver::Em, Solver::Fast] {
            let (how, before) = how(solver);
            let what = format!("{storage}, {solver}");

            let plca = Plca::builder(3).build().unwrap();
            let learnt = new(&plca, &*data, Solver::Em, 20);
            let learnt = learnt.state();
            let old = plca_em::before::PlcaState {
                weights: learnt.weights().to_vec().into(),
                factors: learnt.factors().cloned().collect(),
                power: 1.0,
                iteration: 0,
            };
            for (along, data) in [(1, &other), (0, &upright)] {
                let now = learnt
                    .transform(&**data, &how.clone().along(along))
                    .unwrap();
                let before = old.fold_in(&**data, along, &before).unwrap();
                let end = before.outcome.state;
                near(now.fit.state().weights(), end.weights.as_slice(), &what);
                for (now, before) in now.fit.state().factors().zip(&end.factors) {
                    near(now.as_slice(), before.as_slice(), &what);
                }
                near(&now.gap, &before.gap, &what);
                assert_eq!(now.empty, before.empty, "{what}");
            }

            let plsa = Plsa::builder(3).build().unwrap();
            let learnt = new(&plsa, &*data, Solver::Em, 20);
            let learnt = learnt.state();
            let old = plca_em::before::PlsaState {
                basis: learnt.basis().clone(),
                mixture: learnt.mixture().clone(),
                power: 1.0,
                iteration: 0,
            };
            let now = learnt.transform(&*other, &how).unwrap();
            let ended = old.fold_in(&*other, Given::Columns, &before).unwrap();
            let (mixture, old) = (now.fit.state().mixture(), &ended.outcome.state.mixture);
            near(mixture.as_slice(), old.as_slice(), &what);
            near(&now.gap, &ended.gap, &what);
            let shares = now.fit.state().marginal();
            let marginal = other.marginal(1).unwrap();
            assert!(
                shares
                    .iter()
                    .zip(&marginal)
                    .all(|(a, b)| (a - b / other.total()).abs() < 1e-15)
            );

            let nmf = Nmf::builder(3).build().unwrap();
            let learnt = new(&nmf, &*data, Solver::Em, 20);
            let learnt = learnt.state();
            let old = plca_em::before::NmfState {
                w: learnt.w().clone(),
                h: learnt.h().clone(),
            };
            for (along, data) in [(1, &other), (0, &upright)] {
                let now = learnt
                    .transform(&**data, &how.clone().along(along))
                    .unwrap();
                let before = old.fold_in(&**data, along, &before).unwrap();
                let (w, h) = (&before.outcome.state.w, &before.outcome.state.h);
                assert_eq!((now.fit.state().w(), now.fit.state().h()), (w, h), "{what}");
                assert_eq!(now.gap, before.gap, "{what}");
            }
        }
    }
}

/// What no component explains is refused with its place, or left out and counted; the gap ends a run.
#[test]
fn impossible_counts_are_named_or_dropped() {
    use nalgebra::{dmatrix, dvector};
    let factors = vec![
        dmatrix![0.5, 0.5; 0.5, 0.5; 0.0, 0.0],
        dmatrix![0.5, 0.2; 0.5, 0.8],
    ];
    let state = PlcaState::new(dvector![0.5, 0.5], factors).unwrap();
    let values = vec![3.0, 0.0, 1.0, 2.0, 4.0, 0.0];
    let data = DenseTensor::new(vec![3, 2], values, Order::RowMajor).unwrap();
    let how = Transform::default();
    let error = state.transform(&data, &how).unwrap_err();
    assert!(
        matches!(error, FitError::Impossible { value: 4.0, .. }),
        "{error}"
    );
    let explained = state
        .transform(&data, &how.clone().impossible(Impossible::Drop))
        .unwrap();
    assert_eq!(explained.dropped, 4.0);
    assert!(explained.gap[0] <= 1e-6);
    let error = state.transform(&data, &how.clone().along(2)).unwrap_err();
    assert!(
        matches!(error, FitError::Mode { mode: 2, modes: 2 }),
        "{error}"
    );
    let wide = DenseTensor::new(vec![2, 2], vec![1.0; 4], Order::RowMajor).unwrap();
    let error = state.transform(&wide, &Transform::default()).unwrap_err();
    assert_eq!(error.to_string(), "the data are 2 x 2, expected 3 x any");
}

/// Held-out counts drive the power as before, to the bit; interrupted anywhere, a run goes on as if it had not been.
#[test]
fn cooling_is_as_before() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(1);
    let plca = |k| {
        (
            Old::builder(k).build().unwrap(),
            Plca::builder(k).build().unwrap(),
        )
    };
    for (k, eta) in [(2, 0.9), (4, 0.7)] {
        let (before, now) = plca(k);
        let (stop, old_stop) = exactly(60);
        let old = plca_em::Cooling {
            eta,
            share: 0.3,
            ..plca_em::Cooling::default()
        };
        let old = before.fit_tempered(&*data, &old, &PlcaInit::default(), &old_stop, &mut rng());
        let old = old.unwrap();
        let mut draws = rng();
        let parts = plca_em::hold_out(&*data, 0.3, &mut draws).unwrap();
        let cooling = Cooling::default().eta(eta);
        let run = || {
            let run = now.on(&*data).unwrap().stop(stop.clone());
            run.cool(cooling, &parts.train, &parts.held)
        };
        let fit = run().run(Init::default(), &mut draws.clone()).unwrap();
        let best = &old.state.best;
        assert_eq!(fit.state().weights(), best.weights.as_slice());
        assert!(fit.state().factors().eq(best.factors.iter()));
        assert_eq!(fit.state().parameters().power(), best.power);
        assert_eq!(
            (fit.iterations(), fit.objective()),
            (old.iterations, old.objective)
        );
        assert_eq!(fit.status(), &Status::HeldOut);
        for cut in [1, 5, fit.iterations() - 1, fit.iterations()] {
            let interrupt = move |it: &Iteration<'_, f64>| match it.iteration == cut {
                true => ControlFlow::Break(Status::Interrupted),
                false => ControlFlow::Continue(()),
            };
            let part = run().observe(interrupt);
            let part = part.run(Init::default(), &mut draws.clone()).unwrap();
            let rest = run().resume(part.checkpoint().clone()).unwrap();
            assert_eq!(rest.state(), fit.state(), "{cut}");
            assert_eq!(
                (rest.status(), rest.iterations()),
                (fit.status(), fit.iterations())
            );
        }
        let fast = run().solver(Solver::Fast).run(Init::default(), &mut rng());
        assert!(matches!(fast, Err(FitError::Conflict { .. })));
    }
    let parts = plca_em::hold_out(&*data, 0.3, &mut rng()).unwrap();
    let nmf = Nmf::builder(2).build().unwrap();
    let run = nmf.on(&*data).unwrap();
    let error = run.cool(Cooling::default(), &parts.train, &parts.held);
    let error = error.run(Init::default(), &mut rng()).unwrap_err();
    assert!(error.to_string().contains("tempering"), "{error}");
}

/// A reconstruction has the cells of its state, and is the sum of its components; both are in the scale of the data.
#[test]
fn reconstructions_are_sums_of_components() {
    fn check<S: Reconstruct<Scalar = f64>>(state: &S, data: &dyn Data<f64>) {
        assert_eq!(state.shape(), data.shape());
        let whole = &state.reconstruct().unwrap().into_parts().1[..];
        let parts = (0..state.components()).map(|z| state.component(z).unwrap().into_parts().1);
        let mut sums = vec![0.0; whole.len()];
        for part in parts {
            sums.iter_mut().zip(&part).for_each(|(s, x)| *s += x);
        }
        near(whole, &sums, "components");
        let total: f64 = sums.iter().sum();
        assert!((total - data.total()).abs() < 1e-6 * total, "{total}");
        let mut at = 0;
        let ones = vec![1.0; sums.len()];
        let ones = DenseTensor::new(state.shape(), ones, Order::RowMajor).unwrap();
        ones.visit(&mut |index, _| {
            assert!((state.cell(index) - whole[at]).abs() < 1e-11 * total);
            at += 1;
        })
        .unwrap();
        assert_eq!(at, sums.len());
        let error = state.component(state.components()).unwrap_err();
        assert!(matches!(error, FitError::NoComponent { .. }), "{error}");
    }
    for shape in [vec![7, 90], vec![4, 3, 5]] {
        let (_, data) = storages::<f64>(&shape).swap_remove(0);
        let plca = Plca::builder(3).build().unwrap();
        check(new(&plca, &*data, Solver::Em, 30).state(), &*data);
        if shape.len() > 2 {
            continue;
        }
        for given in [Given::Rows, Given::Columns] {
            let plsa = Plsa::builder(3).given(given).build().unwrap();
            check(new(&plsa, &*data, Solver::Em, 30).state(), &*data);
        }
        let nmf = Nmf::builder(3).build().unwrap();
        check(new(&nmf, &*data, Solver::Em, 30).state(), &*data);
    }
}

/// Saved and read again, states and checkpoints are the same to the bit; what is no state of the model is refused.
#[test]
fn states_and_checkpoints_survive_serialisation() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(2);
    let plca = Plca::builder(3).build().unwrap();
    for solver in Solver::ALL.iter().copied() {
        let whole = new(&plca, &*data, solver, 20);
        let half = new(&plca, &*data, solver, 9);
        let saved = serde_json::to_string(half.checkpoint()).unwrap();
        let run = plca.on(&*data).unwrap().solver(solver).stop(exactly(20).0);
        let rest = run.resume(serde_json::from_str(&saved).unwrap()).unwrap();
        assert_eq!(rest.state(), whole.state(), "{solver}");
    }
    let end = new(&plca, &*data, Solver::Em, 5);
    let saved = serde_json::to_string(end.state()).unwrap();
    let read: PlcaState<f64> = serde_json::from_str(&saved).unwrap();
    assert_eq!(&read, end.state());
    let broken = saved.replace("factor_1", "factor_2");
    let error = serde_json::from_str::<PlcaState<f64>>(&broken).unwrap_err();
    assert!(error.to_string().contains("factor_1"), "{error}");
    assert!(serde_json::from_str::<plca_em::engine::NmfState<f64>>(&saved).is_err());
    let mut lacks: serde_json::Value = serde_json::from_str(&saved).unwrap();
    lacks["blocks"].as_array_mut().unwrap().pop();
    assert!(serde_json::from_value::<PlcaState<f64>>(lacks.clone()).is_err());
    let mut from = serde_json::to_value(end.checkpoint()).unwrap();
    let resume = |from: &serde_json::Value| {
        let run = plca.on(&*data).unwrap();
        run.resume(serde_json::from_value(from.clone()).unwrap())
    };
    assert!(resume(&from).is_ok());
    from["parameters"]["blocks"][1][0][2] = (-1.0).into();
    let error = resume(&from).unwrap_err();
    assert!(matches!(error, FitError::Value { .. }), "{error}");
    from["parameters"] = lacks;
    let error = resume(&from).unwrap_err();
    assert!(matches!(error, FitError::Checkpoint { .. }), "{error}");
}
