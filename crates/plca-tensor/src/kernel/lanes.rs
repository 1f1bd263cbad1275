//! Scalars as SIMD lanes: one body for f32 and f64 on every instruction set, chosen at run time.

use plca_dist::simd::instruction_set;
use pulp::{Simd, WithSimd};

/// What the kernels need of a scalar's vector type; every method is some instructions.
///
/// The methods start with `v` so that they do not collide with those of the scalar itself.
pub trait Lanes: Copy + Send + Sync + 'static {
    /// One register of this scalar.
    type Vector<S: Simd>: Copy;
    /// Scalars in a register.
    fn lanes<S: Simd>() -> usize;
    /// All lanes equal to `x`.
    fn vsplat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// Whole registers of a slice, and what is left over.
    fn vectors<S: Simd>(x: &[Self]) -> (&[Self::Vector<S>], &[Self]);
    /// Whole registers of a slice, and what is left over.
    fn vectors_mut<S: Simd>(x: &mut [Self]) -> (&mut [Self::Vector<S>], &mut [Self]);
    /// The first lanes from a slice shorter than a register, zero elsewhere.
    fn vpartial_load<S: Simd>(simd: S, x: &[Self]) -> Self::Vector<S>;
    /// `a b + c`; not fused where the machine has no fused instruction.
    fn vmul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `a + b`.
    fn vadd<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a b`.
    fn vmul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a / b` of positive normal `b` to two units in the last place.
    fn vdiv<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `1 / x` of positive normal `x` to two units in the last place.
    fn vreciprocal<S: Simd>(simd: S, x: Self::Vector<S>) -> Self::Vector<S>;
    /// Lane-wise maximum.
    fn vmax<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a` where `x` is a number, `b` where `x` is NaN.
    fn vunless_nan<S: Simd>(
        simd: S,
        x: Self::Vector<S>,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// Sum over the lanes.
    fn vsum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
}

macro_rules! lanes {
    ($t:ty, $vec:ident, $n:ident, $splat:ident, $as:ident, $as_mut:ident, $partial:ident, $fma:ident,
     $add:ident, $mul:ident, $div:ident, $max:ident, $eq:ident, $select:ident, $sum:ident, $reciprocal:path) => {
        impl Lanes for $t {
            type Vector<S: Simd> = S::$vec;
            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$n
            }
            #[inline(always)]
            fn vsplat<S: Simd>(simd: S, x: Self) -> S::$vec {
                simd.$splat(x)
            }
            #[inline(always)]
            fn vectors<S: Simd>(x: &[Self]) -> (&[S::$vec], &[Self]) {
                S::$as(x)
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(x: &mut [Self]) -> (&mut [S::$vec], &mut [Self]) {
                S::$as_mut(x)
            }
            #[inline(always)]
            fn vpartial_load<S: Simd>(simd: S, x: &[Self]) -> S::$vec {
                simd.$partial(x)
            }
            #[inline(always)]
            fn vmul_add<S: Simd>(simd: S, a: S::$vec, b: S::$vec, c: S::$vec) -> S::$vec {
                simd.$fma(a, b, c)
            }
            #[inline(always)]
            fn vadd<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn vmul<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$mul(a, b)
            }
            #[inline(always)]
            fn vdiv<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                match $reciprocal(simd, b) {
                    Some([r, c]) => simd.$mul(simd.$mul(a, r), c),
                    None => simd.$div(a, b),
                }
            }
            #[inline(always)]
            fn vreciprocal<S: Simd>(simd: S, x: S::$vec) -> S::$vec {
                match $reciprocal(simd, x) {
                    Some([r, c]) => simd.$mul(r, c),
                    None => simd.$div(simd.$splat(1.0), x),
                }
            }
            #[inline(always)]
            fn vmax<S: Simd>(simd: S, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$max(a, b)
            }
            #[inline(always)]
            fn vunless_nan<S: Simd>(simd: S, x: S::$vec, a: S::$vec, b: S::$vec) -> S::$vec {
                simd.$select(simd.$eq(x, x), a, b)
            }
            #[inline(always)]
            fn vsum<S: Simd>(simd: S, a: S::$vec) -> Self {
                simd.$sum(a)
            }
        }
    };
}

lanes! {
    f64, f64s, F64_LANES, splat_f64s, as_simd_f64s, as_mut_simd_f64s, partial_load_f64s, mul_add_e_f64s,
    add_f64s, mul_f64s, div_f64s, max_f64s, equal_f64s, select_f64s, reduce_sum_f64s, estimated
}
lanes! {
    f32, f32s, F32_LANES, splat_f32s, as_simd_f32s, as_mut_simd_f32s, partial_load_f32s, mul_add_e_f32s,
    add_f32s, mul_f32s, div_f32s, max_f32s, equal_f32s, select_f32s, reduce_sum_f32s, no_estimate
}

/// An estimate of 14 bits and a step of Newton's method, then the factor of the next: less than half the time of a division of eight
/// numbers, which takes as long as ten to sixteen multiplications.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn estimated<S: Simd>(simd: S, x: S::f64s) -> Option<[S::f64s; 2]> {
    use std::any::Any;
    let avx512 = (&simd as &dyn Any).downcast_ref::<pulp::x86::V4>()?.avx512f;
    let x: pulp::f64x8 = *(&x as &dyn Any).downcast_ref()?;
    let (x, two) = (pulp::cast(x), avx512._mm512_set1_pd(2.0));
    let estimate = avx512._mm512_rcp14_pd(x);
    let correction = avx512._mm512_fnmadd_pd(x, estimate, two);
    let r = avx512._mm512_mul_pd(estimate, correction);
    let correction = avx512._mm512_fnmadd_pd(x, r, two);
    let result: [pulp::f64x8; 2] = [pulp::cast(r), pulp::cast(correction)];
    (&result as &dyn Any).downcast_ref().copied()
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn estimated<S: Simd>(_: S, _: S::f64s) -> Option<[S::f64s; 2]> {
    None
}

/// Single precision divides twice as fast as double.
#[inline(always)]
fn no_estimate<S: Simd>(_: S, _: S::f32s) -> Option<[S::f32s; 2]> {
    None
}

/// Scalars per register, and rows that a register tile holds.
struct Sizes<T>(std::marker::PhantomData<T>);

impl<T: Lanes> WithSimd for Sizes<T> {
    type Output = [usize; 2];
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [usize; 2] {
        let lanes = T::lanes::<S>();
        [lanes, super::tiles::band_vectors::<S>() * lanes]
    }
}

fn sizes<T: Lanes>() -> [usize; 2] {
    instruction_set().dispatch(Sizes::<T>(std::marker::PhantomData))
}

/// Scalars per register on this machine.
pub(crate) fn lane_count<T: Lanes>() -> usize {
    sizes::<T>()[0]
}

/// Rows that a register tile holds on this machine.
pub(crate) fn band<T: Lanes>() -> usize {
    sizes::<T>()[1]
}

/// Values per padded row for `k` components: whole registers.
pub(crate) fn stride<T: Lanes>(k: usize) -> usize {
    k.next_multiple_of(lane_count::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;

    /// A number, and what it is divided by.
    struct Divisions<'a, T>(T, &'a [T]);

    impl<T: Real> WithSimd for Divisions<'_, T> {
        /// The reciprocals and the quotients.
        type Output = [Vec<T>; 2];
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> [Vec<T>; 2] {
            let Self(a, divisors) = self;
            let a = T::vsplat(simd, a);
            let mut out = [(); 2].map(|()| vec![T::zero(); divisors.len()]);
            let [r, q] = out.each_mut().map(|out| T::vectors_mut::<S>(out).0);
            for (at, &b) in T::vectors::<S>(divisors).0.iter().enumerate() {
                r[at] = T::vreciprocal(simd, b);
                q[at] = T::vdiv(simd, a, b);
            }
            out
        }
    }

    fn check<T: Real>(largest: f64) {
        let divisors = (0..3200).map(|i| largest.powf(f64::from(i) / 1600.0 - 1.0));
        let divisors: Vec<T> = divisors.map(T::lit).chain([T::TINY; 16]).collect();
        for a in [0.0, 1e-3, 1.0, 7.0, 12345.678].map(T::lit) {
            let [r, q] = instruction_set().dispatch(Divisions(a, &divisors));
            for (at, b) in divisors.iter().enumerate() {
                let [a, b, r, q] = [a, *b, r[at], q[at]].map(|x| x.to_f64());
                let (want, epsilon) = (T::lit(a / b).to_f64(), T::EPSILON.to_f64());
                assert!((r * b - 1.0).abs() <= 2.0 * epsilon, "{b}: {r}");
                let close = q == want || (q / want - 1.0).abs() <= 2.0 * epsilon;
                assert!(close, "{a} / {b}: {q}");
            }
        }
    }

    #[test]
    fn quotients_and_reciprocals_are_right_to_two_units() {
        check::<f64>(1e300);
        check::<f32>(1e33);
    }
}
