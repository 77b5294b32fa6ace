//! See `granary::fuzzing::otlp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::otlp(bytes));
