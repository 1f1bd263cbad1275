//! Buffers that start on a cache line, so that a padded row touches as few lines as it can.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest register.
const LINE: usize = 64;

/// Zeros that start on a cache line.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    buffer: Vec<T>,
    start: usize,
}

impl<T: Copy + Default> Aligned<T> {
    pub(crate) fn zeros(len: usize) -> Self {
        if len == 0 {
            return Self {
                buffer: Vec::new(),
                start: 0,
            };
        }
        let slack = LINE / size_of::<T>();
        let mut buffer = vec![T::default(); len + slack];
        // The offset may be refused (it is under Miri); then the buffer is merely not aligned.
        let start = buffer.as_ptr().align_offset(LINE).min(slack);
        buffer.truncate(start + len);
        Self { buffer, start }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.buffer[self.start..]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer[self.start..]
    }
}
