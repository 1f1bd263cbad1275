//! Tensors as matrices, some columns at a time: a row for every index of the signed mode, and of some others where that leaves less to be formed of products
//! of factors; a column for every index of the rest, of which the last runs fastest.

use nalgebra::DMatrix;
use plca_fit::{FitError, Impossible};
use plca_tensor::arrange::Signed;
use plca_tensor::{
    Coordinates, Data, DataError, DenseTensor, Mask, Order, Real, SignedModel, SignedSums,
    SignedWanted, SparseTensor,
};

use super::others::{Others, Shares};
use super::unfold::Folding;
use crate::Replicates;
use crate::bounds::Bounds;
use crate::check::scaled;
use crate::faint::{self, Logs, Watch};
use crate::rule::Split;
use crate::sides::stack;
use crate::signed::{reached, unsupported};

/// Activations of a slab at most, unless a run of the last mode has more.
const NUMBERS: usize = 1 << 16;

/// Rows of products of the signed mode and of others at most, both sides times components.
const ROWS: usize = 1 << 20;

/// Slabs at most: all their activations are formed in every pass.
const SLABS: usize = 1 << 22;

/// A tensor unfolded along its signed mode and cut into slabs of whole runs of the last mode: lists of their observed cells where the data are one, else dense.
#[derive(Debug)]
pub(super) struct Slabs<T> {
    pub(super) folding: Folding,
    /// How many modes stand in rows beside the signed one, and their indices.
    merged: [usize; 2],
    slabs: Vec<Signed<T>>,
    /// Columns of each but the last.
    width: usize,
}

/// What a pass over all slabs adds up: counts of atoms as a block, of the other factors, and the likelihood.
pub(super) struct Passed<T> {
    pub(super) atoms: Option<DMatrix<T>>,
    pub(super) shares: Option<Shares>,
    pub(super) value: f64,
}

/// Logarithms of both sides of the atoms, `K x F`, and of the other factors.
pub(super) type LnFactors<'a> = &'a dyn Fn() -> Result<([DMatrix<f64>; 2], Others<f64>), FitError>;

/// What a row costs in columns, as `cargo bench -p plca-benches --bench extensions` has it: a row has two sides, and its counts are doubles.
const ROW: f64 = 8.0;

/// How many of the other modes, and of their indices, stand in rows, so that forming rows and columns costs least.
fn merged(folding: &Folding, components: usize) -> [usize; 2] {
    let (sizes, rows) = (folding.sizes(), folding.rows() as f64);
    let all: f64 = sizes.iter().map(|&n| n as f64).product();
    let (mut best, mut least) = ([0, 1], ROW * rows + all);
    let mut indices = 1;
    for merged in 1..sizes.len() {
        indices *= sizes[merged - 1];
        let of_rows = rows * indices as f64;
        let cost = ROW * of_rows + all / indices as f64;
        if 2.0 * of_rows * components as f64 > ROWS as f64 {
            break;
        }
        if cost < least {
            (best, least) = ([merged, indices], cost);
        }
    }
    best
}

/// Columns of a slab, and how many there are in all, of all modes but the first ones.
///
/// # Errors
///
/// [`DataError::TooLarge`] for more than [`SLABS`].
pub(super) fn width(
    folding: &Folding,
    merged: usize,
    components: usize,
) -> Result<[usize; 2], DataError> {
    let sizes = &folding.sizes()[merged..];
    let run = sizes.last().copied().unwrap_or(1).max(1);
    let runs = (NUMBERS / components.max(1) / run).max(1);
    let columns = sizes.iter().try_fold(1usize, |all, &n| all.checked_mul(n));
    match columns.filter(|columns| columns.div_ceil(runs * run) <= SLABS) {
        Some(columns) => Ok([(runs * run).min(columns.max(1)), columns]),
        None => Err(DataError::TooLarge {
            shape: folding.shape().to_vec(),
        }),
    }
}

impl<T: Real> Slabs<T> {
    /// Data along a mode, for a model with this number of components.
    pub(super) fn new(
        data: &dyn Data<T>,
        mode: usize,
        components: usize,
    ) -> Result<Self, FitError> {
        let folding = Folding::new(data.shape().to_vec(), mode)?;
        // What cannot be formed at all is refused, however it is arranged.
        width(&folding, 0, components)?;
        let merged @ [modes, each] = merged(&folding, components);
        let [width, columns] = width(&folding, modes, components)?;
        if folding.shape().len() == 2 && mode == 0 && width == columns {
            let slabs = vec![Signed::new(data)?];
            return Ok(Self {
                folding,
                merged,
                slabs,
                width,
            });
        }
        let too_large = || DataError::TooLarge {
            shape: data.shape().to_vec(),
        };
        let rows = folding.rows() * each;
        let starts: Vec<usize> = (0..columns).step_by(width).collect();
        let shape = |start: usize| vec![rows, width.min(columns - start)];
        let place = |index: &[usize]| {
            let column = folding.column(index);
            let (row, column) = (index[mode] * each + column / columns, column % columns);
            (column / width, [row, column % width])
        };
        let slabs: Result<Vec<_>, DataError> = if data.summary().mask == Mask::Observed {
            if u32::try_from(width).is_err() {
                return Err(too_large().into());
            }
            let empty = starts
                .iter()
                .map(|&start| Coordinates::empty(&shape(start)));
            let mut slabs: Vec<Coordinates<T>> = empty.collect();
            let mut push = |index: &[usize], value: f64| {
                let (slab, at) = place(index);
                slabs[slab].push(&at, T::lit(value));
            };
            // Zeros are observed too; entries of one cell are added up.
            data.visit_mask(&mut |index| push(index, 0.0))?;
            data.visit(&mut push)?;
            let listed = slabs
                .into_iter()
                .map(|cells| Signed::new(&SparseTensor::stored_only(cells)?));
            listed.collect()
        } else {
            let mut slabs = Vec::new();
            for &start in &starts {
                let cells = shape(start)
                    .iter()
                    .try_fold(1usize, |n, &m| n.checked_mul(m));
                let cells = cells.ok_or_else(too_large)?;
                let mut values = Vec::new();
                values.try_reserve_exact(cells).map_err(|_| too_large())?;
                values.resize(cells, T::zero());
                slabs.push(values);
            }
            let mut set = |index: &[usize], value: T| {
                let (slab, [row, column]) = place(index);
                let width = slabs[slab].len() / rows;
                slabs[slab][row * width + column] = value;
            };
            data.visit_mask(&mut |index| set(index, T::lit(f64::NAN)))?;
            data.visit(&mut |index, value| set(index, T::lit(value)))?;
            let dense = slabs.into_iter().zip(&starts).map(|(values, &start)| {
                let dense = DenseTensor::masked(shape(start), values, Order::RowMajor)?;
                Signed::from_dense(dense)
            });
            dense.collect()
        };
        Ok(Self {
            slabs: slabs?,
            folding,
            merged,
            width,
        })
    }

    /// The slabs with their first columns.
    fn each(&self) -> impl Iterator<Item = (usize, &Signed<T>)> {
        (0..).step_by(self.width).zip(&self.slabs)
    }

    /// Other factors, arranged as the data.
    pub(super) fn others<U: Real>(&self, others: Others<U>) -> Others<U> {
        others.merging(self.merged[0])
    }

    /// Where a cell of the matrices is in the tensor: its index of the signed mode, and that of all others together.
    fn place(&self, row: usize, column: usize) -> [usize; 2] {
        let [modes, each] = self.merged;
        let columns: usize = self.folding.sizes()[modes..].iter().product();
        [row / each, row % each * columns + column]
    }

    /// Visits the observed cells, zeros included, with the index of the signed mode, that of all others together, and the value.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        let [modes, each] = self.merged;
        let columns: usize = self.folding.sizes()[modes..].iter().product();
        for (first, slab) in self.each() {
            slab.for_each(&mut |row, column, value| {
                visit(row / each, row % each * columns + first + column, value);
            });
        }
    }

    /// The bounds of weights, or of every row of the factor of the mode of the scale.
    pub(super) fn bounds(&self, scale: Option<usize>) -> Bounds {
        let all: usize = self.folding.shape().iter().product();
        let groups = scale.map_or(1, |mode| self.folding.shape()[mode]);
        let (mut sums, mut observed) = (vec![0.0; groups], vec![0; groups]);
        self.for_each(&mut |row, column, v| {
            let at = scale.map_or(0, |mode| self.folding.index(row, column)[mode]);
            sums[at] += v.abs();
            observed[at] += 1;
        });
        let most = Bounds::of(&sums, &observed, all / groups.max(1), Replicates::BOUND);
        match scale {
            None => Bounds::All(most[0]),
            Some(_) => Bounds::Rows(most),
        }
    }

    /// The sum of the absolute values, and the largest of them.
    pub(super) fn sizes(&self) -> (f64, f64) {
        let (mut sum, mut largest) = (0.0, 0.0f64);
        self.for_each(&mut |_, _, v| {
            sum += v.abs();
            largest = largest.max(v.abs());
        });
        (sum, largest)
    }

    /// Number of observed cells.
    pub(super) fn observed(&self) -> usize {
        self.slabs.iter().map(Signed::observed).sum()
    }

    /// The number of indices of all modes but the signed one.
    pub(super) fn columns(&self) -> usize {
        self.folding.sizes().iter().product()
    }

    /// Refuses the first cell that the law cannot have drawn.
    pub(super) fn check(&self, replicates: Replicates, real: bool) -> Result<(), FitError> {
        for (first, slab) in self.each() {
            let checked = replicates.check_data(slab, real);
            let place = |row: usize, column: usize| self.place(row, first + column);
            checked.map_err(|error| self.folding.refused(error, place))?;
        }
        Ok(())
    }

    /// The first cell to which the model gives probability 0: row, column, value.
    pub(super) fn unsupported(
        &self,
        sides: [&DMatrix<T>; 2],
        others: &Others<T>,
    ) -> Option<([usize; 2], f64)> {
        let [plus, minus] = sides.map(|side| others.rows(side, |x, y| x * y));
        let lost = self.each().map(|(first, slab)| {
            let right = others.columns(first, slab.shape().1);
            let lost = unsupported(slab, [&plus, &minus], &right);
            lost.map(|([row, column], value)| (self.place(row, first + column), value))
        });
        lost.flatten().min_by_key(|(at, _)| *at)
    }

    /// Hides the cells to which the model gives probability 0; the sum of their absolute values.
    ///
    /// # Errors
    ///
    /// [`FitError::Impossible`] with the first of them, where they are to be refused.
    pub(super) fn possible(
        &mut self,
        sides: [&DMatrix<T>; 2],
        others: &Others<T>,
        impossible: Impossible,
    ) -> Result<f64, FitError> {
        let Some(([row, column], value)) = self.unsupported(sides, others) else {
            return Ok(0.0);
        };
        if impossible == Impossible::Refuse {
            let index = self.folding.index(row, column);
            return Err(FitError::Impossible { index, value });
        }
        let mut dropped = 0.0;
        let [plus, minus] = sides.map(|side| others.rows(side, |x, y| x * y));
        for (first, slab) in (0..).step_by(self.width).zip(&mut self.slabs) {
            let right = others.columns(first, slab.shape().1);
            slab.hide(|row, column, value| {
                let lost = !reached([&plus, &minus], &right, (row, column), value);
                dropped += if lost { value.abs() } else { 0.0 };
                lost
            });
        }
        Ok(dropped)
    }

    /// Expected counts, from `logs` where the numbers do not do and these are given. `names` are of the atoms, and of what is called if the activations are not numbers.
    pub(super) fn pass(
        &self,
        split: Split,
        (atoms, sides): (&DMatrix<T>, [&DMatrix<T>; 2]),
        others: &Others<T>,
        wanted: SignedWanted,
        names: [&str; 2],
        logs: Option<LnFactors<'_>>,
    ) -> Result<Passed<T>, FitError> {
        let product = |x: T, y: T| x * y;
        let merged = self.merged[0] > 0;
        let rows = merged.then(|| sides.map(|side| others.rows(side, product)));
        let sides = rows.as_ref().map_or(sides, |[plus, minus]| [plus, minus]);
        let stacked = merged.then(|| stack(sides[0], sides[1]));
        let both = stacked.as_ref().unwrap_or(atoms);
        // The factors in rows have their counts from them.
        let left = wanted.left || merged && wanted.right;
        let (mut sums, mut counts) = (None, None);
        // In double precision: there may be many slabs.
        let add = |to: &mut Option<DMatrix<f64>>, found: &SignedSums<T>| {
            let own = stack(&found.plus, &found.minus).map(|x| x.to_f64());
            *to = Some(match to.take() {
                Some(sums) => sums + own,
                None => own,
            });
        };
        let (largest, mut ln) = (logs.map_or(1.0, |_| others.largest()), None);
        let mut shares = wanted.right.then(|| others.shares());
        let mut value = 0.0;
        for (first, slab) in self.each() {
            let right = others.columns(first, slab.shape().1);
            let model = SignedModel {
                plus: sides[0],
                minus: sides[1],
                right: &right,
            };
            let watch = logs.and_then(|_| {
                let sides = sides.map(DMatrix::as_slice);
                Watch::over(split, sides, right.as_slice(), atoms.ncols(), largest)
            });
            let pass = SignedWanted { left, ..wanted };
            let mut found = match &watch {
                None => slab.pass(&model, &split, pass),
                Some(watch) => slab.pass(&model, watch, pass),
            };
            if let (Some(logs), true) = (logs, watch.is_some_and(|watch| watch.met())) {
                let (atoms, ln_others) = match &mut ln {
                    Some(ln) => ln,
                    None => {
                        let (atoms, others) = logs()?;
                        let others = self.others(others);
                        let rows = |side: DMatrix<f64>| {
                            others.rows(&side.transpose(), |x, y| x + y).transpose()
                        };
                        ln.insert((atoms.map(rows), others))
                    }
                };
                let logs = Logs {
                    atoms: atoms.clone(),
                    activations: ln_others.ln_columns(first, right.ncols()),
                };
                let found = faint::pass(slab, split.replicates, &logs);
                value += found.value;
                if left {
                    add(&mut counts, &found);
                }
                if let Some(shares) = &mut shares {
                    others.share_out(&found.right, first, shares);
                }
                continue;
            }
            value += found.value;
            if left {
                // [EXT 6] w th± ∘ MTTKRP_m(G±; B)
                add(&mut sums, &found);
            }
            if let Some(shares) = &mut shares {
                // [SKELLAM 5] with the activations' counts shared out over their factors
                scaled(names[1], &mut found.right, &right)?;
                others.share_out(&found.right, first, shares);
            }
        }
        let [mut sums, counts] = [sums, counts].map(|m| m.map(|m| m.map(T::lit)));
        if let Some(sums) = &mut sums {
            scaled(names[0], sums, both)?;
        }
        let all = match (sums, counts) {
            (Some(sums), Some(counts)) => Some(sums + counts),
            (sums, counts) => sums.or(counts),
        };
        let own = match all {
            Some(all) if merged => Some(others.share_rows(&all, atoms.nrows(), shares.as_mut())),
            all => all,
        };
        let atoms = own.filter(|_| wanted.left);
        Ok(Passed {
            atoms,
            shares,
            value,
        })
    }
}
