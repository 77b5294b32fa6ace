//! See `granary::fuzzing::pickle`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::pickle(bytes));
