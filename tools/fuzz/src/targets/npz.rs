//! `.npz` archives, byte by byte: the directory, the members, their compression.

use plca_io::{
    Array, ModelFile, read_checkpoint, read_data, read_model, write_checkpoint, write_model,
};

use super::{members, npy, one_line};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "npz",
    asserts: "errors are one line",
    seeds,
    run,
};

fn seeds() -> Vec<Vec<u8>> {
    let array = npy::typed("<f8", "(1, 2)", &[0; 16]);
    let mut model = ModelFile {
        metadata: serde_json::json!({ "model": "nmf-kl", "rank": 1 }),
        ..ModelFile::default()
    };
    model
        .arrays
        .insert("w".into(), Array::new(vec![2, 1], vec![0.1, 0.9]));
    model
        .arrays
        .insert("h".into(), Array::new(vec![1], vec![1.0]));
    vec![
        members::archive(&members::join(false, &[("a.npy", array.clone())])),
        members::archive(&members::join(true, &[("a.npy", array)])),
        scratch::written("seed.npz", |path| {
            write_model(path, &model, false).expect("a model is written");
        }),
        scratch::written("seed.npz", |path| {
            write_checkpoint(path, &model).expect("a checkpoint is written");
        }),
    ]
}

fn run(input: &[u8]) -> bool {
    let path = scratch::file("input.npz", input);
    let errors = [
        read_model(&path).err(),
        read_data::<f64>(&path, None).err(),
        read_checkpoint(&path).err(),
    ];
    errors.iter().flatten().for_each(one_line);
    errors[0]
        .as_ref()
        .is_none_or(|e| !e.to_string().contains("not a .npz archive"))
}
