//! Natural logarithms in loops.
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
//! which it is inlined.

use crate::elementary::LN_2;

/// The least `m`, `√½` rounded, and 1.
const LEAST: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
const ONE: u64 = 1f64.to_bits();
const FRACTION: u64 = (1 << 52) - 1;
/// `2^52`: the integers up to there are its last bits.
const INTEGERS: f64 = 4_503_599_627_370_496.0;
const BIAS: f64 = 1023.0;

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
    e * LN_2.0 + (ln_m + e * LN_2.1)
}

/// The natural logarithms of some numbers in their place, by the library's function if any of them is not a positive normal number.
#[inline(always)]
pub fn ln_in_place(values: &mut [f64]) {
    let mut normal = true;
    for x in &*values {
        normal &= (*x >= f64::MIN_POSITIVE) & (*x <= f64::MAX);
    }
    if normal {
        for x in values {
            *x = ln(*x);
        }
    } else {
        for x in values {
            *x = x.ln();
        }
    }
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
}
