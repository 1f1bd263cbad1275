//! Models of counts.

use nalgebra::{dmatrix, dvector};
use plca_em::{
    Anneal, Checkpoint, Cooling, Evaluation, Explained, FitError, Geometry, Given, Impossible,
    IndexMaps, Init, Likelihood, Local, Missing, Model, Nmf, NmfState, Online, OnlineState, Pass,
    Plca, PlcaState, Plsa, PlsaState, Reconstruct, Run, Settings, Shifted, ShiftedState, Solver,
    State, StepSize, Stop, Support, Transform, Transformed, TransformedState, Update,
};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{ASSERTS, Kind, few, one_line, read, resume, run, seeds, text, whole};
use crate::Target;

pub(in crate::targets) const TARGET: Target = Target {
    name: "json_em",
    asserts: ASSERTS,
    seeds: || seeds(KINDS),
    run: |input| run(KINDS, input),
};

fn tensor(shape: &[usize], values: &[f64]) -> DenseTensor<f64> {
    DenseTensor::new(shape.to_vec(), values.to_vec(), Order::RowMajor).expect("good data")
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

fn data() -> DenseTensor<f64> {
    tensor(&[2, 2], &[3.0, 1.0, 0.0, 2.0])
}

/// A state that was read has cells, explains data and is a start.
fn use_state<M: Model<f64, State: Reconstruct>>(
    model: Result<M, FitError>,
    state: &M::State,
    explained: Result<Explained<M::State>, FitError>,
) -> Option<()> {
    state.parameters().matrices().iter().for_each(whole);
    if state.shape() == [2, 2] {
        let cell = state.cell(&[1, 0]);
        assert!(cell >= 0.0, "{cell}");
    }
    match explained {
        Ok(found) => assert!(found.gap.iter().all(|gap| *gap >= 0.0)),
        Err(e) => one_line(&e),
    }
    let from = Checkpoint::new(state.parameters().clone());
    resume(model, &data(), &from)
}

/// How data are explained, in few iterations.
fn how() -> Transform {
    let how = Transform::default().impossible(Impossible::Drop);
    let stop = how.stop.clone().max_iter(20);
    how.stop(stop)
}

fn plca_state() -> PlcaState<f64> {
    let factors = vec![
        dmatrix![0.75, 0.5; 0.25, 0.5],
        dmatrix![0.5, 0.25; 0.5, 0.75],
    ];
    PlcaState::new(dvector![0.5, 0.5], factors).expect("a good state")
}

fn plsa_state() -> PlsaState<f64> {
    let (basis, mixture) = (
        dmatrix![0.75, 0.5; 0.25, 0.5],
        dmatrix![0.5, 0.25; 0.5, 0.75],
    );
    PlsaState::new(Given::Rows, basis, mixture, vec![0.5, 0.5]).expect("a good state")
}

fn nmf_state() -> NmfState<f64> {
    NmfState::new(dmatrix![1.0; 0.5], dmatrix![2.0, 1.0]).expect("a good state")
}

/// A run of PLCA that held-out data cool.
fn cooled<O>(cooling: Cooling, act: impl FnOnce(Run<'_, PlcaState<f64>>) -> O) -> O {
    let (plca, data) = (Plca::new(2), data());
    let run = plca.on(&data).expect("good data");
    act(run.cool(cooling, &data, &data))
}

fn online_state() -> OnlineState<f64> {
    let factors = vec![dmatrix![0.75, 0.5; 0.25, 0.5]];
    OnlineState::new(dvector![0.5, 0.5], factors).expect("a good start")
}

/// Learns a block.
fn learn(state: &mut OnlineState<f64>, step: StepSize, local: Local) -> Option<()> {
    let plca = Plca::new(state.weights.len()).checked().ok()?;
    let learner = Online::new(plca).step(step).local(local).checked();
    let learnt = learner.map_err(|e| one_line(&e)).ok()?;
    let before = state.check();
    match learnt.partial_fit(state, &data()) {
        Ok(_) => assert!(before.is_err() || state.check().is_ok(), "{state:?}"),
        Err(e) => one_line(&e),
    }
    Some(())
}

fn shifted_state() -> ShiftedState<f64> {
    let geometry = Geometry::new(&[2, 2], &[2, 1], &[Support::Valid]).expect("a kernel that fits");
    let (kernels, impulses) = (dmatrix![0.75; 0.25], dmatrix![0.5; 0.5]);
    let likelihood = Likelihood::Conditional;
    ShiftedState::new(geometry, likelihood, dvector![1.0], kernels, impulses).expect("a good state")
}

fn maps() -> IndexMaps {
    IndexMaps::new(4, 2, &[0, 1, 2, 3, 3, -1]).expect("good maps")
}

fn transformed_state() -> TransformedState<f64> {
    let (kernels, impulses) = (dmatrix![0.75; 0.25], dmatrix![0.25; 0.5; 0.25]);
    let (weights, likelihood) = (dvector![1.0], Likelihood::Conditional);
    let state = TransformedState::new(maps(), &[2, 2], likelihood, weights, kernels, impulses);
    state.expect("a good state")
}

/// Settings of the shifted model, on data that fit it.
fn shifted(supports: Vec<Support>, anneal: Anneal, likelihood: Likelihood, how: Evaluation) {
    let model = Shifted::new(1, vec![2]).supports(supports).anneal(anneal);
    let built = model.likelihood(likelihood).evaluation(how).checked();
    let data = tensor(&[4], &[0.0, 1.0, 3.0, 2.0]);
    let fitted = built.and_then(|shifted| {
        let run = shifted.on(&data)?.stop(Stop::default().max_iter(3));
        run.run(Init::default(), &mut rng()).map(drop)
    });
    if let Err(e) = fitted {
        one_line(&e);
    }
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || text(&plca_state()),
        run: |input| {
            let state = read::<PlcaState<f64>>(input)?;
            let plca = Plca::new(state.weights().len()).checked();
            use_state(plca, &state, state.transform(&data(), &how()))
        },
    },
    Kind {
        seed: || text(&plsa_state()),
        run: |input| {
            let state = read::<PlsaState<f64>>(input)?;
            let plsa = Plsa::new(state.basis().ncols()).given(state.given());
            use_state(plsa.checked(), &state, state.transform(&data(), &how()))
        },
    },
    Kind {
        seed: || text(&(Update::Sequential, Missing::default(), nmf_state())),
        run: |input| {
            let (update, missing, state) = read::<(Update, Missing, NmfState<f64>)>(input)?;
            if let Err(e) = state.to_plca() {
                one_line(&e);
            }
            let nmf = Nmf::new(state.w().ncols()).update(update);
            let explained = state.transform(&data(), &how());
            use_state(nmf.missing(missing).checked(), &state, explained)
        },
    },
    Kind {
        seed: || {
            let (nmf, data) = (Nmf::new(1), data());
            let run = nmf.on(&data).expect("good data").solver(Solver::Fast);
            let fit = run
                .stop(Stop::default().max_iter(3))
                .run(&nmf_state(), &mut rng());
            text(fit.expect("a run").checkpoint())
        },
        run: |input| {
            let from = read::<Checkpoint<f64>>(input)?;
            from.parameters().matrices().iter().for_each(whole);
            let components = from.parameters().block("w").map_or(1, |w| w.ncols());
            resume(Nmf::new(components).checked(), &data(), &from)
        },
    },
    Kind {
        seed: || text(&shifted_state()),
        run: |input| {
            let state = read::<ShiftedState<f64>>(input)?;
            let geometry = state.geometry();
            let shifted = Shifted::new(state.weights().len(), geometry.kernel_shape().to_vec())
                .supports(geometry.supports())
                .likelihood(state.likelihood());
            use_state(shifted.checked(), &state, state.transform(&data(), &how()))
        },
    },
    Kind {
        seed: || {
            text(&(
                vec![Support::Full],
                Anneal {
                    alpha0: 0.5,
                    over: 10.0,
                },
                Likelihood::default(),
                Evaluation::default(),
            ))
        },
        run: |input| {
            let (supports, anneal, likelihood, how) =
                read::<(Vec<Support>, Anneal, Likelihood, Evaluation)>(input)?;
            shifted(supports, anneal, likelihood, how);
            Some(())
        },
    },
    Kind {
        seed: || {
            text(&(
                online_state(),
                StepSize::default(),
                Local::default(),
                Pass::default(),
            ))
        },
        run: |input| {
            let (mut state, step, local, _) =
                read::<(OnlineState<f64>, StepSize, Local, Pass)>(input)?;
            state
                .factors
                .iter()
                .chain(&state.statistics)
                .for_each(whole);
            let local = Local {
                max_iter: local.max_iter.min(20),
                ..local
            };
            state.end_pass();
            learn(&mut state, step, local);
            Some(())
        },
    },
    Kind {
        seed: || {
            let cooling = Cooling::default();
            cooled(cooling, |run| {
                let run = run.stop(Stop::default().max_iter(3));
                let fit = run.run(&plca_state(), &mut rng()).expect("a run");
                text(&(cooling, fit.checkpoint()))
            })
        },
        run: |input| {
            let (cooling, from) = read::<(Cooling, Checkpoint<f64>)>(input)?;
            if let Err(e) = cooling.check() {
                one_line(&e);
            }
            cooled(cooling, |run| few(run, &from));
            Some(())
        },
    },
    Kind {
        seed: || text(&(Impossible::Drop, Solver::Fast)),
        run: |input| {
            let (impossible, solver) = read::<(Impossible, Solver)>(input)?;
            match plsa_state().transform(&data(), &how().impossible(impossible).solver(solver)) {
                Ok(explained) => assert!(explained.gap.iter().all(|gap| *gap >= 0.0)),
                Err(e) => one_line(&e),
            }
            Some(())
        },
    },
    Kind {
        seed: || text(&transformed_state()),
        run: |input| {
            let state = read::<TransformedState<f64>>(input)?;
            let transformed = Transformed::new(state.weights().len(), state.maps().clone())
                .likelihood(state.likelihood());
            use_state(
                transformed.checked(),
                &state,
                state.transform(&data(), &how()),
            )
        },
    },
];
