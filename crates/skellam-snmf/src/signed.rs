//! What the models of data of either sign share.

use nalgebra::{DMatrix, DVector, DVectorView, RowDVector};
use plca_fit::{
    Algorithm, Explained, FitError, Impossible, State, Transform,
    blocks::{Axes, BlockSpec, Draw},
    em::Counts,
    explain::{Alone, Outcome, begin, bounded, uncertified},
};
use plca_tensor::arrange::Signed;
use plca_tensor::{DenseTensor, Order, Real, SignedModel, SignedWanted};

use crate::Replicates;
use crate::bounds::Bounds;
use crate::check::scaled;
use crate::rule::Split;
use crate::sides::{split, stack};

/// Variational Bayes of a model: the check of its settings and its binding, by a method `on_data`, and the reconstruction of a state, of the shape that
/// is given, by its means.
macro_rules! bayesian {
    ($vb:ident, $state:ident, |$this:ident| $shape:expr) => {
        impl plca_fit::Settings for $vb {
            fn components(&self) -> usize {
                self.components
            }

            /// # Errors
            ///
            /// [`FitError::Setting`] without components or replicates. Priors are checked when the model meets its data.
            fn check(&self) -> Result<(), FitError> {
                crate::check::check_numbers(self.components, self.replicates)
            }
        }

        impl<T: Real> plca_fit::Model<T> for $vb {
            type State = $state<T>;

            fn bind<'a>(
                &'a self,
                data: &'a dyn Data<T>,
            ) -> Result<Box<dyn plca_fit::Algorithm<T> + 'a>, FitError> {
                plca_fit::Settings::check(self)?;
                Ok(Box::new(self.on_data(data)?))
            }
        }

        impl<T: Real> Reconstruct for $state<T> {
            fn shape(&self) -> Vec<usize> {
                let $this = self;
                $shape
            }

            fn components(&self) -> usize {
                self.atoms_shape().ncols()
            }

            fn cell(&self, index: &[usize]) -> f64 {
                self.means().map_or(f64::NAN, |means| means.cell(index))
            }

            fn cells(
                &self,
                component: Option<usize>,
            ) -> Result<plca_tensor::DenseTensor<T>, FitError> {
                self.means()?.cells(component)
            }
        }
    };
}
pub(crate) use bayesian;

/// Data with the E-step of their law.
#[derive(Debug)]
pub(crate) struct SignedData<T> {
    pub(crate) cells: Signed<T>,
    pub(crate) split: Split,
    /// The sum of the absolute values.
    pub(crate) size: f64,
    /// The rate of noise.
    pub(crate) noise: f64,
}

impl<T: Real> SignedData<T> {
    /// # Errors
    ///
    /// [`FitError::Entry`] with the first cell that the law cannot have drawn.
    pub(crate) fn new(
        cells: Signed<T>,
        replicates: Replicates,
        real: bool,
    ) -> Result<Self, FitError> {
        replicates.check_data(&cells, real)?;
        let mut size = 0.0;
        cells.for_each(&mut |_, _, v| size += v.abs());
        Ok(Self {
            split: Split::of(replicates, &cells),
            cells,
            size,
            noise: 0.0,
        })
    }

    /// The sum of the absolute values, 1 of data that are all 0.
    pub(crate) fn unit(&self) -> f64 {
        if self.size > 0.0 { self.size } else { 1.0 }
    }

    /// The same data under noise, of a rate that follows from data of this sum and number of observed cells: these, or those that they are a shard of.
    pub(crate) fn with_noise(mut self, size: f64, observed: usize) -> Self {
        self.noise = self.split.replicates.noise(size, observed);
        self.split = self.split.with_noise(self.noise);
        self
    }

    /// The bounds of the activations of every column.
    pub(crate) fn bounds(&self) -> Bounds {
        if self.noise <= 0.0 {
            return Bounds::None;
        }
        let (rows, columns) = self.cells.shape();
        let (mut sums, mut observed) = (vec![0.0; columns], vec![0; columns]);
        self.cells.for_each(&mut |_, column, v| {
            sums[column] += v.abs();
            observed[column] += 1;
        });
        Bounds::Columns(Bounds::of(&sums, &observed, rows, Replicates::BOUND))
    }

    /// Expected counts of atoms and of activations in this unit, each as wanted, and the likelihood. `specs` are of the atoms, and of what is called if the
    /// activations are not numbers.
    pub(crate) fn counts(
        &self,
        specs: &[BlockSpec<T>],
        [atoms, activations]: [&DMatrix<T>; 2],
        wanted: SignedWanted,
        unit: f64,
    ) -> Result<Counts<T>, FitError> {
        let [plus, minus] = split(atoms);
        let scale = self.split.scale();
        let scaled_activations = scale_by(activations, scale);
        let model = SignedModel {
            plus: &plus,
            minus: &minus,
            right: &scaled_activations,
        };
        let rule = self.split.of_scaled_rates();
        let sums = self.cells.pass(&model, &rule, wanted);
        let mut blocks = vec![None, None];
        if wanted.left {
            // [SKELLAM 5] T± ∘ G± Hᵀ
            let mut left = stack(&sums.plus, &sums.minus);
            scaled(&specs[0].name, &mut left, atoms)?;
            left *= T::lit(1.0 / scale / unit);
            blocks[0] = Some(left);
        }
        if wanted.right {
            // [SKELLAM 5] H ∘ (T⁺ᵀ G⁺ + T⁻ᵀ G⁻)
            let mut right = sums.right;
            scaled(
                &specs[1].name,
                &mut right,
                &scale_by(activations, 1.0 / unit),
            )?;
            blocks[1] = Some(right);
        }
        Ok(Counts {
            blocks,
            value: wanted.value.then_some(sums.value),
        })
    }
}

/// A block in other units.
pub(crate) fn scale_by<T: Real>(block: &DMatrix<T>, scale: f64) -> DMatrix<T> {
    block.map(|x| x * T::lit(scale))
}

/// The block of atoms, `2F x K`: uniform on the simplex.
pub(crate) fn atoms_spec<T: Real>(rows: usize, components: usize) -> BlockSpec<T> {
    let mut atoms = BlockSpec::simplex("atoms", (2 * rows, components), Axes::sides(0));
    atoms.draw = Draw::Sides;
    atoms
}

/// The activation that explains the mean absolute value of data of this size, taken for 1 if they are all 0.
pub(crate) fn mean_activation(size: f64, observed: usize, rows: usize, components: usize) -> f64 {
    let mean = match size > 0.0 {
        true => size / observed as f64,
        false => 1.0,
    };
    mean * rows as f64 / components as f64
}

/// The first observed cell, in row-major order, to which the factors give probability 0: where it is, and its value.
pub(crate) fn unsupported<T: Real>(
    data: &Signed<T>,
    sides: [&DMatrix<T>; 2],
    activations: &DMatrix<T>,
) -> Option<([usize; 2], f64)> {
    let positive = |m: &DMatrix<T>| m.iter().all(|&x| x > T::zero());
    if [sides[0], sides[1], activations].into_iter().all(positive) {
        return None;
    }
    let mut first: Option<([usize; 2], f64)> = None;
    data.for_each(&mut |row, column, value| {
        let earlier = first.is_some_and(|(at, _)| at < [row, column]);
        if !earlier && !reached(sides, activations, (row, column), value) {
            first = Some(([row, column], value));
        }
    });
    first
}

/// Whether a value has a rate of its own sign; 0 needs none.
pub(crate) fn reached<T: Real>(
    [plus, minus]: [&DMatrix<T>; 2],
    activations: &DMatrix<T>,
    (row, column): (usize, usize),
    value: f64,
) -> bool {
    let atoms = if value > 0.0 { plus } else { minus };
    value == 0.0
        || (0..atoms.ncols())
            .any(|z| atoms[(row, z)] > T::zero() && activations[(z, column)] > T::zero())
}

/// Hides the cells to which the factors give probability 0; the sum of their absolute values.
///
/// # Errors
///
/// [`FitError::Impossible`] with the first of them in row-major order, where they are to be refused.
pub(crate) fn possible<T: Real>(
    cells: &mut Signed<T>,
    sides: [&DMatrix<T>; 2],
    activations: &DMatrix<T>,
    impossible: Impossible,
) -> Result<f64, FitError> {
    let first = unsupported(cells, sides, activations);
    match (first, impossible) {
        (None, _) => Ok(0.0),
        (Some(_), Impossible::Drop) => {
            let mut dropped = 0.0;
            cells.hide(|row, column, value| {
                let lost = !reached(sides, activations, (row, column), value);
                dropped += if lost { value.abs() } else { 0.0 };
                lost
            });
            Ok(dropped)
        }
        (Some((at, value)), _) => {
            let index = at.to_vec();
            Err(FitError::Impossible { index, value })
        }
    }
}

/// New data explained from a start by an algorithm without a certificate; which observations are `empty`, and the sum of what was `dropped`.
///
/// # Errors
///
/// Those of the start and of the run.
pub(crate) fn explained<S: State>(
    algorithm: impl Algorithm<S::Scalar>,
    start: Vec<DMatrix<S::Scalar>>,
    how: &Transform,
    empty: Vec<usize>,
    dropped: f64,
) -> Result<Explained<S>, FitError> {
    let start = begin(&algorithm, start)?;
    Ok(Explained::new(
        uncertified(Box::new(algorithm), start, how)?,
        Vec::new(),
        dropped,
        empty,
    ))
}

/// The same by variational Bayes from an even start.
///
/// # Errors
///
/// As there.
pub(crate) fn explained_by_bound<S: State>(
    algorithm: &dyn Algorithm<S::Scalar>,
    start: Vec<DMatrix<S::Scalar>>,
    how: &Transform,
    empty: Vec<usize>,
) -> Result<Explained<S>, FitError> {
    let start = begin(algorithm, start)?;
    Ok(Explained::new(
        bounded(algorithm, start, how)?,
        Vec::new(),
        0.0,
        empty,
    ))
}

/// What is kept of a column that was explained alone: its column of every block but the first, the atoms.
pub(crate) type Column<T> = Alone<Vec<DVector<T>>>;

/// That of a batch of one.
pub(crate) fn alone<S: State>(found: &Explained<S>) -> Column<S::Scalar> {
    Alone::of(found, |state| {
        let own = state.parameters().matrices()[1..].iter();
        own.map(|block| block.column(0).into_owned()).collect()
    })
}

/// Columns that were explained alone, as one: `algorithm` is that of all of them, and columns without a result are filled with `nothing`, or keep their `start` if that is `None`.
/// Blocks from the second on have a column for every column of the data. `own` is the likelihood, where it is not that of all of them.
///
/// # Errors
///
/// Those of the start, of the objective and of the state.
pub(crate) fn joined<S: State>(
    algorithm: &dyn Algorithm<S::Scalar>,
    (start, nothing): (Vec<DMatrix<S::Scalar>>, Option<S::Scalar>),
    columns: &[Option<Column<S::Scalar>>],
    own: Option<f64>,
    empty: Vec<usize>,
    dropped: f64,
) -> Result<Explained<S>, FitError> {
    let mut at = begin(algorithm, start)?;
    at.change(|j, block| {
        for (y, column) in columns.iter().enumerate().filter(|_| j > 0) {
            if let Some(column) = column {
                block.set_column(y, &column.own[j - 1]);
            } else if let Some(nothing) = nothing {
                block.column_mut(y).fill(nothing);
            }
        }
    });
    let mut compared = algorithm.objective(&at)?;
    if let Some(own) = own {
        compared = own + (compared - algorithm.likelihood(&at)?);
    }
    let ended = Outcome::of(columns.iter().flatten());
    Ok(Explained::new(
        ended.fit_compared(algorithm, at, compared)?,
        Vec::new(),
        dropped,
        empty,
    ))
}

/// Those of `n` observations in which nothing but zeros was observed; a cell belongs to the one that is named by its row and column.
pub(crate) fn empty(
    visit: impl FnOnce(&mut dyn FnMut(usize, usize, f64)),
    n: usize,
    observation: impl Fn(usize, usize) -> usize,
) -> Vec<usize> {
    let mut empty = vec![true; n];
    visit(&mut |row, column, value| empty[observation(row, column)] &= value == 0.0);
    (0..n).filter(|&y| empty[y]).collect()
}

/// Refuses to explain along another mode than the columns.
pub(crate) fn along_columns(how: &Transform) -> Result<(), FitError> {
    match how.mode(2)? {
        1 => Ok(()),
        _ => Err(FitError::Conflict {
            what: "new data are transformed column by column: expected `along` 1".into(),
        }),
    }
}

/// `Σ_z (plus_z - minus_z) h_z` of one cell.
pub(crate) fn cell<T: Real>(
    [plus, minus]: [RowDVector<T>; 2],
    activations: DVectorView<'_, T>,
) -> f64 {
    let atoms = plus.iter().zip(minus.iter());
    let terms = atoms.zip(activations.iter());
    let terms = terms.map(|((&p, &m), h)| (p - m).to_f64() * h.to_f64());
    terms.sum()
}

/// `W H` row by row, or column `z` of `W` times row `z` of `H`.
pub(crate) fn rows_of<T: Real>(w: &DMatrix<T>, h: &DMatrix<T>, component: Option<usize>) -> Vec<T> {
    let (first, count) = component.map_or((0, w.ncols()), |z| (z, 1));
    let rows = h.rows(first, count).transpose() * w.columns(first, count).transpose();
    rows.data.into()
}

/// The same as a tensor.
///
/// # Errors
///
/// [`FitError::Data`] for a value beyond the scalar.
pub(crate) fn product<T: Real>(
    w: &DMatrix<T>,
    h: &DMatrix<T>,
    component: Option<usize>,
) -> Result<DenseTensor<T>, FitError> {
    let shape = vec![w.nrows(), h.ncols()];
    let values = rows_of(w, h, component);
    Ok(DenseTensor::new(shape, values, Order::RowMajor)?)
}
