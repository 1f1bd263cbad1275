//! Model files: named arrays and metadata, as `.npz` or `.safetensors`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::Value;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::atomic::write_atomically;
use crate::data::{Array, Element};
use crate::error::Fault;
use crate::{IoError, npy, zipped};

/// Longest metadata that are read.
const MAX_METADATA: u64 = 1 << 23;

/// Named arrays, in double precision once read, and metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFile {
    /// The arrays by name, in C order.
    pub arrays: BTreeMap<String, Array<f64>>,
    /// What the arrays are; `null` in a file without metadata.
    pub metadata: Value,
}

/// C order, whatever the file had.
fn row_major(array: Array<f64>) -> Array<f64> {
    if !array.fortran || array.shape.len() < 2 {
        return Array {
            fortran: false,
            ..array
        };
    }
    let (n, shape) = (array.values.len(), &array.shape);
    let mut strides = vec![1; shape.len()];
    for m in 1..shape.len() {
        strides[m] = strides[m - 1] * shape[m - 1];
    }
    let mut index = vec![0; shape.len()];
    let mut values = Vec::with_capacity(n);
    for _ in 0..n {
        values.push(
            array.values[index
                .iter()
                .zip(&strides)
                .map(|(i, s)| i * s)
                .sum::<usize>()],
        );
        for m in (0..shape.len()).rev() {
            index[m] = (index[m] + 1) % shape[m];
            if index[m] != 0 {
                break;
            }
        }
    }
    Array {
        shape: array.shape,
        values,
        fortran: false,
    }
}

fn is_safetensors(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("safetensors"))
}

/// Reads every array of a model file, or of any `.npz` or `.safetensors` of real numbers (then without metadata).
///
/// # Errors
///
/// [`IoError`] naming file, member and value.
pub fn read_model(path: &Path) -> Result<ModelFile, IoError> {
    let attempt = || -> Result<ModelFile, Fault> {
        if is_safetensors(path) {
            read_safetensors(path)
        } else {
            read_npz(path)
        }
    };
    attempt().map_err(|e| e.of(path))
}

fn read_npz(path: &Path) -> Result<ModelFile, Fault> {
    if !path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("npz"))
    {
        return Err(Fault::new(
            "unknown extension; models are .npz or .safetensors",
        ));
    }
    let mut archive = zipped::open(File::open(path)?)?;
    let mut model = ModelFile::default();
    for name in zipped::names(&archive)? {
        if name == "model.json" {
            let text = zipped::text(&mut archive, &name, MAX_METADATA)?;
            model.metadata = serde_json::from_str(&text).map_err(|e| Fault::at(&name, e))?;
        } else if let Some(array) = name.strip_suffix(".npy") {
            model.arrays.insert(
                array.to_string(),
                row_major(zipped::array(&mut archive, &name)?),
            );
        }
    }
    Ok(model)
}

fn read_safetensors(path: &Path) -> Result<ModelFile, Fault> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let fault =
        |e: safetensors::SafeTensorError| Fault::new(format!("not a .safetensors file: {e}"));
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(fault)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(fault)?;
    let mut model = ModelFile::default();
    if let Some(text) = header.metadata().as_ref().and_then(|m| m.get("model")) {
        model.metadata = serde_json::from_str(text).map_err(|e| Fault::at("__metadata__", e))?;
    }
    for (name, view) in tensors.tensors() {
        let values = match view.dtype() {
            Dtype::F64 => view
                .data()
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| f64::from_le_bytes(*b))
                .collect(),
            Dtype::F32 => view
                .data()
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f64::from(f32::from_le_bytes(*b)))
                .collect(),
            other => {
                return Err(Fault::at(
                    name,
                    format!("type {other:?} is not a real number"),
                ));
            }
        };
        model.arrays.insert(
            name,
            Array {
                shape: view.shape().to_vec(),
                values,
                fortran: false,
            },
        );
    }
    Ok(model)
}

/// Writes a model file by extension, arrays in `f32` if `single`. The same contents give the same bytes.
///
/// # Errors
///
/// [`IoError`] naming the file; nothing is left or changed by a failure.
pub fn write_model(path: &Path, model: &ModelFile, single: bool) -> Result<(), IoError> {
    if is_safetensors(path) {
        let bytes = safetensors_bytes(model, single).map_err(|e| e.of(path))?;
        return write_atomically(path, |w| w.write_all(&bytes));
    }
    if !path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("npz"))
    {
        return Err(IoError::new(
            path,
            "unknown extension; models are .npz or .safetensors",
        ));
    }
    write_atomically(path, |w| write_npz(w, model, single))
}

fn write_npz<W: Write + Seek>(writer: W, model: &ModelFile, single: bool) -> std::io::Result<()> {
    let mut archive = ZipWriter::new(writer);
    // Stored, and with the format's earliest date: equal models are equal files.
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(true);
    let options = options.last_modified_time(zip::DateTime::default());
    for (name, array) in &model.arrays {
        archive
            .start_file(format!("{name}.npy"), options)
            .map_err(std::io::Error::other)?;
        if single {
            npy::write_array(&narrow(array), &mut archive)?;
        } else {
            npy::write_array(array, &mut archive)?;
        }
    }
    if !model.metadata.is_null() {
        archive
            .start_file("model.json", options)
            .map_err(std::io::Error::other)?;
        archive.write_all(model.metadata.to_string().as_bytes())?;
    }
    archive.finish().map_err(std::io::Error::other)?.flush()
}

fn narrow(array: &Array<f64>) -> Array<f32> {
    let values = array.values.iter().map(|&x| x as f32).collect();
    Array {
        shape: array.shape.clone(),
        values,
        fortran: array.fortran,
    }
}

fn safetensors_bytes(model: &ModelFile, single: bool) -> Result<Vec<u8>, Fault> {
    let mut bytes: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, array) in &model.arrays {
        let mut b = Vec::new();
        array.values.iter().for_each(|&x| {
            if single {
                (x as f32).write_le(&mut b)
            } else {
                x.write_le(&mut b)
            }
        });
        bytes.push((name.clone(), b));
    }
    let dtype = if single { Dtype::F32 } else { Dtype::F64 };
    let mut views = BTreeMap::new();
    for ((name, b), array) in bytes.iter().zip(model.arrays.values()) {
        views.insert(
            name.clone(),
            TensorView::new(dtype, array.shape.clone(), b).map_err(|e| Fault::at(name, e))?,
        );
    }
    let metadata = (!model.metadata.is_null())
        .then(|| [("model".to_string(), model.metadata.to_string())].into());
    safetensors::serialize(views, metadata).map_err(Fault::new)
}

/// Writes one array as `.npy`.
///
/// # Errors
///
/// [`IoError`] naming the file; nothing is left or changed by a failure.
pub fn write_npy<T: Element>(path: &Path, array: &Array<T>) -> Result<(), IoError> {
    let mut bytes = Cursor::new(Vec::new());
    npy::write_array(array, &mut bytes).map_err(|e| IoError::new(path, e))?;
    write_atomically(path, |w| w.write_all(bytes.get_ref()))
}
