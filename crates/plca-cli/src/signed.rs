//! Data of either sign: read, hidden, and as blocks of a model file.

use std::collections::HashSet;
use std::path::Path;

use nalgebra::DMatrix;
use plca_io::{Array, DataFile, Element, Mask, ReadOptions};
use plca_tensor::{
    CompensatedSum, Coordinates, DataError, Signed, SignedCells, SignedMatrix, SignedModel,
    SignedSums, SignedWanted, SplitRule,
};

use crate::args::{DataArgs, MissingCells};
use crate::data::{Dataset, hidden_cells, hide, indexable, unobserved_warnings, without};
use crate::failure::Failure;
use crate::models::options::need_matrix;
use crate::precision;

/// A matrix of either sign of any storage.
#[derive(Debug)]
pub(crate) enum Cells<T> {
    Dense(SignedMatrix<T>),
    Listed(SignedCells<T>),
}

impl<T: Element> Signed<T> for Cells<T> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Dense(m) => m.shape(),
            Self::Listed(c) => c.shape(),
        }
    }

    fn observed(&self) -> usize {
        match self {
            Self::Dense(m) => m.observed(),
            Self::Listed(c) => c.observed(),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        match self {
            Self::Dense(m) => m.for_each(visit),
            Self::Listed(c) => c.for_each(visit),
        }
    }

    fn pass<R: SplitRule<T> + ?Sized>(
        &self,
        model: &SignedModel<'_, T>,
        rule: &R,
        wanted: SignedWanted,
    ) -> SignedSums<T> {
        match self {
            Self::Dense(m) => m.pass(model, rule, wanted),
            Self::Listed(c) => c.pass(model, rule, wanted),
        }
    }
}

/// Indices that were not seen.
pub(crate) fn unseen(seen: &[bool]) -> Vec<usize> {
    let indices = seen.iter().enumerate().filter(|(_, seen)| !**seen);
    indices.map(|(at, _)| at).collect()
}

/// A matrix of either sign, and what the command says of it.
#[derive(Debug)]
pub(crate) struct SignedData<T> {
    pub(crate) cells: Cells<T>,
    sizes: [usize; 2],
}

impl<T: Element> SignedData<T> {
    fn new(cells: Cells<T>) -> Self {
        let (rows, columns) = cells.shape();
        let sizes = [rows, columns];
        Self { cells, sizes }
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        self.cells.shape()
    }

    pub(crate) fn observed(&self) -> usize {
        self.cells.observed()
    }

    /// Sum of the absolute values of what was observed.
    pub(crate) fn absolute_sum(&self) -> f64 {
        let mut sum = CompensatedSum::default();
        self.cells.for_each(&mut |_, _, v| sum += v.abs());
        sum.value()
    }
}

impl<T: Element> Dataset for SignedData<T> {
    fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    fn sum(&self) -> f64 {
        let mut sum = CompensatedSum::default();
        self.cells.for_each(&mut |_, _, v| sum += v);
        sum.value()
    }

    fn warnings(&self) -> Vec<String> {
        let mut seen = self.sizes.map(|n| vec![false; n]);
        self.cells.for_each(&mut |row, column, _| {
            seen[0][row] = true;
            seen[1][column] = true;
        });
        unobserved_warnings(seen.iter().map(|seen| unseen(seen)).collect())
    }
}

/// Reads a matrix of either sign and hides what is missing, and what `refused` says. `model` is named where it must be a matrix.
pub(crate) fn load_but<T: Element>(
    path: &Path,
    args: &DataArgs,
    model: &str,
    mut refused: impl FnMut(usize, usize, T) -> bool,
) -> Result<SignedData<T>, Failure> {
    let options = ReadOptions {
        allow_negative: true,
        // What a mask may hide is refused below where it does not.
        allow_infinite: args.mask.is_some(),
        ..args.reading()
    };
    let fail = |e| precision::refused::<T>(path, args, e);
    Ok(SignedData::new(
        match plca_io::read_data_with::<T>(path, &options)? {
            DataFile::Dense(mut array) => {
                need_matrix(path, model, &array.shape)?;
                hide(path, args, &mut array)?;
                let mut values = to_matrix(&array);
                for column in 0..values.ncols() {
                    for row in 0..values.nrows() {
                        let x = values[(row, column)];
                        if !x.is_nan() && refused(row, column, x) {
                            values[(row, column)] = T::lit(f64::NAN);
                        }
                    }
                }
                Cells::Dense(SignedMatrix::new(&values).map_err(fail)?)
            }
            DataFile::Sparse(entries) => {
                need_matrix(path, model, &entries.shape)?;
                sparse(path, args, entries, refused)?
            }
        },
    ))
}

/// [`load_but`] of everything.
pub(crate) fn load<T: Element>(
    path: &Path,
    args: &DataArgs,
    model: &str,
) -> Result<SignedData<T>, Failure> {
    load_but(path, args, model, |_, _, _| false)
}

/// A matrix without hidden cells.
#[derive(Debug)]
pub(crate) struct Complete<T> {
    pub(crate) values: DMatrix<T>,
    sizes: [usize; 2],
}

impl<T: Element> Dataset for Complete<T> {
    fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    fn sum(&self) -> f64 {
        self.values
            .iter()
            .map(|x| x.to_f64())
            .collect::<CompensatedSum>()
            .value()
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A complete matrix, for models that cannot do without a cell.
pub(crate) fn load_complete<T: Element>(
    path: &Path,
    args: &DataArgs,
    model: &str,
) -> Result<Complete<T>, Failure> {
    let data = load::<T>(path, args, model)?;
    let (rows, columns) = data.shape();
    if rows.checked_mul(columns) != Some(data.observed()) {
        let what = format!("{model} needs every cell, and here are hidden ones");
        return Err(Failure::of(path, what));
    }
    let mut values = DMatrix::zeros(rows, columns);
    (data.cells).for_each(&mut |row, column, v| values[(row, column)] = T::lit(v));
    Ok(Complete {
        values,
        sizes: [rows, columns],
    })
}

fn to_matrix<T: Element>(array: &Array<T>) -> DMatrix<T> {
    let (rows, columns) = (array.shape[0], array.shape[1]);
    let values = array.values.iter().copied();
    if array.fortran {
        DMatrix::from_iterator(rows, columns, values)
    } else {
        DMatrix::from_row_iterator(rows, columns, values)
    }
}

/// A dense matrix of more cells is not made from a sparse file.
const MOST_CELLS: usize = 1 << 31;

fn sparse<T: Element>(
    path: &Path,
    args: &DataArgs,
    mut entries: Coordinates<T>,
    mut refused: impl FnMut(usize, usize, T) -> bool,
) -> Result<Cells<T>, Failure> {
    let fail = |e| precision::refused::<T>(path, args, e);
    if args.missing == Some(MissingCells::Nan) {
        let what = "--missing nan needs a dense array, these are sparse";
        return Err(Failure::of(path, what));
    }
    indexable(path, &entries.shape)?;
    let hidden = match &args.mask {
        None => None,
        Some(mask) => Some(match plca_io::read_mask(mask, &entries.shape)? {
            Mask::Hidden(cells) => cells,
            Mask::Dense(mask) => hidden_cells(mask),
        }),
    };
    if let Some(hidden) = &hidden {
        entries = without(entries, hidden);
    }
    let shape = (entries.shape[0], entries.shape[1]);
    let mut cells: Vec<(usize, usize, T)> = (entries.indices.chunks_exact(2).zip(entries.values))
        .map(|(index, x)| (index[0] as usize, index[1] as usize, x))
        .collect();
    if let Some(&(row, column, x)) = cells.iter().find(|c| !c.2.is_finite()) {
        let (index, value) = (vec![row, column], x.to_f64());
        return Err(fail(DataError::NotFinite { index, value }));
    }
    // Entries of one cell are summed.
    cells.sort_by_key(|&(row, column, _)| (row, column));
    cells.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
    if args.missing == Some(MissingCells::Unstored) {
        cells.retain(|&(row, column, x)| !refused(row, column, x));
        return Ok(Cells::Listed(SignedCells::new(shape, cells).map_err(fail)?));
    }
    let size = shape.0.checked_mul(shape.1).filter(|&n| n <= MOST_CELLS);
    if size.is_none() {
        let what = format!(
            "{} x {} cells are too many to hold: cells that are not stored are zeros here, unless --missing unstored",
            shape.0, shape.1
        );
        return Err(Failure::of(path, what));
    }
    // They are arranged once more.
    plca_io::room::<T>(&[2, shape.0, shape.1]).map_err(|e| Failure::by(path, e))?;
    let mut values = DMatrix::zeros(shape.0, shape.1);
    for (row, column, x) in cells {
        let kept = !refused(row, column, x);
        values[(row, column)] = if kept { x } else { T::lit(f64::NAN) };
    }
    let hidden: HashSet<&[u32]> = (hidden.iter())
        .flat_map(|h| h.indices.chunks_exact(2))
        .collect();
    for index in hidden {
        values[(index[0] as usize, index[1] as usize)] = T::lit(f64::NAN);
    }
    Ok(Cells::Dense(SignedMatrix::new(&values).map_err(fail)?))
}

/// The two sides of an array of `F x K x 2`.
pub(crate) fn sides<T: Element>(
    path: &Path,
    name: &str,
    array: Array<f64>,
) -> Result<(DMatrix<T>, DMatrix<T>), Failure> {
    let &[f, k, 2] = &array.shape[..] else {
        let what = format!("`{name}` has shape {:?}, F x K x 2 is needed", array.shape);
        return Err(Failure::of(path, what));
    };
    let side = |s| DMatrix::from_fn(f, k, |i, z| T::lit(array.values[2 * (i * k + z) + s]));
    Ok((side(0), side(1)))
}

/// The inverse of [`sides`].
pub(crate) fn join<T: Element>(plus: &DMatrix<T>, minus: &DMatrix<T>) -> Array<f64> {
    let (f, k) = plus.shape();
    let cells = (0..f).flat_map(|i| (0..k).map(move |z| (i, z)));
    let values = cells.flat_map(|at| [plus[at].to_f64(), minus[at].to_f64()]);
    Array::new(vec![f, k, 2], values.collect())
}
