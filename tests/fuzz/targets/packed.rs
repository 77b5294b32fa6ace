//! See `granary::fuzzing::packed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::packed(bytes));
