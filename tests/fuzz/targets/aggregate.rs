//! MongoDB's aggregation pipelines: see `granary::fuzzing::aggregate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::aggregate(bytes));
