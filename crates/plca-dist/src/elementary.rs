//! Differences of elementary functions that lose their digits when written down naively.

/// `ln 2` in two parts, the first short enough to be multiplied by an exponent exactly.
pub(crate) const LN_2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);

/// Sum of the odd series `Σ_{n≥0} s^(2n+3) / (2n+3)`, which is `atanh s - s`, for `|s| ≤ 1/3`.
#[inline(always)]
pub(crate) fn atanh_tail(s: f64) -> f64 {
    let s2 = s * s;
    // 16 terms leave 1e-18 of the sum at |s| = 1/3.
    let mut sum = 0.0;
    let mut n = 16;
    while n > 0 {
        n -= 1;
        sum = 1.0 / f64::from(2 * n + 3) + s2 * sum;
    }
    s * s2 * sum
}

/// `u - ln(1 + u)`, never negative, for `u ≥ -1`; relative error below 4 eps.
#[inline]
pub(crate) fn x_minus_ln_1p(u: f64) -> f64 {
    if (-0.5..=1.0).contains(&u) {
        // ln(1+u) = 2 atanh s with s = u/(2+u), and u - 2s = u s.
        let s = u / (2.0 + u);
        u * s - 2.0 * atanh_tail(s)
    } else {
        u - u.ln_1p()
    }
}

/// `(1 + u) ln(1 + u) - u`, never negative, for `u ≥ -1`; relative error below 4 eps.
#[inline]
pub(crate) fn entropy_excess(u: f64) -> f64 {
    if (-0.5..=1.0).contains(&u) {
        // As above; (1+u) 2s - u = u s.
        let s = u / (2.0 + u);
        u * s + 2.0 * (1.0 + u) * atanh_tail(s)
    } else if u <= -1.0 {
        1.0
    } else {
        (1.0 + u) * u.ln_1p() - u
    }
}

/// `e^q - 1 - q`, never negative, for `q ≤ 1`; relative error below 4 eps.
#[inline]
pub(crate) fn exp_m1_minus_x(q: f64) -> f64 {
    if q.abs() <= 1.0 {
        // q²/2 (1 + q/3 (1 + q/4 (…))): 18 factors leave 1e-19.
        let series = (3..21)
            .rev()
            .fold(1.0, |sum, n| 1.0 + q / f64::from(n) * sum);
        0.5 * q * q * series
    } else {
        q.exp_m1() - q
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40-digit values, both sides of every border between a series and the plain formula.
    #[test]
    fn forms_meet_references() {
        type Form = fn(f64) -> f64;
        let forms: [(&str, Form); 3] = [
            ("x_minus_ln_1p", x_minus_ln_1p),
            ("entropy_excess", entropy_excess),
            ("exp_m1_minus_x", exp_m1_minus_x),
        ];
        let table: serde_json::Value =
            serde_json::from_str(include_str!("../testdata/elementary.json")).unwrap();
        let mut seen = 0;
        for (name, form) in forms {
            for row in table[name].as_array().unwrap() {
                let (x, want) = (row[0].as_f64().unwrap(), row[1].as_f64().unwrap());
                let got = form(x);
                assert!(
                    (got - want).abs() <= 4.0 * f64::EPSILON * want,
                    "{name}({x:e}) = {got:e} instead of {want:e}"
                );
                seen += 1;
            }
        }
        assert!(seen > 300);
    }
}
