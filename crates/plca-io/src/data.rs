//! Data and masks, by extension.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use plca_tensor::Real;
use sha2::{Digest, Sha256};

use crate::error::Fault;
use crate::{IoError, npy, text, zipped};

/// A scalar that files can be read into and written from.
pub trait Element: Real {
    /// Type code in `.npy` headers.
    const DESCR: &'static str;
    /// Appends the little-endian bytes.
    fn write_le(self, out: &mut Vec<u8>);
}

impl Element for f32 {
    const DESCR: &'static str = "<f4";
    fn write_le(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
}

impl Element for f64 {
    const DESCR: &'static str = "<f8";
    fn write_le(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
}

/// A dense array as a file holds it, unchecked.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// Size of each dimension; empty for a scalar.
    pub shape: Vec<usize>,
    /// The values in memory order.
    pub values: Vec<T>,
    /// Fortran order: the first index runs fastest.
    pub fortran: bool,
}

impl<T: Element> Array<T> {
    /// An array in C order.
    ///
    /// # Panics
    ///
    /// If the number of values is not the product of the shape.
    pub fn new(shape: Vec<usize>, values: Vec<T>) -> Self {
        assert_eq!(
            shape.iter().product::<usize>(),
            values.len(),
            "one value per cell"
        );
        Self {
            shape,
            values,
            fortran: false,
        }
    }
}

/// What a data file holds. Values are as stored: the tensor crate decides what it accepts.
#[derive(Clone, Debug)]
pub enum DataFile<T> {
    /// A dense array.
    Dense(Array<T>),
    /// Stored entries.
    Sparse(plca_tensor::Coordinates<T>),
}

/// Which cells were observed.
#[derive(Clone, Debug)]
pub enum Mask {
    /// One flag per cell, non-zero where observed.
    Dense(Array<f32>),
    /// The stored cells are the hidden ones; values do not matter.
    Hidden(plca_tensor::Coordinates<f32>),
}

const KNOWN: &str = ".npy, .npz, .mtx, .mtx.gz, .tns, .tns.gz, .csv, .csv.gz";

/// The format's extension, without a trailing `.gz`, and whether that was there.
fn extension(path: &Path) -> (String, bool) {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let (name, gz) = match name.strip_suffix(".gz") {
        Some(inner) => (inner.to_string(), true),
        None => (name, false),
    };
    (
        name.rsplit_once('.')
            .map_or(String::new(), |(_, e)| e.to_string()),
        gz,
    )
}

/// Reads data by extension. `shape` overrides the size of a `.tns` tensor, which is otherwise the largest index of each mode.
///
/// # Errors
///
/// [`IoError`] naming file, place and value.
pub fn read_data<T: Element>(path: &Path, shape: Option<&[usize]>) -> Result<DataFile<T>, IoError> {
    let (extension, gz) = extension(path);
    let attempt = || -> Result<DataFile<T>, Fault> {
        let file = File::open(path)?;
        let reader: Box<dyn Read> = if gz {
            Box::new(MultiGzDecoder::new(BufReader::new(file)))
        } else {
            Box::new(file)
        };
        let mut reader = BufReader::with_capacity(1 << 18, reader);
        match (extension.as_str(), gz) {
            ("npy", false) => Ok(DataFile::Dense(npy::read_array(&mut reader)?)),
            ("npz", false) => zipped::read_data(File::open(path)?),
            ("mtx", _) => text::read_matrix_market(&mut reader),
            ("tns", _) => text::read_frostt(&mut reader, shape).map(DataFile::Sparse),
            ("csv", _) => text::read_csv(&mut reader).map(DataFile::Dense),
            _ => Err(Fault::new(format!("unknown extension; known are {KNOWN}"))),
        }
    };
    let data = attempt().map_err(|e| e.of(path))?;
    if let DataFile::Dense(Array { shape, .. }) = &data {
        if shape.is_empty() {
            return Err(IoError::new(
                path,
                "an array of order 0 has no cells to explain",
            ));
        }
    }
    if let (Some(want), DataFile::Dense(Array { shape: got, .. })) = (shape, &data)
        && want != got
    {
        return Err(IoError::new(
            path,
            format!("has shape {got:?}, not {want:?}"),
        ));
    }
    Ok(data)
}

/// Reads a mask: a dense `.npy` or `.npz` array (0 = hidden), or a coordinate file whose stored cells are the hidden ones.
///
/// # Errors
///
/// [`IoError`] naming file, place and value.
pub fn read_mask(path: &Path, shape: &[usize]) -> Result<Mask, IoError> {
    let sparse_shape = (extension(path).0 == "tns").then_some(shape);
    match read_data::<f32>(path, sparse_shape)? {
        DataFile::Dense(array) => {
            if array.shape != shape {
                return Err(IoError::new(
                    path,
                    format!("the mask has shape {:?}, the data {shape:?}", array.shape),
                ));
            }
            if let Some(i) = array.values.iter().position(|x| !x.is_finite()) {
                return Err(IoError::at(
                    path,
                    format!("entry {i}"),
                    format!("{} in a mask", array.values[i]),
                ));
            }
            Ok(Mask::Dense(array))
        }
        DataFile::Sparse(cells) => {
            if cells.shape != shape {
                return Err(IoError::new(
                    path,
                    format!("the mask has shape {:?}, the data {shape:?}", cells.shape),
                ));
            }
            Ok(Mask::Hidden(cells))
        }
    }
}

/// Hexadecimal SHA-256 of a file's bytes.
///
/// # Errors
///
/// [`IoError`] if the file cannot be read.
pub fn sha256_file(path: &Path) -> Result<String, IoError> {
    let attempt = || -> std::io::Result<String> {
        let mut reader = File::open(path)?;
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            match reader.read(&mut buffer)? {
                0 => break,
                n => hash.update(&buffer[..n]),
            }
        }
        Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
    };
    attempt().map_err(|e| IoError::new(path, e))
}
