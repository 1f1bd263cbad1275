//! The coverage-guided program: the target named in the environment, see [`plca_fuzz::campaign`].
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

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
