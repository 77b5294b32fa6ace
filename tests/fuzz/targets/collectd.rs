//! See `granary::fuzzing::collectd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::collectd(bytes));
