//! Model files: named arrays and metadata, as `.npz` or `.safetensors`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::atomic::{Pending, write_atomically};
use crate::data::{self, Array, Element, check_order, hexadecimal};
use crate::error::Fault;
use crate::latch::Latch;
use crate::npy::Kind;
use crate::{IoError, npy, zipped};

/// Longest metadata, and longest header of a `.safetensors` file, that are written and read.
const MAX_METADATA: u64 = 1 << 26;
const UNKNOWN: &str = "unknown extension; models are .npz or .safetensors";
const CHECKPOINT_VERSION: u64 = 1;

/// Named arrays, in double precision and in C order once read, and metadata.
///
/// ```
/// use plca_io::{Array, ModelFile, read_model, write_model};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.npz");
/// let mut model = ModelFile::default();
/// model.arrays.insert("w".into(), Array { shape: vec![2, 2], values: vec![1.0, 3.0, 2.0, 4.0], fortran: true });
/// write_model(&path, &model, false)?;
/// let back = read_model(&path)?;
/// assert_eq!(back.arrays["w"], Array::new(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]));
/// assert!(back.metadata.is_null());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFile {
    /// The arrays by name, in C order.
    pub arrays: BTreeMap<String, Array<f64>>,
    /// What the arrays are; `null` in a file without metadata.
    pub metadata: Value,
}

/// C order, whatever the file had.
fn row_major(array: Array<f64>) -> Array<f64> {
    // What does not fit its shape is refused where that is looked at.
    if !array.fortran || array.values.is_empty() || array.check().is_err() {
        return Array {
            fortran: false,
            ..array
        };
    }
    // Where the cells are, in C order.
    let (mut places, mut stride) = (vec![0], 1);
    for &size in &array.shape {
        let next = |place: usize| (0..size).map(move |i| place + i * stride);
        places = places.into_iter().flat_map(next).collect();
        stride *= size;
    }
    let values = places.into_iter().map(|place| array.values[place]);
    let values = values.collect();
    Array {
        shape: array.shape,
        values,
        fortran: false,
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case(wanted))
}

/// SHA-256, in hexadecimal, of the metadata and of the name, shape and every bit of every array.
///
/// # Examples
///
/// ```
/// use plca_io::{Array, ModelFile, checksum};
/// let mut model = ModelFile::default();
/// model.arrays.insert("weights".into(), Array::new(vec![2], vec![0.0, 1.0]));
/// let before = checksum(&model);
/// model.arrays.insert("weights".into(), Array::new(vec![2], vec![-0.0, 1.0]));
/// assert_ne!(checksum(&model), before);
/// ```
pub fn checksum(model: &ModelFile) -> String {
    let mut hash = Sha256::new();
    // Every part is preceded by its length: no two models run together into the same bytes.
    let part = |hash: &mut Sha256, bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(&mut hash, model.metadata.to_string().as_bytes());
    let mut bytes = Vec::new();
    for (name, array) in &model.arrays {
        part(&mut hash, name.as_bytes());
        let form = format!("{:?} {}", array.shape, array.fortran);
        part(&mut hash, form.as_bytes());
        hash.update((8 * array.values.len() as u64).to_le_bytes());
        for values in array.values.chunks(1 << 13) {
            bytes.clear();
            values.iter().for_each(|x| x.write_le(&mut bytes));
            hash.update(&bytes);
        }
    }
    hexadecimal(hash)
}

/// Writes a checkpoint: a model file in `.npz` form, whatever its extension, that [`read_checkpoint`] gives back bit for
/// bit or refuses.
///
/// The file of a run of the command; a `Checkpoint` of the library is written by the feature `serde` of `plca-fit`, in any format.
/// Finite numbers in the metadata keep every bit; JSON has no others.
///
/// # Errors
///
/// [`IoError`] naming the file; nothing is left or changed by a failure.
///
/// # Examples
///
/// ```
/// use plca_io::{Array, ModelFile, read_checkpoint, write_checkpoint};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("run.checkpoint");
/// let mut state = ModelFile { metadata: serde_json::json!({ "iteration": 7 }), ..Default::default() };
/// state.arrays.insert("w".into(), Array::new(vec![1, 2], vec![0.1, 5e-324]));
/// write_checkpoint(&path, &state)?;
/// assert_eq!(read_checkpoint(&path)?, state);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_checkpoint(path: &Path, state: &ModelFile) -> Result<(), IoError> {
    // What is read is in C order: so is what the checksum is of.
    let mut state = Cow::Borrowed(state);
    if state.arrays.values().any(|array| array.fortran) {
        let arrays = &mut state.to_mut().arrays;
        for array in arrays.values_mut() {
            *array = row_major(array.clone());
        }
    }
    let metadata = json!({
        "checkpoint": CHECKPOINT_VERSION,
        "sha256": checksum(&state),
        // As text: nothing is lost between writing and reading.
        "state": state.metadata.to_string(),
    });
    let metadata = text(&state.arrays, &metadata).map_err(|e| e.of(path))?;
    write_atomically(path, |w| write_npz(w, &state.arrays, &metadata, false))
}

/// The text of metadata, if they and the arrays beside them are what readers take.
fn text(arrays: &BTreeMap<String, Array<f64>>, metadata: &Value) -> Result<String, Fault> {
    for (name, array) in arrays {
        array.check().map_err(|e| e.within(format!("`{name}`")))?;
    }
    let text = match metadata {
        Value::Null => String::new(),
        metadata => metadata.to_string(),
    };
    limit(text.len()).map_err(|e| e.within("metadata"))?;
    Ok(text)
}

/// Refuses more bytes of metadata than are read.
fn limit(bytes: usize) -> Result<(), Fault> {
    if bytes as u64 <= MAX_METADATA {
        return Ok(());
    }
    let what = format!("{bytes} bytes, more than the {MAX_METADATA} that are read");
    Err(Fault::new(what))
}

/// Reads what [`write_checkpoint`] wrote and verifies its checksum.
///
/// # Errors
///
/// [`IoError`] for a file that is not a checkpoint, is of an unknown version or was damaged.
///
/// # Examples
///
/// ```
/// use plca_io::{ModelFile, read_checkpoint, write_checkpoint, write_model};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("state.npz");
/// write_model(&path, &ModelFile::default(), false)?;
/// let error = read_checkpoint(&path).unwrap_err().to_string();
/// assert!(error.ends_with("state.npz: is not a checkpoint: expected a file that --checkpoint of a run wrote"));
/// write_checkpoint(&path, &ModelFile::default())?;
/// assert_eq!(read_checkpoint(&path)?, ModelFile::default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_checkpoint(path: &Path) -> Result<ModelFile, IoError> {
    let attempt = || -> Result<ModelFile, Fault> {
        let sealed = read_npz(path, None)?;
        let (version, sum, state) = (
            sealed.metadata["checkpoint"].as_u64(),
            sealed.metadata["sha256"].as_str(),
            sealed.metadata["state"].as_str(),
        );
        let (Some(version), Some(sum), Some(state)) = (version, sum, state) else {
            return Err(Fault::new(
                "is not a checkpoint: expected a file that --checkpoint of a run wrote",
            ));
        };
        if version != CHECKPOINT_VERSION {
            return Err(Fault::new(format!(
                "checkpoint version {version}, this program reads {CHECKPOINT_VERSION}"
            )));
        }
        let state = ModelFile {
            arrays: sealed.arrays,
            metadata: serde_json::from_str(state).map_err(|e| Fault::at("model.json", e))?,
        };
        let found = checksum(&state);
        if found != sum {
            return Err(Fault::new(format!("checksum {found}, expected {sum}")));
        }
        Ok(state)
    };
    attempt().map_err(|e| e.of(path))
}

/// Reads every array of a model file, or of any `.npz` or `.safetensors` of real numbers (then without metadata).
///
/// # Errors
///
/// [`IoError`] naming file, member and value.
///
/// # Examples
///
/// ```
/// use plca_io::{Array, ModelFile, read_model, write_model};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.safetensors");
/// let mut model = ModelFile { metadata: serde_json::json!({ "rank": 1 }), ..Default::default() };
/// model.arrays.insert("w".into(), Array::new(vec![1, 2], vec![0.1, 0.9]));
/// write_model(&path, &model, false)?;
/// assert_eq!(read_model(&path)?, model);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_model(path: impl AsRef<Path>) -> Result<ModelFile, IoError> {
    read_model_with(path, None)
}

/// As [`read_model`], with a limit of the memory that a packed file may take, in bytes, in place of 64 MiB and 50 times the file.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.npz");
/// plca_io::write_model(&path, &plca_io::ModelFile::default(), false)?;
/// assert!(plca_io::read_model_with(&path, Some(1 << 30)).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`read_model`].
pub fn read_model_with(
    path: impl AsRef<Path>,
    unpack_limit: Option<u64>,
) -> Result<ModelFile, IoError> {
    model_of(path.as_ref(), unpack_limit)
}

fn model_of(path: &Path, unpack_limit: Option<u64>) -> Result<ModelFile, IoError> {
    let attempt = || -> Result<ModelFile, Fault> {
        if has_extension(path, "safetensors") {
            read_safetensors(path)
        } else if has_extension(path, "npz") {
            read_npz(path, unpack_limit)
        } else {
            Err(Fault::new(UNKNOWN))
        }
    };
    attempt().map_err(|e| e.of(path))
}

fn metadata(archive: &mut zipped::Archive) -> Result<Value, Fault> {
    let text = zipped::text(archive, zipped::METADATA, MAX_METADATA)?;
    serde_json::from_str(&text).map_err(|e| Fault::at(zipped::METADATA, e))
}

/// The metadata of an `.npz` file, of a model or of data, without its arrays; null where it has none, as all other files. `unpack_limit` is as in
/// [`ReadOptions`](crate::ReadOptions).
///
/// # Errors
///
/// [`IoError`] naming the file, for an `.npz` that cannot be read.
///
/// # Examples
///
/// ```
/// use plca_io::{ModelFile, read_metadata, write_model};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.npz");
/// write_model(&path, &ModelFile { metadata: serde_json::json!({ "rank": 1 }), ..Default::default() }, false)?;
/// assert_eq!(read_metadata(&path, None)?["rank"], 1);
/// assert!(read_metadata(&folder.path().join("v.csv"), None)?.is_null());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_metadata(path: impl AsRef<Path>, unpack_limit: Option<u64>) -> Result<Value, IoError> {
    let path = path.as_ref();
    let attempt = || -> Result<Value, Fault> {
        let mut archive = zipped::open(path, unpack_limit)?;
        match zipped::names(&archive)?
            .iter()
            .any(|name| name == zipped::METADATA)
        {
            true => metadata(&mut archive),
            false => Ok(Value::Null),
        }
    };
    match has_extension(path, "npz") {
        true => attempt().map_err(|e| e.of(path)),
        false => Ok(Value::Null),
    }
}

fn read_npz(path: &Path, unpack_limit: Option<u64>) -> Result<ModelFile, Fault> {
    let mut archive = zipped::open(path, unpack_limit)?;
    zipped::expect_all(&mut archive)?;
    let mut model = ModelFile::default();
    for name in zipped::names(&archive)? {
        if name == zipped::METADATA {
            model.metadata = metadata(&mut archive)?;
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
    let mut file = BufReader::new(data::open(path)?);
    let supply = file.get_ref().metadata()?.len();
    let mut size = [0; 8];
    file.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    if size > MAX_METADATA {
        let what = format!("claims {size} bytes, more than {MAX_METADATA}");
        return Err(Fault::at("header", what));
    }
    let mut header = Vec::new();
    file.by_ref().take(size).read_to_end(&mut header)?;
    let fault = |e: serde_json::Error| Fault::new(format!("not a .safetensors file: {e}"));
    let header: Metadata = serde_json::from_slice(&header).map_err(fault)?;
    let announced = (header.data_len() as u64).checked_add(8 + size);
    if announced != Some(supply) {
        let what = format!(
            "not a .safetensors file: {supply} bytes, but the header announces 8, {size} and {}",
            header.data_len()
        );
        return Err(Fault::new(what));
    }
    let mut model = ModelFile::default();
    if let Some(text) = header.metadata().as_ref().and_then(|m| m.get("model")) {
        model.metadata = serde_json::from_str(text).map_err(|e| Fault::at("__metadata__", e))?;
    }
    // One after the other, as they lie in the file.
    let tensors = header.tensors();
    for name in header.offset_keys() {
        let info = tensors[&name];
        let array = read_tensor(&mut file, info).map_err(|e| e.within(&name))?;
        model.arrays.insert(name, array);
    }
    Ok(model)
}

/// The values of one tensor of a `.safetensors` file, as many as its header, which was checked, says.
fn read_tensor(file: &mut impl Read, info: &TensorInfo) -> Result<Array<f64>, Fault> {
    let (kind, size) = match info.dtype {
        Dtype::F64 => (Kind::Float, 8),
        Dtype::F32 => (Kind::Float, 4),
        Dtype::I64 => (Kind::Signed, 8),
        Dtype::I32 => (Kind::Signed, 4),
        other => {
            let what = format!("type {other:?} is not a real number");
            return Err(Fault::new(what));
        }
    };
    check_order(info.shape.len())?;
    let header = npy::Header {
        kind,
        size,
        big_endian: false,
        fortran: false,
        shape: info.shape.clone(),
    };
    npy::read_values_of(file, header)
}

/// Writes a model file by extension, `.npz` or `.safetensors`, arrays in `f32` if `single`. The same contents give the same bytes.
///
/// # Errors
///
/// [`IoError`] naming the file; nothing is left or changed by a failure.
///
/// # Examples
///
/// ```
/// use plca_io::{Array, ModelFile, read_model, write_model};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.npz");
/// let mut model = ModelFile::default();
/// model.arrays.insert("w".into(), Array::new(vec![1], vec![0.1]));
/// write_model(&path, &model, true)?;
/// assert_eq!(read_model(&path)?.arrays["w"].values, [f64::from(0.1f32)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_model(path: impl AsRef<Path>, model: &ModelFile, single: bool) -> Result<(), IoError> {
    pending_model(path.as_ref(), model, single)?.keep()
}

/// As [`write_model`], but the file is not there yet: [`Pending::keep`] gives it its name.
///
/// # Errors
///
/// As [`write_model`].
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.npz");
/// let pending = plca_io::pending_model(&path, &plca_io::ModelFile::default(), false)?;
/// assert!(!path.exists());
/// pending.keep()?;
/// assert!(path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pending_model(path: &Path, model: &ModelFile, single: bool) -> Result<Pending, IoError> {
    let (safetensors, npz) = (
        has_extension(path, "safetensors"),
        has_extension(path, "npz"),
    );
    if !safetensors && !npz {
        return Err(IoError::new(path, UNKNOWN));
    }
    let metadata = text(&model.arrays, &model.metadata).map_err(|e| e.of(path))?;
    if npz {
        let mut pending = Pending::new(path)?;
        pending.write(|w| write_npz(w, &model.arrays, &metadata, single))?;
        return Ok(pending);
    }
    let header = safetensors_header(&model.arrays, metadata, single);
    let header = header.map_err(|e| e.of(path))?;
    let mut pending = Pending::new(path)?;
    pending.write(|w| {
        w.write_all(&header)?;
        for (name, array) in &model.arrays {
            // The format has no other order.
            let array = match array.fortran {
                true => &row_major(array.clone()),
                false => array,
            };
            match is_single(name, single) {
                true => npy::write_values::<f32>(&array.values, w)?,
                false => npy::write_values::<f64>(&array.values, w)?,
            }
        }
        Ok(())
    })?;
    Ok(pending)
}

/// Whether an array of a file in single precision is: what a state remembers besides its blocks is not.
fn is_single(name: &str, single: bool) -> bool {
    single && !ModelFile::is_fact(name)
}

pub(crate) fn write_npz<W: Write + Seek>(
    writer: W,
    arrays: &BTreeMap<String, Array<f64>>,
    metadata: &str,
    single: bool,
) -> std::io::Result<()> {
    let mut latch = Latch::new(writer);
    fill(&mut latch, arrays, metadata, single)?;
    latch.finish()
}

fn fill<W: Write + Seek>(
    writer: W,
    arrays: &BTreeMap<String, Array<f64>>,
    metadata: &str,
    single: bool,
) -> std::io::Result<()> {
    let mut archive = ZipWriter::new(writer);
    // Stored, and with the format's earliest date: equal models are equal files.
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(true);
    let options = options.last_modified_time(zip::DateTime::default());
    for (name, array) in arrays {
        archive
            .start_file(format!("{name}.npy"), options)
            .map_err(std::io::Error::other)?;
        match is_single(name, single) {
            true => npy::write_array::<f32>(array, &mut archive)?,
            false => npy::write_array::<f64>(array, &mut archive)?,
        }
    }
    if !metadata.is_empty() {
        archive
            .start_file("model.json", options)
            .map_err(std::io::Error::other)?;
        archive.write_all(metadata.as_bytes())?;
    }
    archive.finish().map(drop).map_err(std::io::Error::other)
}

/// The header of a `.safetensors` file: its length, and JSON up to a multiple of 8 bytes.
fn safetensors_header(
    arrays: &BTreeMap<String, Array<f64>>,
    metadata: String,
    single: bool,
) -> Result<Vec<u8>, Fault> {
    let mut end = 0;
    let tensors = arrays.iter().map(|(name, array)| {
        let (dtype, size) = match is_single(name, single) {
            true => (Dtype::F32, 4),
            false => (Dtype::F64, 8),
        };
        let begin = end;
        end += size * array.values.len();
        let info = TensorInfo {
            dtype,
            shape: array.shape.clone(),
            data_offsets: (begin, end),
        };
        (name.clone(), info)
    });
    let text = (!metadata.is_empty()).then(|| [("model".to_string(), metadata)].into());
    let header = Metadata::new(text, tensors.collect()).map_err(Fault::new)?;
    let mut header = serde_json::to_vec(&header).map_err(Fault::new)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    limit(header.len()).map_err(|e| e.within("header"))?;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    Ok(bytes)
}

/// Writes one array as `.npy`, format version 1, in the precision and the order that it has.
///
/// # Errors
///
/// [`IoError`] naming the file; nothing is left or changed by a failure.
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.npy");
/// plca_io::write_npy(&path, &plca_io::Array::new(vec![2], vec![1.0f32, 2.0]))?;
/// let bytes = std::fs::read(&path)?;
/// assert!(bytes.starts_with(b"\x93NUMPY") && bytes.ends_with(&2f32.to_le_bytes()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_npy<T: Element>(path: &Path, array: &Array<T>) -> Result<(), IoError> {
    array.check().map_err(|e| e.of(path))?;
    write_atomically(path, |w| npy::write_array::<T>(array, w))
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;

    use super::*;

    /// The bytes that the format's own library writes.
    #[test]
    fn safetensors_are_those_of_the_library() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        for metadata in [Value::Null, json!({ "k": 1, "name": "\u{e4}\"" })] {
            let mut model = ModelFile {
                metadata: metadata.clone(),
                ..Default::default()
            };
            for (name, shape) in [("w", vec![2, 3]), ("b", vec![0, 3]), ("\u{e9}", vec![])] {
                let n = shape.iter().product::<usize>();
                let values = (0..n).map(|i| i as f64 / 3.0).collect();
                model.arrays.insert(name.into(), Array::new(shape, values));
            }
            let bytes: Vec<Vec<u8>> = (model.arrays.values())
                .map(|a| a.values.iter().flat_map(|x| x.to_le_bytes()).collect())
                .collect();
            let views = model.arrays.iter().zip(&bytes).map(|((name, a), b)| {
                let view = TensorView::new(Dtype::F64, a.shape.clone(), b);
                (name.clone(), view.unwrap())
            });
            let text =
                (!metadata.is_null()).then(|| [("model".into(), metadata.to_string())].into());
            write_model(&path, &model, false).unwrap();
            let expected = safetensors::serialize(views, text).unwrap();
            assert!(std::fs::read(&path).unwrap() == expected);
        }
    }
}
