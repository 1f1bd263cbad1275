//! Sums of logarithms for kernels that have the entries of a row or a column side by side.
//!
//! ```math
//! \begin{aligned}
//! x &= 2^e m, \qquad m \in [\sqrt{1/2}, \sqrt{2}), \qquad s = \frac{m - 1}{m + 1} \\
//! \ln m &= 2 \left( s + \frac{s^3}{3} + \frac{s^5}{5} + \dots \right) \\
//! \ln x &= e \ln 2 + \ln m
//! \end{aligned}
//! ```
//!
//! There are neither branches nor calls: the compiler makes whole registers of it, those of the instruction set of the function into
//! which it is inlined. So kernels call it in plain loops; the closures of iterators may become functions of their own, without SIMD.

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
        let mut normal = true;
        for p in &self.p[..used] {
            normal &= (*p >= f64::MIN_POSITIVE) & (*p <= f64::MAX);
        }
        if normal {
            for p in &mut self.p[..used] {
                *p = ln(*p);
            }
        } else {
            // A zero or a subnormal number, which are rare.
            for p in &mut self.p[..used] {
                *p = p.ln();
            }
        }
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

/// The least `m`, `√½` rounded, and 1.
const LEAST: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
const ONE: u64 = 1f64.to_bits();
const FRACTION: u64 = (1 << 52) - 1;
/// `2^52`: the integers up to there are its last bits.
const INTEGERS: f64 = 4_503_599_627_370_496.0;
const BIAS: f64 = 1023.0;
/// `ln 2` in two numbers, the first with so few digits that its products with exponents are exact.
const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// The natural logarithm of a positive normal number, to one and a half units in the last place.
#[inline(always)]
fn ln(x: f64) -> f64 {
    // The fraction carries into the exponent from √2 on.
    let bits = x.to_bits() + (ONE - LEAST);
    let e = f64::from_bits(INTEGERS.to_bits() | (bits >> 52)) - (INTEGERS + BIAS);
    let f = f64::from_bits((bits & FRACTION) + LEAST) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    // 1/3 + z/5 + z²/7 + …; what follows is below a quarter of a unit in the last place.
    let mut tail = 1.0 / 19.0;
    for odd in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        tail = tail * z + 1.0 / odd;
    }
    // 2 s = f - s f, of which the first term is exact.
    let ln_m = f - s * (f - 2.0 * z * tail);
    e * LN_2[0] + (ln_m + e * LN_2[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_library() {
        let (least, beyond) = (f64::MIN_POSITIVE.to_bits(), f64::INFINITY.to_bits());
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let anywhere = (0..200_000).map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            f64::from_bits(least + bits % (beyond - least))
        });
        let about_one = (0..200_000).map(|i| 0.4 + f64::from(i) * 1e-5);
        let near_one = (0..4000).map(|i| 1.0 + (f64::from(i) - 2000.0) * 1e-7);
        let [low, high] = [f64::from_bits(LEAST), 2.0 * f64::from_bits(LEAST)];
        let ends = [f64::MIN_POSITIVE, f64::MAX, 1.0, low, high];
        let ends = ends.into_iter().chain([low.next_down(), high.next_down()]);
        let mut worst = 0.0f64;
        for x in near_one.chain(anywhere).chain(about_one).chain(ends) {
            let (ours, theirs) = (ln(x), x.ln());
            let ulp = theirs.abs().next_up() - theirs.abs();
            worst = worst.max((ours - theirs).abs() / ulp);
        }
        // The library's are rounded too.
        assert!(worst <= 2.0, "{worst} units in the last place");
        assert_eq!(ln(1.0), 0.0);
    }

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
