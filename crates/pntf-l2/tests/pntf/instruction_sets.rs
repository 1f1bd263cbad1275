//! The tests on every other instruction set of the machine.

/// All but one that makes hundreds of fits.
#[test]
fn tests_pass_on_the_others() {
    plca_dist::simd::tests_on_the_others(&["--skip=planted_factors_are_found"]);
}
