//! See `granary::fuzzing::query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::query(bytes));
