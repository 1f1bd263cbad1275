//! Powers, schedules of priors, and runs that are interrupted.

use std::ops::ControlFlow;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, Anneal, Carried, EmError, Parabolic, ParamError, Progress, Shifted, ShiftedInit,
    ShiftedState, Squarem, Stop, run, run_from,
};
use plca_fit::Iteration;
use plca_priors::{CrossEntropy, Entropic, Schedule, Scheduled};
use plca_tensor::Data;

use super::support::{dense, rng};

fn data() -> impl Data<f64> {
    let values: Vec<f64> = (0..8 * 9).map(|i| ((i * 31) % 11) as f64).collect();
    dense::<f64>(&[8, 9], &values)
}

fn stop(max_iter: usize) -> Stop {
    Stop {
        max_iter,
        tol: 0.0,
        check_every: 3,
        ..Stop::default()
    }
}

/// Everything that an iteration number decides.
fn scheduled() -> Shifted<f64> {
    let fading = Schedule::Decreasing { over: 9.0 };
    let prior = Scheduled::new(Entropic::new(4.0).unwrap(), fading).unwrap();
    Shifted::builder(2, vec![3, 3])
        .anneal(Anneal {
            alpha0: 0.6,
            over: 8.0,
        })
        .impulse_power(Anneal {
            alpha0: 1.3,
            over: 5.0,
        })
        .impulses_prior(Arc::new(prior))
        .build()
        .unwrap()
}

/// The state and the progress that a checkpoint holds continue the run to the bit, wherever it was cut.
#[test]
fn resumed_is_uninterrupted() {
    let (data, config) = (data(), scheduled());
    let em = config.on(&data).unwrap();
    let start = em.init(&ShiftedInit::default(), &mut rng(3)).unwrap();
    let whole = run(&em, start.clone(), &stop(14), ()).unwrap();
    for cut in 1..14 {
        let mut saved = String::new();
        let save = |it: &Iteration<'_, ShiftedState<f64>>| {
            if it.iteration < cut {
                return ControlFlow::Continue(());
            }
            saved = serde_json::to_string(&(it.state, it.progress)).unwrap();
            ControlFlow::Break(())
        };
        run(&em, start.clone(), &stop(14), save).map(drop).unwrap();
        let (state, progress): (ShiftedState<f64>, Progress) =
            serde_json::from_str(&saved).unwrap();
        let resumed = run_from(&em, state, progress, &stop(14), ()).unwrap();
        assert_eq!(resumed.state, whole.state, "cut after {cut}");
    }
}

/// No objective while a power moves, so that nothing converges meanwhile; afterwards the objective rises.
// [SPEC 5.3] [SI eq. 16]
#[test]
fn convergence_is_not_tested_while_a_power_moves() {
    let (data, config) = (data(), scheduled());
    let em = config.on(&data).unwrap();
    let mut state = em.init(&ShiftedInit::default(), &mut rng(3)).unwrap();
    let measured: Vec<bool> = (0..10)
        .map(|_| em.step(&mut state, true).unwrap().is_some())
        .collect();
    assert_eq!(measured, [[false; 8].as_slice(), &[true; 2]].concat());
    let patient = Stop {
        max_iter: 500,
        tol: 1.0,
        check_every: 1,
        ..Stop::default()
    };
    let start = em.init(&ShiftedInit::default(), &mut rng(3)).unwrap();
    assert!(run(&em, start, &patient, ()).unwrap().iterations > 8);
}

/// Extrapolations are left alone while a power moves: the same states as without them, and rising ones afterwards. They are
/// refused with a power that stays.
#[test]
fn nothing_is_extrapolated_while_a_power_moves() {
    let data = data();
    let of = |power: Anneal| {
        let builder = Shifted::<f64>::builder(2, vec![3, 3]);
        builder.impulse_power(power).build().unwrap()
    };
    let moving = of(Anneal {
        alpha0: 1.3,
        over: 8.0,
    });
    let em = moving.on(&data).unwrap();
    let start = em.init(&ShiftedInit::default(), &mut rng(3)).unwrap();
    let plain = run(&em, start.clone(), &stop(8), ()).unwrap().state;
    let (squarem, parabolic) = (
        Squarem(moving.on(&data).unwrap()),
        Parabolic(moving.on(&data).unwrap()),
    );
    let ends = [
        run(&squarem, start.clone(), &stop(4), ()).unwrap().state,
        run(&parabolic, Carried::new(start.clone()), &stop(8), ())
            .unwrap()
            .state
            .into_inner(),
    ];
    assert_eq!(ends, [plain.clone(), plain]);
    for mut state in ends {
        let mut last = f64::NEG_INFINITY;
        for _ in 0..20 {
            let now = squarem.step(&mut state, true).unwrap().unwrap();
            assert!(now >= last - 1e-12 * (1.0 + now.abs()), "{last} {now}");
            last = now;
        }
    }
    let constant = of(Anneal::constant(1.3));
    let refused = Squarem(constant.on(&data).unwrap()).step(&mut start.clone(), true);
    assert!(matches!(
        refused,
        Err(EmError::Param(ParamError::Conflict(_)))
    ));
}

/// A power of 1 is plain EM to the bit, powers keep zeros, and powers above 1 make impulses sparser.
// [SPEC 5.3] [SI eq. 16]
#[test]
fn powers_do_what_they_say() {
    let data = data();
    let end = |power: Option<f64>| {
        let mut builder = Shifted::<f64>::builder(1, vec![3, 3]);
        if let Some(power) = power {
            builder = builder.impulse_power(Anneal::constant(power));
        }
        let config = builder.build().unwrap();
        let em = config.on(&data).unwrap();
        let mut impulse = DMatrix::from_element(42, 1, 1.0);
        impulse[5] = 0.0;
        let init = ShiftedInit {
            impulses: Some(impulse),
            ..ShiftedInit::default()
        };
        let start = em.init(&init, &mut rng(3)).unwrap();
        run(&em, start, &stop(10), ()).unwrap().state
    };
    let entropy = |s: &ShiftedState<f64>| -> f64 {
        s.impulses
            .iter()
            .filter(|&&x| x > 0.0)
            .map(|x| -x * x.ln())
            .sum()
    };
    assert_eq!(end(None), end(Some(1.0)));
    let sparse = end(Some(1.5));
    assert_eq!(sparse.impulses[5], 0.0);
    assert!(entropy(&sparse) < entropy(&end(None)) - 0.1);
}

/// A prior that pulls two kernels apart until they exclude a cell of the data gives every cell a trace back.
// [SPEC 8]
#[test]
fn support_that_a_prior_takes_is_given_back() {
    let data = dense::<f64>(&[6], &[1.0; 6]);
    let strong = CrossEntropy::groups(&[0, 1], 1e6, 0.0).unwrap();
    let config = Shifted::builder(2, vec![6])
        .kernels_prior(Arc::new(strong))
        .build()
        .unwrap();
    let em = config.on(&data).unwrap();
    let mut state = em.init(&ShiftedInit::default(), &mut rng(1)).unwrap();
    for _ in 0..20 {
        em.step(&mut state, true).unwrap();
        assert!(em.ln_lik(&state).unwrap().is_finite());
    }
}

/// Frozen weights leave the other blocks' conditions: the residual is far from 0 before EM and goes to 0 under it.
#[test]
fn residuals_of_frozen_blocks() {
    let data = data();
    for frozen in 0..8 {
        let mut builder = Shifted::<f64>::builder(2, vec![3, 9]);
        if frozen & 1 != 0 {
            builder = builder.freeze_weights();
        }
        if frozen & 2 != 0 {
            builder = builder.freeze_kernels();
        }
        if frozen & 4 != 0 {
            builder = builder.freeze_impulses();
        }
        let drawn = Shifted::<f64>::builder(2, vec![3, 9]).build().unwrap();
        let mut state = drawn
            .init(&data, &ShiftedInit::default(), &mut rng(3))
            .unwrap();
        let config = builder.build().unwrap();
        let em = config.on(&data).unwrap();
        let before = em.residual(&state).unwrap().unwrap();
        assert_eq!(before > 1e-3, frozen != 7, "frozen {frozen:b}: {before}");
        let mut after = before;
        for _ in 0..200 {
            for _ in 0..100 {
                em.step(&mut state, false).unwrap();
            }
            after = em.residual(&state).unwrap().unwrap();
            if after <= 1e-6 {
                break;
            }
        }
        assert!(after <= 1e-6, "frozen {frozen:b}: {after}");
    }
}
