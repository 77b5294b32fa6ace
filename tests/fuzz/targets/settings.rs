//! See `granary::fuzzing::settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::settings(bytes));
