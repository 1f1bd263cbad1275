//! Data and masks, by extension.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use plca_tensor::{
    Coordinates, Data, DataError, DenseTensor, MAX_ORDER, Order, Real, SparseTensor,
};
use sha2::{Digest, Sha256};

use crate::allowance::Allowance;
use crate::error::Fault;
use crate::lists::{self, List};
use crate::npy::Supply;
use crate::room::room;
use crate::text::Kinds;
use crate::{IoError, entries, mat, npy, text, zipped};

/// A scalar that files can be read into and written from: `f32` or `f64`, little endian.
///
/// ```
/// use plca_io::Element;
/// assert_eq!((f32::DESCR, f64::DESCR), ("<f4", "<f8"));
/// ```
pub trait Element: Real {
    /// Type code in `.npy` headers.
    const DESCR: &'static str;
    /// Appends the little-endian bytes.
    ///
    /// ```
    /// use plca_io::Element;
    /// let mut bytes = vec![7];
    /// 1.0f32.write_le(&mut bytes);
    /// assert_eq!(bytes, [7, 0, 0, 0x80, 0x3f]);
    /// ```
    fn write_le(self, out: &mut Vec<u8>);
    /// From as many little-endian bytes as the scalar has; 0 from fewer.
    ///
    /// ```
    /// use plca_io::Element;
    /// assert_eq!(f32::read_le(&[0, 0, 0x80, 0x3f]), 1.0);
    /// ```
    fn read_le(bytes: &[u8]) -> Self;
}

impl Element for f32 {
    const DESCR: &'static str = "<f4";
    fn write_le(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
    fn read_le(bytes: &[u8]) -> Self {
        bytes
            .first_chunk()
            .map_or(0.0, |&bytes| Self::from_le_bytes(bytes))
    }
}

impl Element for f64 {
    const DESCR: &'static str = "<f8";
    fn write_le(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
    fn read_le(bytes: &[u8]) -> Self {
        bytes
            .first_chunk()
            .map_or(0.0, |&bytes| Self::from_le_bytes(bytes))
    }
}

/// A dense array as a file holds it, unchecked.
///
/// ```
/// use plca_io::{Array, DataFile, read_data, write_npy};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.npy");
/// let x = Array { shape: vec![2, 2], values: vec![1.0, 3.0, 2.0, 4.0], fortran: true };        // rows (1, 2) and (3, 4)
/// write_npy(&path, &x)?;
/// let DataFile::Dense(back) = read_data::<f64>(&path, None)? else { panic!("dense") };
/// assert_eq!(back, x);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// let x = plca_io::Array::new(vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!((x.values[3 * 1 + 2], x.fortran), (6.0, false));         // entry [1, 2]: the last index runs fastest
    /// ```
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

impl<T> Array<T> {
    /// The array with its dimensions in reverse order: of a matrix the transpose. No value is moved.
    ///
    /// ```
    /// let x = plca_io::Array::new(vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).transposed();
    /// assert_eq!((&*x.shape, x.index(4)), (&[3, 2][..], vec![1, 1]));
    /// ```
    #[must_use]
    pub fn transposed(mut self) -> Self {
        self.shape.reverse();
        self.fortran = !self.fortran;
        self
    }

    /// The index of a value by its place in memory.
    ///
    /// ```
    /// let x = plca_io::Array::new(vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!(x.index(4), [1, 1]);
    /// ```
    pub fn index(&self, mut at: usize) -> Vec<usize> {
        let mut index = vec![0; self.shape.len()];
        let mut take = |m: usize| {
            index[m] = at % self.shape[m];
            at /= self.shape[m];
        };
        if self.fortran {
            (0..self.shape.len()).for_each(&mut take);
        } else {
            (0..self.shape.len()).rev().for_each(&mut take);
        }
        index
    }

    /// Refuses what no reader takes.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        check_order(self.shape.len())?;
        let cells = (self.shape.iter()).try_fold(1usize, |n, &m| n.checked_mul(m));
        if cells == Some(self.values.len()) {
            return Ok(());
        }
        Err(Fault::new(format!(
            "shape {:?} does not fit {} values",
            self.shape,
            self.values.len()
        )))
    }
}

/// What a data file holds. Values are as stored: the tensor crate decides what it accepts.
///
/// ```
/// use plca_io::{DataFile, read_data};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.mtx");
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 5\n")?;
/// match read_data::<f64>(&path, None)? {
///     DataFile::Sparse(v) => assert_eq!((v.shape, v.indices, v.values), (vec![2, 3], vec![0, 1], vec![5.0])),
///     DataFile::Dense(_) => panic!("sparse"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum DataFile<T> {
    /// A dense array.
    Dense(Array<T>),
    /// Stored entries.
    Sparse(Coordinates<T>),
}

impl<T> DataFile<T> {
    fn shape(&self) -> &[usize] {
        match self {
            Self::Dense(array) => &array.shape,
            Self::Sparse(entries) => &entries.shape,
        }
    }

    /// The data with their dimensions in reverse order: of a matrix the transpose. No value of a dense array is moved.
    ///
    /// ```
    /// use plca_io::{Array, DataFile};
    /// let v = DataFile::Dense(Array::new(vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    /// let v = v.transposed().into_data()?;
    /// let mut first_row = Vec::new();
    /// v.visit(&mut |index, value| if index[0] == 0 { first_row.push(value) })?;
    /// assert_eq!((v.shape(), first_row), (&[3, 2][..], vec![1.0, 4.0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn transposed(self) -> Self {
        match self {
            Self::Dense(array) => Self::Dense(array.transposed()),
            Self::Sparse(entries) => Self::Sparse(reversed(entries)),
        }
    }
}

/// Entries with their dimensions in reverse order.
fn reversed<T>(mut entries: Coordinates<T>) -> Coordinates<T> {
    let order = entries.shape.len().max(1);
    for index in entries.indices.chunks_exact_mut(order) {
        index.reverse();
    }
    entries.shape.reverse();
    entries
}

impl<T: Element> DataFile<T> {
    /// The data with hidden cells: those that are NaN, and those that a sparse file does not list.
    ///
    /// # Errors
    ///
    /// [`DataError`] with the first value that is infinite.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("v.csv");
    /// std::fs::write(&path, "2,,1\n3,4,0\n")?;
    /// let data = plca_io::read_data::<f64>(&path, None)?.into_masked()?;
    /// assert!(!data.is_complete());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_masked(self) -> Result<Box<dyn Data<T>>, DataError> {
        self.observed(true)
    }

    /// The data as models take them, every cell observed; models take `&*data`. Cells that a sparse file does not list are 0.
    ///
    /// # Errors
    ///
    /// [`DataError`] with the first value that is not finite.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("v.csv");
    /// std::fs::write(&path, "2,0,1\n3,4,0\n")?;
    /// let data = plca_io::read_data::<f64>(&path, None)?.into_data()?;
    /// assert_eq!((data.shape(), data.total()), (&[2, 3][..], 10.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_data(self) -> Result<Box<dyn Data<T>>, DataError> {
        self.observed(false)
    }

    /// The data, whose NaN or cells that are not stored may be `hidden`.
    fn observed(self, hidden: bool) -> Result<Box<dyn Data<T>>, DataError> {
        Ok(match self {
            Self::Dense(array) => {
                let order = match array.fortran {
                    true => Order::ColumnMajor,
                    false => Order::RowMajor,
                };
                match hidden {
                    true => Box::new(DenseTensor::masked(array.shape, array.values, order)?),
                    false => Box::new(DenseTensor::new(array.shape, array.values, order)?),
                }
            }
            Self::Sparse(entries) => match hidden {
                true => Box::new(SparseTensor::stored_only(entries)?),
                false => Box::new(SparseTensor::new(entries)?),
            },
        })
    }
}

/// Which cells were observed.
///
/// ```
/// use plca_io::{Array, Mask, read_mask, write_npy};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("seen.npy");
/// write_npy(&path, &Array::new(vec![2, 2], vec![1.0, 0.0, 1.0, 1.0]))?;
/// let Mask::Dense(seen) = read_mask(&path, &[2, 2], None)? else { panic!("dense") };
/// assert_eq!(seen.values, [1.0, 0.0, 1.0, 1.0]);                      // [0, 1] is hidden
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum Mask {
    /// One flag per cell, non-zero where observed.
    Dense(Array<f32>),
    /// The stored cells are the hidden ones; values do not matter.
    Hidden(Coordinates<f32>),
}

impl Mask {
    /// The mask of data with their dimensions in reverse order, as [`DataFile::transposed`] makes them.
    ///
    /// ```
    /// use plca_io::{Array, Mask};
    /// let Mask::Dense(seen) = Mask::Dense(Array::new(vec![1, 3], vec![1.0, 0.0, 1.0])).transposed() else { panic!("dense") };
    /// assert_eq!(seen.shape, [3, 1]);
    /// ```
    #[must_use]
    pub fn transposed(self) -> Self {
        match self {
            Self::Dense(array) => Self::Dense(array.transposed()),
            Self::Hidden(cells) => Self::Hidden(reversed(cells)),
        }
    }
}

const KNOWN: &str = ".npy, .npz, .mat; .mtx, .mm, .tns, .csv, .tsv, .svmlight, .libsvm, .ldac and docword.*.txt, also with .gz";

/// What a build may read besides.
const MORE: &str = if cfg!(feature = "parquet") {
    "; .parquet"
} else {
    ""
};

/// Endings of text files.
const TEXT: [&str; 8] = [
    "mtx", "tns", "csv", "tsv", "svmlight", "libsvm", "ldac", "docword",
];

/// The format's extension, without a trailing `.gz`, and whether that was there. That of `docword.*.txt` is `docword`.
pub(crate) fn extension(path: &Path) -> (String, bool) {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let (name, gz) = match name.strip_suffix(".gz") {
        Some(inner) => (inner.to_string(), true),
        None => (name, false),
    };
    let extension = match name.rsplit_once('.') {
        Some((stem, "txt")) if stem.starts_with("docword") => "docword",
        // What gensim calls Matrix Market files.
        Some((_, "mm")) => "mtx",
        Some((_, extension)) => extension,
        None => "",
    };
    (extension.to_string(), gz)
}

/// Where the numbers of the features of an `.svmlight` or `.libsvm` file begin, of which programs write either: at 0 if a feature has the number 0, otherwise at 1.
/// `None` for other formats. A file may lack the first feature: then [`ReadOptions::first_index`] must say it.
///
/// # Errors
///
/// [`IoError`] for a file that cannot be read.
///
/// # Examples
///
/// ```
/// use plca_io::{ReadOptions, first_index, read_data_with};
/// # let folder = tempfile::tempdir()?;
/// let (old, new) = (folder.path().join("old.svmlight"), folder.path().join("new.svmlight"));
/// std::fs::write(&old, "1 0:5 2:1\n")?;
/// std::fs::write(&new, "1 1:3 2:4\n")?;
/// assert_eq!((first_index(&old, None)?, first_index(&new, None)?), (Some(0), Some(1)));
/// let options = ReadOptions { first_index: first_index(&old, None)?, ..ReadOptions::default() };
/// let new = read_data_with::<f64>(&new, &options)?.into_data()?;
/// assert_eq!(new.shape(), [1, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn first_index(
    path: impl AsRef<Path>,
    unpack_limit: Option<u64>,
) -> Result<Option<u32>, IoError> {
    let path = path.as_ref();
    let (extension, gz) = extension(path);
    if !["svmlight", "libsvm"].contains(&extension.as_str()) {
        return Ok(None);
    }
    let attempt = || {
        let allowance = Allowance::shared(path, unpack_limit)?;
        lists::first_index(&mut unpacked(open(path)?, gz, &allowance))
    };
    attempt().map(Some).map_err(|e: Fault| e.of(path))
}

/// Whether the format of a file lists samples, such as documents, which are then rows: `.svmlight`, `.libsvm`, `.ldac` and `docword.*.txt`, also with `.gz`.
///
/// ```
/// use std::path::Path;
/// let [rows, any] = ["news.ldac.gz", "news.mtx"].map(|name| plca_io::lists_samples(Path::new(name)));
/// assert!(rows && !any);
/// ```
pub fn lists_samples(path: &Path) -> bool {
    ["svmlight", "libsvm", "ldac", "docword"].contains(&extension(path).0.as_str())
}

/// Whether the format of a file says its sizes, so that no others can be asked for: all but `.csv`, `.tsv`, `.tns`, `.svmlight`, `.libsvm` and `.ldac`.
///
/// ```
/// use std::path::Path;
/// let [says, leaves] = ["docword.nips.txt.gz", "news.ldac"].map(|name| plca_io::tells_sizes(Path::new(name)));
/// assert!(says && !leaves);
/// ```
pub fn tells_sizes(path: &Path) -> bool {
    let open = ["csv", "tsv", "tns", "svmlight", "libsvm", "ldac"];
    !open.contains(&extension(path).0.as_str())
}

/// Whether a file is a table, `.csv` or `.tsv`, also with `.gz`.
///
/// ```
/// use std::path::Path;
/// let [table, array] = ["v.tsv.gz", "v.npy"].map(|name| plca_io::is_table(Path::new(name)));
/// assert!(table && !array);
/// ```
pub fn is_table(path: &Path) -> bool {
    ["csv", "tsv"].contains(&&*extension(path).0)
}

/// Whether the first line of a table names its columns.
///
/// ```
/// use plca_io::{DataFile, Header, ReadOptions, Table, read_data_with};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "2010,2011\n3,4\n")?;
/// let rows = |header| {
///     let options = ReadOptions { table: Table { header, ..Table::default() }, ..ReadOptions::default() };
///     let DataFile::Dense(v) = read_data_with::<f64>(&path, &options)? else { panic!("dense") };
///     Ok::<_, plca_io::IoError>(v.shape[0])
/// };
/// assert_eq!((rows(Header::Auto)?, rows(Header::Yes)?), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Header {
    /// If none of its cells is a number. With [`Labels::FirstColumn`], which has a name in every row: also if its first cell is empty, or if more cells
    /// are words than numbers.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It holds data.
    No,
}

/// Which cells of a table are names.
///
/// ```
/// use plca_io::{DataFile, Labels, ReadOptions, Table, read_data_with};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "word,document,count\nsea,b,2\nsea,a,1\nsun,a,4\n")?;
/// let table = Table { labels: Labels::Entries, ..Table::default() };
/// let options = ReadOptions { table, ..ReadOptions::default() };
/// let DataFile::Sparse(v) = read_data_with::<f64>(&path, &options)? else { panic!("sparse") };
/// assert_eq!(v.shape, [2, 2]);                                // sea and sun, a and b
/// assert_eq!((v.indices, v.values), (vec![0, 1, 0, 0, 1, 0], vec![2.0, 1.0, 4.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Labels {
    /// None.
    #[default]
    None,
    /// The first of every line names its row.
    FirstColumn,
    /// All but the last of every line, which is an entry of sparse data: the names of its indices, one for each dimension, and its value. Indices are in the
    /// order of their names, which are compared as whole numbers where all of a dimension are such.
    Entries,
}

/// How a `.csv` or `.tsv` file is read: cells that may be quoted, an empty one for NaN. Between tabs a quote is text where it does not both begin and end its cell.
///
/// ```
/// use plca_io::{DataFile, Labels, ReadOptions, Table, read_data_with};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "gene;one;two\n\"a;b\";1;2\n")?;
/// let table = Table { delimiter: Some(b';'), labels: Labels::FirstColumn, ..Table::default() };
/// let options = ReadOptions { table, ..ReadOptions::default() };
/// let DataFile::Dense(v) = read_data_with::<f64>(&path, &options)? else { panic!("dense") };
/// assert_eq!((v.shape, v.values), (vec![1, 2], vec![1.0, 2.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Whether the first line names the columns.
    pub header: Header,
    /// The byte of ASCII between cells; without it that of a first line `sep=;`, as spreadsheets write it, or a comma, in `.tsv` files a tab.
    pub delimiter: Option<u8>,
    /// Which cells are names.
    pub labels: Labels,
}

/// What [`read_data_with`] expects and accepts.
///
/// ```
/// use plca_io::{DataFile, ReadOptions, read_data_with};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "a,b\n1,\n3,4\n")?;
/// let options = ReadOptions { allow_nan: true, ..ReadOptions::default() };
/// let DataFile::Dense(v) = read_data_with::<f64>(&path, &options)? else { panic!("dense") };
/// assert!(v.values[1].is_nan() && v.values[3] == 4.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The size of every mode; without it a `.tns` tensor has the largest index of each mode as its size. Data of any
    /// other shape are refused. Without it, so are sparse data whose modes together have more than 2^24 indices and 64 for
    /// every entry.
    pub shape: Option<Vec<usize>>,
    /// NaN passes through from text, and so does a cell of a table that is empty or says `NA`, `N/A`, `null`, `none` or `-`; otherwise it is an error naming the line.
    pub allow_nan: bool,
    /// Negative values pass through from text; otherwise they are an error naming the line.
    pub allow_negative: bool,
    /// Infinities, and what is one in this precision, pass through from text; otherwise they are an error naming the line.
    pub allow_infinite: bool,
    /// How `.csv` and `.tsv` files are read.
    pub table: Table,
    /// Which array of an `.npz` or a `.mat` file is read; without a name it must be the only one.
    pub array: Option<String>,
    /// The number of the first feature of an `.svmlight` or `.libsvm` file; without it [`first_index`] of the file.
    pub first_index: Option<u32>,
    /// Bytes of memory that an `.npz`, a `.mat`, a `.parquet` or a `.gz` may take; without it 64 MiB and 50 times the file. More is refused before
    /// it is taken, with [`IoError::needs`].
    pub unpack_limit: Option<u64>,
}

/// Reads data by extension. `shape` overrides the size of a `.tns` tensor, which is otherwise the largest index of each
/// mode; data of any other shape are refused.
///
/// From text, negative values and NaN pass through, except that NaN in a sparse file is refused; so are infinities. See
/// [`read_data_with`].
///
/// # Errors
///
/// [`IoError`] naming file, place and value.
///
/// # Examples
///
/// ```
/// use plca_io::{DataFile, read_data};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.tns");
/// std::fs::write(&path, "1 1 3\n2 3 0.5\n")?;
/// let DataFile::Sparse(v) = read_data::<f64>(&path, None)? else { panic!() };
/// assert_eq!((v.shape, v.indices), (vec![2, 3], vec![0, 0, 1, 2]));
///
/// std::fs::write(&path, "1 1 3\n2 0 0.5\n")?;
/// let e = read_data::<f64>(&path, None).unwrap_err();
/// assert!(e.to_string().ends_with("v.tns: line 2: index 0 in mode 1 is below 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_data<T: Element>(
    path: impl AsRef<Path>,
    shape: Option<&[usize]>,
) -> Result<DataFile<T>, IoError> {
    let accept = Kinds {
        nan_dense: true,
        nan_sparse: false,
        negative: true,
        infinite: false,
    };
    let options = ReadOptions {
        shape: shape.map(<[usize]>::to_vec),
        ..ReadOptions::default()
    };
    read(path.as_ref(), accept, &options)
}

/// Reads data by extension, refusing in text formats, by line, the values that `options` do not allow.
///
/// Values of `.npy`, `.npz` and `.mat` pass through: there the index of an entry is its
/// place, and the tensor types name it.
///
/// # Errors
///
/// [`IoError`] naming file, place and value.
///
/// # Examples
///
/// ```
/// use plca_io::{ReadOptions, read_data_with};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "1,2\n-3,4\n")?;
/// let e = read_data_with::<f64>(&path, &ReadOptions::default()).unwrap_err();
/// assert!(e.to_string().ends_with("v.csv: line 2: column 1: value -3 is negative; numbers >= 0 are needed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_data_with<T: Element>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<DataFile<T>, IoError> {
    read(path.as_ref(), accept(options), options)
}

/// What `options` let through.
pub(crate) fn accept(options: &ReadOptions) -> Kinds {
    Kinds {
        nan_dense: options.allow_nan,
        nan_sparse: options.allow_nan,
        negative: options.allow_negative,
        infinite: options.allow_infinite,
    }
}

/// Opens a file to be read. Anything else, such as a named pipe, could keep the command waiting forever and gives its bytes only once.
///
/// # Errors
///
/// [`IoError`] for a folder, for what is not a regular file, and as [`File::open`].
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let error = plca_io::open_file(folder.path()).unwrap_err();
/// assert!(error.to_string().ends_with(": is a folder; a file is needed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_file(path: &Path) -> Result<File, IoError> {
    open(path).map_err(|e| IoError::system(path, e))
}

pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    let other = std::io::Error::other;
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => File::open(path),
        (_, true) => Err(other("is a folder; a file is needed")),
        _ => Err(other("is not a regular file")),
    }
}

/// Refuses more modes than a tensor has.
pub(crate) fn check_order(order: usize) -> Result<(), Fault> {
    if order <= MAX_ORDER {
        return Ok(());
    }
    let what = format!("{order} modes, at most {MAX_ORDER} are read");
    Err(Fault::new(what))
}

/// Refuses to look for data without modes.
pub(crate) fn askable(shape: Option<&[usize]>) -> Result<(), Fault> {
    match shape {
        Some([]) => Err(Fault::new("no data have the shape []")),
        _ => Ok(()),
    }
}

/// A reader of the contents of a file, which may be compressed.
pub(crate) fn unpacked(
    file: File,
    gz: bool,
    allowance: &Rc<Allowance>,
) -> BufReader<Box<dyn Read>> {
    let reader: Box<dyn Read> = if gz {
        Box::new(allowance.clone().unpacked(file))
    } else {
        Box::new(file)
    };
    BufReader::with_capacity(1 << 18, reader)
}

#[cfg(feature = "parquet")]
use crate::long::read as read_long;

#[cfg(not(feature = "parquet"))]
fn read_long<T>(_: &Path, _: Option<&[usize]>, _: &Allowance) -> Result<Coordinates<T>, Fault> {
    Err(Fault::new(format!(
        "`.parquet` is not one of {KNOWN}: a build with the feature `parquet` reads it"
    )))
}

/// Binary files, and those of them whose arrays have names.
const BINARY: [&str; 4] = ["npy", "npz", "mat", "parquet"];
const NAMED: &[&str] = &["npz", "mat"];

fn read<T: Element>(
    path: &Path,
    kinds: Kinds,
    options: &ReadOptions,
) -> Result<DataFile<T>, IoError> {
    let (extension, gz) = extension(path);
    let (shape, array) = (options.shape.as_deref(), options.array.as_deref());
    let table = &options.table;
    let attempt = || -> Result<DataFile<T>, Fault> {
        askable(shape)?;
        let allowance = Allowance::shared(path, options.unpack_limit)?;
        let accept = kinds.within(&allowance);
        let text = TEXT.contains(&extension.as_str());
        if !text && (gz || !BINARY.contains(&extension.as_str())) {
            let what = format!(
                "unknown extension; known are {KNOWN}{MORE}; a table of numbers is renamed to end in .csv or .tsv, documents of lda-c in .ldac"
            );
            return Err(Fault::new(what));
        }
        if let (Some(array), false) = (array, NAMED.contains(&extension.as_str())) {
            return Err(Fault::new(format!(
                "has no array `{array}`: only those of .npz and .mat files have names"
            )));
        }
        if *table != Table::default() && !is_table(path) {
            let what =
                "has no header, delimiter or labels of its own: only .csv and .tsv files have them";
            return Err(Fault::new(what));
        }
        if options.first_index.is_some() && !["svmlight", "libsvm"].contains(&&*extension) {
            let what = "has no first index: only .svmlight and .libsvm files have one";
            return Err(Fault::new(what));
        }
        match extension.as_str() {
            "npz" if array.is_some() || !zipped::is_sparse(path)? => {
                zipped::dense(path, array, options.unpack_limit).map(DataFile::Dense)
            }
            "mat" => {
                let variable = mat::find(path, array)?;
                match variable.is_sparse() {
                    false => variable.dense(&allowance).map(DataFile::Dense),
                    true => entries::read_all(path, array, shape, accept),
                }
            }
            "parquet" => read_long(path, shape, &allowance).map(DataFile::Sparse),
            "npz" | "mtx" | "tns" | "docword" => entries::read_all(path, None, shape, accept),
            "svmlight" | "libsvm" | "ldac" => {
                let list = match extension.as_str() {
                    "ldac" => List::LdaC,
                    _ => List::Svmlight,
                };
                let mut reader = unpacked(open(path)?, gz, &allowance);
                lists::read(&mut reader, list, shape, options.first_index, accept)
                    .map(DataFile::Sparse)
            }
            "npy" => {
                let file = open(path)?;
                let supply = Supply {
                    bound: file.metadata()?.len(),
                    stored: true,
                };
                let mut reader = unpacked(file, false, &allowance);
                npy::read_array(&mut reader, supply, &allowance).map(DataFile::Dense)
            }
            _ => {
                let usual = usual_delimiter(&extension);
                let mut reader = unpacked(open(path)?, gz, &allowance);
                match table.labels {
                    Labels::Entries => text::read_entries(&mut reader, table, usual, accept)
                        .map(|(entries, _)| DataFile::Sparse(entries)),
                    _ => text::read_table(&mut reader, table, usual, accept).map(DataFile::Dense),
                }
            }
        }
    };
    let data = attempt().map_err(|e| e.of(path))?;
    let got = data.shape();
    if got.is_empty() {
        return Err(IoError::new(path, "an array of order 0 has no cells"));
    }
    match (shape, &data) {
        (Some(want), _) if !is_of(got, want) => {
            let what = format!("has shape {got:?}, not {want:?}");
            Err(IoError::new(path, what))
        }
        (None, DataFile::Sparse(entries)) => {
            let checked = plausible(got, entries.values.len());
            checked.map_err(|e| e.of(path)).map(|()| data)
        }
        _ => Ok(data),
    }
}

/// Whether data have the sizes that are wanted, of which 0 is any.
fn is_of(got: &[usize], want: &[usize]) -> bool {
    let same = |(got, want): (&usize, &usize)| *want == 0 || want == got;
    got.len() == want.len() && got.iter().zip(want).all(same)
}

/// The byte between cells of a table that says no other.
pub(crate) fn usual_delimiter(extension: &str) -> u8 {
    if extension == "tsv" { b'\t' } else { b',' }
}

/// A reader of the text of a file.
pub(crate) fn open_unpacked(
    path: &Path,
    allowance: &Rc<Allowance>,
) -> Result<BufReader<Box<dyn Read>>, Fault> {
    Ok(unpacked(open(path)?, extension(path).1, allowance))
}

/// Indices that any file may have, and more of them for every entry: memory is proportional to the sizes of the modes, and one wrong
/// index could ask for all there is.
const FREE_INDICES: usize = 1 << 24;
const INDICES_PER_ENTRY: usize = 64;

/// Refuses modes that are longer than that many entries can mean.
pub(crate) fn plausible(shape: &[usize], entries: usize) -> Result<(), Fault> {
    let indices = (shape.iter()).fold(0usize, |sum, &n| sum.saturating_add(n));
    if indices <= FREE_INDICES.saturating_add(INDICES_PER_ENTRY.saturating_mul(entries)) {
        return Ok(());
    }
    Err(Fault::new(format!(
        "has shape {shape:?} with {entries} entries; give the shape explicitly if this is intended"
    )))
}

/// What is held of every index of data in a store: a count, a part, a marginal.
type PerIndex = (u32, u32, f64);

/// Refuses shapes whose indices alone do not fit into memory: running out of it later would end the process without a word.
pub(crate) fn affordable(shape: &[usize]) -> Result<(), Fault> {
    let indices = (shape.iter()).fold(0usize, |sum, &n| sum.saturating_add(n));
    match room::<PerIndex>(&[indices]) {
        Ok(_) => Ok(()),
        Err(e) => Err(Fault::new(format!("data of shape {shape:?}: {e}"))),
    }
}

/// Reads a mask: a dense `.npy` or `.npz` array of flags or whole numbers (0 = hidden), or a coordinate file whose stored
/// cells are the hidden ones, whatever their values. `unpack_limit` is that of [`ReadOptions`].
///
/// # Errors
///
/// [`IoError`] naming file, place and value; a mask of another shape than the data; a number that is not whole.
///
/// # Examples
///
/// ```
/// use plca_io::{Mask, read_mask};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("hidden.tns");
/// std::fs::write(&path, "1 2 1\n")?;
/// let Mask::Hidden(cells) = read_mask(&path, &[2, 3], None)? else { panic!("a list of cells") };
/// assert_eq!((cells.shape, cells.indices), (vec![2, 3], vec![0, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_mask(path: &Path, shape: &[usize], unpack_limit: Option<u64>) -> Result<Mask, IoError> {
    let options = ReadOptions {
        shape: (extension(path).0 == "tns").then(|| shape.to_vec()),
        unpack_limit,
        ..ReadOptions::default()
    };
    let accept = Kinds {
        nan_dense: false,
        nan_sparse: true,
        negative: true,
        infinite: true,
    };
    let data = read::<f32>(path, accept, &options)?;
    let got = data.shape();
    if got != shape {
        return Err(IoError::new(
            path,
            format!("the mask has shape {got:?}, the data {shape:?}"),
        ));
    }
    match data {
        DataFile::Dense(array) => match array.values.iter().position(|x| x.fract() != 0.0) {
            Some(at) => Err(IoError::at(
                path,
                format!("entry {:?}", array.index(at)),
                format!("{} in a mask is not a whole number", array.values[at]),
            )),
            None => Ok(Mask::Dense(array)),
        },
        DataFile::Sparse(cells) => Ok(Mask::Hidden(cells)),
    }
}

/// Hexadecimal SHA-256 of a file's bytes.
///
/// # Errors
///
/// [`IoError`] if the file cannot be read.
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("abc.txt");
/// std::fs::write(&path, "abc")?;
/// let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// assert_eq!(plca_io::sha256_file(&path)?, expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sha256_file(path: &Path) -> Result<String, IoError> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    let mut add = || -> std::io::Result<()> {
        let mut reader = open(path)?;
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(()),
                n => hash.update(&buffer[..n]),
            }
        }
    };
    add().map_err(|e| IoError::system(path, e))?;
    Ok(hexadecimal(hash))
}

pub(crate) fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
