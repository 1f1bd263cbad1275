//! The tests on every other instruction set of the machine.

/// Tests that compare computed values with reference values, and properties of steps.
#[test]
fn tests_pass_on_the_others() {
    plca_dist::simd::tests_on_the_others(&[
        "acceleration",
        "golden",
        "hyper",
        "iterates",
        "learning",
        "models",
        "properties",
        "squares",
        "tiny",
        "units",
    ]);
}
