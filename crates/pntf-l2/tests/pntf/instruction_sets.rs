//! The tests on every other instruction set of the machine.

/// Those that hold numbers against others.
#[test]
fn tests_pass_on_the_others() {
    plca_dist::simd::tests_on_the_others(&[
        "explained",
        "golden",
        "penalties",
        "projection",
        "qp",
        "units",
    ]);
}
