//! Models under squared error.

use nalgebra::{DMatrix, dmatrix, dvector};
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{
    Checkpoint, ColumnNmf, ColumnNmfState, Explained, FitError, Init, MixtureState, Model, Ntf,
    NtfState, NtfUpdate, Pntf, PntfState, Reconstruct, Settings, SimplexSolution, State, Transform,
    simplex_qp,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{ASSERTS, Kind, one_line, read, resume, run, seeds, text, whole};
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

fn factors() -> Vec<DMatrix<f64>> {
    vec![
        dmatrix![0.75, 0.5; 0.25, 0.5],
        dmatrix![0.5, 0.25; 0.5, 0.75],
    ]
}

fn pntf_state() -> PntfState<f64> {
    PntfState::new(dvector![0.5, 0.5], factors()).expect("a good state")
}

fn ntf_state() -> NtfState<f64> {
    let factors = vec![dmatrix![2.0, 0.5; 0.0, 1.0], dmatrix![1.0, 1.0; 0.5, 0.0]];
    NtfState::new(factors).expect("a good state")
}

/// A state that was read has cells, explains data, and is a start of every solver.
fn use_state<M: Model<f64, State: Reconstruct>, E: State<Scalar = f64>>(
    model: Result<M, FitError>,
    state: &M::State,
    explained: Result<Explained<E>, FitError>,
) -> Option<()> {
    state.parameters().matrices().iter().for_each(whole);
    if state.shape() == [2, 2] {
        // Factors without constraint have products that overflow.
        let cell = state.cell(&[1, 0]);
        assert!(cell.is_nan() || cell >= 0.0, "{cell}");
    }
    match explained {
        Ok(found) => assert!(found.gap.iter().all(|gap| *gap >= 0.0)),
        Err(e) => one_line(&e),
    }
    let model = model.map_err(|e| one_line(&e)).ok()?;
    // A state may lack what a run remembers of its data: as a start it is none the worse.
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let start = model.init(&data(), Init::from(state), &mut rng);
    let start = start.map_err(|e| one_line(&e)).ok()?;
    let from = Checkpoint::new(start.parameters().clone());
    resume(Ok(model), &data(), &from)
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || text(&pntf_state()),
        run: |input| {
            let state = read::<PntfState<f64>>(input)?;
            let pntf = Pntf::new(state.weights().len()).checked();
            use_state(
                pntf,
                &state,
                state.transform(&data(), &Transform::default()),
            )
        },
    },
    Kind {
        seed: || text(&(NtfUpdate::Hals, ntf_state())),
        run: |input| {
            let (update, state) = read::<(NtfUpdate, NtfState<f64>)>(input)?;
            let ntf = Ntf::new(state.components()).update(update).checked();
            use_state(ntf, &state, state.transform(&data(), &Transform::default()))
        },
    },
    Kind {
        seed: || {
            let [u, v] = [0, 1].map(|j| factors().swap_remove(j));
            text(&ColumnNmfState::new(u, v).expect("a good state"))
        },
        run: |input| {
            let state = read::<ColumnNmfState<f64>>(input)?;
            let nmf = ColumnNmf::new(state.components()).checked();
            use_state(nmf, &state, state.transform(&data(), &Transform::default()))
        },
    },
    Kind {
        seed: || {
            let qp = simplex_qp(&dmatrix![2.0, 1.0; 1.0, 3.0], &[1.0, 2.0], None);
            let found = pntf_state().transform(&data(), &Transform::default());
            let mixture = found.expect("good data").fit.into_state();
            text(&(qp.expect("a good programme"), mixture))
        },
        run: |input| {
            let (qp, mixture) = read::<(SimplexSolution, MixtureState<f64>)>(input)?;
            mixture.parameters().matrices().iter().for_each(whole);
            if mixture.shape() == [2, 2] {
                assert!(mixture.cell(&[1, 0]).is_finite());
            }
            // Any square matrix is a programme or is refused.
            match simplex_qp(mixture.mixture(), &qp.weights, None) {
                Ok(qp) => assert!(qp.weights.iter().all(|x| *x >= 0.0)),
                Err(e) => one_line(&e),
            }
            Some(())
        },
    },
];
