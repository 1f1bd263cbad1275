//! Powers, schedules of priors, and runs that are interrupted.

use std::ops::ControlFlow;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{Anneal, Shifted, ShiftedState};
use plca_fit::{Fit, FitError, Init, Iteration, Model, Solver, Status, Stop, solver::Memory};
use plca_priors::{CrossEntropy, Dirichlet, Entropic, Schedule, Scheduled, SimplexPrior};
use plca_tensor::Data;

use super::support::{dense, rng};

fn data() -> impl Data<f64> {
    let values: Vec<f64> = (0..8 * 9).map(|i| ((i * 31) % 11) as f64).collect();
    dense::<f64>(&[8, 9], &values)
}

fn stop(max_iter: usize) -> Stop {
    Stop::default().max_iter(max_iter).tol(None).check_every(3)
}

/// A run of so many iterations from a drawn start.
fn run(config: &Shifted, data: &dyn Data<f64>, solver: Solver, n: usize) -> Fit<ShiftedState<f64>> {
    let run = config.on(data).unwrap().solver(solver).stop(stop(n));
    run.run(Init::default(), &mut rng(3)).unwrap()
}

/// Everything that an iteration number decides.
fn scheduled() -> Shifted {
    let fading = Schedule::Decreasing { over: 9.0 };
    let prior = Scheduled::new(Entropic::new(4.0).unwrap(), fading).unwrap();
    Shifted::new(2, vec![3, 3])
        .anneal(Anneal {
            alpha0: 0.6,
            over: 8.0,
        })
        .impulse_power(Anneal {
            alpha0: 1.3,
            over: 5.0,
        })
        .prior("impulses", Arc::new(prior))
}

/// A checkpoint continues the run to the bit, wherever it was cut.
#[test]
fn resumed_is_uninterrupted() {
    let (data, config) = (data(), scheduled());
    let whole = run(&config, &data, Solver::Em, 14);
    for cut in 1..14 {
        let mut saved = String::new();
        let save = |it: &Iteration<'_, f64>| {
            if it.done() < cut {
                return ControlFlow::Continue(());
            }
            saved = serde_json::to_string(&it.checkpoint()).unwrap();
            ControlFlow::Break(Status::Interrupted)
        };
        let of = || config.on(&data).unwrap().solver(Solver::Em).stop(stop(14));
        let part = of().observe(save).run(Init::default(), &mut rng(3));
        assert_eq!(part.unwrap().iterations(), cut);
        let rest = of().resume(serde_json::from_str(&saved).unwrap()).unwrap();
        assert_eq!(rest.state(), whole.state(), "cut after {cut}");
    }
}

/// No objective while a power moves, so that nothing converges meanwhile; afterwards the objective rises.
// [SPEC 5.3] [SI eq. 16]
#[test]
fn convergence_is_not_tested_while_a_power_moves() {
    let (data, config) = (data(), scheduled());
    let em = config.bind(&data).unwrap();
    let mut at = Init::default().parameters(&*em, &mut rng(3)).unwrap();
    let measured: Vec<bool> = (0..10)
        .map(|_| em.step(&mut at, true).unwrap().value.is_some())
        .collect();
    assert_eq!(measured, [[false; 8].as_slice(), &[true; 2]].concat());
    let patient = Stop::default().max_iter(500).tol(1.0).check_every(1);
    let patient = config.on(&data).unwrap().stop(patient);
    let fit = patient.run(Init::default(), &mut rng(3)).unwrap();
    assert!(fit.iterations() > 8);
}

/// Extrapolations are left alone while a power moves: the same states as without them, and rising ones afterwards. They are
/// refused with a power that stays.
#[test]
fn nothing_is_extrapolated_while_a_power_moves() {
    let data = data();
    let of = |power: Anneal| Shifted::new(2, vec![3, 3]).impulse_power(power);
    let moving = of(Anneal {
        alpha0: 1.3,
        over: 8.0,
    });
    let plain = run(&moving, &data, Solver::Em, 8).into_state();
    let em = moving.bind(&data).unwrap();
    for (solver, iterations) in [
        (Solver::Squarem, 4),
        (Solver::Parabolic, 8),
        (Solver::Momentum, 8),
    ] {
        let end = run(&moving, &data, solver, iterations);
        assert_eq!(end.state(), &plain, "{solver}");
        let mut at = end.checkpoint().parameters().clone();
        let mut steps = Solver::Squarem.on(&*em, Memory::default()).unwrap();
        let mut last = f64::NEG_INFINITY;
        for _ in 0..20 {
            let now = steps.step(&mut at, true).unwrap().value.unwrap();
            assert!(now >= last - 1e-12 * (1.0 + now.abs()), "{last} {now}");
            last = now;
        }
    }
    let constant = of(Anneal::constant(1.3));
    let constant = constant.on(&data).unwrap().solver(Solver::Squarem);
    let refused = constant.run(Init::default(), &mut rng(3)).unwrap_err();
    assert!(matches!(refused, FitError::Conflict { .. }), "{refused}");
}

/// A power of 1 is plain EM to the bit, powers keep zeros, and powers above 1 make impulses sparser.
// [SPEC 5.3] [SI eq. 16]
#[test]
fn powers_do_what_they_say() {
    let data = data();
    let end = |power: Option<f64>| {
        let mut config = Shifted::new(1, vec![3, 3]);
        if let Some(power) = power {
            config = config.impulse_power(Anneal::constant(power));
        }
        let mut impulse = DMatrix::from_element(42, 1, 1.0);
        impulse[5] = 0.0;
        let init = Init::default().block("impulses", impulse);
        let run = config.on(&data).unwrap().stop(stop(10));
        run.run(init, &mut rng(3)).unwrap().into_state()
    };
    let entropy = |s: &ShiftedState<f64>| -> f64 {
        let positive = s.impulses().iter().filter(|&&x| x > 0.0);
        positive.map(|x| -x * x.ln()).sum()
    };
    assert_eq!(end(None), end(Some(1.0)));
    let sparse = end(Some(1.5));
    assert_eq!(sparse.impulses()[5], 0.0);
    assert!(entropy(&sparse) < entropy(&end(None)) - 0.1);
}

/// Priors that pull two kernels apart, or that take more from a cell than it has, leave the model no cell of the data without support.
// [SPEC 8]
#[test]
fn support_that_a_prior_takes_is_given_back() {
    let strong = CrossEntropy::groups(&[0, 1], 1e6, 0.0).unwrap();
    let harsh = Dirichlet::symmetric(0.1).unwrap();
    let even = (
        vec![1.0; 6],
        2,
        Arc::new(strong) as Arc<dyn SimplexPrior<f64>>,
    );
    for ((values, k, prior), empties) in
        [(even, false), ((vec![4.0, 0.5], 1, Arc::new(harsh)), true)]
    {
        let data = dense::<f64>(&[values.len()], &values);
        let config = Shifted::new(k, vec![values.len()]).prior("kernels", prior);
        let em = config.bind(&data).unwrap();
        let mut at = Init::default().parameters(&*em, &mut rng(1)).unwrap();
        for _ in 0..20 {
            let stepped = em.step(&mut at, true).unwrap();
            assert_eq!(stepped.restored == [1], empties);
            assert!(em.likelihood(&at).unwrap().is_finite());
        }
    }
}

/// Frozen weights leave the other blocks' conditions: the residual is far from 0 before EM and goes to 0 under it.
#[test]
fn residuals_of_frozen_blocks() {
    let data = data();
    let shifted = || Shifted::new(2, vec![3, 9]);
    let drawn = shifted();
    let drawn = drawn.bind(&data).unwrap();
    for frozen in 0..8 {
        let names = ["weights", "kernels", "impulses"].into_iter().enumerate();
        let names = names.filter(|(j, _)| frozen & (1 << j) != 0);
        let config = names.fold(shifted(), |b, (_, name)| b.freeze(name));
        let mut at = Init::default().parameters(&*drawn, &mut rng(3)).unwrap();
        let em = config.bind(&data).unwrap();
        let before = em.residual(&at).unwrap();
        assert_eq!(before > 1e-3, frozen != 7, "frozen {frozen:b}: {before}");
        let mut after = before;
        for _ in 0..200 {
            for _ in 0..100 {
                em.step(&mut at, false).unwrap();
            }
            after = em.residual(&at).unwrap();
            if after <= 1e-6 {
                break;
            }
        }
        assert!(after <= 1e-6, "frozen {frozen:b}: {after}");
    }
}
