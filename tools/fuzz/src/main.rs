//! The coverage-guided program: the target named in the environment, see [`plca_fuzz::campaign`].
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(
    init: plca_fuzz::campaign::begin(),
    |input: &[u8]| -> Corpus {
        if plca_fuzz::campaign::run(input) {
            Corpus::Keep
        } else {
            Corpus::Reject
        }
    }
);

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    plca_fuzz::campaign::mutate(data, size, max_size, seed, fuzzer_mutate)
});
