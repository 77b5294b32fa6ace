//! Lines of Graphite's plaintext protocol: see `granary::fuzzing::graphite_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::graphite_lines(bytes));
