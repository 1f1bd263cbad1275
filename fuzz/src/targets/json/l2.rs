//! Models under squared error.

use nalgebra::{dmatrix, dvector};
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{
    Coefficients, ColumnNmf, ColumnNmfState, Mixture, Ntf, NtfState, NtfUpdate, Pntf, PntfInit,
    PntfState, SimplexQp, Start, simplex_qp,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{ASSERTS, Kind, go_on, one_line, read, run, seeds, text, whole};
use crate::Target;

pub(in crate::targets) const TARGET: Target = Target {
    name: "json_l2",
    asserts: ASSERTS,
    seeds: || seeds(KINDS),
    run: |input| run(KINDS, input),
};

fn data() -> DenseTensor<f64> {
    DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.5, 2.0], Order::RowMajor).expect("good data")
}

fn pntf_state() -> PntfState<f64> {
    PntfState {
        weights: dvector![0.5, 0.5],
        factors: vec![
            dmatrix![0.75, 0.5; 0.25, 0.5],
            dmatrix![0.5, 0.25; 0.5, 0.75],
        ],
        mass: 1.0,
    }
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || text(&(Start::Deflation, pntf_state())),
        run: |input| {
            let (start, mut state) = read::<(Start, PntfState<f64>)>(input)?;
            state.factors.iter().for_each(whole);
            let (pntf, data) = (Pntf::builder(state.weights.len()).start(start), data());
            let pntf = pntf.build().ok()?;
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            if let Err(e) = pntf.init(&data, &PntfInit::from(state.clone()), &mut rng) {
                one_line(&e);
            }
            if let Err(e) = state.explain(&data, 1) {
                one_line(&e);
            }
            go_on(&pntf.on(&data).ok()?, &mut state);
            Some(())
        },
    },
    Kind {
        seed: || {
            let factors = vec![dmatrix![2.0, 0.5; 0.0, 1.0], dmatrix![1.0, 1.0; 0.5, 0.0]];
            text(&(NtfUpdate::Hals, NtfState { factors }))
        },
        run: |input| {
            let (update, mut state) = read::<(NtfUpdate, NtfState<f64>)>(input)?;
            state.factors.iter().for_each(whole);
            let k = state.factors.first().map_or(0, |f| f.ncols());
            let (ntf, data) = (Ntf::builder(k).update(update).build().ok()?, data());
            if let Err(e) = state.explain(&data, 1) {
                one_line(&e);
            }
            go_on(&ntf.on(&data).ok()?, &mut state);
            Some(())
        },
    },
    Kind {
        seed: || {
            let PntfState { mut factors, .. } = pntf_state();
            let (v, u) = (factors.remove(1), factors.remove(0));
            text(&ColumnNmfState { u, v })
        },
        run: |input| {
            let mut state = read::<ColumnNmfState<f64>>(input)?;
            [&state.u, &state.v].into_iter().for_each(whole);
            let (nmf, data) = (ColumnNmf::builder(state.u.ncols()).build().ok()?, data());
            go_on(&nmf.on(&data).ok()?, &mut state);
            Some(())
        },
    },
    Kind {
        seed: || {
            let qp = simplex_qp(&dmatrix![2.0, 1.0; 1.0, 3.0], &[1.0, 2.0], None);
            let mixture = pntf_state().explain(&data(), 1).expect("good data");
            let factors = pntf_state().factors;
            let found = NtfState { factors }.explain(&data(), 1).expect("good data");
            text(&(qp.expect("a good programme"), mixture, found))
        },
        run: |input| {
            let (qp, mixture, found) = read::<(SimplexQp, Mixture, Coefficients)>(input)?;
            [&mixture.weights, &found.factor]
                .into_iter()
                .for_each(whole);
            // Any square matrix is a programme or is refused.
            match simplex_qp(&mixture.weights, &qp.weights, None) {
                Ok(qp) => assert!(qp.weights.iter().all(|x| *x >= 0.0)),
                Err(e) => one_line(&e),
            }
            Some(())
        },
    },
];
