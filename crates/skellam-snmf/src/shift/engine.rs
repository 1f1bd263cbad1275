//! Rates and expected counts of shifted atoms, by the arithmetic that should be fastest.
//!
//! Sides are one more dimension of data and kernels, along which nothing is shifted: to the sums of shifted models they are channels.

use nalgebra::DMatrix;
use plca_fit::FitError;
use plca_tensor::arrange::Signed;
use plca_tensor::parallel::map_in_order;
#[cfg(feature = "fft")]
use plca_tensor::shift::Transforms;
use plca_tensor::shift::{Folded, Parts, Stack, cost, direct};
use plca_tensor::{CompensatedSum, Real, SignedModel, SignedWanted, SplitRule, above_rounding};

use super::Placed;
use crate::faint::{Watch, largest};
use crate::rule::Split;

/// Cells of one part.
const PART: usize = 4096;

/// Data as an arithmetic needs them.
#[derive(Debug)]
enum How<T> {
    /// The sums as they are written, over cells `[c][d][x]`.
    Direct(Vec<T>),
    /// Products of matrices of stacked copies.
    Matrix(Stack, Signed<T>),
    /// Fourier transforms.
    #[cfg(feature = "fft")]
    Transforms {
        transforms: Box<Transforms>,
        /// `[c][d][x]`.
        cells: Vec<f64>,
        /// Those of the positive side, and with the other sign those of the negative one.
        sides: Vec<f64>,
        /// How many of them are not negative.
        own: usize,
    },
}

/// Atoms that are placed all over the data.
#[derive(Debug)]
pub(super) struct Engine<T> {
    pub(super) placed: Placed<T>,
    folded: Folded,
    how: How<T>,
}

/// Expected counts of atoms and activations, empty where they were not wanted, and the likelihood.
pub(super) type Expected<T> = ([Vec<T>; 2], Option<f64>);

/// Sums over `E` of kernels and impulses, as far as they were wanted, and the likelihood.
type Sums<T> = ([Option<Vec<T>>; 2], Option<f64>);

/// Logarithms of atoms and activations, in the layout of the blocks.
pub(super) type LnBlocks<'a> = &'a dyn Fn() -> Result<[DMatrix<f64>; 2], FitError>;

impl<T: Real> Engine<T> {
    pub(super) fn new(placed: Placed<T>, components: usize) -> Result<Self, FitError> {
        let folded = placed.window.folded();
        let (by_matrix, stack) = cost::stack::<T>(&folded, components);
        let by_loops = cost::direct::<T>(&folded, components);
        #[cfg(feature = "fft")]
        {
            let (by_transforms, transformed) = cost::transformed(&folded, components);
            if by_transforms < by_loops.min(by_matrix) {
                let transforms = Box::new(Transforms::new(&folded, transformed));
                return Ok(Self::by_transforms(placed, folded, transforms));
            }
        }
        let window = &placed.window;
        let how = if by_loops <= by_matrix {
            How::Direct(window.arranged(&placed.cells, |at| at))
        } else {
            let one = window.folded_once();
            let cells = window.arranged(&placed.cells, |at| stack.place(&one, at));
            let [rows, columns] = stack.shape(&one);
            let cells = DMatrix::from_vec(rows, columns, cells);
            How::Matrix(stack, Signed::from_matrix(cells)?)
        };
        Ok(Self {
            placed,
            folded,
            how,
        })
    }

    #[cfg(feature = "fft")]
    fn by_transforms(placed: Placed<T>, folded: Folded, transforms: Box<Transforms>) -> Self {
        let cells = placed.window.arranged(&placed.cells, |at| at);
        let cells: Vec<f64> = cells.into_iter().map(T::to_f64).collect();
        let plane = folded.lanes * folded.positions();
        let sides = cells.chunks(plane).flat_map(|cells| {
            let minus = cells.iter().map(|v| -v);
            cells.iter().copied().chain(minus)
        });
        let sides: Vec<f64> = sides.collect();
        Self {
            how: How::Transforms {
                transforms,
                own: sides.iter().filter(|v| **v >= 0.0).count(),
                cells,
                sides,
            },
            placed,
            folded,
        }
    }

    /// Expected counts under these atoms and activations, and the likelihood, under a rule for their units; from `logs` where the numbers do not do and these are given.
    pub(super) fn expect(
        &self,
        split: Split,
        blocks @ [atoms, activations]: [&[T]; 2],
        wanted: [bool; 2],
        value: bool,
        logs: Option<LnBlocks<'_>>,
    ) -> Result<Expected<T>, FitError> {
        let terms = atoms.len() / 2;
        let over = || {
            Watch::over(
                split,
                [atoms, &[]],
                activations,
                terms,
                largest(activations),
            )
        };
        let Some((logs, watch)) = logs.and_then(|logs| Some((logs, over()?))) else {
            return Ok(self.by_numbers(&split, split, blocks, wanted, value));
        };
        let found = self.by_numbers(&watch, split, blocks, wanted, value);
        if watch.met() {
            return Ok(self.placed.faint(&logs()?));
        }
        Ok(found)
    }

    fn by_numbers<R: SplitRule<T> + SplitRule<f64>>(
        &self,
        rule: &R,
        #[cfg_attr(not(feature = "fft"), expect(unused_variables))] split: Split,
        [atoms, activations]: [&[T]; 2],
        wanted: [bool; 2],
        value: bool,
    ) -> Expected<T> {
        let f = &self.folded;
        let [kernels, impulses] = [f.fold(0, atoms), f.fold(1, activations)];
        let k = atoms.len() / (2 * self.placed.window.taps());
        let weights = vec![T::one(); k];
        let model = Parts {
            weights: &weights,
            kernels: &kernels,
            impulses: &impulses,
        };
        let any = wanted.contains(&true);
        let (sums, value) = match &self.how {
            How::Direct(cells) => {
                let mut e = direct::model(f, &model);
                let value = excess(f, rule, cells, &mut e, any, value);
                let sums = |side: usize| direct::sums(f, &model, &e, side);
                ([0, 1].map(|side| wanted[side].then(|| sums(side))), value)
            }
            How::Matrix(stack, cells) => {
                self.by_matrix(rule, (*stack, cells), &model, wanted, value)
            }
            #[cfg(feature = "fft")]
            How::Transforms {
                transforms,
                cells,
                sides,
                own,
            } => {
                let double = |x: &[T]| -> Vec<f64> { x.iter().map(|x| x.to_f64()).collect() };
                let single = |x: Vec<f64>| -> Vec<T> { x.into_iter().map(T::lit).collect() };
                let [weights, kernels, impulses] =
                    [&weights, &kernels, &impulses].map(|x| double(x));
                let model = Parts {
                    weights: &weights,
                    kernels: &kernels,
                    impulses: &impulses,
                };
                let mut b = transforms.take();
                transforms.model(&model, sides, |v| v >= 0.0, *own, &mut b);
                let value = excess(f, rule, cells, &mut b.p, any, value);
                if any {
                    transforms.prepare(&model, self.placed.size * split.met(), &mut b);
                }
                let sums = |side| single(transforms.sums(&model, &b, side, true));
                let sums = [0, 1].map(|side| wanted[side].then(|| sums(side)));
                transforms.give(b);
                (sums, value)
            }
        };
        let mut side = 0;
        let counts = sums.map(|sums| {
            let block = model.blocks()[side];
            let other = model.blocks()[1 - side];
            let counts = sums.map(|mut sums| {
                let cells = sums.len() / k;
                let others = other.chunks_exact(other.len() / k);
                let columns = sums.chunks_exact_mut(cells).zip(block.chunks_exact(cells));
                for ((sums, block), other) in columns.zip(others) {
                    // [EXT 5] Σ_h la G = Σ la + corr(E, la), Σ th G = Σ th + corr(E, th)
                    let whole = T::lit(other.iter().map(|x| x.to_f64()).sum());
                    let pairs = sums.iter_mut().zip(block);
                    pairs.for_each(|(s, &x)| *s = x * above_rounding(whole + *s, whole));
                }
                f.unfold(side, sums)
            });
            side += 1;
            counts.unwrap_or_default()
        });
        (counts, value)
    }

    /// The sums over `E` by products of matrices.
    fn by_matrix(
        &self,
        rule: &impl SplitRule<T>,
        (stack, cells): (Stack, &Signed<T>),
        model: &Parts<'_, T>,
        wanted: [bool; 2],
        value: bool,
    ) -> Sums<T> {
        let f = &self.folded;
        let [left, right] = stack.factors(f, model);
        // Rows of a side that stand together.
        let rows = match stack {
            Stack::Impulses => 1,
            Stack::Kernels => f.positions(),
        };
        let row = |i: usize, side: usize| (2 * (i / rows) + side) * rows + i % rows;
        let (n, columns) = (left.nrows() / 2, left.ncols());
        let [plus, minus] =
            [0, 1].map(|side| DMatrix::from_fn(n, columns, |i, j| left[(row(i, side), j)]));
        let rates = SignedModel {
            plus: &plus,
            minus: &minus,
            right: &right,
        };
        let pass = SignedWanted {
            left: wanted[0],
            right: wanted[1],
            value,
        };
        let found = cells.pass(&rates, &Excess(rule), pass);
        let kernels = wanted[0].then(|| {
            let mut both = left;
            for (side, sums) in [found.plus, found.minus].iter().enumerate() {
                for (mut to, from) in both.column_iter_mut().zip(sums.column_iter()) {
                    from.iter()
                        .enumerate()
                        .for_each(|(i, &x)| to[row(i, side)] = x);
                }
            }
            both
        });
        let impulses = wanted[1].then_some(found.right);
        let k = model.weights.len();
        let [kernels, impulses] = stack.unfold(f, [kernels, impulses], k);
        let sums = [wanted[0].then_some(kernels), wanted[1].then_some(impulses)];
        (sums, value.then_some(found.value))
    }
}

/// [EXT 5] `E = G - 1` on observed cells, 0 elsewhere, in place of the rates of both sides, if it is wanted; and the likelihood.
fn excess<T: Real>(
    f: &Folded,
    rule: &impl SplitRule<T>,
    cells: &[T],
    rates: &mut [T],
    wanted: bool,
    value: bool,
) -> Option<f64> {
    let plane = f.lanes * f.positions();
    let mut parts = Vec::new();
    for (cells, rates) in cells.chunks(plane).zip(rates.chunks_mut(2 * plane)) {
        let (plus, minus) = rates.split_at_mut(plane);
        let sides = plus.chunks_mut(PART).zip(minus.chunks_mut(PART));
        parts.extend(cells.chunks(PART).zip(sides));
    }
    let values = map_in_order(
        parts,
        |(cells, (plus, minus)): (&[T], (&mut [T], &mut [T]))| {
            let found = if value {
                rule.value(cells, plus, minus)
            } else {
                0.0
            };
            if wanted {
                Excess(rule).multipliers(cells, plus, minus);
            }
            found
        },
    );
    value.then(|| values.into_iter().collect::<CompensatedSum>().value())
}

/// `E = G - 1` of a rule.
#[derive(Clone, Copy, Debug)]
struct Excess<'a, R>(&'a R);

impl<T: Real, R: SplitRule<T>> SplitRule<T> for Excess<'_, R> {
    fn multipliers(&self, cells: &[T], plus: &mut [T], minus: &mut [T]) {
        self.0.multipliers(cells, plus, minus);
        for side in [plus, minus] {
            side.iter_mut().for_each(|g| *g -= T::one());
        }
    }

    fn value(&self, cells: &[T], plus: &[T], minus: &[T]) -> f64 {
        self.0.value(cells, plus, minus)
    }
}
