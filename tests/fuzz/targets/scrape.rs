//! See `granary_agent_scrape::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| granary_agent_scrape::fuzz(bytes));
