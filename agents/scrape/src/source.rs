//! The collector: samples scraped since the last round, and the state of targets.

use std::{io, time::Duration};

use granary_agent_kit::{Readings, Source, SourceError, Stopwatch, unix_ms};
use tracing::warn;

use crate::{board::ScrapeCounts, config::Config, memory::MEMORY_MIN, runner::Runner};

/// The time that a single round waits, in addition to the longest timeout of a target.
const SINGLE_ROUND_GRACE: Duration = Duration::from_secs(1);
/// The time that a single round waits for the first targets of discovery.
const DISCOVERY_GRACE: Duration = Duration::from_secs(5);

/// The scraper: it scrapes each target at its own times, in worker threads.
#[derive(Debug)]
pub struct Scrape {
    /// The agent's name, and the tag `host` of the series about the scraper.
    agent: String,
    runner: Runner,
    timeout_max: Duration,
    /// Ignored parts of the settings, to be logged.
    ignored_settings: Vec<&'static str>,
}

impl Scrape {
    /// Starts to scrape for the agent of this name, with a memory limit in bytes for all targets
    /// together.
    ///
    /// # Errors
    /// A certificate is unreadable, the memory limit is too small, or a thread cannot be started.
    pub fn start(agent: String, config: &Config, memory_max: usize) -> io::Result<Self> {
        if memory_max < MEMORY_MIN {
            let fault = format!("scrape_memory_max is {memory_max}; use {MEMORY_MIN} or more");
            return Err(io::Error::other(fault));
        }
        let timeout_max = config.jobs().iter().map(crate::config::Job::timeout).max();
        let runner = Runner::start(config, memory_max)?;
        let timeout_max = timeout_max.unwrap_or_default();
        Ok(Self { agent, runner, timeout_max, ignored_settings: config.ignored_settings() })
    }
}

impl Source for Scrape {
    fn name(&self) -> &'static str {
        "scrape"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let ignored_settings = std::mem::take(&mut self.ignored_settings);
        if !ignored_settings.is_empty() {
            let ignored_settings = ignored_settings.join(", ");
            warn!(
                ignored_settings,
                "these parts of the scrape settings have no effect in an agent"
            );
        }
        let mut state = self.runner.shared.state();
        let board = &mut state.board;
        let (scraped_samples, counts, problems) =
            (board.take_samples(), board.counts(), board.problems());
        drop(state);
        for samples in scraped_samples {
            samples.readings.into_iter().for_each(|reading| readings.push_known(reading));
        }
        for (object, cause) in problems {
            readings.problem(object, cause);
        }
        let ScrapeCounts { up, down, missed, refused_memory, bytes, .. } = counts;
        let ScrapeCounts { dropped_samples, dropped_targets, .. } = counts;
        let host = ("host", &*self.agent);
        for (state, targets) in [("up", up), ("down", down)] {
            let tags = [host, ("state", state)];
            readings.gauge("agent_scrape_targets", "targets", &tags, targets as f64);
        }
        readings.gauge("agent_scrape_memory_bytes", "bytes", &[host], bytes as f64);
        for (metric, unit, total) in [
            ("agent_scrapes_without_room_total", "scrapes", refused_memory),
            ("agent_scrapes_missed_total", "scrapes", missed),
            ("agent_scrape_samples_dropped_total", "samples", dropped_samples),
            ("agent_scrape_targets_dropped_total", "targets", dropped_targets),
        ] {
            readings.counter(metric, unit, &[host], total as f64, None);
        }
        Ok(())
    }

    /// Scrapes every target once, without waiting for its scheduled time.
    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let shared = &self.runner.shared;
        let watch = Stopwatch::start();
        let mut state = shared.state();
        while !state.has_queried_all() && !watch.left_of(DISCOVERY_GRACE).is_zero() {
            state = shared.wait(state, watch.left_of(DISCOVERY_GRACE));
        }
        state.board.make_all_due(unix_ms());
        shared.wake();
        let watch = Stopwatch::start();
        let deadline = self.timeout_max + SINGLE_ROUND_GRACE;
        while !state.board.is_all_scraped() && !watch.left_of(deadline).is_zero() {
            state = shared.wait(state, watch.left_of(deadline));
        }
        drop(state);
        self.sample(now_ms, readings)
    }

    fn stop(&mut self) -> bool {
        self.runner.stop();
        self.runner.shared.state().board.has_waiting()
    }
}

impl Drop for Scrape {
    fn drop(&mut self) {
        self.runner.stop();
    }
}
