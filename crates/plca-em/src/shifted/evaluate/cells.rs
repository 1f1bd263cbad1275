//! The data as an engine sees them: all cells, or those of a list.

use plca_tensor::parallel::{map_in_order, wide};
use plca_tensor::shift::Folded;
use plca_tensor::{CompensatedSum, Data, DataError, Mask, Real, exponent, times_power_of_two};

use super::{Measured, Wanted};

/// The power of two that brings the largest value near 1.
pub(super) fn scale_of<T: Real, U: Real>(data: &dyn Data<U>) -> Result<f64, DataError> {
    let mut largest: f64 = 0.0;
    data.visit(&mut |_, value| largest = largest.max(value))?;
    // [SPEC 0] subnormal or huge data must neither underflow nor overflow
    let limit = T::MAX_EXPONENT;
    let exponent = -exponent(largest).clamp(-limit, limit);
    Ok(times_power_of_two(1.0, exponent))
}

/// Dense cells `[c][d][x]`; a hidden cell holds NaN.
#[derive(Debug)]
pub(crate) struct Cells<T> {
    pub(crate) values: Vec<T>,
    pub(crate) any_hidden: bool,
    /// Sum of the observed values as given.
    pub(crate) total: f64,
    /// Values are those given times this power of two.
    pub(crate) scale: f64,
}

impl<T: Real> Cells<T> {
    pub(crate) fn new<U: Real>(folded: &Folded, data: &dyn Data<U>) -> Result<Self, DataError> {
        let scale = scale_of::<T, U>(data)?;
        let values = Self::arrange(folded, data, scale, |at| at)?;
        Ok(Self {
            any_hidden: values.iter().any(|v: &T| v.is_nan()),
            values,
            total: data.total(),
            scale,
        })
    }

    /// Values times `scale`, with NaN where hidden; `place` turns a position in `[c][d][x]` into one in the result.
    pub(crate) fn arrange<U: Real>(
        folded: &Folded,
        data: &dyn Data<U>,
        scale: f64,
        place: impl Fn(usize) -> usize,
    ) -> Result<Vec<T>, DataError> {
        let positions = folded.positions();
        let at = |index: &[usize]| {
            let [c, d, x] = folded.cell(index);
            place((c * folded.lanes + d) * positions + x)
        };
        let mut values = vec![T::zero(); folded.channels * folded.lanes * positions];
        if !data.is_complete() {
            let mut listed = vec![false; values.len()];
            data.visit_mask(&mut |index| listed[at(index)] = true)?;
            for (value, listed) in values.iter_mut().zip(listed) {
                if listed == (data.summary().mask == Mask::Hidden) {
                    *value = T::lit(f64::NAN);
                }
            }
        }
        data.visit(&mut |index, value| values[at(index)] = T::lit(value * scale))?;
        Ok(values)
    }

    /// `Σ P` over the observed cells, where some are hidden.
    pub(crate) fn seen(&self, p: &[T]) -> Option<f64> {
        if !self.any_hidden {
            return None;
        }
        let parts = self.values.chunks(PART).zip(p.chunks(PART)).collect();
        let sums = map_in_order(parts, |(values, p): (&[T], &[T])| {
            let observed = values.iter().zip(p).filter(|(v, _)| !v.is_nan());
            observed.map(|(_, p)| p.to_f64()).collect()
        });
        Some(total(sums))
    }

    /// Turns `P` into `Q` in the scale of the stored values.
    pub(crate) fn ratios(&self, p: &mut [T], wanted: Wanted, window_mass: f64) -> Measured {
        let seen = self.seen(p).unwrap_or(window_mass);
        let ln_lik = wanted.ln_lik;
        let s = match wanted.imputed {
            // [SPEC 4] s = v_obs / Σ_obs P
            true => T::lit(self.total * self.scale / seen),
            false => T::zero(),
        };
        let parts = self.values.chunks(PART).zip(p.chunks_mut(PART)).collect();
        let parts = map_in_order(parts, |(values, p): (&[T], &mut [T])| {
            let mut sum = CompensatedSum::default();
            if ln_lik {
                let positive = values.iter().zip(&*p).filter(|(v, _)| **v > T::zero());
                sum.extend(positive.map(|(v, p)| v.to_f64() * p.to_f64().ln()));
            }
            (wide(|| to_ratios(values, p, s)), sum)
        });
        let lost = parts.iter().any(|part| part.0);
        let ln_lik = match (ln_lik, lost) {
            (false, _) => 0.0,
            (true, true) => f64::NEG_INFINITY,
            (true, false) => total(parts.iter().map(|part| part.1)) / self.scale,
        };
        Measured { ln_lik, seen, lost }
    }
}

/// Cells of one part.
const PART: usize = 4096;

fn total(parts: impl IntoIterator<Item = CompensatedSum>) -> f64 {
    let sums = parts.into_iter().map(CompensatedSum::value);
    sums.collect::<CompensatedSum>().value()
}

/// `P` becomes `V/P` where `V > 0`, `s` where `V` is hidden, else 0; whether a `P` was 0 where `V > 0`.
#[inline(always)]
fn to_ratios<T: Real>(values: &[T], p: &mut [T], s: T) -> bool {
    let mut lost = false;
    for (&v, p) in values.iter().zip(p) {
        let positive = v > T::zero();
        lost |= positive & (*p < T::TINY);
        let ratio = v / *p;
        let rest = if v.is_nan() { s } else { T::zero() };
        *p = if positive { ratio } else { rest };
    }
    lost
}
