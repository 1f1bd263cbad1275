//! Data for squared error: of any order and either sign, as a tensor.

use std::path::Path;

use plca_io::{Array, DataFile, Element, ReadOptions};
use plca_tensor::{Order, RealTensor, SparseTensor};

use crate::args::DataArgs;
use crate::data::{Dataset, Entries, for_each_cell, hide, hide_sparse, unobserved_warnings};
use crate::failure::Failure;
use crate::precision;
use crate::signed::unseen;

/// A tensor for squared error, and what the command says of it.
#[derive(Debug)]
pub(crate) struct RealData<T> {
    pub(crate) tensor: RealTensor<T>,
    warnings: Vec<String>,
}

impl<T: Element> Dataset for RealData<T> {
    fn sizes(&self) -> &[usize] {
        self.tensor.shape()
    }

    fn sum(&self) -> f64 {
        self.tensor.total() / self.tensor.scale()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Which indices of every dimension were seen.
struct Seen(Vec<Vec<bool>>);

impl Seen {
    fn nothing(shape: &[usize]) -> Self {
        Self(shape.iter().map(|&n| vec![false; n]).collect())
    }

    fn note(&mut self, index: impl IntoIterator<Item = usize>) {
        for (seen, i) in self.0.iter_mut().zip(index) {
            seen[i] = true;
        }
    }

    fn warnings(&self) -> Vec<String> {
        unobserved_warnings(self.0.iter().map(|seen| unseen(seen)).collect())
    }
}

/// Reads data of either sign and hides what is missing.
pub(crate) fn load_real<T: Element>(path: &Path, args: &DataArgs) -> Result<RealData<T>, Failure> {
    let options = ReadOptions {
        allow_negative: true,
        // What a mask may hide is refused below where it does not.
        allow_infinite: args.mask.is_some(),
        ..args.reading()
    };
    let (tensor, mut warnings) = match plca_io::read_data_with::<T>(path, &options)? {
        DataFile::Dense(array) => dense(path, args, array)?,
        DataFile::Sparse(entries) => {
            let fail = |e| precision::refused::<T>(path, args, e);
            match hide_sparse(path, args, entries)? {
                Entries::All(entries) => (RealTensor::sparse(entries).map_err(fail)?, Vec::new()),
                Entries::Stored(entries) => {
                    let mut seen = Seen::nothing(&entries.shape);
                    for index in entries.indices.chunks_exact(entries.shape.len()) {
                        seen.note(index.iter().map(|&i| i as usize));
                    }
                    let tensor = RealTensor::stored_only(entries).map_err(fail)?;
                    (tensor, seen.warnings())
                }
                Entries::AllBut(entries, hidden) => {
                    let masked = SparseTensor::all_but(entries, hidden).map_err(fail)?;
                    let warnings = unobserved_warnings(plca_em::unobserved(&masked).map_err(fail)?);
                    (RealTensor::from(&masked), warnings)
                }
            }
        }
    };
    if tensor.has_negative() {
        warnings.push("some values are negative, which no distribution has".into());
    }
    Ok(RealData { tensor, warnings })
}

fn dense<T: Element>(
    path: &Path,
    args: &DataArgs,
    mut array: Array<T>,
) -> Result<(RealTensor<T>, Vec<String>), Failure> {
    let masked = hide(path, args, &mut array)?;
    let Array {
        shape,
        mut values,
        fortran,
    } = array;
    let order = if fortran {
        Order::ColumnMajor
    } else {
        Order::RowMajor
    };
    let fail = |e| precision::refused::<T>(path, args, e);
    if !masked {
        let tensor = RealTensor::dense(shape, values, order).map_err(fail)?;
        return Ok((tensor, Vec::new()));
    }
    let mut seen = Seen::nothing(&shape);
    for_each_cell(&shape, fortran, &mut values, |index, x| {
        if !x.is_nan() {
            seen.note(index.iter().copied());
        }
    });
    let tensor = RealTensor::masked(shape, values, order).map_err(fail)?;
    Ok((tensor, seen.warnings()))
}
