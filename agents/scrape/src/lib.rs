//! Scrapes Prometheus and OpenMetrics endpoints as a prometheus.yml says, and hands what they show
//! to the kit: spooled on disk, sent until acknowledged, once.
//!
//! One file a step: `config` says what is asked, `discovery` names targets, `target` makes them of
//! labels, `board` knows when each is due, `runner` has the threads, `fetch` asks, `answer` makes
//! samples of what comes back, within the `memory` that all targets share. Must never know: how readings are spooled and sent.

mod answer;
mod board;
mod config;
mod discovery;
mod fetch;
mod memory;
mod runner;
mod source;
mod target;

pub use config::{Config, ConfigError};
pub use memory::{MEMORY_MAX, MEMORY_MIN};
pub use source::Scrape;

/// For fuzzing: any bytes as settings, as an answer of DNS, and as what a target shows; no panic
/// out.
pub fn fuzz(bytes: &[u8]) {
    discovery::fuzz(bytes);
    granary_exposition::fuzz(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(Config::parse(text, std::path::PathBuf::new()));
    }
}
