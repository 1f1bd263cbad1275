//! Options that say how data are read, and which of their cells are hidden.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plca_io::{DataFile, Header, IoError, Mask, ReadOptions};

use plca_run::ModelEntry;

use crate::failure::Failure;
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

/// A dimension of data: its number, or `rows` or `columns`.
pub(crate) fn dimension(s: &str) -> Result<usize, String> {
    match s {
        "rows" => Ok(0),
        "columns" => Ok(1),
        s => s
            .parse()
            .map_err(|_| "a whole number >= 0, rows or columns is needed".into()),
    }
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
    /// Dimension along which the samples lie [default: the last]
    ///
    /// rows is 0 and columns is 1. The rows of a matrix are then turned to columns, masks and names with them, and places in messages are those after
    /// turning; plsa and lda take the matrix as it is. Of a tensor the samples of a fit lie along the last dimension.
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = dimension, help_heading = DATA)]
    pub(crate) samples: Option<usize>,
    /// Of a matrix: its rows are the samples, which models take as columns.
    #[arg(long, conflicts_with = "samples", hide = true)]
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

    /// Turns the data whose samples are rows; of a model that has a dimension of its samples, the one that is asked for.
    pub(crate) fn place_samples(&mut self, model: &ModelEntry) -> Result<Option<usize>, Failure> {
        if !model.has("given") {
            self.transpose |= self.samples == Some(0);
            return Ok(None);
        }
        match self.samples.take() {
            Some(d) if d > 1 => Err(Failure::usage(format!(
                "--samples {d}: expected 0 or 1, rows or columns: {} takes a matrix",
                model.called()
            ))),
            d => Ok(d),
        }
    }

    /// The option that turns the data, as it was typed.
    pub(crate) fn turned_by(&self) -> String {
        let samples = self.samples.map(|d| format!("--samples {d}"));
        samples.unwrap_or_else(|| "--transpose".into())
    }

    /// Refuses a dimension of samples that data of this shape do not have.
    pub(crate) fn check_samples(&self, path: &Path, shape: &[usize]) -> Result<(), Failure> {
        let Some(d) = self.samples else {
            return Ok(());
        };
        let expected = match shape.len() {
            2 if d > 1 => "0 or 1, rows or columns".to_string(),
            order if order != 2 && d + 1 != order => format!(
                "{}, the last dimension; plca shard and plca transform take any of a tensor",
                order.saturating_sub(1)
            ),
            _ => return Ok(()),
        };
        let what = format!("--samples {d}: the data have shape {shape:?}, expected {expected}");
        Err(Failure::of(path, what))
    }

    /// Data of a file, turned if they are to be.
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
