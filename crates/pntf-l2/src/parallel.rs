//! Independent pieces of work.

/// Applies `f` to every item, on all threads of the pool where the feature `rayon` is on; results in order.
pub(crate) fn map_in_order<I: Send, O: Send>(
    items: Vec<I>,
    f: impl Fn(I) -> O + Sync + Send,
) -> Vec<O> {
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        items.into_par_iter().map(f).collect()
    }
    #[cfg(not(feature = "rayon"))]
    items.into_iter().map(f).collect()
}
