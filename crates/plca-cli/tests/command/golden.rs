//! References: cases and arrays.

use serde_json::Value;

use crate::Folder;

pub(crate) fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

pub(crate) fn array(v: &Value) -> (Vec<usize>, Vec<f64>) {
    let shape = v["shape"].as_array().unwrap();
    let data = v["data"].as_array().unwrap();
    (
        shape.iter().map(|n| n.as_u64().unwrap() as usize).collect(),
        data.iter().map(|x| x.as_f64().unwrap()).collect(),
    )
}

pub(crate) fn put(folder: &Folder, name: &str, v: &Value) {
    let (shape, data) = array(v);
    folder.npy(name, &shape, &data);
}
