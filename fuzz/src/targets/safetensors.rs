//! Model files in `.safetensors` form.

use plca_io::{Array, ModelFile, read_model, write_model};

use super::{model_npz, one_line};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "safetensors",
    asserts: "errors are one line; a model is written in either form and read again with the same bits",
    seeds,
    run,
};

fn seeds() -> Vec<Vec<u8>> {
    let mut model = ModelFile {
        metadata: serde_json::json!({ "model": "nmf-kl", "rank": 1 }),
        ..ModelFile::default()
    };
    model
        .arrays
        .insert("w".into(), Array::new(vec![40, 2], vec![0.1; 80]));
    model
        .arrays
        .insert("e".into(), Array::new(vec![0, 3], vec![]));
    let written = |single: bool| {
        scratch::written("seed.safetensors", |path| {
            write_model(path, &model, single).expect("a model is written");
        })
    };
    let header = br#"{"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"j":{"dtype":"I32","shape":[],"data_offsets":[8,12]}}  "#;
    let mut whole = (header.len() as u64).to_le_bytes().to_vec();
    whole.extend(header);
    whole.extend([7; 12]);
    vec![written(false), written(true), whole]
}

fn run(input: &[u8]) -> bool {
    match read_model(&scratch::file("input.safetensors", input)) {
        Ok(model) => {
            model_npz::again(&model);
            true
        }
        Err(e) => {
            one_line(&e);
            e.place() != "header" && !e.to_string().contains("not a .safetensors file")
        }
    }
}
