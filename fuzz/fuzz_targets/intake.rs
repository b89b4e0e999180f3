#![no_main]

mod mutator;

use interlock_fuzz::{Input, intake};
use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match intake::run(input) {
        Input::Own => Corpus::Keep,
        Input::Foreign => Corpus::Reject,
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutator::mutate(data, size, max_size, seed)
});
