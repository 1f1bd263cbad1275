//! Tempered EM on a schedule.

use plca_em::{
    CooledEm, Cooling, EmError, PlcaInit, PlsaInit, Stop, StopReason,
    before::{Plca, Plsa},
    hold_out,
};
use plca_fit::Algorithm;
use plca_tensor::{Data, DenseTensor, Order};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

const SHAPE: [usize; 2] = [12, 15];

/// Three blocks under noise, few counts for many parameters: EM learns the blocks and then the noise.
fn sparse_counts() -> DenseTensor<f64> {
    let noise = |i: u32| (i * i * 7 + i * 13) % 11 % 4;
    let block = |i: u32| if i / 15 % 3 == i % 3 { 3 } else { 0 };
    let values = (0..180u32).map(|i| f64::from(noise(i) + block(i)));
    DenseTensor::new(SHAPE.to_vec(), values.collect(), Order::RowMajor).unwrap()
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(3)
}

proptest! {
    /// Both parts are whole counts that add up to the data, cell by cell, and no index loses all its counts.
    #[test]
    fn thinning_splits_every_cell(
        values in prop::collection::vec(0..6u32, 20),
        hidden in prop::collection::vec(prop::bool::weighted(0.2), 20),
        share in 0.05..0.95f64,
        seed in 0..1000u64,
    ) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let seen: Vec<bool> = hidden.iter().map(|h| !h).collect();
        prop_assume!(values.iter().zip(&seen).any(|(v, seen)| *seen && *v > 0.0));
        let data = DenseTensor::with_mask(vec![4, 5], values, Order::RowMajor, &seen).unwrap();
        let parts = hold_out(&data, share, &mut ChaCha8Rng::seed_from_u64(seed));
        // By chance none, or all that may be, are drawn: another case is.
        prop_assume!(!matches!(parts, Err(EmError::NothingHeldOut)));
        let parts = parts.map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut cells = [[0.0; 5]; 4];
        for part in [&parts.train, &parts.held] {
            prop_assert_eq!(part.is_complete(), data.is_complete());
            part.visit(&mut |index, x| {
                assert!(x > 0.0 && x.fract() == 0.0);
                cells[index[0]][index[1]] += x;
            })
            .unwrap();
        }
        let mut whole = [[0.0; 5]; 4];
        data.visit(&mut |index, x| whole[index[0]][index[1]] = x).unwrap();
        prop_assert_eq!(cells, whole);
        for mode in 0..2 {
            for (all, train) in data.marginal(mode).unwrap().iter().zip(parts.train.marginal(mode).unwrap()) {
                prop_assert!(train > 0.0 || *all == 0.0);
            }
        }
    }
}

/// At power 1 a scheduled run is plain EM of the training part, bit for bit, until it is first cooled.
// [SPEC 1.4]
#[test]
fn power_one_is_plain_em() {
    let data = sparse_counts();
    let parts = hold_out(&data, 0.1, &mut rng()).unwrap();
    let plca = Plca::<f64>::builder(3).build().unwrap();
    let on = |part| plca.on(part).unwrap();
    let schedule = Cooling::default();
    let algorithm = CooledEm::new(
        plca.on(&data).unwrap(),
        on(&parts.train),
        on(&parts.held),
        schedule,
    )
    .unwrap();
    let mut plain = plca.init(&data, &PlcaInit::default(), &mut rng()).unwrap();
    let mut state = algorithm.start(plain.clone()).unwrap();
    let mut steps = 0;
    loop {
        algorithm.step(&mut state, false).unwrap();
        plca.on(&parts.train)
            .unwrap()
            .step(&mut plain, false)
            .unwrap();
        if state.current.power != 1.0 || state.ended {
            break;
        }
        assert_eq!(state.current, plain);
        steps += 1;
    }
    assert!(steps > 3, "the held-out counts said nothing");
}

/// An iteration that lowers the held-out perplexity is kept; after one that does not, the best state is taken up again at a
/// power `η` times lower; if that does not help at once, the run ends, or cools on if there is no tolerance.
// [HOFMANN alg. TEM] [SPEC 1.4]
#[test]
fn an_iteration_is_kept_or_cools_or_ends_the_run() {
    let data = sparse_counts();
    let parts = hold_out(&data, 0.1, &mut rng()).unwrap();
    let plsa = Plsa::<f64>::builder(6).build().unwrap();
    let on = |part| plsa.on(part).unwrap();
    for tol in [Cooling::default().tol, 0.0] {
        let schedule = Cooling {
            eta: 0.8,
            tol,
            ..Cooling::default()
        };
        let whole = plsa.on(&data).unwrap();
        let algorithm = CooledEm::new(whole, on(&parts.train), on(&parts.held), schedule).unwrap();
        let start = plsa.init(&data, &PlsaInit::default(), &mut rng());
        let mut state = algorithm.start(start.unwrap()).unwrap();
        let (mut kept, mut cooled, mut just_cooled) = (0, 0, false);
        while !state.ended && cooled < 20 {
            let before = state.clone();
            let mut next = before.current.clone();
            on(&parts.train).step(&mut next, false).unwrap();
            let perplexity = algorithm.perplexity(&next).unwrap();
            algorithm.step(&mut state, false).unwrap();
            if perplexity < before.perplexity * (1.0 - tol) {
                assert_eq!((&state.best, state.perplexity), (&next, perplexity));
                assert_eq!(state.current, next);
                (kept, just_cooled) = (kept + 1, false);
                continue;
            }
            assert_eq!(
                (&state.best, state.perplexity),
                (&before.best, before.perplexity)
            );
            assert_eq!(state.ended, just_cooled && tol > 0.0);
            if !state.ended {
                let mut again = before.best;
                again.power = schedule.eta * before.current.power;
                assert_eq!(state.current, again);
                (cooled, just_cooled) = (cooled + 1, true);
            }
        }
        assert!(kept > 3 && cooled > 0, "{kept} {cooled}");
        assert_eq!(state.ended, tol > 0.0);
    }
}

/// The run ends by itself with the lowest perplexity it met; that is lower, on average over starts and parts, than where
/// plain EM ends on the same counts.
// [SPEC 1.4]
#[test]
fn held_out_counts_stop_and_cool_the_run() {
    let runs = 12;
    let (mut gained, mut cooled) = (0.0, 0);
    for seed in 0..runs {
        let (gain, power) = held_out_run(seed);
        gained += gain / runs as f64;
        cooled += usize::from(power < 1.0);
    }
    assert!(gained > 0.0, "{gained} nats lost to plain EM");
    assert!(cooled > 0, "cooling never helped");
}

/// Nats per count gained over plain EM, and the power of the best state.
fn held_out_run(seed: u64) -> (f64, f64) {
    let rng = || ChaCha8Rng::seed_from_u64(seed);
    let data = sparse_counts();
    let schedule = Cooling::default();
    let stop = Stop {
        max_iter: 3000,
        ..Stop::default()
    };
    let plsa = Plsa::<f64>::builder(6).build().unwrap();
    let fit = plsa
        .fit_tempered(&data, &schedule, &PlsaInit::default(), &stop, &mut rng())
        .unwrap();
    assert_eq!(fit.reason, StopReason::HeldOut);
    assert_eq!(
        fit.objective,
        plsa.on(&data).unwrap().ln_lik(&fit.state.best).unwrap()
    );

    // The same draws again, for the parts and the start of the run above.
    let mut draws = rng();
    let parts = hold_out(&data, schedule.share, &mut draws).unwrap();
    let on = |part| plsa.on(part).unwrap();
    let algorithm = CooledEm::new(
        plsa.on(&data).unwrap(),
        on(&parts.train),
        on(&parts.held),
        schedule,
    )
    .unwrap();
    let start = plsa.init(&data, &PlsaInit::default(), &mut draws).unwrap();
    assert_eq!(
        fit.state.perplexity,
        algorithm.perplexity(&fit.state.best).unwrap()
    );
    assert!(fit.state.perplexity <= algorithm.perplexity(&start).unwrap());
    let plain = plca_fit::run(
        &on(&parts.train),
        start,
        &Stop {
            max_iter: 300,
            tol: 0.0,
            ..stop
        },
        (),
    )
    .unwrap();
    let gain = (algorithm.perplexity(&plain.state).unwrap() / fit.state.perplexity).ln();
    (gain, fit.state.best.power)
}

/// What a step measures is the objective before it, also while the best state and the present one differ.
#[test]
fn steps_measure_the_objective() {
    let data = sparse_counts();
    let parts = hold_out(&data, 0.1, &mut rng()).unwrap();
    let plca = Plca::<f64>::builder(6).build().unwrap();
    let on = |part| plca.on(part).unwrap();
    let (train, held) = (on(&parts.train), on(&parts.held));
    let whole = plca.on(&data).unwrap();
    let algorithm = CooledEm::new(whole, train, held, Cooling::default()).unwrap();
    let mut state = algorithm
        .start(plca.init(&data, &PlcaInit::default(), &mut rng()).unwrap())
        .unwrap();
    let mut apart = 0;
    while !state.ended {
        let objective = algorithm.objective(&state).unwrap();
        apart += usize::from(state.current.factors != state.best.factors);
        assert_eq!(algorithm.step(&mut state, true).unwrap(), Some(objective));
    }
    // The last step of a run is one that did not help.
    assert_ne!(state.current.factors, state.best.factors);
    assert!(apart <= 1);
}

/// With tolerance 0 nothing but the iterations ends the run.
#[test]
fn without_tolerance_all_iterations_are_used() {
    let schedule = Cooling {
        tol: 0.0,
        ..Cooling::default()
    };
    let stop = Stop {
        max_iter: 400,
        ..Stop::default()
    };
    let plca = Plca::<f64>::builder(6).build().unwrap();
    let fit = plca
        .fit_tempered(
            &sparse_counts(),
            &schedule,
            &PlcaInit::default(),
            &stop,
            &mut rng(),
        )
        .unwrap();
    assert_eq!(
        (fit.iterations, fit.reason),
        (400, StopReason::MaxIterations)
    );
}

#[test]
fn schedules_that_mean_nothing_are_refused() {
    let good = Cooling::default();
    assert!(good.check().is_ok());
    for bad in [
        Cooling { start: 0.0, ..good },
        Cooling { start: 1.1, ..good },
        Cooling { eta: 1.0, ..good },
        Cooling {
            eta: f64::NAN,
            ..good
        },
        Cooling { share: 0.0, ..good },
        Cooling { tol: -1.0, ..good },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}
