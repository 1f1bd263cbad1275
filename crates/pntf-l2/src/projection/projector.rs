//! One projection, in passes that read as little as they can.
//!
//! The largest entry of every block is found first. Any subset of the entries has a threshold that is at most the whole vector's: that of the
//! blocks' maxima is a bound below which nothing can be in the support, and blocks without an entry above it are not read again. The mean
//! of what is above a bound gives a better one, at the speed of memory; a few such passes leave little but the support.

use plca_tensor::parallel::wide;
use plca_tensor::{CompensatedSum, Real};

use super::{LANES, Projection, active_set, sort, threshold, total_of};

/// Entries that share a maximum.
const BLOCK: usize = 256;
/// Bounds are lowered by this, more than rounding can have raised them.
const MARGIN: f64 = 1e-12;
/// Passes that raise the bound, at most: of some vectors, such as powers of one number, every pass drops a few entries only.
const PASSES: usize = 6;

/// A projection method with its memory, for many vectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Projector {
    method: Projection,
    maxima: Vec<f64>,
    candidates: Vec<f64>,
}

/// The largest of some numbers, and whether all are finite. Interleaved, so that it runs at the speed of memory.
fn block_maximum<T: Real>(block: &[T]) -> (T, bool) {
    let (chunks, rest) = block.as_chunks::<8>();
    let (mut tops, mut odd) = ([block[0]; 8], [T::zero(); 8]);
    for chunk in chunks {
        for ((top, odd), &x) in tops.iter_mut().zip(&mut odd).zip(chunk) {
            *top = if x > *top { x } else { *top };
            // NaN from the first infinity or NaN on.
            *odd += x * T::zero();
        }
    }
    let larger = |a: T, &x: &T| if x > a { x } else { a };
    let top = tops.iter().chain(rest).fold(tops[0], larger);
    let finite = rest.iter().all(|x| x.is_finite()) && !odd.iter().any(|x| x.is_nan());
    (top, finite)
}

/// Number of entries above `floor`, and the sum of their distances from `largest`, which are not positive.
#[inline(always)]
fn above_floor<T: Real>(block: &[T], largest: f64, floor: f64) -> (f64, f64) {
    let (chunks, rest) = block.as_chunks::<LANES>();
    let (mut counts, mut sums) = ([0.0; LANES], [0.0; LANES]);
    for chunk in chunks.iter().map(|chunk| &chunk[..]).chain([rest]) {
        for ((count, sum), x) in counts.iter_mut().zip(&mut sums).zip(chunk) {
            let x = x.to_f64();
            let (one, distance) = if x > floor {
                (1.0, x - largest)
            } else {
                (0.0, 0.0)
            };
            *count += one;
            *sum += distance;
        }
    }
    (counts.iter().sum(), sums.iter().sum())
}

/// The unit simplex as seen from the largest entry.
#[derive(Clone, Copy, Debug)]
struct Frame {
    largest: f64,
    radius: f64,
}

impl Frame {
    fn moved(self, x: f64) -> f64 {
        (x - self.largest) / self.radius
    }

    /// No entry up to here is above the bound once it is moved, whatever the rounding: most need no division.
    fn floor(self, bound: f64) -> f64 {
        let shift = self.radius * bound;
        self.largest + shift - 4.0 * f64::EPSILON * (self.largest.abs() + shift.abs())
    }

    /// Raises a lower bound of `τ` by the means of the entries above it.
    fn raised<T: Real>(self, b: &[T], maxima: &[f64], mut bound: f64) -> f64 {
        let mut before = f64::INFINITY;
        for _ in 0..PASSES {
            let floor = self.floor(bound);
            let (mut count, mut sum) = (0.0, CompensatedSum::default());
            for (block, _) in (b.chunks(BLOCK).zip(maxima)).filter(|(_, top)| **top > floor) {
                let (entries, of_block) = wide(
                    #[inline(always)]
                    || above_floor(block, self.largest, floor),
                );
                count += entries;
                sum += of_block;
            }
            if count >= before {
                break;
            }
            before = count;
            // [PNTF 3] (Σ_I x - 1)/|I| of any set I is at most τ
            let mean = (sum.value() / self.radius - 1.0) / count - MARGIN;
            bound = bound.max(mean);
        }
        bound
    }

    /// Entries, moved, that are above a bound.
    fn above<T: Real>(self, b: &[T], maxima: &[f64], bound: f64) -> impl Iterator<Item = f64> {
        let floor = self.floor(bound);
        let blocks = b.chunks(BLOCK).zip(maxima);
        let blocks = blocks.filter(move |(_, top)| **top > floor);
        let entries = blocks.flat_map(|(block, _)| block).map(|x| x.to_f64());
        let entries = entries.filter(move |&x| x > floor);
        entries
            .map(move |x| self.moved(x))
            .filter(move |&y| y > bound)
    }
}

impl Projector {
    pub(crate) fn new(method: Projection) -> Self {
        Self {
            method,
            ..Self::default()
        }
    }

    /// Replaces `b`, finite numbers and at least one, by its projection onto the simplex of `radius`, divided by `radius`:
    /// the result sums to 1.
    ///
    /// As the radius tends to 0 this tends to the vertex at the largest entry, equal shares where several are largest;
    /// below 1e-300, and for 0, it is that limit.
    pub(crate) fn project<T: Real>(&mut self, b: &mut [T], radius: f64) {
        self.look(b);
        self.place(b, radius, 1.0);
    }

    /// Finds the blocks' maxima; whether all entries are finite.
    pub(super) fn look<T: Real>(&mut self, b: &[T]) -> bool {
        self.maxima.clear();
        let mut finite = true;
        for block in b.chunks(BLOCK) {
            let (top, good) = block_maximum(block);
            self.maxima.push(top.to_f64());
            finite &= good;
        }
        finite
    }

    /// After [`look`](Self::look): `unit / radius` times the projection onto the simplex of `radius`.
    pub(super) fn place<T: Real>(&mut self, b: &mut [T], radius: f64, unit: f64) {
        let Self {
            method,
            maxima,
            candidates,
        } = self;
        let largest = maxima.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // [PNTF 2] the limit: only exact ties share
        if radius < 1e-300 {
            let tied = |x: &T| x.to_f64() == largest;
            let ties = b.iter().filter(|x| tied(x)).count() as f64;
            let share = |x: &T| if tied(x) { unit / ties } else { 0.0 };
            return b.iter_mut().for_each(|x| *x = T::lit(share(x)));
        }
        let frame = Frame { largest, radius };
        let mut bound: f64 = -1.0;
        if *method == Projection::Threshold {
            if maxima.len() > 1 {
                candidates.clear();
                let tops = maxima.iter().map(|&x| frame.moved(x));
                candidates.extend(tops.filter(|&y| y > bound));
                bound = bound.max(threshold::threshold(candidates) - MARGIN);
            }
            bound = frame.raised(b, maxima, bound);
        }
        candidates.clear();
        candidates.extend(frame.above(b, maxima, bound));
        let found = match method {
            Projection::Sort => sort::threshold(candidates),
            Projection::ActiveSet => active_set::threshold(candidates),
            Projection::Threshold => threshold::threshold(candidates),
        };
        // One more look at the support: all methods end in the same sum over the same entries.
        candidates.retain(|&y| y > found);
        let tau = match candidates.len() {
            0 => found,
            count => (total_of(candidates) - 1.0) / count as f64,
        };
        // Entries that differ from the threshold by its rounding are at the threshold. Thousands of such, each with its share of the rounding,
        // would take mass from the support.
        let edge = tau.max(found) + 2.0 * f64::EPSILON * tau.abs();
        let support = candidates.iter().filter(|y| **y > edge);
        let total: f64 = support.map(|y| y - tau).sum();
        let floor = frame.floor(edge);
        for (block, &top) in b.chunks_mut(BLOCK).zip(&*maxima) {
            if top <= floor {
                block.fill(T::zero());
                continue;
            }
            for x in block {
                let wide = x.to_f64();
                // [PNTF 3] x = max(b - τ, 0)
                let y = if wide > floor {
                    frame.moved(wide)
                } else {
                    edge
                };
                *x = if y > edge {
                    T::lit((y - tau) / total * unit)
                } else {
                    T::zero()
                };
            }
        }
    }
}
