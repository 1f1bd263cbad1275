//! Loops over fixed parts, on all threads of the current rayon pool and on the widest registers of the machine. What a part
//! computes, and the order of the results, do not depend on the number of threads: neither do the bits.

use std::collections::BTreeMap;
#[cfg(feature = "rayon")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

pub use plca_dist::simd::{ln_in_place, wide};

use crate::kernel::blocks::lock;
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
    if items.len() < 2 {
        return items.into_iter().map(f).collect();
    }
    let items: Vec<_> = items.into_iter().map(|x| Mutex::new(Some(x))).collect();
    let item = |at: usize| lock(&items[at]).take();
    let results = in_order(on_threads, items.len(), |at| item(at).map(&f));
    results.into_iter().flatten().collect()
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
    let parts = values.chunks_mut(size.max(1));
    #[cfg(feature = "record-loops")]
    if record::is_on() {
        record::in_order(parts.enumerate(), |(part, values)| f(part, values));
        return;
    }
    if parts.len() < 2 {
        return parts.enumerate().for_each(|(part, values)| f(part, values));
    }
    let parts: Vec<_> = parts.map(Mutex::new).collect();
    on_threads(parts.len(), &|part| {
        let values = std::mem::take(&mut *lock(&parts[part]));
        f(part, values);
    });
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
    in_order(on_threads_apart, count, f)
}

/// `f` of 0, 1, … below `count`, in order. A thread that is free takes the next number, so that what
/// comes early is never far ahead: `f` starts no tasks of its own, since a thread that waits for them may take other numbers first.
pub(crate) fn claim_in_order<O: Send>(count: usize, f: impl Fn(usize) -> O + Sync) -> Vec<O> {
    in_order(on_threads_claimed, count, f)
}

/// What `loops` computes for 0, 1, … below `count`, in this order.
fn in_order<O: Send>(
    loops: fn(usize, &(dyn Fn(usize) + Sync)),
    count: usize,
    f: impl Fn(usize) -> O + Sync,
) -> Vec<O> {
    #[cfg(feature = "record-loops")]
    if record::is_on() {
        return record::in_order(0..count, f);
    }
    let results: Vec<_> = (0..count).map(|_| Mutex::new(None)).collect();
    loops(count, &|at| {
        let result = f(at);
        *lock(&results[at]) = Some(result);
    });
    let result = |one: Mutex<_>| one.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().filter_map(result).collect()
}

// The loops themselves take a reference to what they do and are compiled once, not in every place that has a loop.

/// A loop whose threads take runs of numbers and may share them out again.
fn on_threads(count: usize, f: &(dyn Fn(usize) + Sync)) {
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        (0..count).into_par_iter().for_each(f);
    }
    #[cfg(not(feature = "rayon"))]
    (0..count).for_each(f);
}

/// A loop whose threads take one number after the other.
fn on_threads_claimed(count: usize, f: &(dyn Fn(usize) + Sync)) {
    #[cfg(feature = "rayon")]
    if threads() > 1 && count > 1 {
        let next = AtomicUsize::new(0);
        return on_threads(threads().min(count), &|_| claim(&next, count, f));
    }
    (0..count).for_each(f);
}

/// A loop on as many pools of threads as there are threads, each with its share of them, or as many as there are numbers.
fn on_threads_apart(count: usize, f: &(dyn Fn(usize) + Sync)) {
    #[cfg(feature = "rayon")]
    if threads() > 1 && count > 1 {
        let (threads, workers) = (threads(), threads().min(count));
        let next = AtomicUsize::new(0);
        let claim = || claim(&next, count, f);
        // The first ones have one thread more where they do not come out even.
        let work = |worker: usize| {
            let own = threads / workers + usize::from(worker < threads % workers);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(own).build();
            // A machine that has no more threads does the same work on those that there are.
            pool.map_or_else(|_| claim(), |pool| pool.install(claim));
        };
        return std::thread::scope(|scope| {
            let work = &work;
            let started = |worker| scope.spawn(move || work(worker));
            let workers: Vec<_> = (0..workers).map(started).collect();
            for worker in workers {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    }
    (0..count).for_each(f);
}

/// `f` of the numbers below `count` that nobody has taken.
#[cfg(feature = "rayon")]
fn claim(next: &AtomicUsize, count: usize, f: &(dyn Fn(usize) + Sync)) {
    let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
    numbers.take_while(|&at| at < count).for_each(f);
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
