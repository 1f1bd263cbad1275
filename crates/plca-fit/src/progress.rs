//! What is told while a start is computed.

use std::fmt;
use std::ops::ControlFlow;

use super::{FitError, Status};

/// Hears of the steps of a start.
type Listener<'a> = &'a mut dyn FnMut(usize, usize) -> ControlFlow<Status>;

/// Told of the steps of a start that takes long, such as singular vectors or iterations of EM; it may end the work between two of them.
///
/// ```
/// use std::ops::ControlFlow;
/// use plca_fit::{FitError, Progress, Status};
/// let mut told = Vec::new();
/// let mut listener = |done, of| {
///     told.push((done, of));
///     if done == 2 { ControlFlow::Break(Status::Interrupted) } else { ControlFlow::Continue(()) }
/// };
/// let mut progress = Progress::to(&mut listener);
/// let work = (0..5).try_for_each(|done| progress.step(done, 5));
/// assert_eq!(work, Err(FitError::Interrupted));
/// assert_eq!(told, [(0, 5), (1, 5), (2, 5)]);
/// ```
#[derive(Default)]
pub struct Progress<'a>(Option<Listener<'a>>);

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

impl<'a> Progress<'a> {
    /// Of which nobody hears.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Calls `listener(done, of)` before every step; `Break` ends the work.
    pub fn to(listener: Listener<'a>) -> Self {
        Self(Some(listener))
    }

    /// Says that so many steps of so many are done.
    ///
    /// # Errors
    ///
    /// [`FitError::Interrupted`] if the work is to end.
    pub fn step(&mut self, done: usize, of: usize) -> Result<(), FitError> {
        match self.0.as_mut().map(|listener| listener(done, of)) {
            Some(ControlFlow::Break(_)) => Err(FitError::Interrupted),
            _ => Ok(()),
        }
    }
}
