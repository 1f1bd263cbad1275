//! Options that say how data are read, and which of their cells are hidden.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plca_io::{DataFile, Header, IoError, Mask, ReadOptions};

use crate::limits;
use crate::table::TableArgs;

/// Their group in the help.
const DATA: &str = "Data";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissingCells {
    /// NaN cells of a dense array are hidden.
    Nan,
    /// Cells of a sparse array that are not stored are hidden.
    Unstored,
}

/// Sizes of the modes of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

/// Sizes like `3x8`.
pub(crate) fn sizes(s: &str) -> Result<Sizes, String> {
    let size = |n: &str| {
        n.parse::<usize>()
            .map_err(|_| format!("`{n}` is not a whole number; sizes are written as in 3x8"))
    };
    s.split('x').map(size).collect::<Result<_, _>>().map(Sizes)
}

/// Data and which of their cells are hidden.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataArgs {
    /// Array of the data's shape, 0 = hidden; or a file of the hidden cells
    ///
    /// A dense array (.npy, .npz, .mat, .csv, .tsv), or a sparse one (.mtx, .tns, .npz, .mat) whose stored cells are the hidden ones.
    #[arg(long, value_name = "FILE", help_heading = DATA)]
    pub(crate) mask: Option<PathBuf>,
    /// Which cells count as missing
    #[arg(long, value_name = "WHICH", help_heading = DATA)]
    pub(crate) missing: Option<MissingCells>,
    /// Size of each dimension [default: the largest index]
    ///
    /// Of .tns files, and of .svmlight and .ldac, of which 0xM says the number of features alone. With --online: the sizes of every batch.
    #[arg(long, value_name = "I0xI1x…", value_parser = sizes, help_heading = DATA)]
    pub(crate) shape: Option<Sizes>,
    /// .npz, .mat: the array to read, where there are several
    #[arg(long, value_name = "NAME", help_heading = DATA)]
    pub(crate) array: Option<String>,
    /// .svmlight: the first feature, 0 or 1 [default: 0 if there is a 0]
    ///
    /// transform takes that of the data of the fit, and --online that of the first batch.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1), help_heading = DATA)]
    pub(crate) first_index: Option<u32>,
    /// Of a matrix: its rows are the samples, which models take as columns
    ///
    /// Masks and names are turned with the data; places in messages are those after turning.
    #[arg(long, help_heading = DATA)]
    pub(crate) transpose: bool,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

impl DataArgs {
    /// What is read, NaN included: they are refused by their index where they are not hidden.
    pub(crate) fn reading(&self) -> ReadOptions {
        ReadOptions {
            shape: self.shape.as_ref().map(|s| s.0.clone()),
            array: self.array.clone(),
            first_index: self.first_index,
            unpack_limit: limits::unpack(),
            allow_nan: true,
            table: self.table.reading(),
            ..ReadOptions::default()
        }
    }

    /// The number of the first feature in a file whose format has one.
    pub(crate) fn first_index_of(&self, path: &Path) -> Result<Option<u32>, IoError> {
        let found = plca_io::first_index(path, limits::unpack())?;
        Ok(found.map(|found| self.first_index.unwrap_or(found)))
    }

    /// Data of a file, with --transpose their transpose.
    pub(crate) fn turned<T>(&self, file: DataFile<T>) -> DataFile<T> {
        match self.transpose {
            true => file.transposed(),
            false => file,
        }
    }

    /// The cells of the first line of a table, without that of the names of rows, whatever they are.
    pub(crate) fn first_line(&self, path: &Path) -> Result<Vec<String>, IoError> {
        let mut reading = self.reading();
        reading.table.header = Header::Yes;
        if reading.table.labels == plca_io::Labels::Entries {
            reading.table.labels = plca_io::Labels::None;
        }
        let mut names = plca_io::read_names(path, &reading)?;
        Ok(names.pop().flatten().unwrap_or_default())
    }

    /// What hides cells of data of this shape.
    pub(crate) fn read_mask(&self, path: &Path, shape: &[usize]) -> Result<Mask, IoError> {
        if !self.transpose {
            return plca_io::read_mask(path, shape, limits::unpack());
        }
        let in_file: Vec<usize> = shape.iter().rev().copied().collect();
        let mask = plca_io::read_mask(path, &in_file, limits::unpack())?;
        Ok(mask.transposed())
    }

    /// The names of the indices of every dimension of the data.
    pub(crate) fn read_names(&self, path: &Path) -> Result<Vec<Option<Vec<String>>>, IoError> {
        let mut names = plca_io::read_names(path, &self.reading())?;
        if self.transpose {
            names.reverse();
        }
        Ok(names)
    }

    /// The dimension of the data that the columns of a file are.
    pub(crate) fn columns(&self) -> usize {
        usize::from(!self.transpose)
    }
}
