//! See `granary::fuzzing::promql`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::promql(bytes));
