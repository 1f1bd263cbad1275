//! Cells held out fold by fold, and the data without them.

use plca_dist::key::{Key, Purpose};
use plca_tensor::{
    Coordinates, Data, DataError, DenseTensor, Mask, Order, SparseTensor, check_counts,
};

use super::CrossValidation;
use crate::EmError;

/// Cells per entry of a list up to which an array of all cells is preferred to the list.
const SPARSE: usize = 4;

/// The data in an order of their own: what is computed from them does not depend on the storage that they came in.
#[derive(Debug)]
enum Cells {
    /// Every cell in row-major order, NaN where hidden.
    All(Vec<f64>),
    /// Cells one by one, in row-major order.
    Listed {
        /// The observed cells that may be in a fold, or all observed ones where `rest_hidden`.
        observed: Coordinates<f64>,
        /// Where a list says so, these are hidden.
        hidden: Coordinates<f64>,
        /// Whether all that is not in `observed` is hidden; otherwise it is 0, except for `hidden`.
        rest_hidden: bool,
    },
}

/// Data whose observed cells lie in folds.
///
/// ```
/// use plca_em::CrossValidation;
/// use plca_em::tensor::{Data, DenseTensor, Order};
/// let v = DenseTensor::<f64>::new(vec![4, 3], (1..13).map(f64::from).collect(), Order::RowMajor)?;
/// let speckled = CrossValidation::default().folds(2).speckled(&v)?;
/// let (mut held, folds) = (0.0, speckled.folds(0));
/// folds.visit(|_, value, fold| held += if fold == Some(0) { value } else { 0.0 });
/// assert_eq!(speckled.train(&folds, 0)?.total() + held, v.total());
/// # Ok::<(), plca_em::EmError>(())
/// ```
#[derive(Debug)]
pub struct Speckled {
    shape: Vec<usize>,
    cells: Cells,
    settings: CrossValidation,
}

/// The folds of the cells of one repeat: made from keys, not stored.
#[derive(Debug)]
pub struct Folds<'a> {
    of: &'a Speckled,
    key: Key,
    /// Cells that were taken out of their fold, in row-major order.
    kept: Vec<Vec<usize>>,
}

/// The number of cells of a shape, where it can be counted.
fn cells_of(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m))
}

fn too_large(shape: &[usize]) -> EmError {
    EmError::Tensor(DataError::TooLarge {
        shape: shape.to_vec(),
    })
}

/// The place of an index in row-major order.
fn place(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, n)| at * n + i)
}

impl Speckled {
    pub(super) fn new(data: &dyn Data<f64>, settings: CrossValidation) -> Result<Self, EmError> {
        settings.check()?;
        check_counts(data)?;
        let shape = data.shape().to_vec();
        let positive = data.summary().nnz;
        if settings.folds as u64 > positive {
            let folds = settings.folds;
            return Err(EmError::FewCells { folds, positive });
        }
        let mut listed = 0usize;
        data.visit_mask(&mut |_| listed += 1)?;
        let (mask, positive) = (data.summary().mask, positive as usize);
        let all = cells_of(&shape);
        let (observed, hidden) = match (mask, all) {
            (Mask::Observed, all) => (listed, all.map_or(usize::MAX, |all| all - listed)),
            (_, Some(all)) => (all - listed, listed),
            (_, None) => (usize::MAX, listed),
        };
        // Zeros that are in folds are listed too.
        let as_zeros = match settings.zeros {
            true => usize::MAX,
            false => positive.saturating_add(hidden),
        };
        let least = observed.min(as_zeros);
        let cells = match all.filter(|&all| all <= least.saturating_mul(SPARSE)) {
            Some(all) => Cells::All(array(data, all)?),
            None if least == usize::MAX => return Err(too_large(&shape)),
            None => list(data, observed <= as_zeros)?,
        };
        Ok(Self {
            shape,
            cells,
            settings,
        })
    }

    /// The folds of a repeat.
    pub fn folds(&self, repeat: usize) -> Folds<'_> {
        let words = [self.settings.seed, Purpose::Folds.word(), repeat as u64];
        let mut folds = Folds {
            of: self,
            key: Key::of(&words),
            kept: Vec::new(),
        };
        folds.kept = folds.kept();
        folds
    }

    /// The data that are left for fits when a fold is held out: the other observed cells, those in no fold among them.
    ///
    /// # Errors
    ///
    /// [`EmError::Tensor`] for data that memory does not hold twice.
    pub fn train(&self, folds: &Folds<'_>, fold: usize) -> Result<Box<dyn Data<f64>>, EmError> {
        let shape = self.shape.clone();
        Ok(match &self.cells {
            Cells::All(values) => {
                let mut train = Vec::new();
                let reserved = train.try_reserve_exact(values.len());
                reserved.map_err(|_| too_large(&shape))?;
                train.extend_from_slice(values);
                folds.visit(|index, _, of| {
                    if of == Some(fold) {
                        train[place(index, &shape)] = f64::NAN;
                    }
                });
                Box::new(DenseTensor::masked(shape, train, Order::RowMajor)?)
            }
            Cells::Listed {
                observed,
                hidden,
                rest_hidden,
            } => {
                let mut train = Coordinates::empty(&shape);
                let mut hidden = hidden.clone();
                let mut index = vec![0; shape.len()];
                for (entry, &value) in observed.values.iter().enumerate() {
                    take(&mut index, observed, entry);
                    if folds.fold(&index, value) != Some(fold) {
                        train.push(&index, value);
                    } else if !rest_hidden {
                        hidden.push(&index, 0.0);
                    }
                }
                match rest_hidden {
                    true => Box::new(SparseTensor::stored_only(train)?),
                    false => Box::new(SparseTensor::all_but(train, hidden)?),
                }
            }
        })
    }

    /// Visits every observed cell of the data that may be in a fold.
    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) {
        let mut index = vec![0; self.shape.len()];
        let all = self.settings.zeros;
        match &self.cells {
            Cells::All(values) => {
                for &value in values {
                    if value > 0.0 || all && value == 0.0 {
                        each(&index, value);
                    }
                    let mut modes = index.iter_mut().zip(&self.shape).rev();
                    // As a counter does.
                    let _ = modes.any(|(i, &n)| {
                        *i = (*i + 1) % n;
                        *i > 0
                    });
                }
            }
            Cells::Listed { observed, .. } => {
                for (entry, &value) in observed.values.iter().enumerate() {
                    if value > 0.0 || all {
                        take(&mut index, observed, entry);
                        each(&index, value);
                    }
                }
            }
        }
    }
}

/// The index of an entry.
fn take(index: &mut [usize], of: &Coordinates<f64>, entry: usize) {
    let order = index.len();
    let entry = &of.indices[entry * order..(entry + 1) * order];
    index
        .iter_mut()
        .zip(entry)
        .for_each(|(i, &x)| *i = x as usize);
}

/// Every cell.
fn array(data: &dyn Data<f64>, all: usize) -> Result<Vec<f64>, EmError> {
    let shape = data.shape();
    let mut values = Vec::new();
    let reserved = values.try_reserve_exact(all);
    reserved.map_err(|_| too_large(shape))?;
    let of_observed = data.summary().mask == Mask::Observed;
    let [unlisted, listed] = match of_observed {
        true => [f64::NAN, 0.0],
        false => [0.0, f64::NAN],
    };
    values.resize(all, unlisted);
    data.visit_mask(&mut |index| values[place(index, shape)] = listed)?;
    data.visit(&mut |index, value| values[place(index, shape)] = value)?;
    Ok(values)
}

/// The cells one by one: all that were observed, or those that are positive and those that are hidden.
fn list(data: &dyn Data<f64>, rest_hidden: bool) -> Result<Cells, EmError> {
    let shape = data.shape();
    let mask = data.summary().mask;
    let (mut observed, mut hidden) = (Vec::new(), Vec::new());
    data.visit(&mut |index, value| observed.push((index.to_vec(), value)))?;
    data.visit_mask(&mut |index| hidden.push((index.to_vec(), 0.0)))?;
    let sorted = |mut cells: Vec<(Vec<usize>, f64)>| {
        // Of a cell that is listed twice the value before the mark.
        cells.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        cells.dedup_by(|a, b| a.0 == b.0);
        let mut listed = Coordinates::empty(shape);
        cells
            .iter()
            .for_each(|(index, value)| listed.push(index, *value));
        listed
    };
    let none = Coordinates::empty(shape);
    Ok(match (mask, rest_hidden) {
        (Mask::Observed, true) => {
            observed.append(&mut hidden);
            Cells::Listed {
                observed: sorted(observed),
                hidden: none,
                rest_hidden,
            }
        }
        (Mask::Observed, false) => Cells::Listed {
            observed: sorted(observed),
            hidden: others(shape, hidden),
            rest_hidden,
        },
        (_, true) => {
            let zeros = others(shape, hidden);
            let mut index = vec![0; shape.len()];
            for entry in 0..zeros.values.len() {
                take(&mut index, &zeros, entry);
                observed.push((index.clone(), 0.0));
            }
            Cells::Listed {
                observed: sorted(observed),
                hidden: none,
                rest_hidden,
            }
        }
        (_, false) => Cells::Listed {
            observed: sorted(observed),
            hidden: sorted(hidden),
            rest_hidden,
        },
    })
}

/// The cells of a shape that are not among these.
fn others(shape: &[usize], cells: Vec<(Vec<usize>, f64)>) -> Coordinates<f64> {
    let mut places: Vec<usize> = cells.iter().map(|(index, _)| place(index, shape)).collect();
    places.sort_unstable();
    let mut places = places.into_iter().peekable();
    let mut others = Coordinates::empty(shape);
    let mut index = vec![0; shape.len()];
    for at in 0..cells_of(shape).unwrap_or(0) {
        if places.next_if_eq(&at).is_some() {
            continue;
        }
        let mut rest = at;
        for (i, n) in index.iter_mut().zip(shape).rev() {
            (*i, rest) = (rest % n, rest / n);
        }
        others.push(&index, 0.0);
    }
    others
}

impl Folds<'_> {
    /// The key of a cell.
    fn key_of(&self, index: &[usize]) -> Key {
        let step = |key: Key, &i: &usize| key.and(i as u64);
        match self.of.settings.turned {
            false => index.iter().fold(self.key, step),
            true => index.iter().rev().fold(self.key, step),
        }
    }

    /// The fold of an observed cell with this value: `floor(F key / 2^64)`, or `None` for one that is always in the training part.
    pub fn fold(&self, index: &[usize], value: f64) -> Option<usize> {
        let zeros = self.of.settings.zeros;
        if value <= 0.0 && !zeros || self.is_kept(index) {
            return None;
        }
        Some(self.fold_by_key(index))
    }

    fn fold_by_key(&self, index: &[usize]) -> usize {
        self.key_of(index).pick(self.of.settings.folds as u64) as usize
    }

    fn is_kept(&self, index: &[usize]) -> bool {
        let kept = |cell: &Vec<usize>| cell.as_slice().cmp(index);
        !self.kept.is_empty() && self.kept.binary_search_by(kept).is_ok()
    }

    /// The cells that were taken out of their folds, in row-major order: of every index all of whose positive cells had come into one fold, one.
    pub fn kept_for_an_index(&self) -> &[Vec<usize>] {
        &self.kept
    }

    /// What is taken out, of every index one cell where all positive ones are in one fold: that with the smallest key.
    fn kept(&self) -> Vec<Vec<usize>> {
        /// The positive cells of an index.
        #[derive(Clone)]
        struct Of {
            fold: usize,
            apart: bool,
            least: (Key, Vec<usize>),
        }
        let shape = &self.of.shape;
        let mut modes: Vec<Vec<Option<Of>>> = shape.iter().map(|&n| vec![None; n]).collect();
        let turned = self.of.settings.turned;
        // Of equal keys the smallest index, in the order that keys take.
        let as_keyed = |index: &[usize]| -> Vec<usize> {
            match turned {
                false => index.to_vec(),
                true => index.iter().rev().copied().collect(),
            }
        };
        self.of.visit(&mut |index, value| {
            if value <= 0.0 {
                return;
            }
            let (key, fold) = (self.key_of(index), self.fold_by_key(index));
            for (mode, &i) in modes.iter_mut().zip(index) {
                match &mut mode[i] {
                    Some(of) if of.apart => {}
                    Some(of) if of.fold != fold => of.apart = true,
                    Some(of) => {
                        if key < of.least.0 || key == of.least.0 && as_keyed(index) < of.least.1 {
                            of.least = (key, as_keyed(index));
                        }
                    }
                    none => {
                        *none = Some(Of {
                            fold,
                            apart: false,
                            least: (key, as_keyed(index)),
                        });
                    }
                }
            }
        });
        let all = modes.into_iter().flatten().flatten();
        let all = all.filter(|of| !of.apart).map(|of| as_keyed(&of.least.1));
        let mut kept: Vec<Vec<usize>> = all.collect();
        kept.sort();
        kept.dedup();
        kept
    }

    /// Visits every observed cell that may be in a fold, in row-major order: index, value, and the fold, `None` where the cell was taken out of it.
    pub fn visit(&self, mut each: impl FnMut(&[usize], f64, Option<usize>)) {
        self.of
            .visit(&mut |index, value| each(index, value, self.fold(index, value)));
    }
}
