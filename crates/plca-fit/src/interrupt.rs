//! Ending work from another thread.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use plca_tensor::Real;

use super::{Iteration, Observer, Status};

/// A flag that another thread may raise: work that looks at it ends at its next iteration, as [`Status::Interrupted`]. It is an observer of
/// runs; clones are the same flag.
///
/// ```
/// use plca_fit::{Interrupt, Transform};
/// let flag = Interrupt::default();
/// let how = Transform::default().interrupt(flag.clone());
/// flag.raise();
/// assert!(how.interrupt.is_some_and(|flag| flag.is_raised()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Raises the flag; it stays so.
    pub fn raise(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// The same flag.
impl PartialEq for Interrupt {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Real> Observer<T> for Interrupt {
    fn on_iteration(&mut self, _: &Iteration<'_, T>) -> ControlFlow<Status> {
        match self.is_raised() {
            true => ControlFlow::Break(Status::Interrupted),
            false => ControlFlow::Continue(()),
        }
    }

    fn on_start(&mut self, _: usize, _: usize) -> ControlFlow<Status> {
        match self.is_raised() {
            true => ControlFlow::Break(Status::Interrupted),
            false => ControlFlow::Continue(()),
        }
    }
}
