//! The tests on every other instruction set of the machine.

/// Those that hold numbers against others; not those that ask what the numbers are good for, or who holds which shard.
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
