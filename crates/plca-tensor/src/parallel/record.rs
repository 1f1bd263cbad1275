//! What threads could gain, seen from one: the seconds of every task of every parallel loop.

use std::cell::{Cell, RefCell};

/// A parallel loop.
///
/// ```
/// use plca_tensor::parallel::{map_in_order, record};
/// // Time stands still: a program would give a clock.
/// let recorded = record::of(|| 0.0, || {
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
    static CLOCK: Cell<fn() -> f64> = const { Cell::new(|| 0.0) };
}

/// Does some work on this thread alone and records its loops; `clock` tells the seconds since any fixed moment.
///
/// ```
/// assert!(plca_tensor::parallel::record::of(|| 0.0, || ()).inner.is_empty());
/// ```
pub fn of(clock: fn() -> f64, work: impl FnOnce()) -> Task {
    CLOCK.set(clock);
    timed(work).1
}

pub(super) fn is_on() -> bool {
    OPEN.with_borrow(|open| !open.is_empty())
}

fn timed<O>(work: impl FnOnce() -> O) -> (O, Task) {
    OPEN.with_borrow_mut(|open| open.push(Vec::new()));
    let clock = CLOCK.get();
    let start = clock();
    let out = work();
    let seconds = clock() - start;
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
