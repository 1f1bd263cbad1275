//! One view of data for every model: which cells were seen, and what a model must add up over them.

use nalgebra::DMatrix;

use crate::kernel::{
    Accumulate, Rule,
    aligned::{Aligned, Pool},
    lanes,
    panel::Panel,
    panel::{pow2, pow2_halves},
};
use crate::{CompensatedSum, Factor, Model, Real, TensorError};

/// What an [`Observed::expect`] call shall return. Ask for little: each mode costs a third of a pass.
///
/// ```
/// use plca_tensor::Wanted;
/// let rows_only = Wanted { modes: &[true, false], ln_lik: false };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Which modes' counts, one for every mode.
    pub modes: &'a [bool],
    /// Also `Σ V ln P`. A logarithm per cell is not free.
    pub ln_lik: bool,
}

/// Sums over the observed cells; sums over blocks of data are sums of these.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Factor, Model, Observed, Order, Wanted};
/// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
/// let model = Model { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
/// let v = DenseTensor::new(vec![2, 2], vec![5.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
/// let e = v.expect(&model, Wanted { modes: &[true, false], ln_lik: true });
/// let counts = e.counts[0].as_ref().expect("asked for");
/// // Row 0 of the data has mass 6, shared between the components.
/// assert!((counts.row(0).sum() - 6.0f64).abs() < 1e-12 && e.counts[1].is_none());
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expected<T> {
    /// For every wanted mode the expected counts `C_j[i,z] = Σ_{x: x_j=i} V[x] P(z|x)`, in the layout of
    /// the factor.
    pub counts: Vec<Option<DMatrix<T>>>,
    /// `Σ V ln P` over observed positive cells; `-inf` if one of them has `P = 0`; 0 if not asked for.
    pub ln_lik: f64,
}

/// Which cells [`Observed::visit_mask`] went through.
///
/// ```
/// use plca_tensor::{Coordinates, Mask, MaskedSparse, Observed};
/// let ratings = Coordinates { shape: vec![3, 2], indices: vec![0, 0, 1, 1], values: vec![4.0, 5.0] };
/// let mut cells = Vec::new();
/// let which = MaskedSparse::stored_only(ratings)?.visit_mask(&mut |index| cells.push(index.to_vec()));
/// assert_eq!((which, cells.len()), (Mask::Observed, 2));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// Every hidden cell.
    Hidden,
    /// Every observed cell.
    Observed,
}

impl<T: Real> Expected<T> {
    /// Adds the statistics of another block of the data.
    ///
    /// # Panics
    ///
    /// If the two do not hold the same modes in the same shapes.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Factor, Model, Observed, Order, Wanted};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Model { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// let v = DenseTensor::new(vec![2, 2], vec![5.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
    /// let wanted = Wanted { modes: &[true, true], ln_lik: true };
    /// let mut sum = v.expect(&model, wanted);
    /// sum.merge(&v.expect(&model, wanted));                           // as if everything had been seen twice
    /// assert!((sum.ln_lik - 2.0 * v.expect(&model, wanted).ln_lik).abs() < 1e-12);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn merge(&mut self, other: &Self) {
        let modes = [&self.counts, &other.counts].map(Vec::len);
        assert_eq!(modes[0], modes[1], "statistics of as many modes");
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            match (mine, theirs) {
                (Some(a), Some(b)) => *a += b,
                (None, None) => {}
                _ => panic!("statistics of different modes"),
            }
        }
        self.ln_lik += other.ln_lik;
    }
}

/// Data that PLCA-like models can be fitted to: dense, sparse or masked, one interface.
///
/// Values are visited with an internal power-of-two scale so that subnormal and
/// huge data neither underflow nor overflow; everything returned is in the scale of the data as given.
///
/// ```
/// use plca_tensor::{Coordinates, DenseTensor, Observed, Order, SparseTensor};
/// fn mean(data: &dyn Observed<f64>) -> f64 {
///     data.total() / data.shape().iter().product::<usize>() as f64
/// }
/// let dense = DenseTensor::new(vec![2, 2], vec![3.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
/// let sparse = SparseTensor::new(Coordinates { shape: vec![2, 2], indices: vec![0, 0, 1, 1], values: vec![3.0, 1.0] })?;
/// assert_eq!((mean(&dense), mean(&sparse)), (1.0, 1.0));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
pub trait Observed<T: Real>: Sync {
    /// Size of each mode.
    ///
    /// ```
    /// use plca_tensor::{MaskedTensor, Observed, Order};
    /// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, 0.0], Order::RowMajor)?;
    /// assert_eq!(v.shape(), [2, 2]);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn shape(&self) -> &[usize];

    /// `v`: sum over the observed cells.
    ///
    /// ```
    /// use plca_tensor::{MaskedTensor, Observed, Order};
    /// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, 0.0], Order::RowMajor)?;
    /// assert_eq!(v.total(), 3.0);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn total(&self) -> f64;

    /// Whether every cell was observed.
    ///
    /// ```
    /// use plca_tensor::{MaskedTensor, Observed, Order};
    /// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, 0.0], Order::RowMajor)?;
    /// assert!(!v.is_complete());
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn is_complete(&self) -> bool;

    /// Visits every observed positive cell in a fixed order, with its value as given.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Observed, Order};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// let mut trace = 0.0;
    /// v.for_each(&mut |index, value| if index[0] == index[1] { trace += value });
    /// assert_eq!(trace, 4.0);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64));

    /// Visits every hidden cell or every observed one, in a fixed order, and says which: the list that the data keep.
    ///
    /// ```
    /// use plca_tensor::{Mask, MaskedTensor, Observed, Order};
    /// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, 0.0], Order::RowMajor)?;
    /// let mut cells = Vec::new();
    /// assert_eq!(v.visit_mask(&mut |index| cells.push(index.to_vec())), Mask::Hidden);
    /// assert_eq!(cells, [[0, 1]]);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    ///
    /// Unless a storage knows better this asks [`exposure`](Self::exposure) once for every 64 fibres of the first mode.
    fn visit_mask(&self, visit: &mut dyn FnMut(&[usize])) -> Mask {
        if !self.is_complete() {
            mask_from_exposure(self, visit);
        }
        Mask::Hidden
    }

    /// The E-step: expected counts and log-likelihood under `model`, in one pass.
    ///
    /// An entry of a factor below `√TINY` times the largest of its row (1e-154 in `f64`, 1e-19 in `f32`; `w_z` is part of the first
    /// factor) counts as 0, for all of this trait and for [`Model::cell`]: products of such entries would be subnormal. A cell that only such
    /// entries explain has `P = 0`, and its `ln_lik` is `-inf`. A cell whose `P` is below `√TINY` times the product of its rows' largest
    /// entries may lose digits, or count as 0.
    ///
    /// # Panics
    ///
    /// If the model's shape is not that of the data, if it has no components, or if not one wish is given for every mode.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Factor, Model, Observed, Order, Wanted};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Model { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// let v = DenseTensor::new(vec![2, 2], vec![5.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
    /// let e = v.expect(&model, Wanted { modes: &[true, true], ln_lik: true });
    /// assert!((e.counts[1].as_ref().expect("asked for").sum() - v.total()).abs() < 1e-12);
    /// assert!((e.ln_lik - [(5.0, [0, 0]), (1.0, [0, 1]), (1.0, [1, 0]), (3.0, [1, 1])].iter()
    ///     .map(|(value, index)| value * model.cell(index).ln()).sum::<f64>()).abs() < 1e-12);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn expect(&self, model: &Model<'_, T>, wanted: Wanted<'_>) -> Expected<T>;

    /// `X_j[i,z] = w_z F_j[i,z] Σ_{x observed, x_j=i} Π_{m≠j} F_m[x_m,z]`: where the model's mass lies
    /// within the observed cells. Only called on incomplete data; on complete data it is `F_j` times sums.
    ///
    /// # Panics
    ///
    /// As [`expect`](Self::expect).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Factor, MaskedTensor, Model, Observed, Order};
    /// let (a, b) = (dmatrix![0.5; 0.5], dmatrix![0.25; 0.75]);
    /// let model = Model { weights: None, factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// let v = MaskedTensor::new(vec![2, 2], vec![1.0, 2.0, 3.0, f64::NAN], Order::RowMajor)?;
    /// // In row 1 only the cell of probability 1/2 · 1/4 can be seen.
    /// assert_eq!(v.exposure(&model, &[true, false])[0], Some(dmatrix![0.5; 0.125]));
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn exposure(&self, model: &Model<'_, T>, modes: &[bool]) -> Vec<Option<DMatrix<T>>>;

    /// As `expect` for one mode, but without the factor itself: `Σ_{x: x_j=i} (V/P)[x] w_z Π_{m≠j} F_m`.
    /// This is `v` times the gradient of the log-likelihood, from which optimality is certified.
    ///
    /// # Panics
    ///
    /// As [`expect`](Self::expect).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Factor, Model, Observed, Order, Wanted};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Model { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// let v = DenseTensor::new(vec![2, 2], vec![5.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
    /// let counts = v.expect(&model, Wanted { modes: &[false, true], ln_lik: false }).counts[1].clone();
    /// let product = v.multiplier(&model, 1).component_mul(&b);
    /// assert!((product - counts.expect("asked for")).amax() < 1e-12);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn multiplier(&self, model: &Model<'_, T>, mode: usize) -> DMatrix<T>;

    /// Why the data could not be read: `None` for data in memory, and as long as all reading succeeded ([`OutOfCore`](crate::OutOfCore)).
    ///
    /// Once there is a failure it stays, and every sum over the data is NaN: ask after a pass, before its results are used.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Observed, Order};
    /// let v = DenseTensor::new(vec![1], vec![3.0], Order::RowMajor)?;
    /// assert!(v.failure().is_none());
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn failure(&self) -> Option<TensorError> {
        None
    }

    /// `Σ_{x: x_j=i} V[x]` over observed cells, for every index of mode `j`.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Observed, Order};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 0.0, 2.0, 1.0], Order::RowMajor)?;
    /// assert_eq!((v.marginal(0), v.marginal(1)), (vec![3.0, 3.0], vec![5.0, 1.0]));
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn marginal(&self, mode: usize) -> Vec<f64> {
        let mut sums = vec![0.0; self.shape()[mode]];
        self.for_each(&mut |index, value| sums[index[mode]] += value);
        sums
    }

    /// `Σ V ln V` over observed cells: the log-likelihood that no model of these data can exceed, up to scale.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Observed, Order};
    /// let v = DenseTensor::new(vec![3], vec![2.0, 0.0, 1.0], Order::RowMajor)?;
    /// assert_eq!(v.self_information(), 2.0 * 2f64.ln());
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    fn self_information(&self) -> f64 {
        // [SPEC 0] Σ V ln V
        let mut sum = CompensatedSum::default();
        self.for_each(&mut |_, value| sum += value * value.ln());
        sum.value()
    }
}

/// Hidden cells by exposure: under indicator factors it is 1 at an observed cell and 0 at a hidden one.
fn mask_from_exposure<T: Real, X: Observed<T> + ?Sized>(data: &X, visit: &mut dyn FnMut(&[usize])) {
    const FIBRES: usize = 64;
    let shape = data.shape();
    let fibres: usize = shape[1..].iter().product();
    let modes: Vec<bool> = (0..shape.len()).map(|j| j == 0).collect();
    for first in (0..fibres).step_by(FIBRES) {
        let k = FIBRES.min(fibres - first);
        let at: Vec<_> = (first..first + k)
            .map(|fibre| crate::dense::unravel(fibre, &shape[1..], crate::Order::RowMajor))
            .collect();
        let indicator = |j: usize, i: usize, z: usize| match j {
            0 => T::one(),
            _ if at[z][j - 1] == i => T::one(),
            _ => T::zero(),
        };
        let blocks: Vec<_> = (shape.iter().enumerate())
            .map(|(j, &n)| DMatrix::from_fn(n, k, |i, z| indicator(j, i, z)))
            .collect();
        let factors: Vec<_> = blocks.iter().map(Factor::Columns).collect();
        let model = Model {
            weights: None,
            factors: &factors,
        };
        let Some(seen) = data.exposure(&model, &modes).swap_remove(0) else {
            continue;
        };
        for (z, rest) in at.iter().enumerate() {
            for i in (0..shape[0]).filter(|&i| seen[(i, z)] < T::lit(0.5)) {
                let index: Vec<usize> = std::iter::once(i).chain(rest.iter().copied()).collect();
                visit(&index);
            }
        }
    }
}

/// Refuses a model whose factors do not fit the data.
pub(crate) fn check_model<T: Real>(shape: &[usize], model: &Model<'_, T>) {
    assert_eq!(model.factors.len(), shape.len(), "one factor per mode");
    let k = model.components();
    assert!(k > 0, "at least one component");
    for (factor, &size) in model.factors.iter().zip(shape) {
        assert_eq!(
            (factor.rows(), factor.components()),
            (size, k),
            "factor shape"
        );
    }
    assert!(
        model.weights.is_none_or(|w| w.len() == k),
        "one weight per component"
    );
}

/// Refuses wishes for other modes than the model has.
fn check_modes<T: Real>(model: &Model<'_, T>, modes: &[bool]) {
    assert_eq!(modes.len(), model.factors.len(), "one wish for every mode");
}

/// The exposure of complete data.
pub(crate) fn whole_exposures<T: Real>(
    shape: &[usize],
    model: &Model<'_, T>,
    modes: &[bool],
) -> Vec<Option<DMatrix<T>>> {
    check_model(shape, model);
    check_modes(model, modes);
    model.exposures(modes)
}

/// The parts that all storages share: packing, the pass, unpacking.
pub(crate) struct Pass<'a, T> {
    model: &'a Model<'a, T>,
    panels: Vec<Panel<'a, T>>,
    exponent: i32,
}

impl<'a, T: Real> Pass<'a, T> {
    pub(crate) fn new(shape: &[usize], model: &'a Model<'a, T>, pool: &'a Pool<T>) -> Self {
        check_model(shape, model);
        pool.next_pass();
        let stride = lanes::stride::<T>(model.components());
        let panels: Vec<_> = (model.factors.iter().enumerate())
            .map(|(j, &f)| Panel::pack(f, if j == 0 { model.weights } else { None }, stride, pool))
            .collect();
        let exponent = panels.iter().map(|p| p.exponent).sum();
        Self {
            model,
            panels,
            exponent,
        }
    }

    /// Exponents of all rows of all factors where, with one for each factor, products of small rows would leave the range of `T`.
    ///
    /// A ratio `Q` takes back what the rows of its cell were multiplied by: counts need not know of it. Half of the range is left to
    /// entries that are small beside the largest of their row, a quarter to sums of many ratios.
    fn balance_rows(&mut self) -> Option<Vec<Vec<i32>>> {
        let room = -f64::from(T::MAX_EXPONENT) / 4.0;
        let enough = room / self.panels.len() as f64;
        let smallest: f64 = self.panels.iter().map(|p| p.smallest_row(enough)).sum();
        (smallest < room).then(|| self.panels.iter_mut().map(Panel::balance_rows).collect())
    }

    /// Counts and likelihood; `scale` is what the stored values must be multiplied by, `total` their sum and `marginal` their sums
    /// by the indices of a mode, in the scale as given.
    pub(crate) fn expect(
        self,
        data: &impl Accumulate<T>,
        scale: f64,
        total: f64,
        wanted: Wanted<'_>,
        marginal: impl Fn(usize) -> Vec<f64>,
    ) -> Expected<T> {
        self.expect_by(
            data,
            scale,
            total,
            wanted,
            marginal,
            |pass, sums, scales| pass.unpack(&sums, wanted.modes, scales),
        )
    }

    /// The same where memory is scarce: sums become counts in place.
    pub(crate) fn expect_in_place(
        self,
        data: &impl Accumulate<T>,
        scale: f64,
        total: f64,
        wanted: Wanted<'_>,
        marginal: impl Fn(usize) -> Vec<f64>,
    ) -> Expected<T> {
        self.expect_by(
            data,
            scale,
            total,
            wanted,
            marginal,
            |pass, sums, scales| pass.unpack_in_place(sums, wanted.modes, scales),
        )
    }

    fn expect_by(
        mut self,
        data: &impl Accumulate<T>,
        scale: f64,
        total: f64,
        wanted: Wanted<'_>,
        marginal: impl Fn(usize) -> Vec<f64>,
        unpack: impl FnOnce(&mut Self, Vec<Aligned<T>>, [T; 2]) -> Vec<Option<DMatrix<T>>>,
    ) -> Expected<T> {
        check_modes(self.model, wanted.modes);
        let rows = self.balance_rows();
        // [SPEC 1.1] C_j = P(z) F_j ∘ Σ Q Π_{m≠j} F_m: all modes from one ratio and the old factors
        let sums = data.accumulate(&self.panels, Rule::Ratio, wanted.modes, wanted.ln_lik);
        let counts = unpack(&mut self, sums.modes, [T::one(), T::lit(scale)]);
        // The pass saw P in the panels' scale, and in that of their rows.
        let mut exponents = total * f64::from(self.exponent);
        if let Some(rows) = rows.filter(|_| wanted.ln_lik) {
            for (mode, rows) in rows.iter().enumerate() {
                let terms = rows.iter().zip(marginal(mode));
                exponents += terms.map(|(&e, v)| f64::from(e) * v).sum::<f64>();
            }
        }
        let ln_lik = sums.ln_lik * scale - exponents * std::f64::consts::LN_2;
        Expected {
            counts,
            ln_lik: if wanted.ln_lik { ln_lik } else { 0.0 },
        }
    }

    /// Masses of the model over the cells that `data` visits under the rule `Unit`.
    pub(crate) fn unit(
        &self,
        data: &impl Accumulate<T>,
        modes: &[bool],
    ) -> Vec<Option<DMatrix<T>>> {
        check_modes(self.model, modes);
        let sums = data.accumulate(&self.panels, Rule::Unit, modes, false);
        self.unpack(&sums.modes, modes, pow2_halves(-self.exponent))
    }

    pub(crate) fn multiplier(
        mut self,
        data: &impl Accumulate<T>,
        scale: f64,
        mode: usize,
    ) -> DMatrix<T> {
        let modes: Vec<bool> = (0..self.panels.len()).map(|j| j == mode).collect();
        let rows = self.balance_rows();
        let sums = data.accumulate(&self.panels, Rule::Ratio, &modes, false);
        let panel = &self.panels[mode];
        let scale = T::lit(scale) * pow2::<T>(panel.exponent);
        let mut out = panel.alone(&sums.modes[mode], self.model.factors[mode], scale);
        for (i, &e) in rows.iter().flat_map(|rows| rows[mode].iter().enumerate()) {
            let [a, b] = pow2_halves::<T>(e);
            match self.model.factors[mode] {
                Factor::Columns(_) => out.row_mut(i).iter_mut().for_each(|x| *x = *x * a * b),
                Factor::Rows(_) => out.column_mut(i).iter_mut().for_each(|x| *x = *x * a * b),
            }
        }
        if let (0, Some(weights)) = (mode, self.model.weights) {
            match self.model.factors[0] {
                Factor::Columns(_) => out
                    .column_iter_mut()
                    .zip(weights)
                    .for_each(|(mut c, &w)| c *= w),
                Factor::Rows(_) => out
                    .row_iter_mut()
                    .zip(weights)
                    .for_each(|(mut r, &w)| r *= w),
            }
        }
        out
    }

    fn unpack(
        &self,
        sums: &[Aligned<T>],
        modes: &[bool],
        scales: [T; 2],
    ) -> Vec<Option<DMatrix<T>>> {
        let of_mode = |j: usize| self.panels[j].times(&sums[j], self.model.factors[j], scales);
        (0..self.panels.len())
            .map(|j| modes[j].then(|| of_mode(j)))
            .collect()
    }

    /// The same, giving up panels and sums on the way.
    fn unpack_in_place(
        &mut self,
        sums: Vec<Aligned<T>>,
        modes: &[bool],
        scales: [T; 2],
    ) -> Vec<Option<DMatrix<T>>> {
        let panels = self.panels.iter_mut().zip(self.model.factors);
        let each = panels.zip(sums).zip(modes);
        each.map(|(((panel, &factor), sums), wanted)| {
            wanted.then(|| panel.times_in_place(sums, factor, scales))
        })
        .collect()
    }
}

/// Power of two by which values are multiplied so that their largest is near 1; 1 in the usual range, and if all are 0.
pub(crate) fn data_scale<T: Real>(largest: T) -> T {
    let comfortable = f64::from(T::MAX_EXPONENT) / 4.0;
    let exponent = largest.to_f64().log2();
    if largest <= T::zero() || exponent.abs() <= comfortable {
        T::one()
    } else {
        pow2(-(exponent.floor() as i32).clamp(-T::MAX_EXPONENT, T::MAX_EXPONENT))
    }
}

/// The sum of the data, refused where counts in `T` or `Σ V ln V` in `f64` would overflow.
pub(crate) fn finite_total<T: Real>(total: f64) -> Result<f64, TensorError> {
    // |ln V| < 1024 for every double.
    if T::lit(total).is_finite() && (1024.0 * total).is_finite() {
        Ok(total)
    } else {
        Err(TensorError::Overflow { total })
    }
}

/// An error unless something positive was observed.
pub(crate) fn require_mass(positive: bool) -> Result<(), TensorError> {
    if positive {
        Ok(())
    } else {
        Err(TensorError::NoMass)
    }
}
