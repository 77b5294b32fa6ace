//! See `granary::fuzzing::influx`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::influx(bytes));
