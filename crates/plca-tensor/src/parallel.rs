//! Loops over fixed parts, on all threads of the current rayon pool and on the widest registers of the machine. What a part
//! computes, and the order of the results, do not depend on the number of threads: neither do the bits.

pub use plca_dist::simd::wide;

/// Applies `f` to every item, on all threads if there is more than one item; the results stay in order.
///
/// ```
/// assert_eq!(plca_tensor::parallel::map_in_order(vec![1, 2, 3], |x| x * x), [1, 4, 9]);
/// ```
pub fn map_in_order<I: Send, O: Send>(items: Vec<I>, f: impl Fn(I) -> O + Sync + Send) -> Vec<O> {
    #[cfg(feature = "rayon")]
    if items.len() > 1 {
        use rayon::prelude::*;
        return items.into_par_iter().map(f).collect();
    }
    items.into_iter().map(f).collect()
}

/// Cuts `values` into consecutive parts of `size`, at least 1 (the last may be shorter), and applies `f` to each with its
/// number.
///
/// ```
/// let mut values = [0; 5];
/// plca_tensor::parallel::for_each_part(&mut values, 2, |part, values| values.fill(part));
/// assert_eq!(values, [0, 0, 1, 1, 2]);
/// ```
pub fn for_each_part<T: Send>(
    values: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    let size = size.max(1);
    #[cfg(feature = "rayon")]
    if values.len() > size {
        use rayon::prelude::*;
        let parts = values.par_chunks_mut(size).enumerate();
        return parts.for_each(|(part, values)| f(part, values));
    }
    for (part, values) in values.chunks_mut(size).enumerate() {
        f(part, values);
    }
}

/// Both results, computed at the same time where there are two threads.
///
/// ```
/// assert_eq!(plca_tensor::parallel::both(|| 1 + 1, || "two"), (2, "two"));
/// ```
pub fn both<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    #[cfg(feature = "rayon")]
    return rayon::join(a, b);
    #[cfg(not(feature = "rayon"))]
    (a(), b())
}
