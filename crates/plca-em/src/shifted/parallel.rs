//! Work on all threads in parts that do not depend on their number.

/// Calls `f` with the number and the values of every part of `part` values, each once.
pub(crate) fn for_each_part<T: Send>(
    values: &mut [T],
    part: usize,
    f: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let part = part.max(1);
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        let parts = values.par_chunks_mut(part).enumerate();
        parts.for_each(|(at, values)| f(at, values));
    }
    #[cfg(not(feature = "rayon"))]
    for (at, values) in values.chunks_mut(part).enumerate() {
        f(at, values);
    }
}

/// Calls `f`, compiled for the widest registers of the processor as far as it is inlined.
pub(crate) fn wide<R>(f: impl FnOnce() -> R) -> R {
    struct Call<F>(F);
    impl<F: FnOnce() -> R, R> pulp::WithSimd for Call<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Call(f))
}
