//! The data times a Khatri-Rao product.

use nalgebra::{DMatrix, DVector};

use super::{Hidden, RealTensor, Storage};
use crate::Real;
use crate::kernel::dense::Grid;
use crate::kernel::lanes;
use crate::kernel::mttkrp::{Fill, Halves, Packed, Product, khatri_rao, unscaled_weights};
use crate::kernel::mttkrp_sparse::Entry;
use crate::parallel::for_each_part;

/// Columns that are written side by side: their numbers lie in one line of the cache.
const COLUMNS: usize = 8;

/// [`RealTensor::mttkrp`] in a sweep over the modes: keeps from one mode for the next the data contracted with half of the modes, and with
/// it the factors of these, to know whether it still holds.
///
/// In order a sweep costs two products on dense data whatever the order, and a copy of half of the factors.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Memo, Order, RealTensor};
/// let x = RealTensor::dense(vec![2, 2, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], Order::RowMajor)?;
/// let mut factors = [dmatrix![1.0; 0.0], dmatrix![1.0; 1.0], dmatrix![1.0; 2.0]];
/// let mut memo = Memo::new(&x);
/// factors[1] = memo.mttkrp(&factors, 1);
/// assert_eq!(factors[1], dmatrix![5.0; 11.0]);                        // 1 + 2·2 and 3 + 2·4
/// assert_eq!(memo.mttkrp(&factors, 2), dmatrix![38.0; 54.0]);
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct Memo<'a, T> {
    data: &'a RealTensor<T>,
    kept: Option<(Kept<T>, Vec<DMatrix<T>>)>,
}

#[derive(Debug)]
struct Kept<T> {
    slow: bool,
    sums: Vec<T>,
    exponent: i32,
    components: usize,
    /// The modes that were not contracted, and those that were.
    modes: Vec<usize>,
    contracted: Vec<usize>,
}

impl<'a, T: Real> Memo<'a, T> {
    /// Of these data, without anything kept.
    pub fn new(data: &'a RealTensor<T>) -> Self {
        Self { data, kept: None }
    }

    /// [`RealTensor::mttkrp`], to the bit.
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// See [`Memo`].
    pub fn mttkrp(&mut self, factors: &[DMatrix<T>], mode: usize) -> DMatrix<f64> {
        let Storage::Dense(grid, halves) = &self.data.storage else {
            return self.data.mttkrp(factors, mode);
        };
        let panels = self.data.pack(factors);
        let holds = |(kept, with): &(Kept<T>, Vec<DMatrix<T>>)| {
            let same = |(&m, with): (&usize, &DMatrix<T>)| factors[m].as_slice() == with.as_slice();
            kept.slow == halves.slow.contains(&mode)
                && kept.components == panels[mode].k
                && kept.contracted.iter().zip(with).all(same)
        };
        let held = self.kept.take().filter(holds);
        let held = held.unwrap_or_else(|| {
            let (kept, _) = self.data.half(grid, halves, &panels, mode, Fill::Values);
            let with = kept.contracted.iter().map(|&m| factors[m].clone());
            let with = with.collect();
            (kept, with)
        });
        let sums = spread(&panels, factors, mode, &held.0);
        self.kept = Some(held);
        sums
    }
}

impl<T: Real> RealTensor<T> {
    /// `M[i,z] = Σ_{x: x_mode=i} X[x] Π_{m≠mode} F_m[x_m,z]`, hidden cells counting as 0; accumulated in `T`.
    ///
    /// Cost: dense `2 K Π I` flops or, from a [`Memo`], `2 K √(Π I)` or so; sparse `2 K` flops an entry and more for each fibre.
    ///
    /// # Panics
    ///
    /// If the factors do not have the shape of the data and equal numbers of columns, at least one.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::dense(vec![2, 2], vec![1.0, -2.0, 3.0, 4.0], Order::RowMajor)?;
    /// let factors = [dmatrix![1.0; 2.0], dmatrix![0.5; 0.5]];
    /// assert_eq!(x.mttkrp(&factors, 1), dmatrix![7.0; 6.0]);         // Xᵀ F_0
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn mttkrp(&self, factors: &[DMatrix<T>], mode: usize) -> DMatrix<f64> {
        let panels = self.pack(factors);
        match &self.storage {
            Storage::Dense(grid, halves) => {
                let (kept, _) = self.half(grid, halves, &panels, mode, Fill::Values);
                spread(&panels, factors, mode, &kept)
            }
            Storage::Sparse { cells, .. } => {
                let (sums, _) = cells.contract(&panels, mode, Entry::Value);
                unpack(&sums, &panels, mode, others_exponent(&panels, mode))
            }
        }
    }

    /// As [`mttkrp`](Self::mttkrp) of `scale` times the data, the hidden cells filled with the model `Σ_z w_z Π_m F_m`; and
    /// `Σ (scale X - model)²` over the observed cells, summed cell by cell where cells can be enumerated: on dense data and where
    /// only stored cells were observed.
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![2, 2], vec![1.0, f64::NAN, 3.0, 4.0], Order::RowMajor)?;
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
        match &self.storage {
            Storage::Dense(grid, halves) => {
                let fill = Fill::Residual {
                    scale: T::lit(scale),
                    weights: &inner,
                };
                let (kept, squares) = self.half(grid, halves, &panels, mode, fill);
                (spread(&panels, factors, mode, &kept) + whole(), squares)
            }
            Storage::Sparse {
                cells,
                hidden: Hidden::NotStored,
            } => {
                let entry = Entry::Residual {
                    scale: T::lit(scale),
                    weights: &inner,
                };
                let (sums, squares) = cells.contract(&panels, mode, entry);
                (unpack(&sums, &panels, mode, exponent) + whole(), squares)
            }
            Storage::Sparse { cells, hidden } => {
                let (sums, _) = cells.contract(&panels, mode, Entry::Value);
                let data = unpack(&sums, &panels, mode, exponent) * scale;
                // Σ (sX - P)² over all observed cells, from the stored ones, the whole model and the hidden part of it.
                let entry = Entry::Residual {
                    scale: T::lit(scale),
                    weights: &inner,
                };
                let (_, residual) = cells.contract(&panels, mode, entry);
                let (_, at_stored) =
                    cells.contract(&panels, mode, Entry::Model { weights: &inner });
                let own = factors[mode].map(|x| x.to_f64());
                let whole = whole();
                let mut norm = 0.0;
                for (z, w) in weights.iter().enumerate() {
                    norm += w.to_f64() * own.column(z).dot(&whole.column(z));
                }
                let (imputed, at_hidden) = match hidden {
                    Hidden::Listed(hidden) => {
                        let (sums, squares) =
                            hidden.contract(&panels, mode, Entry::Model { weights: &inner });
                        (Some(unpack(&sums, &panels, mode, exponent)), squares)
                    }
                    _ => (None, 0.0),
                };
                let outside = (norm - at_stored - at_hidden).max(0.0);
                (
                    imputed.map_or(data.clone(), |i| data + i),
                    residual + outside,
                )
            }
        }
    }

    fn pack(&self, factors: &[DMatrix<T>]) -> Vec<Packed<T>> {
        assert_eq!(factors.len(), self.shape.len(), "one factor per mode");
        let k = factors[0].ncols();
        assert!(k > 0, "at least one component");
        for (factor, &size) in factors.iter().zip(&self.shape) {
            assert_eq!(factor.shape(), (size, k), "factor shape");
        }
        let stride = lanes::stride::<T>(k);
        factors.iter().map(|f| Packed::new(f, stride)).collect()
    }

    /// Contracts the half that `mode` is not in; also the tiles' sum of squares.
    fn half(
        &self,
        grid: &Grid<T>,
        halves: &Halves,
        panels: &[Packed<T>],
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
            slow,
            sums,
            exponent: contracted.iter().map(|&m| panels[m].exponent).sum(),
            components: panels[mode].k,
            modes: modes.clone(),
            contracted: contracted.clone(),
        };
        (kept, squares)
    }
}

/// Sum of the exponents of all panels but one.
fn others_exponent<T>(panels: &[Packed<T>], mode: usize) -> i32 {
    let others = panels.iter().enumerate().filter(|&(m, _)| m != mode);
    others.map(|(_, p)| p.exponent).sum()
}

/// `rows x stride` in the panels' scale as a matrix.
fn unpack<T: Real>(sums: &[T], panels: &[Packed<T>], mode: usize, exponent: i32) -> DMatrix<f64> {
    let Packed {
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
    panels: &[Packed<T>],
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
