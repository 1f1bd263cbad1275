//! Checkpoints, sealed whatever a mutation did, and what goes on from them.

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, Fast, FastState,
    before::{Nmf, NmfState},
};
use plca_io::{Array, ModelFile, checksum, read_checkpoint, read_model, write_checkpoint};
use plca_tensor::{DenseTensor, Order};
use serde_json::Value;

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
    Nmf::builder(1).build().expect("a good model")
}

fn seeds() -> Vec<Vec<u8>> {
    let (nmf, data) = (nmf(), data());
    let fast = Fast::new(nmf.on(&data).expect("good data")).expect("a separable model");
    let mut state = FastState::new(NmfState {
        w: DMatrix::from_element(2, 1, 1.0),
        h: DMatrix::from_element(1, 2, 1.5),
    });
    fast.step(&mut state, false).expect("a good start");
    let (model, blocks, numbers) = state.to_parts();
    let array = |m: &DMatrix<f64>| {
        let bytes: Vec<u8> = m.iter().flat_map(|x| x.to_le_bytes()).collect();
        npy::ordered(
            "<f8",
            true,
            &format!("({}, {})", m.nrows(), m.ncols()),
            &bytes,
        )
    };
    let metadata = serde_json::json!({ "iteration": 7, "numbers": numbers });
    let names: Vec<String> = (0..blocks.len())
        .map(|n| format!("point_{n}.npy"))
        .collect();
    let mut all = vec![("w.npy", array(&model.w)), ("h.npy", array(&model.h))];
    all.extend(
        names
            .iter()
            .map(String::as_str)
            .zip(blocks.iter().map(array)),
    );
    all.push(("model.json", metadata.to_string().into_bytes()));
    let mut seeds = model_npz::seeds();
    seeds.push(members::join(false, &all));
    seeds
}

/// A block of a state; `None` if it is no matrix.
fn matrix(array: &Array<f64>) -> Option<DMatrix<f64>> {
    match array.shape[..] {
        [rows, columns] => Some(DMatrix::from_row_slice(rows, columns, &array.values)),
        _ => None,
    }
}

/// Goes on from a state, if it has the blocks of one.
fn resume(file: &ModelFile) -> Option<()> {
    let block = |name: &str| file.arrays.get(name).and_then(matrix);
    let model = NmfState {
        w: block("w")?,
        h: block("h")?,
    };
    let points = (0..).map_while(|n| block(&format!("point_{n}"))).collect();
    let numbers = file.metadata["numbers"].as_array();
    let numbers: Vec<f64> = numbers
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    let mut state = FastState::from_parts(model, points, &numbers)?;
    let (nmf, data) = (nmf(), data());
    let fast = Fast::new(nmf.on(&data).ok()?).ok()?;
    for _ in 0..2 {
        if let Err(e) = fast.step(&mut state, true) {
            one_line(&e);
            break;
        }
        assert!(state.model().check(&[2, 2]).is_ok(), "{state:?}");
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
