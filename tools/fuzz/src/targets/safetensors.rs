//! Model files in `.safetensors` form.

use plca_io::{Array, ModelFile, read_model, write_model};
use serde_json::json;

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
        metadata: json!({ "model": "nmf-kl", "rank": 1 }),
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

/// The same file with the header's right length; with another header, of one array of what follows, if this one cannot be read.
fn mended(input: &[u8]) -> Vec<u8> {
    let Some((length, rest)) = input.split_first_chunk() else {
        return input.to_vec();
    };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (header, data) = rest.split_at(length.min(rest.len()));
    let (mut header, mut data) = (header.to_vec(), data);
    if serde_json::from_slice::<serde_json::Value>(&header).is_err() {
        data = &data[..data.len() / 8 * 8];
        let (count, end) = (data.len() / 8, data.len());
        let array = json!({ "dtype": "F64", "shape": [count], "data_offsets": [0, end] });
        header = json!({ "w": array }).to_string().into_bytes();
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(data);
    bytes
}

/// Reads a file; whether it came past the header.
fn read(bytes: &[u8]) -> bool {
    match read_model(scratch::file("input.safetensors", bytes)) {
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

fn run(input: &[u8]) -> bool {
    let as_it_is = read(input);
    read(&mended(input)) || as_it_is
}
