//! What a datum makes of its two rates: the E-step.

use plca_dist::{
    skellam_divergence_slice, skellam_limit_ratios, skellam_ln_pmf, skellam_ratios_slice,
};
use plca_tensor::arrange::Signed;
use plca_tensor::parallel::wide;
use plca_tensor::{CompensatedSum, Real, SplitRule, exponent};

use crate::Replicates;

/// The E-step of a number of replicates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) replicates: Replicates,
    /// A power of two that brings real data near 1, so that no product overflows or underflows and no bit depends on the unit; 1 for counts. [SKELLAM eq. 32]
    scale: f64,
    /// What the rates that are met are still to be multiplied by.
    rates: f64,
    /// The largest absolute value of the data.
    pub(crate) largest: f64,
    /// The rate of noise that is added to both rates of data of about 1.
    noise: f64,
}

impl Split {
    /// For these data. Cost: one pass over them.
    pub(crate) fn of<T: Real>(replicates: Replicates, data: &Signed<T>) -> Self {
        let mut largest = 0.0f64;
        data.for_each(&mut |_, _, v| largest = largest.max(v.abs()));
        Self::new::<T>(replicates, largest)
    }

    /// For data of which this is the largest absolute value.
    pub(crate) fn new<T: Real>(replicates: Replicates, largest: f64) -> Self {
        let scale = if largest > 0.0 && replicates.is_real() {
            // Both it and its inverse are numbers of the scalar.
            let most = T::MAX_EXPONENT - 2;
            2f64.powi(-exponent(largest).clamp(-most, most))
        } else {
            1.0
        };
        Self {
            replicates,
            scale,
            rates: scale,
            largest,
            noise: 0.0,
        }
    }

    /// The same for rates that are [`scale`](Self::scale) times as large.
    pub(crate) fn of_scaled_rates(self) -> Self {
        Self { rates: 1.0, ..self }
    }

    /// The same with a rate of noise in the unit of the data.
    pub(crate) fn with_noise(self, noise: f64) -> Self {
        Self {
            noise: noise * self.scale,
            ..self
        }
    }

    /// Whether noise alone gives every datum some probability.
    pub(crate) fn is_noisy(self) -> bool {
        self.noise > 0.0
    }

    /// What brings the data to about 1.
    pub(crate) fn scale(self) -> f64 {
        self.scale
    }

    /// The rates passed in, divided by the rates in the unit of the data.
    #[cfg(feature = "fft")]
    pub(crate) fn met(self) -> f64 {
        self.scale / self.rates
    }
}

/// `G± = (w ± V)/(2 L±)`, `w = √(V² + 4 L⁺ L⁻)`.
///
/// Cells whose squares were lost below the smallest number are left with their rates, negative; tells whether there are any.
#[inline(always)]
fn limit<T: Real>(
    [scale, rates, noise]: [T; 3],
    cells: &[T],
    plus: &mut [T],
    minus: &mut [T],
) -> bool {
    let (zero, one, half, four) = (T::zero(), T::one(), T::lit(0.5), T::lit(4.0));
    let tiny = T::TINY;
    let mut lost = false;
    for ((&v, plus), minus) in cells.iter().zip(plus).zip(minus) {
        // Nothing but arithmetic and choices between finished numbers: the loop is compiled for whole registers.
        let (x, p, q) = (v * scale, *plus * rates + noise, *minus * rates + noise);
        let positive = x >= zero;
        let main = if positive { p } else { q };
        let other = if positive { q } else { p };
        let size = if positive { x } else { -x };
        let squares = x * x + four * (p * q);
        let large = half * (squares.sqrt() + size);
        // [SKELLAM 5] the larger side, and the other as its inverse
        let (own, rest) = (large / main, main / large);
        let own = if main > zero { own } else { zero };
        let rest = if other > zero { rest } else { zero };
        let (a, b) = (
            if positive { own } else { rest },
            if positive { rest } else { own },
        );
        let gone = squares < tiny;
        lost |= gone;
        let (a, b) = (
            if gone { -*plus } else { a },
            if gone { -*minus } else { b },
        );
        let hidden = v.is_nan();
        *plus = if hidden { one } else { a };
        *minus = if hidden { one } else { b };
    }
    lost
}

/// The cells that [`limit`] left.
#[cold]
fn recover<T: Real>([scale, rates, noise]: [f64; 3], cells: &[T], plus: &mut [T], minus: &mut [T]) {
    for ((v, plus), minus) in cells.iter().zip(plus).zip(minus) {
        let (p, q) = (-plus.to_f64() * rates, -minus.to_f64() * rates);
        // Multipliers are never negative, and -0 is a rate of 0.
        if p.is_sign_positive() && q.is_sign_positive() {
            let (p, q) = (p + noise, q + noise);
            // [SKELLAM 10]
            let found = skellam_limit_ratios(v.to_f64() * scale, p, q);
            let (a, b) = found.unwrap_or((f64::NAN, f64::NAN));
            (*plus, *minus) = (T::lit(a), T::lit(b));
        }
    }
}

/// Cells whose ratios are computed together.
const BATCH: usize = 128;

/// `M = 1` ratios of `(M V, M L⁺, M L⁻)`.
fn counts<T: Real>(m: f64, cells: &[T], plus: &mut [T], minus: &mut [T]) {
    let mut at = [[0.0; BATCH]; 5];
    let parts = cells
        .chunks(BATCH)
        .zip(plus.chunks_mut(BATCH).zip(minus.chunks_mut(BATCH)));
    for (cells, (plus, minus)) in parts {
        let n = cells.len();
        let [v, p, q, a, b] = at.each_mut().map(|x| &mut x[..n]);
        for i in 0..n {
            let x = cells[i].to_f64();
            v[i] = if x.is_nan() { 0.0 } else { m * x };
            p[i] = m * plus[i].to_f64();
            q[i] = m * minus[i].to_f64();
        }
        // [SKELLAM 5]
        if skellam_ratios_slice(v, p, q, a, b).is_err() {
            // Rates beyond the domain show as NaN in what is summed.
            a.fill(f64::NAN);
        }
        for i in 0..n {
            let hidden = cells[i].is_nan();
            plus[i] = if hidden { T::one() } else { T::lit(a[i]) };
            minus[i] = if hidden { T::one() } else { T::lit(b[i]) };
        }
    }
}

impl<T: Real> SplitRule<T> for Split {
    fn multipliers(&self, cells: &[T], plus: &mut [T], minus: &mut [T]) {
        if !self.replicates.is_real() {
            return counts(self.replicates.number(), cells, plus, minus);
        }
        let scales = [self.scale, self.rates, self.noise];
        if wide(|| limit(scales.map(T::lit), cells, plus, minus)) {
            recover(scales, cells, plus, minus);
        }
    }

    fn value(&self, cells: &[T], plus: &[T], minus: &[T]) -> f64 {
        let mut at = [[0.0; BATCH]; 4];
        let mut sum = CompensatedSum::default();
        let parts = cells
            .chunks(BATCH)
            .zip(plus.chunks(BATCH).zip(minus.chunks(BATCH)));
        for (cells, (plus, minus)) in parts {
            let n = cells.len();
            let [v, p, q, d] = at.each_mut().map(|x| &mut x[..n]);
            for i in 0..n {
                let rates = [plus[i], minus[i]].map(|rate| rate.to_f64() * self.rates);
                let [a, b] = rates.map(|rate| rate + self.noise);
                let x = cells[i].to_f64() * self.scale;
                // A cell without divergence stands for a hidden one.
                let hidden = x.is_nan();
                v[i] = if hidden { 0.0 } else { x };
                p[i] = if hidden { 1.0 } else { a };
                q[i] = if hidden { 1.0 } else { b };
            }
            if self.replicates.is_real() {
                // [SKELLAM 4] [SKELLAM eq. 30]
                if skellam_divergence_slice(v, p, q, d).is_err() {
                    return f64::NAN;
                }
                d.iter().for_each(|&d| sum += -d);
                continue;
            }
            let m = self.replicates.number();
            for i in (0..n).filter(|&i| !cells[i].is_nan()) {
                // [SKELLAM 4] [SKELLAM eq. 27]
                sum += skellam_ln_pmf(m * v[i], m * p[i], m * q[i]).map_or(f64::NAN, |ln| ln / m);
            }
        }
        sum.value() / self.scale
    }
}
