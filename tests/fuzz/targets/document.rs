//! See `granary::fuzzing::document`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::document(bytes));
