//! See `granary::fuzzing::updates`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::updates(bytes));
