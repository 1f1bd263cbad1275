//! The two scalar types that models are generic over.

use nalgebra::RealField;

use crate::kernel::passes::Passes;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A scalar of data and models: `f32` or `f64`.
///
/// Storage, tiles and accumulators use the scalar itself; objectives, traces and special functions
/// are `f64` for both.
///
/// ```
/// use plca_tensor::Real;
/// assert_eq!(f32::lit(0.5).to_f64(), 0.5);
/// ```
pub trait Real: RealField + Copy + Passes + Default + std::iter::Sum + sealed::Sealed {
    /// Smallest positive normal number.
    const TINY: Self;
    /// Largest power of two that a factor may be scaled by.
    const MAX_EXPONENT: i32;
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// The nearest number to `x`.
    ///
    /// ```
    /// use plca_tensor::Real;
    /// assert_eq!(f32::lit(0.25), 0.25);
    /// ```
    fn lit(x: f64) -> Self;
    /// Exact widening.
    ///
    /// ```
    /// use plca_tensor::Real;
    /// assert_eq!(0.1f32.to_f64(), f64::from(0.1f32));
    /// ```
    fn to_f64(self) -> f64;
    /// Whether this is not a number.
    ///
    /// ```
    /// use plca_tensor::Real;
    /// assert!(Real::is_nan(f32::NAN) && !Real::is_nan(0.0f64));
    /// ```
    fn is_nan(self) -> bool;
}

impl Real for f32 {
    const TINY: Self = f32::MIN_POSITIVE;
    const MAX_EXPONENT: i32 = 126;
    const EPSILON: Self = f32::EPSILON;
    fn lit(x: f64) -> Self {
        x as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}

impl Real for f64 {
    const TINY: Self = f64::MIN_POSITIVE;
    const MAX_EXPONENT: i32 = 1022;
    const EPSILON: Self = f64::EPSILON;
    fn lit(x: f64) -> Self {
        x
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}
