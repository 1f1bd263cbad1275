//! The tests on every other instruction set of the machine.

#[test]
fn tests_pass_on_the_others() {
    plca_dist::simd::tests_on_the_others(&["fast::", "golden", "measured"]);
}
