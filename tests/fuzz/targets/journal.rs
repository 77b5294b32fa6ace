//! See `granary::fuzzing::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::journal(bytes));
