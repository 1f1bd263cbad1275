//! The parts of an E-step that all storages share: packing the factors, the pass, unpacking the counts.

use nalgebra::DMatrix;

use super::{Data, Expected, Request, Rule, Summary, e_step_by_visits};
use crate::kernel::{
    Accumulate, Rule as Ratio,
    aligned::{Aligned, Pool},
    lanes,
    panel::Panel,
    panel::{balancing_exponent, pow2, pow2_halves, unit_exponent},
};
use crate::{Cp, DataError, Factor, Real};

/// Refuses a model whose factors do not fit the data.
pub(crate) fn check_model<T: Real>(shape: &[usize], model: &Cp<'_, T>) {
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

/// `of` every mode that is wanted.
pub(crate) fn wanted<O>(modes: &[bool], mut of: impl FnMut(usize) -> O) -> Vec<Option<O>> {
    let modes = modes.iter().enumerate();
    let each = modes.map(|(mode, wanted)| wanted.then(|| of(mode)));
    each.collect()
}

/// A storage as a kernel sees it.
pub(crate) struct Stored<'a, T> {
    pub(crate) cells: &'a dyn Accumulate<T>,
    /// What the values were multiplied by.
    pub(crate) scale: T,
    pub(crate) pool: &'a Pool<T>,
    /// Whether memory is scarce: counts take the memory of the sums.
    pub(crate) sparing: bool,
}

impl<T: Real> Stored<'_, T> {
    /// The E-step over these cells. `seen` is the mass of the model in the observed cells, asked for where some are hidden.
    pub(crate) fn e_step(
        &self,
        data: &dyn Data<T>,
        model: &Cp<'_, T>,
        request: &Request<'_, T>,
        seen: impl FnOnce(&Pass<'_, T>, &[bool]) -> Vec<Option<DMatrix<T>>>,
    ) -> Result<Expected<T>, DataError> {
        check_model(data.shape(), model);
        let mut modes = request.modes.flags(data.shape().len());
        let pass = || Pass::new(model, self.pool);
        let scale = 1.0 / self.scale.to_f64();
        match request.rule {
            Rule::Poisson | Rule::Gradient => {
                match check_counts(data) {
                    // A part of data may be without mass: nothing is counted.
                    Err(DataError::NoMass) => {
                        let mut counts = model.exposures(&modes);
                        let counted = counts.iter_mut().flatten();
                        counted.for_each(|counts| counts.fill(T::zero()));
                        let value = request.value.then_some(0.0);
                        return Ok(Expected { counts, value });
                    }
                    checked => checked?,
                }
                let mut pass = pass();
                let rows = pass.balance_rows();
                let rows = rows.as_deref();
                // [SPEC 1.1] C_j = P(z) F_j ∘ Σ Q Π_{m≠j} F_m: all modes from one ratio and the old factors
                let rule = Ratio::Ratio { log: request.value };
                let sums = self.cells.accumulate(&pass.panels, rule, &modes);
                let [own, told] = [scale, scale / request.count_unit];
                // Small data are brought to their unit before a product with small entries could leave the range of numbers, large ones after it.
                let scales = match told > 1.0 {
                    true => [T::lit(told), T::one()],
                    false => [T::one(), T::lit(told)],
                };
                let value = match request.value {
                    false => None,
                    true => Some(sums.ln_lik * own - pass.ln_scale(data, rows, request.unit)?),
                };
                let gradient = matches!(request.rule, Rule::Gradient);
                let counts = match self.sparing {
                    _ if gradient => wanted(&modes, |j| pass.alone(&sums.modes[j], j, rows, told)),
                    true => pass.unpack_in_place(sums.modes, &modes, scales),
                    false => pass.unpack(&sums.modes, &modes, scales),
                };
                Ok(Expected { counts, value })
            }
            Rule::Exposure => {
                let complete = data.is_complete();
                if request.value && !complete && request.modes.is_empty() {
                    modes[0] = true;
                }
                let mut counts = match complete {
                    true => model.exposures(&modes),
                    false => seen(&pass(), &modes),
                };
                let mass = |m: &DMatrix<T>| m.iter().map(|x| x.to_f64()).sum::<f64>();
                let value = request.value.then(|| match complete {
                    true => model.mass(),
                    false => counts.iter().flatten().next().map_or(0.0, mass),
                });
                if request.modes.is_empty() {
                    counts.fill(None);
                }
                Ok(Expected { counts, value })
            }
            Rule::Cell(_) => e_step_by_visits(data, model, request),
        }
    }
}

/// The parts that all storages share: packing, the pass, unpacking.
pub(crate) struct Pass<'a, T> {
    model: &'a Cp<'a, T>,
    panels: Vec<Panel<'a, T>>,
    exponent: i32,
}

impl<'a, T: Real> Pass<'a, T> {
    fn new(model: &'a Cp<'a, T>, pool: &'a Pool<T>) -> Self {
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
    /// Counts need no correction, as what the rows of a cell were multiplied by divides out of its ratio. Half of the range is left to
    /// entries that are small beside the largest of their row, a quarter to sums of many ratios.
    fn balance_rows(&mut self) -> Option<Vec<Vec<i32>>> {
        let room = -f64::from(T::MAX_EXPONENT) / 4.0;
        let enough = room / self.panels.len() as f64;
        let smallest: f64 = self.panels.iter().map(|p| p.smallest_row(enough)).sum();
        (smallest < room).then(|| self.panels.iter_mut().map(Panel::balance_rows).collect())
    }

    /// What the scales of the panels, and of their rows, add to the log-likelihood in a unit: a pass sees `P` in them.
    fn ln_scale(
        &self,
        data: &dyn Data<T>,
        rows: Option<&[Vec<i32>]>,
        unit: f64,
    ) -> Result<f64, DataError> {
        // Whole numbers: what a model and its unit have in common leaves no rounding error.
        let exponent = self.exponent - unit_exponent(unit);
        let mut exponents = data.total() * f64::from(exponent);
        for (mode, rows) in rows.into_iter().flatten().enumerate() {
            let marginal = data.marginal(mode)?;
            let terms = rows.iter().zip(marginal);
            exponents += terms.map(|(&e, v)| f64::from(e) * v).sum::<f64>();
        }
        Ok(exponents * std::f64::consts::LN_2)
    }

    /// Masses of the model over the cells that `data` visits under the rule `Unit`.
    pub(crate) fn unit(&self, data: &dyn Accumulate<T>, modes: &[bool]) -> Vec<Option<DMatrix<T>>> {
        let sums = data.accumulate(&self.panels, Ratio::Unit, modes);
        self.unpack(&sums.modes, modes, pow2_halves(-self.exponent))
    }

    /// Sums of a mode as they are, without the factor of the mode itself; `rows` are the exponents of its panels' rows.
    fn alone(&self, sums: &[T], mode: usize, rows: Option<&[Vec<i32>]>, scale: f64) -> DMatrix<T> {
        let panel = &self.panels[mode];
        let scale = T::lit(scale) * pow2::<T>(panel.exponent);
        let mut out = panel.alone(sums, self.model.factors[mode], scale);
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
        let factors = self.model.factors;
        wanted(modes, |j| {
            self.panels[j].times(&sums[j], factors[j], scales)
        })
    }

    /// The same, giving up panels and sums on the way.
    fn unpack_in_place(
        &mut self,
        mut sums: Vec<Aligned<T>>,
        modes: &[bool],
        scales: [T; 2],
    ) -> Vec<Option<DMatrix<T>>> {
        wanted(modes, |j| {
            let sums = std::mem::replace(&mut sums[j], Aligned::none());
            self.panels[j].times_in_place(sums, self.model.factors[j], scales)
        })
    }
}

/// Power of two by which values are multiplied so that their largest is near 1; 1 in the usual range, and if all are 0.
pub(crate) fn data_scale<T: Real>(largest: T) -> T {
    let comfortable = f64::from(T::MAX_EXPONENT) / 4.0;
    let exponent = balancing_exponent(largest.to_f64());
    if f64::from(exponent).abs() <= comfortable {
        T::one()
    } else {
        pow2(exponent.clamp(-T::MAX_EXPONENT, T::MAX_EXPONENT))
    }
}

/// Refuses data whose sum overflows.
pub(super) fn check_sums(summary: Summary) -> Result<Summary, DataError> {
    let total = summary.absolute;
    if total.is_finite() {
        Ok(summary)
    } else {
        Err(DataError::Overflow { total })
    }
}

/// Refuses data that are not counts, which every model of non-negative data asks where it meets them. Cost: a look at the summary.
///
/// ```
/// use plca_tensor::{DataError, DenseTensor, Order, check_counts};
/// let v = |values| DenseTensor::new(vec![2], values, Order::RowMajor);
/// assert_eq!(check_counts::<f64>(&v(vec![1.0, 0.0])?), Ok(()));
/// assert_eq!(check_counts::<f64>(&v(vec![0.0, 0.0])?), Err(DataError::NoMass));
/// let error = check_counts::<f64>(&v(vec![1.0, -2.0])?).unwrap_err();
/// assert_eq!(error.to_string(), "entry [1] is -2, not a finite number >= 0");
/// # Ok::<(), DataError>(())
/// ```
///
/// # Errors
///
/// [`DataError::Negative`] with the first negative cell, [`DataError::NoMass`] without a positive one, or [`DataError::Overflow`] where
/// counts in `T` or `Σ V ln V` in `f64` would overflow.
pub fn check_counts<T: Real>(data: &dyn Data<T>) -> Result<(), DataError> {
    counts_only::<T>(data.summary())
}

/// [`check_counts`] of a summary.
pub(super) fn counts_only<T: Real>(summary: &Summary) -> Result<(), DataError> {
    let total = summary.total;
    // |ln V| < 1024 for every double.
    let overflows = !(T::lit(total).is_finite() && (1024.0 * total).is_finite());
    match &summary.negative {
        Some((index, value)) => Err(DataError::Negative {
            index: index.clone(),
            value: *value,
        }),
        None if summary.nnz == 0 => Err(DataError::NoMass),
        None if overflows => Err(DataError::Overflow { total }),
        None => Ok(()),
    }
}
