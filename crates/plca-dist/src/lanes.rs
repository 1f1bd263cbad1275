//! Loops over arrays of a fixed length, compiled for the widest instructions of the machine.
//!
//! Nothing in them is left to the compiler to contract: `a * b + c` is one rounding where `mul_add` says so and nowhere else, so the
//! bits do not depend on the machine.

use pulp::{Arch, Simd, WithSimd};

/// Enough independent chains to hide the latency of a multiplication.
pub(crate) const LANES: usize = 32;

struct Loop<F>(F);

impl<F: FnOnce()> WithSimd for Loop<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        (self.0)();
    }
}

/// Runs a loop; it and what it calls must be inlined to be compiled for those instructions.
#[inline]
pub(crate) fn widest(f: impl FnOnce()) {
    Arch::new().dispatch(Loop(f));
}
