//! The current targets of a job, by source.

use std::{sync::Arc, time::Duration};

use granary_agent_kit::{Stopwatch, unix_ms};
use granary_dns::Resolver;

use super::SharedState;
use crate::{
    config::Job,
    discovery::{Found, Source},
    memory::Memory,
    target::{AssignedTarget, Target},
};

/// A source with its current targets.
#[derive(Debug)]
struct SourceState {
    source: Source,
    /// The refresh interval; `None` for a constant source.
    interval: Option<Duration>,
    /// The time since the last refresh.
    last_refresh: Option<Stopwatch>,
    found: Found,
}

/// The sources of a job.
#[derive(Debug)]
pub(super) struct JobSources {
    index: usize,
    job: Arc<Job>,
    sources: Vec<SourceState>,
}

impl SourceState {
    fn new(source: Source) -> Self {
        Self { interval: source.interval(), source, last_refresh: None, found: Found::default() }
    }

    /// Returns the time until the next refresh, or `None` for a constant source.
    fn time_left(&self) -> Option<Duration> {
        match self.last_refresh {
            None => Some(Duration::ZERO),
            Some(last_refresh) => self.interval.map(|interval| last_refresh.left_of(interval)),
        }
    }
}

impl JobSources {
    pub(super) fn new(index: usize, job: &Arc<Job>, memory: &Arc<Memory>) -> Self {
        let sources = Source::all_of(job, memory).into_iter().map(SourceState::new).collect();
        Self { index, job: Arc::clone(job), sources }
    }

    /// Returns true when all sources are constant.
    pub(super) fn is_constant(&self) -> bool {
        self.sources.iter().all(|source| source.interval.is_none())
    }

    /// Returns the time until the next refresh of any source.
    pub(super) fn time_left(&self) -> Duration {
        self.sources.iter().filter_map(SourceState::time_left).min().unwrap_or(Duration::MAX)
    }

    /// Refreshes the sources that are due, and assigns changed targets.
    pub(super) fn refresh_due(&mut self, shared: &SharedState) {
        let resolver = Resolver::of_this_machine();
        let mut has_changed = false;
        let name = &self.job.job_name;
        for (number, source) in self.sources.iter_mut().enumerate() {
            if source.time_left() != Some(Duration::ZERO) {
                continue;
            }
            source.last_refresh = Some(Stopwatch::start());
            let outcome = source.source.refresh(&resolver);
            let object = format!("targets of job {name:?}, source {number}");
            let fault = outcome.as_ref().err().cloned();
            let mut dropped = 0;
            if let Ok(Some(found)) = outcome {
                has_changed |= source.found.targets != found.targets || found.targets.is_empty();
                dropped = found.dropped;
                source.found = found;
            }
            let mut state = shared.state();
            state.board.count_dropped_targets(dropped);
            state.board.set_fault(object, fault.or_else(|| source.found.problem()));
        }
        if has_changed {
            self.assign(shared);
        }
    }

    fn assign(&self, shared: &SharedState) {
        let name = &self.job.job_name;
        let (mut targets, mut fault) = (Vec::new(), None);
        for labels in self.sources.iter().flat_map(|source| &source.found.targets) {
            match Target::new(&self.job, labels) {
                Ok(Some(target)) => targets.push(AssignedTarget { index: self.index, target }),
                Ok(None) => {}
                Err(problem) => fault = Some(problem),
            }
        }
        let limit = self.job.target_limit;
        if limit > 0 && targets.len() as u64 > limit {
            fault = Some(format!(
                "{} targets, more than the target_limit of {limit}: none is scraped",
                targets.len()
            ));
            targets.clear();
        }
        targets.retain(|assigned| shared.shard.contains(assigned.target.hash()));
        let mut state = shared.state();
        state.board.set_fault(format!("targets of job {name:?}"), fault);
        state.board.assign(self.index, targets, unix_ms());
        drop(state);
        shared.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, discovery::TARGETS_MAX};

    /// Regression: targets beyond the maximum were ignored without a word.
    #[test]
    fn targets_beyond_the_maximum_of_a_source_are_counted_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("targets.json");
        let list = |count: usize| {
            let addresses: Vec<String> = (0..count).map(|n| format!("\"h{n}:1\"")).collect();
            format!("[{{\"targets\": [{}]}}]", addresses.join(","))
        };
        std::fs::write(&file, list(TARGETS_MAX + 3)).unwrap();
        let text = format!(
            "scrape_configs: [{{job_name: j, file_sd_configs: [{{files: ['{}']}}]}}]",
            file.display()
        );
        let config = Config::parse(&text, std::path::PathBuf::new()).unwrap();
        let shared = SharedState::new(&config, crate::memory::MEMORY_MAX).unwrap();
        let mut sources = JobSources::new(0, &shared.jobs[0].0, &shared.memory);
        // The second refresh finds an unchanged file, and the targets are still missing.
        for _ in 0..2 {
            sources.sources[0].last_refresh = None;
            sources.refresh_due(&shared);
            let state = shared.state();
            let problems = state.board.problems();
            assert!(problems[0].1.starts_with("3 targets beyond 10000"), "{problems:?}");
            assert_eq!(state.board.counts().dropped_targets, 3);
        }
        assert_eq!(sources.sources[0].found.targets.len(), TARGETS_MAX);
        std::fs::write(&file, list(2)).unwrap();
        sources.sources[0].last_refresh = None;
        sources.refresh_due(&shared);
        assert_eq!(shared.state().board.problems(), []);
    }

    #[test]
    fn waiting_ends_when_a_source_is_due_or_the_scraper_stops() {
        let text = "scrape_configs: [{job_name: j, file_sd_configs: [{files: [/none.yml]}]}]";
        let config = Config::parse(text, std::path::PathBuf::new()).unwrap();
        let shared = SharedState::new(&config, crate::memory::MEMORY_MAX).unwrap();
        let mut sources = JobSources::new(0, &shared.jobs[0].0, &shared.memory);
        assert!(!sources.is_constant() && sources.time_left().is_zero());
        sources.refresh_due(&shared);
        assert!(!sources.time_left().is_zero(), "the source was queried");
        for source in &mut sources.sources {
            (source.interval, source.last_refresh) =
                (Some(Duration::from_millis(200)), Some(Stopwatch::start()));
        }
        let watch = Stopwatch::start();
        assert!(shared.wait_for_sources(&sources));
        assert!(watch.elapsed() >= Duration::from_millis(200), "{:?}", watch.elapsed());
        shared.state().has_ended = true;
        assert!(!shared.wait_for_sources(&sources));
    }
}
