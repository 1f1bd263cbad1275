//! Loops over fixed parts, on all threads of the current rayon pool and on the widest registers of the machine. What a part
//! computes, and the order of the results, do not depend on the number of threads: neither do the bits.

use std::collections::BTreeMap;
#[cfg(feature = "rayon")]
use std::sync::atomic::{AtomicUsize, Ordering};

pub use plca_dist::simd::{ln_in_place, wide};

pub use crate::simplex::{largest, sum};

#[cfg(feature = "record-loops")]
pub mod record;

/// Applies `f` to every item, on all threads if there is more than one item; the results stay in order.
///
/// ```
/// assert_eq!(plca_tensor::parallel::map_in_order(vec![1, 2, 3], |x| x * x), [1, 4, 9]);
/// ```
pub fn map_in_order<I: Send, O: Send>(items: Vec<I>, f: impl Fn(I) -> O + Sync + Send) -> Vec<O> {
    #[cfg(feature = "record-loops")]
    if record::is_on() {
        return record::in_order(items.into_iter(), f);
    }
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
    #[cfg(feature = "record-loops")]
    if record::is_on() {
        let parts = values.chunks_mut(size).enumerate();
        record::in_order(parts, |(part, values)| f(part, values));
        return;
    }
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

/// How many threads loops have; no result depends on it.
pub(crate) fn threads() -> usize {
    #[cfg(feature = "rayon")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "rayon"))]
    1
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
    #[cfg(feature = "record-loops")]
    if record::is_on() {
        return record::both(a, b);
    }
    #[cfg(feature = "rayon")]
    return rayon::join(a, b);
    #[cfg(not(feature = "rayon"))]
    (a(), b())
}

/// `f` of 0, 1, … below `count`, as tasks that share nothing: as many at a time as there are threads, each on its share of them. The
/// results stay in order.
///
/// For tasks that start loops of their own, such as whole fits. A thread that waited for such a loop in a common pool would begin another task
/// meanwhile, and would have to end it first.
///
/// ```
/// assert_eq!(plca_tensor::parallel::apart(3, |task| task * task), [0, 1, 4]);
/// ```
pub fn apart<O: Send>(count: usize, f: impl Fn(usize) -> O + Sync) -> Vec<O> {
    #[cfg(feature = "record-loops")]
    if record::is_on() {
        return record::in_order(0..count, f);
    }
    #[cfg(feature = "rayon")]
    {
        let threads = rayon::current_num_threads();
        let workers = threads.min(count);
        if workers > 1 {
            let next = AtomicUsize::new(0);
            let claim = || -> Vec<(usize, O)> {
                let numbers = std::iter::from_fn(|| {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    (at < count).then_some(at)
                });
                numbers.map(|at| (at, f(at))).collect()
            };
            // The first ones have one thread more where they do not come out even.
            let work = |worker: usize| {
                let own = threads / workers + usize::from(worker < threads % workers);
                let pool = rayon::ThreadPoolBuilder::new().num_threads(own).build();
                // A machine that has no more threads does the same work on those that there are.
                pool.map_or_else(|_| claim(), |pool| pool.install(claim))
            };
            let mut all: Vec<(usize, O)> = std::thread::scope(|scope| {
                let work = &work;
                let workers: Vec<_> = (0..workers)
                    .map(|worker| scope.spawn(move || work(worker)))
                    .collect();
                let done = workers.into_iter().map(|worker| worker.join());
                done.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            });
            all.sort_unstable_by_key(|(at, _)| *at);
            return all.into_iter().map(|(_, o)| o).collect();
        }
    }
    (0..count).map(f).collect()
}

/// `f` of 0, 1, … below `count`, in order. A thread that is free takes the next number, so that what
/// comes early is never far ahead: `f` starts no tasks of its own, since a thread that waits for them may take other numbers first.
pub(crate) fn claim_in_order<O: Send>(count: usize, f: impl Fn(usize) -> O + Sync) -> Vec<O> {
    #[cfg(feature = "record-loops")]
    if record::is_on() {
        return record::in_order(0..count, f);
    }
    #[cfg(feature = "rayon")]
    {
        let threads = rayon::current_num_threads().min(count);
        if threads > 1 {
            use rayon::prelude::*;
            let next = AtomicUsize::new(0);
            let claim = |_| {
                std::iter::from_fn(|| {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    (at < count).then(|| (at, f(at)))
                })
            };
            let mut all: Vec<(usize, O)> =
                (0..threads).into_par_iter().flat_map_iter(claim).collect();
            all.sort_unstable_by_key(|(at, _)| *at);
            return all.into_iter().map(|(_, o)| o).collect();
        }
    }
    (0..count).map(f).collect()
}

/// Parts that come in any order and are passed on in the order of their numbers.
#[derive(Debug)]
pub(crate) struct InOrder<P> {
    next: usize,
    early: BTreeMap<usize, P>,
}

impl<P> InOrder<P> {
    pub(crate) fn new() -> Self {
        let early = BTreeMap::new();
        Self { next: 0, early }
    }

    /// Passes on the part of number `at` and those that waited for it, or keeps it until those before it have come.
    pub(crate) fn put(&mut self, at: usize, part: P, mut pass_on: impl FnMut(usize, P)) {
        self.early.insert(at, part);
        while let Some(part) = self.early.remove(&self.next) {
            pass_on(self.next, part);
            self.next += 1;
        }
    }

    /// How many parts were passed on.
    pub(crate) fn passed_on(&self) -> usize {
        self.next
    }
}
