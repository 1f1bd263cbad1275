//! Powers of two, by which a scale changes no bit.

/// The exponent of the largest power of two that is not above a positive number: `floor(log2 x)`, exact; 0 of what is no positive finite number.
///
/// ```
/// use plca_tensor::exponent;
/// assert_eq!([1.0, 1.999, 0.3, f64::from_bits(1), f64::from_bits((1 << 52) - 1)].map(exponent), [0, 0, -2, -1074, -1023]);
/// ```
pub fn exponent(x: f64) -> i32 {
    if !(x > 0.0 && x.is_finite()) {
        return 0;
    }
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    match exponent {
        // Subnormal numbers.
        -1023 => 63 - x.to_bits().leading_zeros() as i32 - 1074,
        normal => normal,
    }
}

/// `x 2^exponent`, in steps whose powers are normal numbers.
///
/// ```
/// use plca_tensor::times_power_of_two;
/// assert_eq!(times_power_of_two(1e-300, 1990), 1e-300 * 2f64.powi(995) * 2f64.powi(995));
/// ```
pub fn times_power_of_two(mut x: f64, mut exponent: i32) -> f64 {
    while exponent != 0 && x != 0.0 {
        let step = exponent.clamp(-1000, 1000);
        x *= 2f64.powi(step);
        exponent -= step;
    }
    x
}
