//! Kernels that are placed all over the data: the sums of shifted models, by different arithmetic. For the models of this workspace.
//!
//! ```math
//! \begin{aligned}
//! P[c,d,x] &= \sum_z P(z) \sum_t K[z,c,t] \, H[z,d,x-t+o] \\
//! S_K[z,c,t] &= \sum_{d,x} Q[c,d,x] \, H[z,d,x-t+o],
//! \qquad S_H[z,d,h] = \sum_{c,t} K[z,c,t] \, Q[c,d,h+t-o]
//! \end{aligned}
//! ```
//!
//! What a model makes of `P` is its own: here nothing is known of data.

pub mod cost;
pub mod direct;
#[cfg(feature = "fft")]
mod fft;
mod folded;
#[cfg(feature = "fft")]
mod guard;
#[cfg(feature = "fft")]
mod products;
mod rows;
#[cfg(feature = "fft")]
mod spectrum;
mod stack;

#[cfg(feature = "fft")]
pub use fft::{Buffers, Transforms};
pub use folded::{Folded, Side};
pub use rows::{meet, outer_index};
#[cfg(feature = "fft")]
pub use spectrum::{RealTransforms, real_transforms};
pub use stack::Stack;

use crate::parallel::wide;

/// Weights, kernels and impulses of a folded model, component after component.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a, T> {
    /// `P(z)`.
    pub weights: &'a [T],
    /// `[z][c][t]`.
    pub kernels: &'a [T],
    /// `[z][d][h]`.
    pub impulses: &'a [T],
}

impl<'a, T> Parts<'a, T> {
    /// Kernels and impulses.
    pub fn blocks(&self) -> [&'a [T]; 2] {
        [self.kernels, self.impulses]
    }
}

/// The next multi-index in row-major order; `false` after the last.
pub fn advance(index: &mut [usize], shape: &[usize]) -> bool {
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < n {
            return true;
        }
        *i = 0;
    }
    false
}

/// `Σ term(x)`, in lanes.
pub fn sum_of<T: Copy>(values: &[T], term: impl Fn(T) -> f64) -> f64 {
    const LANES: usize = 32;
    wide(|| {
        let mut sums = [0.0; LANES];
        let (lines, rest) = values.as_chunks::<LANES>();
        for line in lines {
            for (sum, &x) in sums.iter_mut().zip(line) {
                *sum += term(x);
            }
        }
        sums.iter().sum::<f64>() + rest.iter().map(|&x| term(x)).sum::<f64>()
    })
}
