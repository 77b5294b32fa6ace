//! See `granary_agent_statsd::fuzz_datagrams`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary_agent_statsd::fuzz_datagrams(bytes));
