//! See `granary::fuzzing::remote_write`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary::fuzzing::remote_write(bytes));
