//! The tests on every other instruction set of the machine.

/// All but those that draw many samples, or ask who holds which shard.
#[test]
fn tests_pass_on_the_others() {
    plca_dist::simd::tests_on_the_others(&[
        "--skip=rates::",
        "--skip=noise::",
        "--skip=neighbours::",
        "--skip=selection::",
        "--skip=shards::",
    ]);
}
