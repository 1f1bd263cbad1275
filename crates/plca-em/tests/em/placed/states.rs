//! What fitted states are and say, and what is refused.

use std::ops::ControlFlow;
use std::sync::Arc;

use nalgebra::{DMatrix, dmatrix, dvector};
use plca_em::{
    Anneal, Evaluation, Geometry, IndexMaps, Likelihood, Positions, Shifted, ShiftedState, Support,
    Transformation, Transformed, TransformedState,
};
use plca_fit::{
    FitError, Impossible, Init, Iteration, Model, Parameters, Reconstruct, Settings, Solver, State,
    Status, Transform, blocks::Frozen,
};
use plca_priors::{CrossEntropy, Entropic, Schedule, Scheduled};
use plca_tensor::{Data, DenseTensor, Order};

use super::{SHAPE, exactly, fitted, maps, near, shifted, storages, transformed, turns};
use crate::shifted::support::{dense, rng};

/// A reconstruction has the cells of its state and is the sum of its components; the observed cells have the sum of the data where the
/// likelihood is conditional.
#[test]
fn reconstructions_are_sums_of_components() {
    fn check<S: Reconstruct<Scalar = f64>>(state: &S, data: &dyn Data<f64>, what: &str) {
        assert_eq!(state.shape(), data.shape());
        let whole = &state.reconstruct().unwrap().into_parts().1[..];
        let mut sums = vec![0.0; whole.len()];
        for z in 0..state.components() {
            let part = state.component(z).unwrap().into_parts().1;
            sums.iter_mut().zip(&part).for_each(|(s, x)| *s += x);
        }
        near(whole, &sums, what);
        let mut seen = vec![data.is_complete(); whole.len()];
        let (mut at, observed) = (0, data.summary().mask == plca_tensor::Mask::Observed);
        if !data.is_complete() {
            seen.fill(!observed);
        }
        let shape = data.shape().to_vec();
        let position = |index: &[usize]| index.iter().zip(&shape).fold(0, |at, (&i, n)| at * n + i);
        data.visit_mask(&mut |index| seen[position(index)] = observed)
            .unwrap();
        let ones = DenseTensor::new(shape.clone(), vec![1.0; whole.len()], Order::RowMajor);
        ones.unwrap()
            .visit(&mut |index, _| {
                assert!((state.cell(index) - whole[at]).abs() < 1e-10, "{what}");
                at += 1;
            })
            .unwrap();
        let total: f64 = whole.iter().zip(&seen).filter(|x| *x.1).map(|x| x.0).sum();
        assert!(
            (total / data.total() - 1.0).abs() < 1e-12,
            "{what}: {total}"
        );
        let none = state.components();
        for refused in [state.component(none), state.cells(Some(none))] {
            let error = refused.unwrap_err();
            assert!(matches!(error, FitError::NoComponent { .. }), "{error}");
        }
    }
    for (storage, data) in storages::<f64>(&SHAPE) {
        for support in [Support::Valid, Support::Same, Support::Full] {
            let model = shifted().support(support);
            let fit = fitted(&model, &*data, Init::default(), Solver::Em, 8);
            check(fit.state(), &*data, &format!("{storage}, {support:?}"));
        }
    }
    for (storage, data) in storages::<f64>(&[2, 4]) {
        for maps in [maps(), turns()] {
            let model = Transformed::new(2, maps);
            let fit = fitted(&model, &*data, Init::default(), Solver::Em, 8);
            check(fit.state(), &*data, storage);
        }
    }
}

/// Saved and read again anywhere, a run ends with the same bits: whatever powers, schedules, masks and solvers go by.
#[test]
fn resumed_is_uninterrupted() {
    fn check<M: Model<f64>>(model: &M, data: &dyn Data<f64>, solver: Solver, what: &str)
    where
        M::State: PartialEq,
    {
        let whole = fitted(model, data, Init::default(), solver, 14);
        for cut in [1, 4, 9, 13] {
            let mut saved = String::new();
            let save = |it: &Iteration<'_, f64>| {
                if it.done() < cut {
                    return ControlFlow::Continue(());
                }
                saved = serde_json::to_string(&it.checkpoint()).unwrap();
                ControlFlow::Break(Status::Interrupted)
            };
            let run = || model.on(data).unwrap().solver(solver).stop(exactly(14));
            let part = run().observe(save).run(Init::default(), &mut rng(3));
            assert_eq!(part.unwrap().iterations(), cut);
            let rest = run().resume(serde_json::from_str(&saved).unwrap()).unwrap();
            assert_eq!(rest.state(), whole.state(), "{what}, {solver}, {cut}");
            assert_eq!(rest.objective(), whole.objective());
        }
    }
    let fading = || {
        let fading = Schedule::Decreasing { over: 9.0 };
        Arc::new(Scheduled::new(Entropic::new(4.0).unwrap(), fading).unwrap())
    };
    let (flat, sharp) = (anneal(0.6, 8.0), anneal(1.3, 5.0));
    for (storage, data) in storages::<f64>(&SHAPE) {
        let plain = shifted().support(Support::Full).anneal(flat);
        let faded = plain
            .clone()
            .impulse_power(sharp)
            .prior("impulses", fading());
        check(&faded, &*data, Solver::Em, storage);
        for solver in [Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
            check(&plain, &*data, solver, storage);
        }
    }
    for (storage, data) in storages::<f64>(&[2, 4]) {
        let plain = transformed().anneal(flat);
        let faded = plain
            .clone()
            .impulse_power(sharp)
            .prior("impulses", fading());
        check(&faded, &*data, Solver::Em, storage);
        for solver in [Solver::Squarem, Solver::Momentum] {
            check(&plain, &*data, solver, storage);
        }
    }
}

fn anneal(alpha0: f64, over: f64) -> Anneal {
    Anneal { alpha0, over }
}

/// A checkpoint of other data, of which a state remembers shape and hidden cells, is refused with what differs.
#[test]
fn checkpoints_of_other_data_are_refused() {
    let model = shifted().support(Support::Full);
    let all = storages::<f64>(&SHAPE);
    let (whole, masked) = (&*all[0].1, &*all[2].1);
    let fit = fitted(&model, masked, Init::default(), Solver::Em, 3);
    let refused = |data: &dyn Data<f64>, model: &Shifted| {
        let run = model.on(data).unwrap();
        run.resume(fit.checkpoint().clone())
            .unwrap_err()
            .to_string()
    };
    let other = Shifted::new(2, vec![3, 2]).support(Support::Full);
    let literal = other.likelihood(Likelihood::Literal);
    assert!(refused(whole, &literal).contains("`likelihood`"));
}

/// States survive serialisation to the bit; what is no state of the model is refused.
#[test]
fn states_survive_serialisation() {
    let (_, data) = storages::<f64>(&SHAPE).swap_remove(2);
    let model = shifted().support(Support::Same);
    let fit = fitted(&model, &*data, Init::default(), Solver::Em, 3);
    let saved = serde_json::to_string(fit.state()).unwrap();
    let read: ShiftedState<f64> = serde_json::from_str(&saved).unwrap();
    assert_eq!(&read, fit.state());
    assert_eq!(read.geometry(), fit.state().geometry());
    assert_eq!(
        read.reconstruct().unwrap(),
        fit.state().reconstruct().unwrap()
    );
    assert!(serde_json::from_str::<TransformedState<f64>>(&saved).is_err());
    let at = fit.state().parameters();
    let refused = |name: &'static str, numbers: &[f64]| {
        let at = at.clone().with_fact(name, numbers.to_vec());
        ShiftedState::wrap(at).unwrap_err()
    };
    let is_fact = |error: FitError, expected: &str| {
        assert!(
            matches!(&error, FitError::Fact { name, .. } if *name == expected),
            "{error}"
        );
    };
    is_fact(refused("supports", &[1.0, 3.0]), "supports");
    is_fact(refused("shape", &[6.0, 6.5]), "shape");
    is_fact(refused("likelihood", &[2.0]), "likelihood");
    is_fact(refused("likelihood", &[]), "likelihood");
    is_fact(refused("scale", &[-1.0]), "scale");
    is_fact(refused("scale", &[1.0; 2]), "scale");
    let error = refused("kernel", &[7.0, 2.0]);
    assert!(matches!(error, FitError::DataShape { .. }), "{error}");
    let error = refused("shape", &[6.0]);
    assert!(matches!(error, FitError::DataShape { .. }), "{error}");
    let error = refused("supports", &[0.0, 0.0]);
    assert!(matches!(error, FitError::Shape { .. }), "{error}");

    let (_, data) = storages::<f64>(&[2, 4]).swap_remove(2);
    let model = transformed();
    let fit = fitted(&model, &*data, Init::default(), Solver::Em, 3);
    let saved = serde_json::to_string(fit.state()).unwrap();
    let read: TransformedState<f64> = serde_json::from_str(&saved).unwrap();
    assert_eq!(&read, fit.state());
    assert_eq!(
        read.reconstruct().unwrap(),
        fit.state().reconstruct().unwrap()
    );
    let at = fit.state().parameters();
    let refused = |name: &'static str, numbers: &[f64]| {
        let at = at.clone().with_fact(name, numbers.to_vec());
        TransformedState::wrap(at).unwrap_err()
    };
    for entries in [
        &[0.0, 0.0, 0.0][..],
        &[],
        &[9.0, 0.0, 0.0, 1.0],
        &[0.0, 0.5, 0.0, 1.0],
        &[0.0, 0.0, -2.0, 1.0],
        &[0.0, 0.0, 8.0, 1.0],
        &[0.0, 2.0, 0.0, 1.0],
        &[0.0, 0.0, 0.0, -1.0],
    ] {
        is_fact(refused("maps", entries), "maps");
    }
    is_fact(refused("kernel", &[]), "kernel");
    let error = refused("maps", &[0.0, 0.0, 0.0, 1.0]);
    assert!(matches!(error, FitError::Shape { .. }), "{error}");
}

/// Maps that were made of a set are kept as the set, and made of it again; numbers that are none are refused.
#[test]
fn sets_are_kept_as_such() {
    let angles = [0.0, 90.0, 30.0];
    let turns = Transformation::product(&angles, &[1.0, 1.5], true).unwrap();
    let (_, data) = storages::<f64>(&[9, 8]).swap_remove(0);
    for positions in [Positions::Valid, Positions::Full, Positions::Centred] {
        let maps = IndexMaps::placed(&turns, &[2, 3], &[9, 8], positions).unwrap();
        let count = maps.maps();
        let model = Transformed::new(1, maps);
        let fit = fitted(&model, &*data, Init::default(), Solver::Em, 2);
        let at = fit.state().parameters();
        assert_eq!(at.fact("maps"), None);
        assert_eq!(at.fact("set").unwrap().len(), 1 + 5 * turns.len());
        let saved = serde_json::to_string(fit.state()).unwrap();
        let read: TransformedState<f64> = serde_json::from_str(&saved).unwrap();
        assert_eq!(read.maps().maps(), count);
        let cells = |state: &TransformedState<f64>| state.reconstruct().unwrap().into_parts().1;
        assert_eq!(cells(&read), cells(fit.state()));
        // The same by a table, which data of one dimension need.
        let [kernels, impulses] = [read.kernels().clone(), read.impulses().clone()];
        let (maps, likelihood) = (read.maps().clone(), read.likelihood());
        let table =
            TransformedState::new(maps, &[72], likelihood, dvector![1.0], kernels, impulses);
        let (by_set, by_table) = (cells(&read), cells(&table.unwrap()));
        let total: f64 = by_set.iter().sum();
        let scaled: Vec<f64> = by_set.iter().map(|x| x / total).collect();
        let mass: f64 = by_table.iter().sum();
        let by_table: Vec<f64> = by_table.iter().map(|x| x / mass).collect();
        near(&scaled, &by_table, "by a set and by its table");
        let mut wrong = at.fact("set").unwrap().to_vec();
        let refused = |numbers: &[f64]| {
            let at = at.clone().with_fact("set", numbers.to_vec());
            let error = TransformedState::wrap(at).unwrap_err();
            assert!(
                matches!(error, FitError::Fact { name: "set", .. }),
                "{error}"
            );
        };
        refused(&[]);
        refused(&[3.0]);
        refused(&wrong[..wrong.len() - 1]);
        let many: Vec<f64> = (0..=count)
            .flat_map(|_| [1.0, 0.0, 0.0, 1.0, 1.0])
            .collect();
        refused(&[&[0.0], &many[..]].concat());
        wrong[1] += 0.5;
        refused(&wrong);
    }
}

/// Nothing is laid out for the cells that a file claims, of which its maps reach none: 30 GB before the state is even looked at.
#[test]
fn claimed_cells_take_no_memory() {
    let claimed = 4_000_000_000;
    let maps = IndexMaps::new(4, 2, &[0, 1, 1, -1]).unwrap();
    let (weights, conditional) = (dvector![1.0], Likelihood::Conditional);
    let (kernels, impulses) = (dmatrix![0.75; 0.25], dmatrix![0.5; 0.5]);
    let state = TransformedState::new(maps, &[4], conditional, weights, kernels, impulses);
    let at = state.unwrap().parameters().clone();
    let hostile = at.with_fact("shape", vec![claimed as f64]);
    let state = TransformedState::wrap(hostile).unwrap();
    // The kernel's second cell is outside under the second map.
    assert!((state.cell(&[0]) - 0.375 / 0.875).abs() < 1e-12);
    assert_eq!(state.cell(&[claimed - 1]), 0.0);
}

/// A model all of which lies outside the data has cells of 0.
#[test]
fn nothing_inside_is_nothing() {
    let geometry = Geometry::new(&[3], &[2], &[Support::Same]).unwrap();
    let (kernels, impulses) = (dmatrix![0.0; 1.0], dmatrix![0.0; 0.0; 1.0]);
    let conditional = Likelihood::Conditional;
    let state = ShiftedState::new(geometry, conditional, dvector![1.0], kernels, impulses);
    assert_eq!(
        state.unwrap().reconstruct().unwrap().into_parts().1,
        [0.0; 3]
    );
}

/// What does not go together is refused with its reason.
#[test]
fn settings_that_do_not_go_together() {
    let setting = |checked: Result<(), FitError>| match checked.unwrap_err() {
        FitError::Setting { name, .. } => name,
        error => panic!("{error}"),
    };
    let of = |kernel: &[usize]| Shifted::new(1, kernel.to_vec());
    assert_eq!(setting(Shifted::new(0, vec![2]).check()), "components");
    assert_eq!(setting(of(&[9, 0]).check()), "kernel");
    assert_eq!(setting(of(&[2]).anneal(anneal(1.5, 5.0)).check()), "anneal");
    assert_eq!(setting(of(&[2]).anneal(anneal(0.5, 0.0)).check()), "anneal");
    let sharp = of(&[2]).impulse_power(anneal(0.5, 5.0)).check();
    assert_eq!(setting(sharp), "impulse_power");
    let error = of(&[2]).supports(vec![Support::Valid; 2]).check();
    assert!(matches!(error, Err(FitError::Conflict { .. })));
    let refused = Transformed::new(0, turns()).check();
    assert!(matches!(
        refused,
        Err(FitError::Setting {
            name: "components",
            ..
        })
    ));
    let refused = transformed().anneal(anneal(0.0, 1.0)).check();
    assert!(matches!(
        refused,
        Err(FitError::Setting { name: "anneal", .. })
    ));

    let all = storages::<f64>(&SHAPE);
    let (whole, masked) = (&*all[0].1, &*all[2].1);
    let on = |model: Shifted, data: &dyn Data<f64>| model.on(data).err().unwrap();
    assert_eq!(
        on(of(&[7, 2]), whole).to_string(),
        "the data are 6 x 7, expected at least 7 x at least 2"
    );
    let error = on(of(&[2]), whole);
    assert!(matches!(error, FitError::DataShape { .. }), "{error}");
    let literal = shifted().likelihood(Likelihood::Literal);
    let error = on(literal.clone().support(Support::Full), masked);
    assert!(error.to_string().contains("hidden cells"), "{error}");
    assert!(literal.on(masked).is_ok());
    let error = on(shifted().freeze("factor_0"), whole);
    assert_eq!(
        error.to_string(),
        "no block is called `factor_0`, expected weights, kernels, impulses"
    );
    let target = CrossEntropy::groups(&[0, 1, 1], 1.0, 0.0).unwrap();
    let error = on(shifted().prior("kernels", Arc::new(target)), whole);
    assert!(
        matches!(&error, FitError::Prior { block, .. } if block == "kernels"),
        "{error}"
    );
    let error = transformed().on(whole).err().unwrap();
    assert_eq!(error.to_string(), "the data are 6 x 7, expected 8 cells");

    let frozen = shifted().freeze("kernels");
    let error = frozen.fit(whole, &mut rng(0)).unwrap_err();
    assert!(
        matches!(&error, FitError::NotGiven { block } if block == "kernels"),
        "{error}"
    );
    let negative = shifted();
    let start = Init::default().block("weights", dmatrix![-1.0; 1.0]);
    let error = negative.init(whole, start, &mut rng(0)).unwrap_err();
    assert!(matches!(error, FitError::Value { .. }), "{error}");
    for solver in [Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
        let steady = shifted().impulse_power(Anneal::constant(1.2));
        let run = steady.on(whole).unwrap().solver(solver);
        let error = run.run(Init::default(), &mut rng(0)).unwrap_err();
        assert!(
            error.to_string().contains("constant power of `impulses`"),
            "{error}"
        );
    }
    let run = negative.on(whole).unwrap().solver(Solver::Fast);
    let error = run.run(Init::default(), &mut rng(0)).unwrap_err();
    assert!(matches!(error, FitError::NotSeparable { .. }), "{error}");
    #[cfg(not(feature = "fft"))]
    assert!(shifted().evaluation(Evaluation::Fft).on(whole).is_err());
    assert!(shifted().evaluation(Evaluation::Sparse).on(whole).is_ok());
}

/// A start that excludes something observed is refused with the first such cell.
#[test]
fn starts_without_support_are_refused() {
    let data = dense::<f64>(&[4], &[0.0, 1.0, 3.0, 2.0]);
    let model = Shifted::new(1, vec![2]);
    let start = Init::default().block("impulses", dmatrix![1.0; 1.0; 0.0]);
    let error = model.init(&data, start, &mut rng(0)).unwrap_err();
    let expected = |index: usize, value: f64| FitError::Support {
        index: vec![index],
        value,
    };
    assert_eq!(error, expected(3, 2.0));
    let data = dense::<f64>(&[8], &[0.0, 1.0, 3.0, 2.0, 0.0, 0.0, 5.0, 0.0]);
    let model = Transformed::new(1, turns());
    let impulses = DMatrix::from_fn(14, 1, |s, _| f64::from(u8::from(s < 10)));
    let start = Init::default().block("impulses", impulses);
    let error = model.init(&data, start, &mut rng(0)).unwrap_err();
    assert_eq!(error, expected(6, 5.0));
    // Too small for its scalar, though no entry of the start is 0.
    let data = dense::<f32>(&[3], &[1.0, 1.0, 1.0]);
    let model = Shifted::new(1, vec![2]).evaluation(Evaluation::Direct);
    let start = Init::default().block("impulses", dmatrix![1.0; 1e-37]);
    let start = start.block("kernels", dmatrix![1.0; 1e-37]);
    let run = model.on(&data).unwrap().solver(Solver::Em);
    let error = run.run(start, &mut rng(0)).unwrap_err();
    assert!(
        matches!(error, FitError::Support { ref index, .. } if index[..] == [2]),
        "{error}"
    );
}

/// Frozen components keep their bits, and the others are learnt: the likelihood rises.
#[test]
fn frozen_components_keep_their_bits() {
    let (_, data) = storages::<f64>(&SHAPE).swap_remove(0);
    let known = [0.1, 0.2, 0.3, 0.05, 0.25, 0.1];
    let kernels = DMatrix::from_fn(6, 2, |i, z| if z == 0 { known[i] } else { 1.0 / 6.0 });
    let model = shifted().freeze_components("kernels", [0]);
    let start = Init::default().block("kernels", kernels.clone());
    let first = fitted(&model, &*data, start.clone(), Solver::Em, 2);
    let fit = fitted(&model, &*data, start, Solver::Em, 30);
    assert_eq!(fit.state().kernels().column(0), kernels.column(0));
    assert_ne!(fit.state().kernels().column(1), kernels.column(1));
    assert!(fit.objective() > first.objective());
    let algorithm = model.bind(&*data).unwrap();
    assert_eq!(algorithm.blocks()[1].frozen, Frozen::Components(vec![0]));
    assert!(algorithm.residual(fit.state().parameters()).unwrap() < 0.1);
}

/// No objective while a power moves, so that nothing converges meanwhile; also where another one stays.
// [SPEC 5.3] [SI eq. 16]
#[test]
fn nothing_is_measured_while_a_power_moves() {
    let (_, data) = storages::<f64>(&SHAPE).swap_remove(0);
    for stays in [false, true] {
        let mut model = shifted().anneal(anneal(0.6, 8.0));
        if stays {
            model = model.impulse_power(Anneal::constant(1.1));
        }
        let stop = exactly(12).check_every(1);
        let run = model.on(&*data).unwrap().stop(stop);
        let fit = run.run(Init::default(), &mut rng(3)).unwrap();
        let measured: Vec<usize> = fit.trace().iter().map(|point| point.iteration).collect();
        assert_eq!(measured, [8, 9, 10, 11, 12]);
    }
}

/// `L* - L <= v gap` at every point of a run, `L*` from a much longer one: maps that stay inside and that leave the data, with hidden cells and
/// without.
// [SPEC 1.5]
#[test]
fn gaps_bound_what_is_left() {
    let kernels = dmatrix![0.3, 0.9; 0.7, 0.1];
    for (storage, data) in storages::<f64>(&[8]) {
        for (maps, likelihood) in [
            (maps(), Likelihood::Conditional),
            (turns(), Likelihood::Conditional),
            (maps(), Likelihood::Literal),
        ] {
            if likelihood == Likelihood::Literal && !data.is_complete() {
                continue;
            }
            let n = maps.maps();
            let even = DMatrix::from_element(n, 2, 1.0 / n as f64);
            let state = TransformedState::new(
                maps,
                &[2, 4],
                likelihood,
                dvector![0.5, 0.5],
                kernels.clone(),
                even,
            );
            let state = state.unwrap();
            let run = |n| {
                let how = Transform::default().stop(exactly(n).residual_tol(None));
                state.transform(&*data, &how).unwrap()
            };
            let optimum = run(20_000).fit.objective();
            for n in [1, 5, 40, 300] {
                let found = run(n);
                let left = optimum - found.fit.objective();
                let bound = data.total() * found.gap[0];
                let what = format!("{storage}, {likelihood:?}, {n}: {left}, {bound}");
                assert!(left <= bound + 1e-9, "{what}");
                // It is no vacuous bound either.
                assert!(found.gap[0] < 10.0, "{what}");
                assert_eq!(found.fit.state().kernels(), &kernels);
            }
            let found = state.transform(&*data, &Transform::default()).unwrap();
            assert!(found.gap[0] < 1e-3, "{storage}: {}", found.gap[0]);
            assert_eq!(found.fit.state().shape(), [8]);
        }
    }
}

/// What no map reaches is refused or dropped; there is no mode to explain along, and no coordinate descent.
#[test]
fn transforms_that_cannot_be() {
    let maps = IndexMaps::new(4, 2, &[0, 1, 1, 2]).unwrap();
    let weights = dvector![1.0];
    let state = TransformedState::new(
        maps,
        &[4],
        Likelihood::Conditional,
        weights.clone(),
        dmatrix![0.5; 0.5],
        dmatrix![0.5; 0.5],
    );
    let state = state.unwrap();
    let data = dense::<f64>(&[4], &[2.0, 1.0, 1.0, 3.0]);
    let how = Transform::default();
    let refused = state.transform(&data, &how).unwrap_err();
    let (index, value) = (vec![3], 3.0);
    assert_eq!(refused, FitError::Impossible { index, value });
    let drop = how.clone().impossible(Impossible::Drop);
    assert_eq!(state.transform(&data, &drop).unwrap().dropped, 3.0);
    let error = state.transform(&data, &how.clone().along(0)).unwrap_err();
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    let small = dense::<f64>(&[3], &[2.0, 1.0, 1.0]);
    let error = state.transform(&small, &how).unwrap_err();
    assert!(matches!(error, FitError::DataShape { .. }), "{error}");

    let geometry = Geometry::new(&[4], &[2], &[Support::Valid]).unwrap();
    let (kernels, impulses) = (dmatrix![0.5; 0.5], dmatrix![0.5; 0.25; 0.25]);
    let new = |impulses| {
        let conditional = Likelihood::Conditional;
        ShiftedState::new(
            geometry.clone(),
            conditional,
            weights.clone(),
            kernels.clone(),
            impulses,
        )
    };
    assert!(matches!(
        new(dmatrix![1.0; 0.0]),
        Err(FitError::Shape { .. })
    ));
    assert!(matches!(
        new(dmatrix![1.0; 0.5; 0.0]),
        Err(FitError::Sum { .. })
    ));
    let state = new(impulses).unwrap();
    let error = state.transform(&data, &how.clone().along(0)).unwrap_err();
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    let fast = how.clone().solver(Solver::Fast);
    let error = state.transform(&data, &fast).unwrap_err();
    assert!(matches!(error, FitError::NotSeparable { .. }), "{error}");
    let tiny = dense::<f64>(&[1], &[2.0]);
    let error = state.transform(&tiny, &how).unwrap_err();
    assert!(matches!(error, FitError::DataShape { .. }), "{error}");
    let bare = Parameters::wrap(state.parameters().clone()).unwrap();
    assert_eq!(ShiftedState::wrap(bare).unwrap(), state);
}

/// Where one of kernels and impulses is known, the other starts even; otherwise it is drawn.
#[test]
fn known_kernels_leave_an_even_start() {
    let (_, data) = storages::<f64>(&SHAPE).swap_remove(0);
    let is_even = |block: &DMatrix<f64>| block.iter().all(|&x| x == block[0]);
    let drawn = shifted();
    let start = fitted(&drawn, &*data, Init::default(), Solver::Em, 0);
    let (kernels, impulses) = (start.state().kernels(), start.state().impulses());
    assert!(!is_even(kernels) && !is_even(impulses));
    for (known, block) in [("kernels", kernels), ("impulses", impulses)] {
        let model = shifted().freeze(known);
        let init = Init::default().block(known, block.clone());
        let start = fitted(&model, &*data, init, Solver::Em, 0);
        let at = start.state();
        let other = if known == "kernels" {
            at.impulses()
        } else {
            at.kernels()
        };
        assert!(is_even(other), "{known}");
    }
}
