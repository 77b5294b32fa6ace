//! Scrapes Prometheus and OpenMetrics endpoints, configured by a prometheus.yml. The kit spools the
//! samples on disk and retries until they are acknowledged.
//!
//! Each file is one step: `config` reads the settings, `discovery` finds targets, `target` applies
//! relabeling, `board` schedules scrapes, `runner` owns the threads, `fetch` sends requests, and
//! `conversion` parses responses, within the `memory` that all targets share. Must never know: how
//! readings are spooled and sent.

mod board;
mod command;
mod config;
mod conversion;
mod discovery;
mod fetch;
mod memory;
mod runner;
mod source;
mod target;

pub use command::{ScrapeArgs, run};
pub use config::{Config, ConfigError, Shard};
pub use memory::{MEMORY_MAX, MEMORY_MIN};
pub use source::Scrape;

/// Parses bytes as settings, as a DNS response and as the response of a target, for fuzz tests.
pub fn fuzz(bytes: &[u8]) {
    discovery::fuzz(bytes);
    granary_exposition::fuzz(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(Config::parse(text, std::path::PathBuf::new()));
    }
}
