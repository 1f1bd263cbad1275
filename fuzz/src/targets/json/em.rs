//! Models of counts.

use nalgebra::{DMatrix, dmatrix, dvector};
use plca_em::{
    Anneal, CooledEm, CooledState, Cooling, Evaluation, Fast, FastState, FoldIn, Given, Impossible,
    Likelihood, Local, Missing, Online, OnlineState, Pass, Shifted, ShiftedState, Solver, StepSize,
    Support, Update,
    before::{Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState},
};
use plca_tensor::{Cp, DenseTensor, Order};

use super::{ASSERTS, Kind, go_on, one_line, read, run, seeds, short, text, whole};
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

fn data() -> DenseTensor<f64> {
    tensor(&[2, 2], &[3.0, 1.0, 0.0, 2.0])
}

/// A model that was checked has cells and a mass.
fn measure(model: &Cp<'_, f64>) {
    let cell = model.cell(&[1, 0]);
    assert!(
        cell >= 0.0 && model.mass() >= 0.0,
        "{cell} {}",
        model.mass()
    );
}

fn plca_state() -> PlcaState<f64> {
    PlcaState {
        weights: dvector![0.5, 0.5],
        factors: vec![
            dmatrix![0.75, 0.5; 0.25, 0.5],
            dmatrix![0.5, 0.25; 0.5, 0.75],
        ],
        power: 1.0,
        iteration: 3,
    }
}

fn plsa_state() -> PlsaState<f64> {
    PlsaState {
        basis: dmatrix![0.75, 0.5; 0.25, 0.5],
        mixture: dmatrix![0.5, 0.25; 0.5, 0.75],
        power: 1.0,
        iteration: 0,
    }
}

fn nmf_state() -> NmfState<f64> {
    NmfState {
        w: dmatrix![1.0; 0.5],
        h: dmatrix![2.0, 1.0],
    }
}

fn online_state() -> OnlineState<f64> {
    let factors = vec![dmatrix![0.75, 0.5; 0.25, 0.5]];
    OnlineState::new(dvector![0.5, 0.5], factors).expect("a good start")
}

/// Learns a block.
fn learn(state: &mut OnlineState<f64>, step: StepSize, local: Local) -> Option<()> {
    let plca = plca_em::Plca::builder(state.weights.len()).build().ok()?;
    let learner = Online::builder(plca).step(step).local(local).build();
    let learnt = learner.map_err(|e| one_line(&e)).ok()?;
    let before = state.check();
    match learnt.partial_fit(state, &data()) {
        Ok(_) => assert!(before.is_err() || state.check().is_ok(), "{state:?}"),
        Err(e) => one_line(&e),
    }
    Some(())
}

/// Settings of the shifted model, on data that it goes with.
fn shifted(supports: Vec<Support>, anneal: Anneal, likelihood: Likelihood, how: Evaluation) {
    let builder = Shifted::<f64>::builder(1, vec![2])
        .supports(supports)
        .anneal(anneal);
    let built = builder.likelihood(likelihood).evaluation(how).build();
    let data = tensor(&[4], &[0.0, 1.0, 3.0, 2.0]);
    match built {
        Ok(shifted) => match shifted.on(&data) {
            Ok(em) => {
                let cells = em.geometry().impulse_cells();
                let mut state = ShiftedState {
                    weights: dvector![1.0],
                    kernels: dmatrix![0.5; 0.5],
                    impulses: DMatrix::from_element(cells, 1, 1.0 / cells as f64),
                    iteration: 0,
                };
                go_on(&em, &mut state);
            }
            Err(e) => one_line(&e),
        },
        Err(e) => one_line(&e),
    }
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || text(&plca_state()),
        run: |input| {
            let mut state = read::<PlcaState<f64>>(input)?;
            state.factors.iter().for_each(whole);
            let good = state.check(&[2, 2]).is_ok();
            if good {
                state.with_model(measure);
            }
            let (plca, data) = (Plca::builder(state.weights.len()).build().ok()?, data());
            if let Err(e) = state.fold_in(
                &data,
                1,
                &FoldIn {
                    stop: short(FoldIn::default().stop),
                    ..FoldIn::default()
                },
            ) {
                one_line(&e);
            }
            go_on(&plca.on(&data).ok()?, &mut state);
            assert!(!good || state.check(&[2, 2]).is_ok(), "{state:?}");
            Some(())
        },
    },
    Kind {
        seed: || text(&(Given::Rows, plsa_state())),
        run: |input| {
            let (given, mut state) = read::<(Given, PlsaState<f64>)>(input)?;
            [&state.basis, &state.mixture].into_iter().for_each(whole);
            let good = state.check(&[2, 2], given).is_ok();
            if good {
                state.with_model(given, measure);
            }
            let plsa = Plsa::builder(state.basis.ncols())
                .given(given)
                .build()
                .ok()?;
            go_on(&plsa.on(&data()).ok()?, &mut state);
            assert!(!good || state.check(&[2, 2], given).is_ok(), "{state:?}");
            Some(())
        },
    },
    Kind {
        seed: || text(&(Update::Sequential, Missing::default(), nmf_state())),
        run: |input| {
            let (update, missing, mut state) = read::<(Update, Missing, NmfState<f64>)>(input)?;
            [&state.w, &state.h].into_iter().for_each(whole);
            let good = state.check(&[2, 2]).is_ok();
            if good {
                state.with_model(measure);
            }
            if let Err(e) = state.to_plca() {
                one_line(&e);
            }
            let nmf = Nmf::builder(state.w.ncols())
                .update(update)
                .missing(missing)
                .build();
            let data = data();
            go_on(&nmf.ok()?.on(&data).ok()?, &mut state);
            assert!(!good || state.check(&[2, 2]).is_ok(), "{state:?}");
            Some(())
        },
    },
    Kind {
        seed: || {
            let (nmf, data) = (Nmf::builder(1).build().expect("a good model"), data());
            let fast = Fast::new(nmf.on(&data).expect("good data")).expect("separable");
            let mut state = FastState::new(nmf_state());
            go_on(&fast, &mut state);
            text(&state)
        },
        run: |input| {
            let mut state = read::<FastState<f64, NmfState<f64>>>(input)?;
            let (nmf, data) = (Nmf::builder(state.model().w.ncols()).build().ok()?, data());
            go_on(&Fast::new(nmf.on(&data).ok()?).ok()?, &mut state);
            Some(())
        },
    },
    Kind {
        seed: || {
            let state = ShiftedState {
                weights: dvector![1.0],
                kernels: dmatrix![0.5; 0.5],
                impulses: dmatrix![0.25; 0.5; 0.25],
                iteration: 0,
            };
            text(&state)
        },
        run: |input| {
            let mut state = read::<ShiftedState<f64>>(input)?;
            [&state.kernels, &state.impulses]
                .into_iter()
                .for_each(whole);
            let good = state.check([2, 3]).is_ok();
            let shifted = Shifted::builder(state.weights.len(), vec![2])
                .build()
                .ok()?;
            let data = tensor(&[4], &[0.0, 1.0, 3.0, 2.0]);
            go_on(&shifted.on(&data).ok()?, &mut state);
            assert!(!good || state.check([2, 3]).is_ok(), "{state:?}");
            Some(())
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
            text(&(
                Cooling::default(),
                CooledState {
                    best: plca_state(),
                    perplexity: 3.5,
                    current: plca_state(),
                    improved: true,
                    ended: false,
                },
            ))
        },
        run: |input| {
            let (cooling, mut state) = read::<(Cooling, CooledState<PlcaState<f64>>)>(input)?;
            if let Err(e) = cooling.check() {
                one_line(&e);
            }
            let plca = Plca::builder(state.best.weights.len()).build().ok()?;
            let data = data();
            let em = || plca.on(&data).expect("good data");
            go_on(&CooledEm::new(em(), em(), em(), cooling).ok()?, &mut state);
            Some(())
        },
    },
    Kind {
        seed: || text(&(FoldIn::default(), Impossible::Drop, Solver::Fast)),
        run: |input| {
            let (how, _, _) = read::<(FoldIn, Impossible, Solver)>(input)?;
            let how = FoldIn {
                stop: short(how.stop),
                ..how
            };
            match plsa_state().fold_in(&data(), Given::Columns, &how) {
                Ok(explained) => assert!(explained.gap.iter().all(|gap| *gap >= 0.0)),
                Err(e) => one_line(&e),
            }
            Some(())
        },
    },
];
