//! Sums of logarithms for kernels that have the entries of a row or a column side by side.
//!
//! There are neither branches nor calls: the compiler makes whole registers of it, those of the instruction set of the function into
//! which it is inlined. So kernels call it in plain loops; the closures of iterators may become functions of their own, without SIMD.

use plca_dist::simd::ln_in_place;

use crate::Real;

/// Logarithms at a time: a multiple of every band height of dense tiles, and of every register.
const BLOCK: usize = 48;
/// Sums that do not wait for each other: the entry at place `i` of a block goes to sum `i mod 8`.
const SUMS: usize = 8;

/// `Σ v ln p` over the entries with `v > 0`, of runs that come one after the other. `-inf` if such a `p` is 0.
#[derive(Debug)]
pub(crate) struct LnLik {
    v: [f64; BLOCK],
    p: [f64; BLOCK],
    /// Entries that wait for their logarithm.
    waiting: usize,
    sums: [f64; SUMS],
}

impl Default for LnLik {
    fn default() -> Self {
        Self {
            v: [0.0; BLOCK],
            p: [1.0; BLOCK],
            waiting: 0,
            sums: [0.0; SUMS],
        }
    }
}

impl LnLik {
    /// Adds a run; `model` makes `p` of an entry's value and of what stands beside it.
    #[inline(always)]
    pub(crate) fn add<T: Real>(&mut self, values: &[T], beside: &[T], model: impl Fn(T, T) -> T) {
        let (mut values, mut beside) = (values, &beside[..values.len()]);
        while !values.is_empty() {
            if self.waiting == BLOCK {
                self.flush();
            }
            let fits = values.len().min(BLOCK - self.waiting);
            let to = self.waiting..self.waiting + fits;
            let (v, p) = (&mut self.v[to.clone()], &mut self.p[to.clone()]);
            let next = values[..fits].iter().zip(&beside[..fits]);
            for ((v, p), (&value, &beside)) in v.iter_mut().zip(p).zip(next) {
                let seen = value > T::zero();
                *v = if seen { value.to_f64() } else { 0.0 };
                *p = if seen {
                    model(value, beside).to_f64()
                } else {
                    1.0
                };
            }
            self.waiting = to.end;
            (values, beside) = (&values[fits..], &beside[fits..]);
        }
    }

    #[inline(always)]
    fn flush(&mut self) {
        let used = self.waiting.next_multiple_of(SUMS);
        ln_in_place(&mut self.p[..used]);
        for at in (0..used).step_by(SUMS) {
            for l in 0..SUMS {
                // [SPEC 0] L = Σ V ln P where V > 0
                self.sums[l] += self.v[at + l] * self.p[at + l];
            }
        }
        self.v = [0.0; BLOCK];
        self.p = [1.0; BLOCK];
        self.waiting = 0;
    }

    #[inline(always)]
    pub(crate) fn value(mut self) -> f64 {
        self.flush();
        self.sums.iter().sum()
    }
}

/// [`LnLik`] of a single run.
#[inline(always)]
pub(crate) fn ln_lik<T: Real>(values: &[T], beside: &[T], model: impl Fn(T, T) -> T) -> f64 {
    let mut sum = LnLik::default();
    sum.add(values, beside, model);
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_leave_out_what_was_not_observed() {
        for n in [0, 1, 7, 8, 9, 47, 48, 49, 100] {
            let values: Vec<f64> = (0..n).map(|i| [0.0, 2.5, f64::NAN, 1.0][i % 4]).collect();
            let p = |i: usize| {
                if i.is_multiple_of(2) {
                    f64::NAN
                } else {
                    0.3 + i as f64
                }
            };
            let beside: Vec<f64> = (0..n).map(p).collect();
            let sum = ln_lik(&values, &beside, |_, p| p);
            let seen = values.iter().enumerate().filter(|(_, v)| **v > 0.0);
            let plain: f64 = seen.map(|(i, v)| v * p(i).ln()).sum();
            assert!(
                (sum - plain).abs() <= 1e-13 * plain.abs(),
                "{n}: {sum} {plain}"
            );
        }
    }

    #[test]
    fn sums_go_on_beyond_normal_numbers() {
        let tiny = f64::MIN_POSITIVE / 1024.0;
        let sum = |p: [f64; 2]| ln_lik(&[1.0, 2.0], &p, |_, p| p);
        assert_eq!(sum([tiny, 1.0]), tiny.ln());
        assert_eq!(sum([1.0, 0.0]), f64::NEG_INFINITY);
        assert_eq!(sum([1.0, f64::INFINITY]), f64::INFINITY);
        assert!(sum([1.0, f64::NAN]).is_nan());
        assert_eq!(ln_lik(&[1.0f32], &[0.5], |v, p| v / p), 2f64.ln());
    }
}
