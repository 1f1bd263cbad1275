//! Checkpoints, sealed whatever a mutation did, and what goes on from them.

use nalgebra::DMatrix;
use plca_em::{Nmf, NmfState};
use plca_fit::{Checkpoint, Model, Solver, State, Stop};
use plca_io::{Array, ModelFile, checksum, read_checkpoint, read_model, write_checkpoint};
use plca_tensor::{DenseTensor, Order};

use super::{members, model_npz, npy, one_line};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "checkpoint",
    asserts: "errors are one line; a sealed state comes back with the same bits; a run goes on from it or refuses it",
    seeds,
    run,
};

fn data() -> DenseTensor<f64> {
    DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor).expect("good data")
}

fn nmf() -> Nmf {
    Nmf::new(1)
}

fn seeds() -> Vec<Vec<u8>> {
    let (nmf, data) = (nmf(), data());
    let (w, h) = (
        DMatrix::from_element(2, 1, 1.0),
        DMatrix::from_element(1, 2, 1.5),
    );
    let start = NmfState::new(w, h)
        .expect("a good state")
        .parameters()
        .clone();
    let run = nmf.on(&data).expect("good data").solver(Solver::Fast);
    let run = run.stop(Stop::default().max_iter(1));
    let fit = run.resume(Checkpoint::new(start)).expect("a good start");
    let mut at = fit.checkpoint().clone();
    let array = |m: &DMatrix<f64>| {
        let bytes: Vec<u8> = m.iter().flat_map(|x| x.to_le_bytes()).collect();
        npy::ordered(
            "<f8",
            true,
            &format!("({}, {})", m.nrows(), m.ncols()),
            &bytes,
        )
    };
    let arrays = at.take_arrays().into_iter();
    let arrays: Vec<_> = arrays
        .map(|(name, m)| (format!("{name}.npy"), array(&m)))
        .collect();
    let metadata = serde_json::json!({ "checkpoint": at }).to_string();
    let mut all: Vec<_> = arrays
        .iter()
        .map(|(name, m)| (&**name, m.clone()))
        .collect();
    all.push(("model.json", metadata.into_bytes()));
    let mut seeds = model_npz::seeds();
    seeds.push(members::join(false, &all));
    seeds
}

/// A block of a state; `None` if it is not a matrix.
fn matrix(array: &Array<f64>) -> Option<DMatrix<f64>> {
    match array.shape[..] {
        [rows, columns] => Some(DMatrix::from_row_slice(rows, columns, &array.values)),
        _ => None,
    }
}

/// Goes on from a state, if it has the blocks of one.
fn resume(file: &ModelFile) -> Option<()> {
    let small = file.metadata.get("checkpoint")?.clone();
    let mut at: Checkpoint<f64> = serde_json::from_value(small).ok()?;
    let find = |name: &str| file.arrays.get(name).and_then(matrix);
    if let Err(e) = at.put_arrays(find) {
        one_line(&e);
        return None;
    }
    let (nmf, data) = (nmf(), data());
    let run = nmf.on(&data).ok()?.solver(Solver::Fast);
    let stop = Stop::default().max_iter(at.iteration().saturating_add(2));
    if let Err(e) = run.stop(stop).resume(at) {
        one_line(&e);
    }
    Some(())
}

fn run(input: &[u8]) -> bool {
    let archive = members::archive(input);
    let path = scratch::file("input.npz", &archive);
    let state = match read_model(&path) {
        Ok(state) => state,
        Err(e) => return members::beyond_header(&e),
    };
    if let Err(e) = read_checkpoint(&path) {
        one_line(&e);
    }
    // A block of the metadata's name cannot be in the same archive.
    if let Err(e) = write_checkpoint(&path, &state) {
        one_line(&e);
        return true;
    }
    match read_checkpoint(&path) {
        Ok(read) => {
            assert!(model_npz::same(&state, &read), "{state:?} became {read:?}");
            assert_eq!(checksum(&state), checksum(&read));
            resume(&read);
        }
        Err(e) => panic!("what was sealed is refused: {e}"),
    }
    true
}
