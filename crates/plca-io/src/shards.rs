//! Folders of data that are cut into shards: a manifest, and a file for every shard.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use plca_fit::FitError;
use plca_fit::shards::{Shards, Visit};
use plca_tensor::{
    Data, DataError, DenseTensor, Mask, Order, OutOfCore, SourceError, SparseTensor, Summary,
    check_counts, cut, entries_along, even_ends,
};
use serde::{Deserialize, Serialize};

use crate::data::{Array, DataFile, Element, ReadOptions, open, read_data_with, sha256_file};
use crate::entries::for_each_entry;
use crate::error::Fault;
use crate::model::write_npy;
use crate::room::room;
use crate::store::{Buckets, Input, LIMITS, Limits};
use crate::{IoError, Store, StoreWriter, write_atomically};

/// The name of the manifest in its folder.
pub const MANIFEST: &str = "manifest.json";
const VERSION: u32 = 1;
/// Bytes of a manifest at most.
const LARGEST: u64 = 1 << 26;

/// What is in a folder of shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardManifest {
    version: u32,
    /// The size of each mode of all data.
    pub shape: Vec<usize>,
    /// The mode that is cut: that of the samples.
    pub along: usize,
    /// The scalar of the shards, `f64` or `f32`.
    pub scalar: String,
    /// SHA-256 of the file that was cut.
    pub input: String,
    /// The shards, in the order of their samples.
    pub shards: Vec<ShardEntry>,
}

/// What a manifest says of a shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ShardEntry {
    /// The name of its file in the folder.
    pub file: String,
    /// The number of its samples.
    pub samples: usize,
    /// The number of its entries that are not 0.
    pub entries: u64,
    /// Their sum.
    pub sum: f64,
    /// SHA-256 of the file.
    pub sha256: String,
}

fn scalar<T: Element>() -> String {
    format!("f{}", 8 * size_of::<T>())
}

impl ShardManifest {
    /// Reads the manifest of a folder and checks what it says.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the manifest.
    pub fn read(folder: &Path) -> Result<Self, IoError> {
        let path = folder.join(MANIFEST);
        let attempt = || -> Result<Self, Fault> {
            let mut file = open(&path)?;
            let length = file.metadata()?.len();
            if length > LARGEST {
                return Err(Fault::new(format!(
                    "has {length} bytes, more than {LARGEST}"
                )));
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let manifest: Self = serde_json::from_slice(&bytes).map_err(Fault::new)?;
            manifest.check()?;
            Ok(manifest)
        };
        attempt().map_err(|e| e.of(&path))
    }

    /// The manifest of shards of this scalar.
    fn of_scalar<T: Element>(folder: &Path) -> Result<Self, IoError> {
        let manifest = Self::read(folder)?;
        let (got, wanted) = (&manifest.scalar, scalar::<T>());
        if *got != wanted {
            let what = format!("the shards hold {got}, {wanted} is needed");
            return Err(IoError::new(&folder.join(MANIFEST), what));
        }
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Fault> {
        if self.version != VERSION {
            let version = self.version;
            return Err(Fault::new(format!(
                "version {version} of shards, this program reads {VERSION}"
            )));
        }
        let Some(&all) = self.shape.get(self.along) else {
            let (along, shape) = (self.along, &self.shape);
            return Err(Fault::new(format!(
                "no dimension {along} in the shape {shape:?}"
            )));
        };
        let samples = self.shards.iter().map(|shard| shard.samples);
        let sum = samples.into_iter().try_fold(0usize, usize::checked_add);
        if sum != Some(all) {
            return Err(Fault::new(format!(
                "the shards do not have {all} samples in total"
            )));
        }
        for shard in &self.shards {
            let mut parts = Path::new(&shard.file).components();
            if !matches!(
                (parts.next(), parts.next()),
                (Some(Component::Normal(_)), None)
            ) {
                let file = &shard.file;
                return Err(Fault::new(format!(
                    "`{file}` is not a name of a file in the folder"
                )));
            }
        }
        Ok(())
    }
}

/// Cuts the data of a file into shards of about equal entries along a mode, and writes them with their manifest into a folder; returns the
/// manifest.
///
/// A sparse matrix is read entry by entry and cut into [stores](Store), by temporary files in the folder; other data, and those that may be
/// negative, are read whole and cut into dense `.npy` parts. `along` is the last mode where it is `None`. No sample is cut and no shard is
/// without entries, so that there may be fewer shards than asked for. The folder is made, or is empty; the manifest is written last, and a
/// failure leaves the folder as it was. `proceed` is asked before every shard.
///
/// # Errors
///
/// [`IoError`] naming the input, as [`read_data_with`] and the tensor types refuse it, or the folder; if `proceed` said no.
///
/// # Examples
///
/// ```
/// use plca_fit::shards::Shards;
/// use plca_io::{ShardManifest, ReadOptions, ShardFolder, write_shards};
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let input = folder.join("v.tns");
/// std::fs::write(&input, "1 1 3\n2 3 0.5\n1 1 1\n2 2 4\n")?;
/// let manifest = write_shards::<f64>(&input, &ReadOptions::default(), None, 2, &folder.join("v"), || true)?;
/// assert_eq!((manifest.shape.as_slice(), manifest.shards[1].sum), (&[2, 3][..], 4.5));
/// let shards = ShardFolder::<f64>::open(&folder.join("v"))?;
/// assert_eq!((shards.count(), shards.manifest()), (2, &manifest));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_shards<T: Element>(
    input: &Path,
    options: &ReadOptions,
    along: Option<usize>,
    shards: u32,
    folder: &Path,
    proceed: impl Fn() -> bool,
) -> Result<ShardManifest, IoError> {
    let sha256 = sha256_file(input)?;
    let new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let new: Vec<&Path> = folder.ancestors().take_while(new).collect();
    let made = std::fs::create_dir_all(folder).and_then(|()| std::fs::read_dir(folder));
    if made
        .map_err(|e| IoError::system(folder, e))?
        .next()
        .is_some()
    {
        return Err(IoError::new(folder, "is not empty"));
    }
    let cutting = Cutting {
        input,
        options,
        along,
        shards,
        folder,
        proceed: &proceed,
    };
    cutting.all::<T>(sha256).inspect_err(|_| {
        // What cannot be removed stays; a folder with files of others is not removed.
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let shards = files.filter(|file| file.file_name().to_string_lossy().starts_with(SHARD));
        shards.for_each(|file| drop(std::fs::remove_file(file.path())));
        new.iter().for_each(|path| drop(std::fs::remove_dir(path)));
    })
}

/// Begins the name of a shard.
const SHARD: &str = "shard-";

struct Cutting<'a> {
    input: &'a Path,
    options: &'a ReadOptions,
    along: Option<usize>,
    shards: u32,
    folder: &'a Path,
    proceed: &'a dyn Fn() -> bool,
}

/// Shape, the mode that is cut, and shards.
type Cut = (Vec<usize>, usize, Vec<ShardEntry>);

/// Entries of a matrix, not sorted, and its shape.
type Spooled<T> = (Buckets<T>, [usize; 2]);

impl Cutting<'_> {
    /// Writes all shards, and then their manifest.
    fn all<T: Element>(&self, sha256: String) -> Result<ShardManifest, IoError> {
        let (shape, along, shards) = match self.spooled::<T>()? {
            Some((spool, shape)) => self.stores(spool, shape, &sha256)?,
            None => self.parts::<T>()?,
        };
        // Otherwise the manifest would bear the checksum of one file and the shards hold another.
        if sha256_file(self.input)? != sha256 {
            return Err(IoError::new(self.input, "was changed while it was read"));
        }
        let manifest = ShardManifest {
            version: VERSION,
            shape,
            along,
            scalar: scalar::<T>(),
            input: sha256,
            shards,
        };
        write_atomically(&self.folder.join(MANIFEST), |w| {
            Ok(serde_json::to_writer_pretty(w, &manifest)?)
        })?;
        Ok(manifest)
    }

    fn full(&self, e: std::io::Error) -> IoError {
        Fault::from(e).of(self.folder)
    }

    /// Where to cut samples with these numbers of entries.
    fn ends(&self, entries: &[u64]) -> Result<Vec<usize>, IoError> {
        match entries.iter().all(|&n| n == 0) {
            true => Err(IoError::new(self.input, DataError::NoMass)),
            false => Ok(even_ends(entries, self.shards)),
        }
    }

    /// The mode that is cut.
    fn along(&self, order: usize) -> Result<usize, IoError> {
        match self.along {
            None => Ok(order - 1),
            Some(along) if along < order => Ok(along),
            Some(along) => {
                let what = format!("there is no dimension {along}");
                Err(IoError::new(self.input, what))
            }
        }
    }

    fn file(&self, shard: usize, extension: &str) -> Result<(String, PathBuf), IoError> {
        if !(self.proceed)() {
            return Err(IoError::new(self.folder, "cutting was interrupted"));
        }
        let name = format!("{SHARD}{shard:05}.{extension}");
        let path = self.folder.join(&name);
        Ok((name, path))
    }

    /// The entries of a sparse matrix in a file without a name, and its shape; `None` for other data.
    fn spooled<T: Element>(&self) -> Result<Option<Spooled<T>>, IoError> {
        if self.options.allow_negative {
            // No store holds them.
            return Ok(None);
        }
        let mut spool = Buckets::new(self.folder, 0..1, &LIMITS).map_err(|e| self.full(e))?;
        let mut unwritten = None;
        let read = for_each_entry(self.input, self.options, |index, value| {
            spool.push(0, index, value).map_err(|e| {
                unwritten = Some(self.full(e));
                Fault::new("could not be sorted")
            })
        });
        if let Some(e) = unwritten {
            return Err(e);
        }
        // What is wrong with a file is said by the reader of any data.
        let shape = read.ok().and_then(|shape| shape.try_into().ok());
        Ok(shape.map(|shape| (spool, shape)))
    }

    fn stores<T: Element>(
        &self,
        mut spool: Buckets<T>,
        shape: [usize; 2],
        sha256: &str,
    ) -> Result<Cut, IoError> {
        let (along, full) = (self.along(2)?, |e| self.full(e));
        room::<u64>(&[shape[along]]).map_err(|e| IoError::new(self.input, e))?;
        let mut entries = vec![0; shape[along]];
        spool.read(0, full, |index, value| {
            entries[index[along] as usize] += u64::from(value != T::zero());
            Ok(())
        })?;
        let ends = self.ends(&entries)?;
        let limits = Limits {
            piles: ends.len().max(2),
            ..LIMITS
        };
        let mut buckets = Buckets::new(self.folder, 0..ends.len(), &limits).map_err(full)?;
        let firsts: Vec<usize> = std::iter::once(0).chain(ends.iter().copied()).collect();
        spool.read(0, full, |mut index, value| {
            let sample = index[along] as usize;
            let shard = ends.partition_point(|&end| end <= sample);
            index[along] = (sample - firsts[shard]) as u32;
            buckets.push(shard, index, value).map_err(full)
        })?;
        let mut shards = Vec::new();
        for (shard, &end) in ends.iter().enumerate() {
            let (file, path) = self.file(shard, "store")?;
            let mut shape = shape;
            shape[along] = end - firsts[shard];
            let asked = ReadOptions {
                shape: Some(shape.to_vec()),
                ..self.options.clone()
            };
            let of = Input::new(self.input, sha256, &asked);
            let sorted = StoreWriter::<T>::sort_of(of, self.input, self.folder, LIMITS, |visit| {
                let lost = |e: std::io::Error| Fault::from(e);
                buckets.read(shard, lost, visit)?;
                Ok(shape.to_vec())
            })?;
            sorted.write(&path)?;
            let data = OutOfCore::new(Store::<T>::open(&path)?);
            let data = data.map_err(|e| IoError::new(&path, e))?;
            shards.push(entry(file, &path, shape[along], data.summary())?);
        }
        Ok((shape.to_vec(), along, shards))
    }

    fn parts<T: Element>(&self) -> Result<Cut, IoError> {
        let refused = |e: DataError| IoError::new(self.input, e);
        let data: Box<dyn Data<T>> = match read_data_with::<T>(self.input, self.options)? {
            DataFile::Dense(array) => Box::new(tensor(array).map_err(refused)?),
            DataFile::Sparse(entries) => Box::new(SparseTensor::new(entries).map_err(refused)?),
        };
        if !self.options.allow_negative {
            check_counts(&*data).map_err(refused)?;
        }
        let along = self.along(data.shape().len())?;
        let entries = entries_along(&*data, along).map_err(refused)?;
        let ends = self.ends(&entries)?;
        let mut shards = Vec::new();
        for (shard, part) in cut(&*data, along, &ends)
            .map_err(refused)?
            .iter()
            .enumerate()
        {
            let (file, path) = self.file(shard, "npy")?;
            let shape = part.shape().to_vec();
            room::<T>(&shape).map_err(|e| IoError::new(self.input, e))?;
            let mut values = vec![T::zero(); shape.iter().product()];
            let stored = part.visit(&mut |index, value| {
                let at = index.iter().zip(&shape).fold(0, |at, (i, n)| at * n + i);
                values[at] = T::lit(value);
            });
            stored.map_err(refused)?;
            write_npy(&path, &Array::new(shape, values))?;
            shards.push(entry(file, &path, part.shape()[along], part.summary())?);
        }
        Ok((data.shape().to_vec(), along, shards))
    }
}

fn entry(
    file: String,
    path: &Path,
    samples: usize,
    summary: &Summary,
) -> Result<ShardEntry, IoError> {
    Ok(ShardEntry {
        file,
        samples,
        entries: summary.nnz,
        sum: summary.total,
        sha256: sha256_file(path)?,
    })
}

fn tensor<T: Element>(array: Array<T>) -> Result<DenseTensor<T>, DataError> {
    let order = match array.fortran {
        true => Order::ColumnMajor,
        false => Order::RowMajor,
    };
    DenseTensor::new(array.shape, array.values, order)
}

/// The data of a folder that [`write_shards`] wrote: shards for [`InProcess`](plca_fit::shards::InProcess), and data as a whole for what looks
/// at all of them.
///
/// Stores stay in their files, dense parts are read whenever they are visited.
#[derive(Debug)]
pub struct ShardFolder<T: Element> {
    manifest: ShardManifest,
    parts: Vec<ShardPart<T>>,
    summary: Summary,
}

/// One shard of a folder that [`write_shards`] wrote, for a worker that holds a few of them: no other file is opened.
///
/// ```
/// use plca_io::{ReadOptions, ShardPart, write_shards};
/// use plca_tensor::Data;
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let input = folder.join("v.tns");
/// std::fs::write(&input, "1 1 3\n2 3 0.5\n1 1 1\n2 2 4\n")?;
/// let manifest = write_shards::<f64>(&input, &ReadOptions::default(), None, 2, &folder.join("v"), || true)?;
/// let shard = ShardPart::<f64>::open(&folder.join("v"), 1)?;
/// assert_eq!(shard.sha256(), manifest.shards[1].sha256);
/// assert_eq!(shard.read(|data| data.total())?, 4.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardPart<T: Element> {
    content: Content<T>,
    sha256: String,
}

#[derive(Debug)]
enum Content<T: Element> {
    Store(Box<OutOfCore<T, Store<T>>>),
    Npy(PathBuf, Vec<usize>),
}

fn unread(e: IoError) -> DataError {
    DataError::Source(SourceError::new(e))
}

impl<T: Element> ShardPart<T> {
    /// Opens a shard of a folder, counted from 0, and verifies the checksum of its file.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the manifest or the file, as of [`ShardFolder::open`]; the folder, if it has no such shard.
    pub fn open(folder: &Path, shard: u32) -> Result<Self, IoError> {
        let manifest = ShardManifest::of_scalar::<T>(folder)?;
        match manifest.shards.get(shard as usize) {
            Some(entry) => Self::of(folder, &manifest, entry),
            None => {
                let count = manifest.shards.len();
                let what = format!("has {count} shards, counted from 0, and no shard {shard}");
                Err(IoError::new(folder, what))
            }
        }
    }

    fn of(folder: &Path, manifest: &ShardManifest, shard: &ShardEntry) -> Result<Self, IoError> {
        let path = folder.join(&shard.file);
        let (found, written) = (sha256_file(&path)?, &shard.sha256);
        if found != *written {
            let what = format!("was changed: SHA-256 {found}, the manifest says {written}");
            return Err(IoError::new(&path, what));
        }
        let mut shape = manifest.shape.clone();
        shape[manifest.along] = shard.samples;
        Ok(Self {
            content: Content::open(path, shape)?,
            sha256: found,
        })
    }

    /// SHA-256 of the file.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Hands the data of the shard over.
    ///
    /// # Errors
    ///
    /// [`DataError::Source`] naming the file, if it cannot be read.
    pub fn read<O>(&self, each: impl FnOnce(&dyn Data<T>) -> O) -> Result<O, DataError> {
        match &self.content {
            Content::Store(data) => Ok(each(&**data)),
            Content::Npy(path, shape) => Ok(each(&dense(path, shape)?)),
        }
    }

    /// The data of the shard: read, where they are dense; a store stays in its file.
    ///
    /// # Errors
    ///
    /// [`DataError::Source`] naming the file, if it cannot be read.
    pub fn into_data(self) -> Result<Box<dyn Data<T>>, DataError> {
        match self.content {
            Content::Store(data) => Ok(data),
            Content::Npy(path, shape) => Ok(Box::new(dense::<T>(&path, &shape)?)),
        }
    }
}

fn dense<T: Element>(path: &Path, shape: &[usize]) -> Result<DenseTensor<T>, DataError> {
    let data = match read_data_with::<T>(path, &ReadOptions::default()).map_err(unread)? {
        DataFile::Dense(array) => tensor(array)?,
        DataFile::Sparse(_) => return Err(unread(IoError::new(path, "is not dense"))),
    };
    match data.shape() == shape {
        true => Ok(data),
        false => Err(unread(of_other_shape(path, data.shape(), shape))),
    }
}

impl<T: Element> Content<T> {
    fn open(path: PathBuf, shape: Vec<usize>) -> Result<Self, IoError> {
        if path.extension().is_some_and(|e| e == "npy") {
            return Ok(Self::Npy(path, shape));
        }
        let data = OutOfCore::new(Store::<T>::open(&path)?);
        let data = data.map_err(|e| IoError::new(&path, e))?;
        match data.shape() == shape {
            true => Ok(Self::Store(Box::new(data))),
            false => Err(of_other_shape(&path, data.shape(), &shape)),
        }
    }
}

fn of_other_shape(path: &Path, got: &[usize], expected: &[usize]) -> IoError {
    let what = format!("has shape {got:?}, the manifest says {expected:?}");
    IoError::new(path, what)
}

impl<T: Element> ShardFolder<T> {
    /// Opens a folder and verifies the checksum of every file.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the manifest or the file of a shard: one that is missing, was changed, holds another scalar or another shape.
    pub fn open(folder: &Path) -> Result<Self, IoError> {
        let manifest = ShardManifest::of_scalar::<T>(folder)?;
        let parts = manifest.shards.iter();
        let parts = parts.map(|shard| ShardPart::of(folder, &manifest, shard));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let summary = Summary::of(Mask::Complete, |each| visit(&manifest, &parts, each));
        let summary = summary.map_err(|e| IoError::new(folder, e))?;
        Ok(Self {
            manifest,
            parts,
            summary,
        })
    }

    /// What the manifest says.
    pub fn manifest(&self) -> &ShardManifest {
        &self.manifest
    }
}

fn visit<T: Element>(
    manifest: &ShardManifest,
    parts: &[ShardPart<T>],
    each: &mut dyn FnMut(&[usize], f64),
) -> Result<(), DataError> {
    let (mut first, mut global) = (0, vec![0; manifest.shape.len()]);
    for (part, shard) in parts.iter().zip(&manifest.shards) {
        part.read(|data| {
            data.visit(&mut |index, value| {
                global.copy_from_slice(index);
                global[manifest.along] += first;
                each(&global, value);
            })
        })??;
        first += shard.samples;
    }
    Ok(())
}

impl<T: Element> Data<T> for ShardFolder<T> {
    fn shape(&self) -> &[usize] {
        &self.manifest.shape
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        visit(&self.manifest, &self.parts, each)
    }
}

impl<T: Element> Shards<T> for ShardFolder<T> {
    fn count(&self) -> u32 {
        self.parts.len() as u32
    }

    fn read(&self, shard: u32, each: &mut Visit<'_, T>) -> Result<(), FitError> {
        self.parts[shard as usize].read(|data| each(data))?
    }
}
