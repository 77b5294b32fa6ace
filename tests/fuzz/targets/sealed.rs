//! See `granary::fuzzing::sealed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::sealed(bytes));
