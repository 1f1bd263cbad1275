//! Arrays and metadata of model files in `.npz` form.

use plca_io::{DataFile, ModelFile, read_data, read_model, write_model};

use super::{members, npy};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "model_npz",
    asserts: "errors are one line; a model is written in either form and read again with the same bits",
    seeds,
    run,
};

/// Whether two models are bit-identical.
pub(super) fn same(a: &ModelFile, b: &ModelFile) -> bool {
    let arrays = a.arrays.iter().zip(&b.arrays);
    a.metadata == b.metadata
        && a.arrays.len() == b.arrays.len()
        && arrays
            .into_iter()
            .all(|(a, b)| a.0 == b.0 && npy::same(a.1, b.1))
}

/// Writes a model in both forms and reads it again.
pub(super) fn again(model: &ModelFile) {
    for name in ["again.npz", "again.safetensors"] {
        let path = scratch::path(name);
        // Not every metadata and shape has a form of both.
        if write_model(&path, model, false).is_ok() {
            let read = read_model(&path).unwrap_or_else(|e| panic!("what was written: {e}"));
            assert!(same(model, &read), "{name}: {model:?} became {read:?}");
        }
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let value = |x: f64| x.to_le_bytes();
    let (w, h) = ([value(0.25), value(0.75)].concat(), value(2.0).to_vec());
    let metadata = br#"{"model":"nmf-kl","seed":1,"x":[0.1,null]}"#.to_vec();
    let w = npy::typed("<f8", "(2, 1)", &w);
    let fortran = npy::ordered("<i1", true, "(2, 2)", &[1, 2, 3, 4]);
    vec![
        members::join(false, &[("a.npy", w.clone())]),
        members::join(
            false,
            &[
                ("w.npy", w.clone()),
                ("h.npy", npy::typed("<f8", "(1, 1)", &h)),
                ("model.json", metadata),
            ],
        ),
        members::join(true, &[("w.npy", w), ("f.npy", fortran)]),
    ]
}

fn run(input: &[u8]) -> bool {
    let path = scratch::file("input.npz", &members::archive(input));
    match read_model(&path) {
        Ok(model) => {
            again(&model);
            if let Ok(DataFile::Dense(array)) = read_data::<f32>(&path, None) {
                assert_eq!(array.shape.iter().product::<usize>(), array.values.len());
            }
            true
        }
        Err(e) => members::beyond_header(&e),
    }
}
