//! See `granary::fuzzing::batch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::batch(bytes));
