//! Iterations and their ends are those of the models that were there before.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::engine::{Shifted, ShiftedBuilder, Transformed, TransformedBuilder};
use plca_em::{
    Accelerate, Anneal, Carried, EmError, Evaluation, IndexMaps, Likelihood, Momentum, Parabolic,
    ShiftedInit, ShiftedState, Squarem, Support,
};
use plca_fit::engine::{FitError, Impossible, Init, Model, Solver, State, Transform};
use plca_priors::{Dirichlet, Entropic, Schedule, Scheduled, SimplexPrior};
use plca_tensor::{Data, Real};

use super::{
    OldShifted, OldTransformed, SHAPE, fitted, maps, near, shifted, storages, transformed, turns,
};
use crate::shifted::support::{EVALUATIONS, dense, rng};

const ALL: &[Solver] = &[
    Solver::Em,
    Solver::Squarem,
    Solver::Parabolic,
    Solver::Momentum,
];
const PLAIN: &[Solver] = &[Solver::Em];
const ITERATIONS: usize = 12;

/// What the old run of an algorithm ends with.
fn old<A, T: Real>(em: A, start: ShiftedState<T>, solver: Solver) -> (ShiftedState<T>, f64)
where
    A: Accelerate<State = ShiftedState<T>, Error = EmError>,
{
    let stop = plca_em::Stop {
        max_iter: ITERATIONS,
        tol: 0.0,
        ..plca_em::Stop::default()
    };
    match solver {
        Solver::Squarem => {
            let end = plca_em::run(&Squarem(em), start, &stop, ()).unwrap();
            (end.state, end.objective)
        }
        Solver::Parabolic => {
            let end = plca_em::run(&Parabolic(em), Carried::new(start), &stop, ()).unwrap();
            (end.state.into_inner(), end.objective)
        }
        Solver::Momentum => {
            let end = plca_em::run(&Momentum(em), Carried::new(start), &stop, ()).unwrap();
            (end.state.into_inner(), end.objective)
        }
        _ => {
            let end = plca_em::run(&em, start, &stop, ()).unwrap();
            (end.state, end.objective)
        }
    }
}

fn blocks<T: Real>(state: &ShiftedState<T>) -> [DMatrix<T>; 3] {
    let weights = DMatrix::from_column_slice(state.weights.len(), 1, state.weights.as_slice());
    [weights, state.kernels.clone(), state.impulses.clone()]
}

/// Runs of both from a start, drawn for both or given to both.
fn agree<A, T: Real, M: Model<Scalar = T>>(
    what: &str,
    data: &dyn Data<T>,
    em: impl Fn() -> A,
    drawn: impl Fn(&A) -> ShiftedState<T>,
    now: &M,
    (solvers, is_drawn): (&[Solver], bool),
) where
    A: Accelerate<State = ShiftedState<T>, Error = EmError>,
{
    // Given columns that sum to 1 keep their bits now: no start of the old algorithm, which divides them again.
    let given = given(data, now);
    let (state, init) = match is_drawn {
        true => (drawn(&em()), Init::default()),
        false => {
            let names = ["weights", "kernels", "impulses"].into_iter();
            let blocks = names.zip(given.clone());
            let init = blocks.fold(Init::default(), |init, (name, b)| init.block(name, b));
            let [weights, kernels, impulses] = given;
            let weights = weights.column(0).into_owned();
            let state = ShiftedState {
                weights,
                kernels,
                impulses,
                iteration: 0,
            };
            (state, init)
        }
    };
    for &solver in solvers {
        let what = format!("{what}, {solver}");
        let (state, objective) = old(em(), state.clone(), solver);
        let fit = fitted(now, data, init.clone(), solver, ITERATIONS);
        assert_eq!(
            fit.state().parameters().matrices(),
            blocks(&state),
            "{what}"
        );
        assert!(
            fit.objective() == objective || objective.is_nan(),
            "{what}: {} {objective}",
            fit.objective()
        );
        assert_eq!(fit.state().parameters().iteration(), state.iteration);
        let algorithm = now.bind(data).unwrap();
        let residual = algorithm.residual(fit.state().parameters());
        match em().residual(&state).unwrap() {
            Some(before) => assert_eq!(residual.unwrap(), before, "{what}"),
            None => assert!(
                matches!(residual, Err(FitError::NoResidual { .. })),
                "{what}"
            ),
        }
    }
}

/// Blocks of a start.
fn given<T: Real, M: Model<Scalar = T>>(data: &dyn Data<T>, model: &M) -> [DMatrix<T>; 3] {
    let algorithm = model.bind(data).unwrap();
    let drawn = algorithm.draw(&mut rng(8)).unwrap();
    let [_, kernels, impulses] = <[_; 3]>::try_from(drawn).unwrap();
    let weights = DMatrix::from_column_slice(2, 1, &[T::lit(0.25), T::lit(0.75)]);
    [weights, kernels, impulses]
}

fn anneal(alpha0: f64, over: f64) -> Anneal {
    Anneal { alpha0, over }
}

/// The settings that both kinds of models share, on builders of both.
macro_rules! settings {
    ($T:ty, $before:expr, $now:expr) => {{
        let smooth: Arc<dyn SimplexPrior<$T>> = Arc::new(Dirichlet::symmetric(1.5).unwrap());
        let sparse: Arc<dyn SimplexPrior<$T>> = Arc::new(Entropic::new(2.0).unwrap());
        let harsh: Arc<dyn SimplexPrior<$T>> = Arc::new(Dirichlet::symmetric(0.05).unwrap());
        let fading = Schedule::Decreasing { over: 9.0 };
        let fading = Scheduled::new(Entropic::new(4.0).unwrap(), fading).unwrap();
        let fading: Arc<dyn SimplexPrior<$T>> = Arc::new(fading);
        let (b, n) = (|| $before, || $now);
        vec![
            ("plain", b(), n(), ALL, true),
            ("given", b(), n(), ALL, false),
            (
                "annealed",
                b().anneal(anneal(0.6, 5.0)),
                n().anneal(anneal(0.6, 5.0)),
                ALL,
                true,
            ),
            (
                "sharp",
                b().anneal(anneal(0.8, 7.0)).impulse_power(anneal(1.4, 4.0)),
                n().anneal(anneal(0.8, 7.0)).impulse_power(anneal(1.4, 4.0)),
                ALL,
                true,
            ),
            (
                "sharp for ever",
                b().anneal(anneal(0.8, 7.0))
                    .impulse_power(Anneal::constant(1.1)),
                n().anneal(anneal(0.8, 7.0))
                    .impulse_power(Anneal::constant(1.1)),
                PLAIN,
                true,
            ),
            (
                "smooth",
                b().kernels_prior(smooth.clone())
                    .weights_prior(smooth.clone()),
                n().prior("kernels", smooth.clone())
                    .prior("weights", smooth.clone()),
                ALL,
                true,
            ),
            (
                "sparse",
                b().kernels_prior(sparse.clone())
                    .impulses_prior(sparse.clone()),
                n().prior("kernels", sparse.clone())
                    .prior("impulses", sparse.clone()),
                ALL,
                true,
            ),
            (
                "harsh",
                b().impulses_prior(harsh.clone()).weights_prior(smooth),
                n().prior("impulses", harsh)
                    .prior("weights", Arc::new(Dirichlet::symmetric(1.5).unwrap())),
                PLAIN,
                true,
            ),
            (
                "fading",
                b().impulses_prior(fading.clone()).anneal(anneal(0.7, 6.0)),
                n().prior("impulses", fading).anneal(anneal(0.7, 6.0)),
                PLAIN,
                true,
            ),
            (
                "weights frozen",
                b().freeze_weights(),
                n().freeze("weights"),
                ALL,
                false,
            ),
            (
                "kernels frozen",
                b().freeze_kernels(),
                n().freeze("kernels"),
                ALL,
                false,
            ),
            (
                "impulses frozen",
                b().freeze_impulses(),
                n().freeze("impulses"),
                ALL,
                false,
            ),
            (
                "only weights",
                b().freeze_kernels().freeze_impulses(),
                n().freeze("kernels").freeze("impulses"),
                ALL,
                false,
            ),
            (
                "all frozen",
                b().freeze_kernels().freeze_impulses().freeze_weights(),
                n().freeze("kernels").freeze("impulses").freeze("weights"),
                PLAIN,
                false,
            ),
        ]
    }};
}

fn shifted_agree<T: Real>(
    what: &str,
    data: &dyn Data<T>,
    before: plca_em::ShiftedBuilder<T>,
    now: ShiftedBuilder<T>,
    how: (&[Solver], bool),
) {
    let (before, now) = (before.build().unwrap(), now.build().unwrap());
    let em = || before.on(data).unwrap();
    let start =
        |em: &plca_em::ShiftedEm<'_, T>| em.init(&ShiftedInit::default(), &mut rng(3)).unwrap();
    agree(what, data, em, start, &now, how);
}

fn all_shifted<T: Real>() {
    for (storage, data) in storages::<T>(&SHAPE) {
        let before = || OldShifted::<T>::builder(2, vec![3, 2]);
        for (case, before, now, solvers, drawn) in settings!(T, before(), shifted::<T>()) {
            let what = format!("{case}, {storage}");
            shifted_agree(&what, &*data, before, now, (solvers, drawn));
        }
        for support in [Support::Same, Support::Full] {
            for likelihood in [Likelihood::Conditional, Likelihood::Literal] {
                if likelihood == Likelihood::Literal && !data.is_complete() {
                    continue;
                }
                for evaluation in EVALUATIONS {
                    let before = before().support(support).likelihood(likelihood);
                    let now = shifted().support(support).likelihood(likelihood);
                    let (before, now) = (before.evaluation(evaluation), now.evaluation(evaluation));
                    let what = format!("{support:?}, {likelihood:?}, {evaluation:?}, {storage}");
                    let how: &[Solver] = &[Solver::Em, Solver::Squarem];
                    shifted_agree(&what, &*data, before, now, (how, true));
                }
            }
        }
    }
    for (shape, kernel) in [
        (vec![20], vec![4]),
        (vec![5, 7], vec![5, 2]),
        (vec![5, 7], vec![1, 7]),
        (vec![4, 3, 6], vec![2, 3, 2]),
    ] {
        for (storage, data) in storages::<T>(&shape) {
            let mut supports = vec![Support::Valid; shape.len()];
            supports[shape.len() - 1] = Support::Full;
            let before = OldShifted::<T>::builder(3, kernel.clone()).supports(supports.clone());
            let now = Shifted::<T>::builder(3, kernel.clone()).supports(supports);
            let what = format!("{kernel:?} on {shape:?}, {storage}");
            shifted_agree(&what, &*data, before, now, (&[Solver::Em], true));
        }
    }
}

fn transformed_agree<T: Real>(
    what: &str,
    data: &dyn Data<T>,
    before: plca_em::TransformedBuilder<T>,
    now: TransformedBuilder<T>,
    how: (&[Solver], bool),
) {
    let (before, now) = (before.build().unwrap(), now.build().unwrap());
    let em = || before.on(data).unwrap();
    let start =
        |em: &plca_em::TransformedEm<'_, T>| em.init(&ShiftedInit::default(), &mut rng(3)).unwrap();
    agree(what, data, em, start, &now, how);
}

fn all_transformed<T: Real>() {
    for (storage, data) in storages::<T>(&[2, 4]) {
        let before = || OldTransformed::<T>::builder(2, maps());
        for (case, before, now, solvers, drawn) in settings!(T, before(), transformed::<T>()) {
            let what = format!("{case}, {storage}");
            transformed_agree(&what, &*data, before, now, (solvers, drawn));
        }
        let both = |maps: fn() -> IndexMaps, likelihood: Likelihood| {
            let before = OldTransformed::<T>::builder(2, maps()).likelihood(likelihood);
            let now = Transformed::<T>::builder(2, maps()).likelihood(likelihood);
            let what = format!("{likelihood:?}, {storage}");
            transformed_agree(&what, &*data, before, now, (ALL, true));
        };
        both(turns, Likelihood::Conditional);
        both(turns, Likelihood::Literal);
        if data.is_complete() {
            both(maps, Likelihood::Literal);
        }
    }
}

#[test]
fn shifted_f64() {
    all_shifted::<f64>();
}

#[test]
fn shifted_f32() {
    all_shifted::<f32>();
}

#[test]
fn transformed_f64() {
    all_transformed::<f64>();
}

#[test]
fn transformed_f32() {
    all_transformed::<f32>();
}

/// The best of several starts is that of the old runs from the same draws.
#[test]
fn restarts_are_as_before() {
    let (_, data) = storages::<f64>(&SHAPE).swap_remove(0);
    let before = OldShifted::<f64>::builder(2, vec![3, 2]).build().unwrap();
    let mut draws = rng(3);
    let ends = (0..4).map(|_| {
        let em = before.on(&*data).unwrap();
        let start = em.init(&ShiftedInit::default(), &mut draws).unwrap();
        old(em, start, Solver::Em)
    });
    let ends: Vec<_> = ends.collect();
    let best = ends.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let now = shifted::<f64>().build().unwrap();
    let run = now.on(&*data).unwrap().restarts(4).solver(Solver::Em);
    let run = run.stop(super::exactly(ITERATIONS));
    let fit = run.run(Init::default(), &mut rng(3)).unwrap();
    assert_eq!(fit.objective(), best.1);
    assert_eq!(fit.state().kernels(), &best.0.kernels);
}

/// New data under learnt kernels keep them bit for bit, in shapes of their own.
#[test]
fn new_data_are_explained() {
    let how = Transform::default();
    let how = how.clone().stop(super::exactly(15).residual_tol(None));
    for support in [Support::Valid, Support::Same, Support::Full] {
        let now = shifted::<f64>().support(support).build().unwrap();
        let (_, data) = storages::<f64>(&SHAPE).swap_remove(0);
        let learnt = fitted(&now, &*data, Init::default(), Solver::Em, 20);
        for (_, new) in storages::<f64>(&[9, 5]) {
            let kernels = learnt.state().kernels();
            let found = learnt.state().transform(&*new, &how).unwrap();
            assert_eq!(kernels, found.fit.state().kernels());
            assert_eq!(found.fit.state().geometry().data_shape(), [9, 5]);
        }
    }
    // What no kernel reaches is refused with its place, or left out and counted.
    let data = dense::<f64>(&[4], &[2.0, 1.0, 1.0, 3.0]);
    let kernel = nalgebra::dmatrix![0.0; 1.0];
    let geometry = plca_em::Geometry::new(&[4], &[2], &[Support::Valid]).unwrap();
    let even = DMatrix::from_element(3, 1, 1.0 / 3.0);
    let state = plca_em::engine::ShiftedState::new(
        geometry,
        Likelihood::Conditional,
        nalgebra::dvector![1.0],
        kernel,
        even,
    );
    let state = state.unwrap();
    let refused = state.transform(&data, &Transform::default()).unwrap_err();
    let index = vec![0];
    assert_eq!(refused, FitError::Impossible { index, value: 2.0 });
    let drop = Transform::default().impossible(Impossible::Drop);
    let found = state.transform(&data, &drop).unwrap();
    assert_eq!(found.dropped, 2.0);
    assert!((found.fit.state().impulses()[2] - 0.6).abs() < 1e-12);
    assert!(found.gap[0] <= 1e-6);
}

/// Reconstructions are those of the algorithms before. Hidden cells are summed in another order.
#[test]
fn reconstructions_are_as_before() {
    use plca_fit::engine::Reconstruct;
    for (storage, data) in storages::<f64>(&SHAPE) {
        for support in [Support::Valid, Support::Same, Support::Full] {
            for likelihood in [Likelihood::Conditional, Likelihood::Literal] {
                if likelihood == Likelihood::Literal && !data.is_complete() {
                    continue;
                }
                let now = shifted::<f64>().support(support).likelihood(likelihood);
                let before = OldShifted::<f64>::builder(2, vec![3, 2]).support(support);
                let before = before.likelihood(likelihood).evaluation(Evaluation::Direct);
                let before = before.build().unwrap();
                let fit = fitted(
                    &now.build().unwrap(),
                    &*data,
                    Init::default(),
                    Solver::Em,
                    9,
                );
                let old = ShiftedState {
                    weights: fit.state().weights().to_vec().into(),
                    kernels: fit.state().kernels().clone(),
                    impulses: fit.state().impulses().clone(),
                    iteration: 0,
                };
                let em = before.on(&*data).unwrap();
                let expected = em.reconstruct(&old).unwrap();
                let got = fit.state().reconstruct().unwrap().into_parts().1;
                near(&got, &expected, &format!("{storage}, {support:?}"));
                assert_eq!(fit.state().window_mass(), em.window_mass(&old));
            }
        }
    }
}
