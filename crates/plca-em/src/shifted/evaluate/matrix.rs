//! Shifted models as products of matrices whose rows or columns are copies of impulses or kernels.

use nalgebra::DMatrix;
use plca_tensor::shift::{Folded, Stack};
use plca_tensor::{
    Cp, Data, DataError, DenseTensor, Expected, Factor, Modes, Order, Real, Request, Rule,
};

use super::cells::{Cells, scale_of};
use super::{Counts, Engine, Measured, Parts, Wanted, sum_of};
use crate::expectation::with_hidden;

/// A relative difference of totals that rounding does not make.
const SHORT: f64 = 1e-6;

/// Data as a matrix for one of the stacks.
#[derive(Debug)]
pub(crate) struct Matrix<T> {
    folded: Folded,
    stack: Stack,
    /// The data times `scale`, transposed: the stack is read column by column.
    data: DenseTensor<T>,
    /// A power of two.
    scale: f64,
}

impl<T: Real> Matrix<T> {
    /// `None` if the data are refused, which checked data never are.
    pub(crate) fn new(
        folded: &Folded,
        stack: Stack,
        data: &dyn Data<T>,
    ) -> Result<Option<Self>, DataError> {
        let place = |at| stack.place(folded, at);
        let scale = scale_of::<T, T>(data)?;
        let values = Cells::arrange(folded, data, scale, place)?;
        let [rows, columns] = stack.shape(folded);
        let data = DenseTensor::masked(vec![columns, rows], values, Order::RowMajor);
        Ok(data.ok().map(|data| Self {
            folded: folded.clone(),
            stack,
            data,
            scale,
        }))
    }

    /// Whether an observed positive cell has `P = 0`. Its counts are 0 or overflow then: where no logarithm was asked for, only a
    /// total that is not the data's is worth the pass over the cells that tells for certain.
    fn lost(&self, model: &Cp<'_, T>, e: &Expected<T>, measured: bool) -> bool {
        let total = |m: &DMatrix<T>| sum_of(m.as_slice(), T::to_f64);
        let totals: Vec<f64> = (0..2).filter_map(|mode| e.get(mode)).map(total).collect();
        let without = measured && e.value() == f64::NEG_INFINITY;
        if without || !totals.iter().all(|t| t.is_finite()) {
            return true;
        }
        let v = self.data.total();
        if measured || totals.iter().all(|t| (t - v).abs() <= SHORT * v) {
            return false;
        }
        let e = self.e_step(model, &Request::counts(Modes::NONE).value(true));
        e.value() == f64::NEG_INFINITY
    }

    fn e_step(&self, model: &Cp<'_, T>, request: &Request<'_, T>) -> Expected<T> {
        let e = self.data.e_step(model, request);
        e.expect("a tensor in memory can be read")
    }
}

impl<T: Real> Engine<T> for Matrix<T> {
    fn expect(&self, parts: &Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let k = parts.weights.len();
        let [left, right] = self.stack.factors(&self.folded, &parts.linear());
        let copies = left.ncols() / k;
        let weights: Vec<T> = (parts.weights.iter())
            .flat_map(|&w| std::iter::repeat_n(w, copies))
            .collect();
        let factors = [Factor::Rows(&right), Factor::Columns(&left)];
        let model = Cp {
            weights: Some(&weights),
            factors: &factors,
        };
        let modes: Modes = (0..2).filter(|&mode| wanted.blocks[1 - mode]).collect();
        let request = Request::counts(modes);
        let mut e = self.e_step(&model, &request.value(wanted.ln_lik));
        let lost = self.lost(&model, &e, wanted.ln_lik);
        let ln_lik = if wanted.ln_lik { e.value() } else { 0.0 };
        let mut seen = parts.window_mass();
        if !self.data.is_complete() {
            let exposure = self.e_step(&model, &request.value(true).rule(Rule::Exposure));
            seen = exposure.value();
            if wanted.imputed {
                // [SPEC 4] s = v_obs / Σ_obs P
                let s = T::lit(self.data.total() / seen);
                e = with_hidden(e, &exposure, &model, s, None);
            }
        }
        let counts = [1, 0].map(|mode| modes.contains(mode).then(|| e.take(mode)));
        Counts {
            scale: self.scale,
            blocks: self.stack.unfold(&self.folded, counts, k),
            measured: Measured {
                ln_lik: ln_lik / self.scale,
                seen,
                lost,
            },
        }
    }
}
