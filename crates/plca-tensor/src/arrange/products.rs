//! The data times a Khatri-Rao product.

use nalgebra::{DMatrix, DVector};

use super::visit;
use crate::data::{position, rescale, unravel};
use crate::kernel::aligned::Pool;
use crate::kernel::dense::{Grid, Layout};
use crate::kernel::lanes;
use crate::kernel::mttkrp::{Fill, Product, khatri_rao, unscaled_weights};
use crate::kernel::mttkrp_sparse::Sorted;
use crate::kernel::panel::Panel;
use crate::parallel::for_each_part;
use crate::{CompensatedSum, Coordinates, Data, DataError, Mask, Order, Real};

/// Columns that are written side by side: their numbers lie in one line of the cache.
const COLUMNS: usize = 8;

/// How the cells are kept.
#[derive(Debug)]
enum Cells<'a, T> {
    /// NaN marks a hidden cell.
    Dense(Grid<'a, T>, Layout),
    Sparse {
        cells: Sorted<T>,
        hidden: Hidden<T>,
    },
}

/// Which cells of sparse data are hidden.
#[derive(Debug)]
enum Hidden<T> {
    None,
    Listed(Sorted<T>),
    NotStored,
}

/// Data of either sign as squared-error models need them: contracted with the factors of all modes but one.
///
/// ```math
/// M[i,z] = \sum_{x : x_j = i} X[x] \prod_{m \ne j} F_m[x_m, z]
/// ```
///
/// `X` is the data, `F_m` the factor of mode `m`, `I_m x K`, and `M` is `I_j x K`. Modes are counted from 0. In the literature this is
/// MTTKRP: the data unfolded along mode `j`, times a Khatri-Rao product. [`mttkrp`](Self::mttkrp) computes it without an unfolded copy.
///
/// Values are held multiplied by a power of two, [`scale`](Self::scale). It is 1 unless the values are extremely large or small. Every
/// result is in the units of the values as held; divide sums of values by `scale`, and sums of squares by its square, to go back.
///
/// Memory: dense data are borrowed, without a copy; of other data there is one sorted copy of the entries for every mode.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order, arrange::Products};
/// let x = DenseTensor::new(vec![2, 2], vec![1.0, -2.0, 3.0, 4.0], Order::RowMajor)?;
/// let x = Products::new(&x)?;
/// assert_eq!((x.total(), x.squared_norm()), (6.0, 30.0));
/// let factors = [dmatrix![1.0; 0.0], dmatrix![0.5; 0.5]];
/// assert_eq!(x.mttkrp(&factors, 0), dmatrix![-0.5; 3.5]);       // X F_1
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct Products<'a, T> {
    shape: &'a [usize],
    cells: Cells<'a, T>,
    scale: T,
    total: f64,
    squares: f64,
    complete: bool,
    /// Keeps nothing.
    pool: Pool<T>,
}

/// The products of a sweep over the modes, which share work: made by [`Products::memo`].
///
/// The modes of dense data are cut into two halves. The data contracted with one half serve every mode of the other half; they are kept
/// until a factor that was contracted [changes](Self::set). So a sweep that takes the modes in turn passes over dense data only twice,
/// however many modes there are. On sparse data nothing is kept, and every product is a pass over the entries.
///
/// Memory: at most two copies of the factors, and what is kept: `K` numbers for every cell of one half.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order, arrange::Products};
/// let x = DenseTensor::new(vec![2, 2, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], Order::RowMajor)?;
/// let products = Products::new(&x)?;
/// let mut memo = products.memo(&[dmatrix![1.0; 0.0], dmatrix![1.0; 1.0], dmatrix![1.0; 2.0]]);
/// assert_eq!(memo.product(1), dmatrix![5.0; 11.0]);                   // 1 + 2·2 and 3 + 2·4
/// memo.set(1, &dmatrix![5.0; 11.0]);
/// assert_eq!(memo.product(2), dmatrix![38.0; 54.0]);
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct Memo<'a, T> {
    data: &'a Products<'a, T>,
    /// Where halves of dense data have several modes.
    factors: Vec<DMatrix<T>>,
    panels: Vec<Panel<'a, T>>,
    kept: Option<Kept<T>>,
}

#[derive(Debug)]
struct Kept<T> {
    sums: Vec<T>,
    exponent: i32,
    /// The modes that were not contracted; all others were.
    modes: Vec<usize>,
}

impl<T: Real> Memo<'_, T> {
    /// Replaces the factor of a mode, counted from 0.
    ///
    /// # Panics
    ///
    /// If it has another shape than the one before, or if there is no such mode.
    pub fn set(&mut self, mode: usize, factor: &DMatrix<T>) {
        let Panel {
            rows, k, stride, ..
        } = self.panels[mode];
        assert_eq!(factor.shape(), (rows, k), "factor shape");
        self.panels[mode] = Panel::signed(factor, stride, &self.data.pool);
        if let Some(kept) = self.factors.get_mut(mode) {
            kept.clone_from(factor);
        }
        self.kept.take_if(|kept| !kept.modes.contains(&mode));
    }

    /// The product of the current factors for `mode`, bit-identical to [`Products::mttkrp`].
    ///
    /// # Panics
    ///
    /// If there is no such mode.
    pub fn product(&mut self, mode: usize) -> DMatrix<f64> {
        match &self.data.cells {
            Cells::Dense(grid, halves) => {
                let held = (self.kept.take()).filter(|kept| kept.modes.contains(&mode));
                let held =
                    held.unwrap_or_else(|| half(grid, halves, &self.panels, mode, Fill::Values).0);
                let product = spread(&self.panels, &self.factors, mode, &held);
                self.kept = Some(held);
                product
            }
            Cells::Sparse { cells, .. } => {
                let (sums, _) = cells.contract(&self.panels, mode, Fill::Values);
                let exponent = others_exponent(&self.panels, mode);
                unpack(&sums, &self.panels, mode, exponent)
            }
        }
    }
}

impl<'a, T: Real> Products<'a, T> {
    /// Arranges data: dense data are borrowed, the entries of others are copied and sorted, once for every mode.
    ///
    /// # Errors
    ///
    /// [`DataError::NothingObserved`] if every cell is hidden; [`DataError::NotFinite`] if entries of the same cell add up to more than `T`
    /// can hold; the error of data that cannot be read.
    pub fn new(data: &'a dyn Data<T>) -> Result<Self, DataError> {
        let shape = data.shape();
        if let Some(dense) = data.dense() {
            if dense.hidden == dense.grid.values.len() {
                return Err(DataError::NothingObserved);
            }
            let [total, squares] = dense.sums;
            return Ok(Self {
                shape,
                cells: Cells::Dense(dense.grid, Layout::halves(shape)),
                scale: dense.scale,
                total,
                squares,
                complete: dense.hidden == 0,
                pool: Pool::none(),
            });
        }
        let (mut entries, mut listed) = (Coordinates::empty(shape), Coordinates::empty(shape));
        data.visit_mask(&mut |index| listed.push(index, T::zero()))?;
        visit(data, &mut |index, x| entries.push(index, x))?;
        let all = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let hidden = match data.summary().mask {
            Mask::Observed if listed.values.is_empty() => return Err(DataError::NothingObserved),
            Mask::Hidden if all == Some(listed.values.len()) => {
                return Err(DataError::NothingObserved);
            }
            Mask::Hidden => Hidden::Listed(Sorted::new(&listed, true)),
            Mask::Observed => {
                // Zeros that were observed; the values are added to theirs.
                entries.indices.extend(listed.indices);
                entries.values.extend(listed.values);
                Hidden::NotStored
            }
            Mask::Complete if all == Some(entries.values.len()) => Hidden::NotStored,
            Mask::Complete => Hidden::None,
        };
        let scale = rescale(&mut entries.values);
        let cells = Sorted::new(&entries, matches!(hidden, Hidden::NotStored));
        let values = || cells.values().iter().map(|x| x.to_f64());
        Ok(Self {
            shape,
            scale,
            total: values().collect::<CompensatedSum>().value(),
            squares: values().map(|x| x * x).collect::<CompensatedSum>().value(),
            complete: data.is_complete(),
            pool: Pool::none(),
            cells: Cells::Sparse { cells, hidden },
        })
    }

    /// The size of each mode.
    pub fn shape(&self) -> &[usize] {
        self.shape
    }

    /// The power of two by which the given values were multiplied; 1 unless they are extremely large or small.
    pub fn scale(&self) -> f64 {
        self.scale.to_f64()
    }

    /// The sum of the observed values, as held.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The sum of the squares of the observed values, as held.
    pub fn squared_norm(&self) -> f64 {
        self.squares
    }

    /// Whether every cell was observed.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Calls `visit` with the index and the value, as held, of every observed cell that is not 0. The order is always the same.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        match &self.cells {
            Cells::Dense(grid, _) => {
                for (at, x) in grid.values.iter().enumerate() {
                    if !x.is_nan() && *x != T::zero() {
                        visit(&unravel(at, self.shape, Order::RowMajor), x.to_f64());
                    }
                }
            }
            Cells::Sparse { cells, .. } => cells.for_each(&mut |index, x| {
                if x != T::zero() {
                    visit(index, x.to_f64());
                }
            }),
        }
    }

    /// A [`Memo`] of these factors, for the products of one mode after the other. It copies the factors.
    ///
    /// # Panics
    ///
    /// Unless there is one factor for every mode, `I_m x K` with the same `K >= 1` for all.
    pub fn memo(&self, factors: &[DMatrix<T>]) -> Memo<'_, T> {
        let several = matches!(self.cells, Cells::Dense(..)) && factors.len() > 2;
        Memo {
            data: self,
            panels: self.pack(factors),
            factors: if several { factors.to_vec() } else { vec![] },
            kept: None,
        }
    }

    /// The data, as held, contracted with the factors of all modes but `mode`. Hidden cells count as 0, and sums are made in `T`.
    ///
    /// ```math
    /// M[i,z] = \sum_{x : x_\text{mode} = i} X[x] \prod_{m \ne \text{mode}} F_m[x_m, z]
    /// ```
    ///
    /// `factors` holds a factor for every mode, `I_m x K`; that of `mode` gives only its shape. The result is `I_mode x K`.
    ///
    /// Cost: on dense data `2 K Π I` flops. From a [`Memo`] that has kept its half it is `2 K` flops for every cell of that half, about
    /// `2 K √(Π I)`. On sparse data it is `2 K` flops for every entry, and some more for every fibre.
    ///
    /// # Panics
    ///
    /// As [`memo`](Self::memo), and if there is no such mode.
    pub fn mttkrp(&self, factors: &[DMatrix<T>], mode: usize) -> DMatrix<f64> {
        self.memo(factors).product(mode)
    }

    /// The product of [`mttkrp`](Self::mttkrp) for data whose hidden cells are filled by a model, and the squared error of the model.
    ///
    /// ```math
    /// M[i,z] = \sum_{x : x_j = i} \hat X[x] \prod_{m \ne j} F_m[x_m, z], \qquad \sum_\text{obs} \left( \text{scale} \, X - P \right)^2
    /// ```
    ///
    /// `X` is the data as held, and `j` is `mode`. `P[x] = Σ_z w_z Π_m F_m[x_m, z]` is the model, with one of the `weights` for every
    /// component. `X̂` is `scale X` where observed and `P` where hidden. The argument `scale` is free: it is not [`scale`](Self::scale).
    /// The squared error is a sum over the observed cells only.
    ///
    /// The squared error is summed cell by cell on dense data, and on sparse data of which only the stored cells were observed. On other
    /// sparse data the error of the cells without entry is a difference of squared norms, and a sum of its own where nearly all cancels. Of more than
    /// 1.6e7 cells it stays a difference, in double precision.
    ///
    /// # Panics
    ///
    /// As [`mttkrp`](Self::mttkrp), and unless there is one weight for every component.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Order, arrange::Products};
    /// let x = DenseTensor::masked(vec![2, 2], vec![1.0, f64::NAN, 3.0, 4.0], Order::RowMajor)?;
    /// let x = Products::new(&x)?;
    /// let factors = [dmatrix![1.0; 1.0], dmatrix![1.0; 2.0]];
    /// // The model says 2 in the hidden cell, and is wrong by 0, 2 and 2 in the others.
    /// assert_eq!(x.completed_mttkrp(1.0, &[1.0], &factors, 0), (dmatrix![5.0; 11.0], 8.0));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn completed_mttkrp(
        &self,
        scale: f64,
        weights: &[T],
        factors: &[DMatrix<T>],
        mode: usize,
    ) -> (DMatrix<f64>, f64) {
        let panels = self.pack(factors);
        let inner = unscaled_weights(&panels, weights);
        let exponent = others_exponent(&panels, mode);
        let gram = gram_of_others(factors, mode);
        let whole = || {
            let w = DVector::from_iterator(weights.len(), weights.iter().map(|w| w.to_f64()));
            let own = factors[mode].map(|x| x.to_f64()) * DMatrix::from_diagonal(&w);
            own * &gram
        };
        let residual = |scale: f64| Fill::Residual {
            scale: T::lit(scale),
            weights: &inner,
        };
        match &self.cells {
            Cells::Dense(grid, halves) => {
                let (kept, squares) = half(grid, halves, &panels, mode, residual(scale));
                (spread(&panels, factors, mode, &kept) + whole(), squares)
            }
            Cells::Sparse {
                cells,
                hidden: Hidden::NotStored,
            } => {
                let (sums, squares) = cells.contract(&panels, mode, residual(scale));
                (unpack(&sums, &panels, mode, exponent) + whole(), squares)
            }
            Cells::Sparse { cells, hidden } => {
                let (sums, _) = cells.contract(&panels, mode, Fill::Values);
                let mut product = unpack(&sums, &panels, mode, exponent) * scale;
                // Σ (sX - P)² over all observed cells, from the stored ones, the whole model and the hidden part of it: the residual of
                // 0 X is the model, with the other sign.
                let (_, stored) = cells.contract(&panels, mode, residual(scale));
                let (_, at_stored) = cells.contract(&panels, mode, residual(0.0));
                let own = factors[mode].map(|x| x.to_f64());
                let whole = whole();
                let mut norm = 0.0;
                for (z, w) in weights.iter().enumerate() {
                    norm += w.to_f64() * own.column(z).dot(&whole.column(z));
                }
                let mut at_hidden = 0.0;
                if let Hidden::Listed(hidden) = hidden {
                    let (sums, squares) = hidden.contract(&panels, mode, residual(0.0));
                    product -= unpack(&sums, &panels, mode, exponent);
                    at_hidden = squares;
                }
                let mut outside = norm - at_stored - at_hidden;
                // Below this part of the norm the difference is mostly rounding.
                let least = if T::MAX_EXPONENT < 1000 { 0.02 } else { 1e-5 };
                if outside + stored < least * norm {
                    let mut lists = vec![cells];
                    lists.extend(match hidden {
                        Hidden::Listed(hidden) => Some(hidden),
                        _ => None,
                    });
                    outside = squares_outside(&lists, weights, factors, norm);
                }
                let outside = outside.max(0.0);
                (product, stored + outside)
            }
        }
    }

    fn pack(&self, factors: &[DMatrix<T>]) -> Vec<Panel<'_, T>> {
        assert_eq!(factors.len(), self.shape.len(), "one factor per mode");
        let k = factors[0].ncols();
        assert!(k > 0, "at least one component");
        for (factor, &size) in factors.iter().zip(self.shape) {
            assert_eq!(factor.shape(), (size, k), "factor shape");
        }
        let stride = lanes::stride::<T>(k);
        let panel = |factor| Panel::signed(factor, stride, &self.pool);
        factors.iter().map(panel).collect()
    }
}

/// Cells that are looked at one by one where nothing else has enough digits.
const ONE_BY_ONE: usize = 1 << 24;

/// The sum of the squared values of a model in the cells that no list has, in double precision; `norm` is that of all cells.
fn squares_outside<T: Real>(
    lists: &[&Sorted<T>],
    weights: &[T],
    factors: &[DMatrix<T>],
    norm: f64,
) -> f64 {
    let square = |index: &[usize]| {
        let term = |(z, w): (usize, &T)| {
            let entries = factors.iter().zip(index).map(|(f, &i)| f[(i, z)].to_f64());
            entries.fold(w.to_f64(), |x, entry| x * entry)
        };
        weights.iter().enumerate().map(term).sum::<f64>().powi(2)
    };
    let mut listed = CompensatedSum::default();
    for list in lists {
        list.for_each(&mut |index, _| listed += square(index));
    }
    let outside = norm - listed.value();
    let shape: Vec<_> = factors.iter().map(DMatrix::nrows).collect();
    let all = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    let all = all.filter(|&all| outside < 1e-5 * norm && all <= ONE_BY_ONE);
    let Some(all) = all else { return outside };
    let mut inside = vec![false; all];
    for list in lists {
        list.for_each(&mut |index, _| inside[position(index, &shape, Order::RowMajor)] = true);
    }
    let outside = (0..all).filter(|&at| !inside[at]);
    let squares = outside.map(|at| square(&unravel(at, &shape, Order::RowMajor)));
    squares.collect::<CompensatedSum>().value()
}

/// Contracts the half that `mode` is not in; also the tiles' sum of squares.
fn half<T: Real>(
    grid: &Grid<'_, T>,
    halves: &Layout,
    panels: &[Panel<'_, T>],
    mode: usize,
    fill: Fill<'_, T>,
) -> (Kept<T>, f64) {
    let slow = halves.slow.contains(&mode);
    let (left, right) = (
        khatri_rao(panels, &halves.fast),
        khatri_rao(panels, &halves.slow),
    );
    let product = Product {
        grid,
        halves,
        k: panels[0].k,
        stride: panels[0].stride,
        left: &left,
        right: &right,
        fill,
    };
    let (sums, squares) = product.half(slow);
    let (modes, contracted) = if slow {
        (&halves.slow, &halves.fast)
    } else {
        (&halves.fast, &halves.slow)
    };
    let kept = Kept {
        sums,
        exponent: contracted.iter().map(|&m| panels[m].exponent).sum(),
        modes: modes.clone(),
    };
    (kept, squares)
}

/// Sum of the exponents of all panels but one.
fn others_exponent<T>(panels: &[Panel<'_, T>], mode: usize) -> i32 {
    let others = panels.iter().enumerate().filter(|&(m, _)| m != mode);
    others.map(|(_, p)| p.exponent).sum()
}

/// `rows x stride` in the panels' scale as a matrix.
fn unpack<T: Real>(
    sums: &[T],
    panels: &[Panel<'_, T>],
    mode: usize,
    exponent: i32,
) -> DMatrix<f64> {
    let Panel {
        rows, stride, k, ..
    } = panels[mode];
    let scale = 2f64.powi(-exponent);
    let mut out = DMatrix::zeros(rows, k);
    for_each_part(out.as_mut_slice(), rows * COLUMNS, |part, columns| {
        let first = part * COLUMNS;
        let sums = sums.chunks_exact(stride).map(|row| &row[first..]);
        for (i, row) in sums.enumerate() {
            for (column, x) in columns.chunks_exact_mut(rows).zip(row) {
                column[i] = x.to_f64() * scale;
            }
        }
    });
    out
}

/// Contracts what is kept with the factors of its other modes.
fn spread<T: Real>(
    panels: &[Panel<'_, T>],
    factors: &[DMatrix<T>],
    mode: usize,
    kept: &Kept<T>,
) -> DMatrix<f64> {
    let (k, stride) = (panels[mode].k, panels[mode].stride);
    if kept.modes == [mode] {
        return unpack(&kept.sums, panels, mode, kept.exponent);
    }
    let scale = 2f64.powi(-kept.exponent);
    // Component by component, so that rows of the other factors are read in order.
    let rows: Vec<DMatrix<f64>> = kept
        .modes
        .iter()
        .map(|&m| factors[m].map(|x| x.to_f64()).transpose())
        .collect();
    let mut out = DMatrix::zeros(k, panels[mode].rows);
    let mut index = vec![0; kept.modes.len()];
    let mut product = vec![0.0; k];
    for (position, sums) in kept.sums.chunks_exact(stride).enumerate() {
        let mut rest = position;
        for (i, &m) in index.iter_mut().zip(&kept.modes).rev() {
            *i = rest % panels[m].rows;
            rest /= panels[m].rows;
        }
        product
            .iter_mut()
            .zip(sums)
            .for_each(|(p, s)| *p = s.to_f64() * scale);
        let mut target = 0;
        for ((&m, &i), rows) in kept.modes.iter().zip(&index).zip(&rows) {
            if m == mode {
                target = i;
            } else {
                let row = &rows.as_slice()[i * k..][..k];
                product.iter_mut().zip(row).for_each(|(p, &f)| *p *= f);
            }
        }
        let into = &mut out.as_mut_slice()[target * k..][..k];
        into.iter_mut().zip(&product).for_each(|(o, &p)| *o += p);
    }
    out.transpose()
}

/// Hadamard product of the Grams of all factors but one.
fn gram_of_others<T: Real>(factors: &[DMatrix<T>], mode: usize) -> DMatrix<f64> {
    let k = factors[0].ncols();
    let mut gram = DMatrix::from_element(k, k, 1.0);
    for (_, factor) in factors.iter().enumerate().filter(|&(m, _)| m != mode) {
        let wide = factor.map(|x| x.to_f64());
        gram.component_mul_assign(&(wide.transpose() * &wide));
    }
    gram
}
