//! See `granary::fuzzing::head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::head(bytes));
