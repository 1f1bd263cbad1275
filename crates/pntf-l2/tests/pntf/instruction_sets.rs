//! The tests on every other instruction set of the machine.

/// Tests that compare computed values with reference values.
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
