//! Numbers for all tests.

/// Small deterministic numbers in (0, 1]; no generator is needed to tell kernels apart.
pub(crate) fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }
}
