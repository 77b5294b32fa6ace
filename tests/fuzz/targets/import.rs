//! See `granary::fuzzing::import`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::import(bytes));
