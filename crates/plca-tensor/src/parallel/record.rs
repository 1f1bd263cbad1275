//! What threads could gain, seen from one: the seconds of every task of every parallel loop.

use std::cell::RefCell;
use std::time::Instant;

/// A parallel loop.
///
/// ```
/// use plca_tensor::parallel::{map_in_order, record};
/// let recorded = record::of(|| {
///     map_in_order(vec![1, 2, 3], |x| x * x);
/// });
/// assert_eq!(recorded.inner[0].tasks.len(), 3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loop {
    /// In their order.
    pub tasks: Vec<Task>,
}

/// A part of a loop that one thread does.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Its time, that of the loops within it included.
    pub seconds: f64,
    /// The loops within it.
    pub inner: Vec<Loop>,
}

thread_local! {
    /// The loops found so far, of every task that has not ended; empty where nothing is recorded.
    static OPEN: RefCell<Vec<Vec<Loop>>> = const { RefCell::new(Vec::new()) };
}

/// Does some work on this thread alone and records its loops.
///
/// ```
/// assert!(plca_tensor::parallel::record::of(|| ()).inner.is_empty());
/// ```
pub fn of(work: impl FnOnce()) -> Task {
    timed(work).1
}

pub(super) fn is_on() -> bool {
    OPEN.with_borrow(|open| !open.is_empty())
}

fn timed<O>(work: impl FnOnce() -> O) -> (O, Task) {
    OPEN.with_borrow_mut(|open| open.push(Vec::new()));
    let start = Instant::now();
    let out = work();
    let seconds = start.elapsed().as_secs_f64();
    let inner = OPEN.with_borrow_mut(|open| open.pop().unwrap_or_default());
    (out, Task { seconds, inner })
}

fn close(tasks: Vec<Task>) {
    OPEN.with_borrow_mut(|open| open.last_mut().map(|loops| loops.push(Loop { tasks })));
}

/// The loop over `items`, one after the other.
pub(super) fn in_order<I, O>(items: impl Iterator<Item = I>, f: impl Fn(I) -> O) -> Vec<O> {
    let (out, tasks) = items.map(|item| timed(|| f(item))).unzip();
    close(tasks);
    out
}

pub(super) fn both<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    let ((a, first), (b, second)) = (timed(a), timed(b));
    close(vec![first, second]);
    (a, b)
}
