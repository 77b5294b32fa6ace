//! MongoDB's aggregation pipelines: see `granary::fuzzing::pipeline`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::pipeline(bytes));
