//! The loop: rules, and where a run stands.

use nalgebra::{dmatrix, dvector};
use plca_em::{Shifted, ShiftedState};
use plca_fit::{
    Carried, Momentum, Parabolic, Plain, Progress, Squarem, Stop, StopReason, TracePoint, run_from,
};
use plca_tensor::{DenseTensor, Order};

use super::{ASSERTS, Kind, go_on, one_line, read, run, seeds, short, text};
use crate::Target;

pub(in crate::targets) const TARGET: Target = Target {
    name: "json_fit",
    asserts: ASSERTS,
    seeds: || seeds(KINDS),
    run: |input| run(KINDS, input),
};

fn data() -> DenseTensor<f64> {
    DenseTensor::new(vec![4], vec![0.0, 1.0, 3.0, 2.0], Order::RowMajor).expect("good data")
}

fn start() -> ShiftedState<f64> {
    ShiftedState {
        weights: dvector![1.0],
        kernels: dmatrix![0.5; 0.5],
        impulses: dmatrix![0.25; 0.5; 0.25],
        iteration: 0,
    }
}

fn shifted(components: usize) -> Option<Shifted<f64>> {
    Shifted::builder(components, vec![2]).build().ok()
}

/// Runs from a place in a run under a rule.
fn iterate(progress: Progress, stop: &Stop) {
    let (shifted, data) = (shifted(1).expect("a good model"), data());
    let em = shifted.on(&data).expect("good data");
    match run_from(&em, start(), progress, stop, ()) {
        Ok(outcome) => assert!(outcome.iterations >= progress.iteration),
        Err(e) => one_line(&e),
    }
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || text(&Stop::default()),
        run: |input| {
            let stop = read::<Stop>(input)?;
            match stop.check() {
                Ok(()) => iterate(Progress::default(), &short(stop)),
                Err(e) => one_line(&e),
            }
            Some(())
        },
    },
    Kind {
        seed: || {
            let checked = Some(TracePoint {
                iteration: 10,
                objective: -1.5,
            });
            text(&Progress {
                iteration: 12,
                checked,
                small_changes: 1,
                ended: Some(StopReason::Converged),
            })
        },
        run: |input| {
            let progress = read::<Progress>(input)?;
            let stop = Stop {
                max_iter: progress.iteration.saturating_add(3),
                check_every: 1,
                patience: usize::MAX,
                ..Stop::default()
            };
            iterate(progress, &stop);
            Some(())
        },
    },
    Kind {
        seed: || {
            let (shifted, data) = (shifted(1).expect("a good model"), data());
            let momentum = Momentum(shifted.on(&data).expect("good data"));
            let mut state = Carried::new(start());
            go_on(&momentum, &mut state);
            text(&state)
        },
        run: |input| {
            let state = read::<Carried<ShiftedState<f64>>>(input)?;
            let (shifted, data) = (shifted(state.inner().weights.len())?, data());
            let em = || shifted.on(&data).expect("good data");
            go_on(&Momentum(em()), &mut state.clone());
            go_on(&Parabolic(em()), &mut state.clone());
            go_on(&Plain(em()), &mut state.clone());
            go_on(&Squarem(em()), &mut state.into_inner());
            Some(())
        },
    },
];
