//! Tempered EM on a schedule.

use std::cell::RefCell;
use std::ops::ControlFlow;

use nalgebra::DMatrix;
use plca_em::{EmError, HeldOut, Nmf, Plca, PlcaState, Plsa, hold_out};
use plca_fit::{
    Checkpoint, Cooling, Fit, FitError, Init, Iteration, Model, Parameters, Run, Solver, State,
    Status,
};
use plca_tensor::{Data, DenseTensor, Order};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::support::{after, exactly};

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

/// Where a run on a schedule stands.
#[derive(Clone)]
struct Stand {
    best: Parameters<f64>,
    /// The values that the next iteration starts from.
    current: Vec<f64>,
    perplexity: f64,
    ended: bool,
    power: f64,
    iteration: f64,
}

impl Stand {
    fn of(mut at: Checkpoint<f64>) -> Self {
        let best = at.parameters().clone();
        let arrays = at.take_arrays();
        let array = |name: &str| {
            let found = arrays.iter().find(|(other, _)| other == name).unwrap();
            found.1.as_slice().to_vec()
        };
        let numbers = array("memory.numbers");
        let &[perplexity, _, ended, power, iteration] = &numbers[..] else {
            panic!("{numbers:?}");
        };
        Self {
            best,
            current: array("memory.0"),
            perplexity,
            ended: ended > 0.0,
            power,
            iteration,
        }
    }
}

/// All values, block by block.
fn flat(at: &Parameters<f64>) -> Vec<f64> {
    at.matrices().iter().flatten().copied().collect()
}

/// A run on a schedule, what it measured before every iteration, and where it stood after it.
fn cooled<M: Model<f64>>(
    model: &M,
    data: &dyn Data<f64>,
    parts: &HeldOut<'_, f64>,
    cooling: Cooling,
    n: usize,
    rng: &mut ChaCha8Rng,
) -> (Fit<M::State>, Vec<(f64, Stand)>) {
    let stands = RefCell::new(Vec::new());
    let note = |it: &Iteration<'_, f64>| {
        let measured = it.measured.unwrap().objective;
        stands
            .borrow_mut()
            .push((measured, Stand::of(it.checkpoint())));
        ControlFlow::Continue(())
    };
    let run = model.on(data).unwrap().stop(exactly(n).check_every(1));
    let run = run.cool(cooling, &parts.train, &parts.held).observe(note);
    let fit = run.run(Init::default(), rng).unwrap();
    (fit, stands.into_inner())
}

fn perplexity<M: Model<f64>>(model: &M, held: &dyn Data<f64>, at: &Parameters<f64>) -> f64 {
    let held = model.bind(held).unwrap();
    (-held.likelihood(at).unwrap() / held.unit()).exp()
}

/// At power 1 a scheduled run is plain EM of the training part, bit for bit, until it is first cooled.
// [SPEC 1.4]
#[test]
fn power_one_is_plain_em() {
    let data = sparse_counts();
    let parts = hold_out(&data, 0.1, &mut rng()).unwrap();
    let plca = Plca::new(3);
    let (_, stands) = cooled(&plca, &data, &parts, Cooling::default(), 3000, &mut rng());
    let start = plca.init(&data, Init::default(), &mut rng()).unwrap();
    let mut plain = start.parameters().clone();
    let train = plca.bind(&parts.train).unwrap();
    let warm = stands
        .iter()
        .take_while(|(_, s)| s.power == 1.0 && !s.ended);
    let mut steps = 0;
    for (_, stand) in warm {
        train.step(&mut plain, false).unwrap();
        assert_eq!(stand.current, flat(&plain));
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
    let plsa = |power| Plsa::new(6).temper(power);
    // The shares of the given mode are those of all data, whatever is learnt from.
    let learnt = 12 * 6 + 6 * 15;
    for tol in [Cooling::default().tol, 0.0] {
        let cooling = Cooling::default().eta(0.8).tol(tol);
        let (fit, stands) = cooled(&plsa(1.0), &data, &parts, cooling, 100, &mut rng());
        let start = plsa(1.0).init(&data, Init::default(), &mut rng()).unwrap();
        let start = start.parameters().clone();
        let mut before = Stand {
            current: flat(&start),
            perplexity: perplexity(&plsa(1.0), &parts.held, &start),
            best: start,
            ended: false,
            power: 1.0,
            iteration: 0.0,
        };
        let (mut kept, mut cooled, mut just_cooled) = (0, 0, false);
        for (_, stand) in stands {
            let tempered = plsa(before.power);
            let (basis, mixture) = before.current[..learnt].split_at(12 * 6);
            let next = Init::default()
                .block("basis", DMatrix::from_column_slice(12, 6, basis))
                .block("mixture", DMatrix::from_column_slice(6, 15, mixture));
            let next = tempered.init(&parts.train, next, &mut rng()).unwrap();
            let mut next = next.parameters().clone();
            let train = tempered.bind(&parts.train).unwrap();
            train.step(&mut next, false).unwrap();
            let perplexity = perplexity(&tempered, &parts.held, &next);
            if perplexity < before.perplexity * (1.0 - tol) {
                assert_eq!(stand.perplexity, perplexity);
                assert_eq!(flat(&stand.best)[..learnt], flat(&next)[..learnt]);
                assert_eq!(stand.current, flat(&stand.best));
                (kept, just_cooled) = (kept + 1, false);
            } else {
                assert_eq!(
                    (&stand.best, stand.perplexity),
                    (&before.best, before.perplexity)
                );
                assert_eq!(stand.ended, just_cooled && tol > 0.0);
                if !stand.ended {
                    assert_eq!(stand.current, flat(&before.best));
                    assert_eq!(stand.power, cooling.eta * before.power);
                    assert_eq!(stand.iteration, before.best.iteration() as f64);
                    (cooled, just_cooled) = (cooled + 1, true);
                }
            }
            before = stand;
        }
        assert!(kept > 3 && cooled > 0, "{kept} {cooled}");
        assert_eq!(before.ended, tol > 0.0);
        assert_eq!(fit.status() == &Status::HeldOut, before.ended);
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
    let data = sparse_counts();
    let plsa = Plsa::new(6);
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    let parts = hold_out(&data, 0.1, &mut draws).unwrap();
    let cooling = Cooling::default();
    let (fit, _) = cooled(&plsa, &data, &parts, cooling, 3000, &mut draws.clone());
    assert_eq!(fit.status(), &Status::HeldOut);
    let best = fit.state().parameters();
    let whole = plsa.bind(&data).unwrap();
    assert_eq!(fit.objective(), whole.likelihood(best).unwrap());
    let of = |at| perplexity(&plsa, &parts.held, at);
    assert_eq!(fit.held_out_perplexity(), Some(of(best)));
    let start = plsa.init(&data, Init::default(), &mut draws).unwrap();
    assert!(of(best) <= of(start.parameters()));
    let plain = after(&plsa, &parts.train, &start, Solver::Em, 300).unwrap();
    let gain = (of(plain.state().parameters()) / of(best)).ln();
    (gain, best.power())
}

/// What a step measures is the objective before it, also while the best state and the present one differ.
#[test]
fn steps_measure_the_objective() {
    let data = sparse_counts();
    let parts = hold_out(&data, 0.1, &mut rng()).unwrap();
    let plca = Plca::new(6);
    let (_, stands) = cooled(&plca, &data, &parts, Cooling::default(), 3000, &mut rng());
    let whole = plca.bind(&data).unwrap();
    let start = plca.init(&data, Init::default(), &mut rng()).unwrap();
    let mut best = start.parameters().clone();
    let mut apart = 0;
    for (measured, stand) in stands {
        assert_eq!(measured, whole.objective(&best).unwrap());
        apart += usize::from(stand.current != flat(&stand.best));
        best = stand.best;
    }
    // The last step of a run is one that did not help.
    assert_eq!(apart, 1);
}

/// Interrupted anywhere, a run goes on as if it had not been; no other solver knows a schedule, and no other run its parts.
#[test]
fn interrupted_runs_go_on() {
    let data = sparse_counts();
    for (k, eta) in [(2, 0.9), (4, 0.7)] {
        let plca = Plca::new(k);
        let parts = hold_out(&data, 0.3, &mut rng()).unwrap();
        let run = || -> Run<'_, PlcaState<f64>> {
            let run = plca.on(&data).unwrap().stop(exactly(60));
            run.cool(Cooling::default().eta(eta), &parts.train, &parts.held)
        };
        let whole = run().run(Init::default(), &mut rng()).unwrap();
        for cut in [1, 5, whole.iterations() - 1, whole.iterations()] {
            let interrupt = move |it: &Iteration<'_, f64>| match it.done() == cut {
                true => ControlFlow::Break(Status::Interrupted),
                false => ControlFlow::Continue(()),
            };
            let part = run().observe(interrupt);
            let part = part.run(Init::default(), &mut rng()).unwrap();
            let saved = serde_json::to_string(part.checkpoint()).unwrap();
            let rest = run().resume(serde_json::from_str(&saved).unwrap());
            let rest = rest.unwrap();
            assert_eq!(rest.state(), whole.state(), "{cut}");
            assert_eq!(rest.status(), whole.status(), "{cut}");
            assert_eq!(rest.iterations(), whole.iterations(), "{cut}");
        }
        for solver in [Solver::Fast, Solver::Squarem] {
            let refused = run().solver(solver).run(Init::default(), &mut rng());
            assert!(matches!(refused, Err(FitError::Conflict { .. })));
        }
    }
    let parts = hold_out(&data, 0.3, &mut rng()).unwrap();
    let nmf = Nmf::new(2);
    let run = nmf.on(&data).unwrap();
    let run = run.cool(Cooling::default(), &parts.train, &parts.held);
    let error = run.run(Init::default(), &mut rng()).unwrap_err();
    assert!(error.to_string().contains("tempering"), "{error}");
}

/// With tolerance 0 nothing but the iterations ends the run.
#[test]
fn without_tolerance_all_iterations_are_used() {
    let data = sparse_counts();
    let parts = hold_out(&data, 0.1, &mut rng()).unwrap();
    let plca = Plca::new(6);
    let cooling = Cooling::default().tol(0.0);
    let (fit, _) = cooled(&plca, &data, &parts, cooling, 400, &mut rng());
    assert_eq!(
        (fit.iterations(), fit.status()),
        (400, &Status::MaxIterations)
    );
}

#[test]
fn schedules_that_mean_nothing_are_refused() {
    let good = Cooling::default();
    assert!(good.check().is_ok());
    for bad in [
        good.start(0.0),
        good.start(1.1),
        good.eta(1.0),
        good.eta(f64::NAN),
        good.tol(-1.0),
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
    assert!(hold_out(&sparse_counts(), 0.0, &mut rng()).is_err());
}
