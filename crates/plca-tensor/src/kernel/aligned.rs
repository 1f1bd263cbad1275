//! Buffers that start on a cache line, so that a padded row touches as few lines as it can, and are used again.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use super::part_rows;
use crate::parallel::for_each_part;

/// Bytes of a cache line, and of the widest register.
const LINE: usize = 64;

/// Values that start on a cache line.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    buffer: Vec<T>,
    start: usize,
    len: usize,
    /// Where the buffer goes when it is dropped.
    pool: Pool<T>,
}

/// Buffers of earlier passes over the same data. Fresh memory costs a page fault per 4 KiB, on dense data up to a
/// third of an iteration (`benches/dense.rs`).
#[derive(Debug)]
pub(crate) struct Pool<T>(Option<Arc<Mutex<Free<T>>>>);

/// Buffers that nobody uses.
#[derive(Debug)]
struct Free<T> {
    /// Passes so far.
    pass: u64,
    /// Each with the pass that it was last used in.
    buffers: Vec<(u64, Vec<T>)>,
}

/// Buffers that this number of passes have not used are freed: the model may have changed its size.
const KEPT: u64 = 8;

impl<T> Default for Pool<T> {
    fn default() -> Self {
        let buffers = Vec::new();
        Self(Some(Arc::new(Mutex::new(Free { pass: 0, buffers }))))
    }
}

/// A copy of the data has a pool of its own.
impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What a pool holds is not part of the data's value.
impl<T> PartialEq for Pool<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Pool<T> {
    /// A pool that keeps nothing: memory goes back at once.
    pub(crate) fn none() -> Self {
        Self(None)
    }
}

impl<T: Copy + Default + Send> Pool<T> {
    /// Begins a pass.
    pub(crate) fn next_pass(&self) {
        if let Some(Ok(mut free)) = self.0.as_ref().map(|free| free.lock()) {
            free.pass += 1;
            let pass = free.pass;
            free.buffers.retain(|(last, _)| last + KEPT >= pass);
        }
    }

    /// A buffer with any content; none is taken where `len` is 0.
    pub(crate) fn take(&self, len: usize) -> Aligned<T> {
        if len == 0 {
            return Aligned::none();
        }
        let slack = LINE / size_of::<T>();
        let needed = len + slack;
        let free = self.0.as_ref().and_then(|free| {
            let mut free = free.lock().ok()?;
            let fits = |(_, b): &(u64, Vec<T>)| (needed..=2 * needed).contains(&b.len());
            // The last ones are in cache.
            let at = free.buffers.iter().rposition(fits)?;
            Some(free.buffers.remove(at).1)
        });
        let buffer = free.unwrap_or_else(|| vec![T::default(); needed]);
        // The offset may be refused (it is under Miri); then the buffer is merely not aligned.
        let start = buffer.as_ptr().align_offset(LINE).min(slack);
        let pool = Self(self.0.clone());
        Aligned {
            buffer,
            start,
            len,
            pool,
        }
    }

    /// A buffer of zeros.
    pub(crate) fn zeros(&self, len: usize) -> Aligned<T> {
        let mut out = self.take(len);
        for_each_part(&mut out, part_rows(1), |_, part| part.fill(T::default()));
        out
    }
}

impl<T> Aligned<T> {
    /// No values.
    pub(crate) fn none() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            len: 0,
            pool: Pool::none(),
        }
    }
}

impl<T> Drop for Aligned<T> {
    fn drop(&mut self) {
        if let Some(Ok(mut free)) = self.pool.0.as_ref().map(|free| free.lock()) {
            let pass = free.pass;
            free.buffers.push((pass, std::mem::take(&mut self.buffer)));
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}
