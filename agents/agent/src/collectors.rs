//! From settings to what is running: which collectors begin, and which go on as they are.

use std::time::Duration;

use granary_agent_kit::{Plan, Planned, Readings, Source, SourceError};
use granary_agent_statsd::Limits;

use crate::settings::{Scrape, Settings, StatsD};

const HOST: &str = "host";
const SCRAPE: &str = "scrape";
const STATSD: &str = "statsd";

/// Makes plans.
pub(crate) struct Collectors<'a> {
    /// The agent's name.
    pub(crate) name: &'a str,
    /// The settings by which they were started.
    pub(crate) last: Option<&'a Settings>,
    /// Those that run.
    pub(crate) running: &'a [&'a str],
}

type Start = Box<dyn FnOnce() -> Result<Box<dyn Source>, SourceError>>;

impl Collectors<'_> {
    /// The plan of these settings.
    pub(crate) fn plan(&self, settings: &Settings) -> Result<Plan, String> {
        let mut sources = Vec::new();
        let interval = settings.agent.interval;
        if let Some(host) = &settings.host {
            let last = self.last.and_then(|last| last.host.as_ref());
            sources.push(self.planned(
                HOST,
                last == Some(host),
                self.host(host.interval.unwrap_or(interval)),
            ));
        }
        if let Some(scrape) = &settings.scrape {
            let last = self.last.and_then(|last| last.scrape.as_ref());
            // What its files say is read before anything ends.
            if last != Some(scrape) {
                scrape.0.check_files()?;
            }
            sources.push(self.planned(SCRAPE, last == Some(scrape), start_scrape(scrape.clone())));
        }
        if let Some(statsd) = &settings.statsd {
            let last = self.last.and_then(|last| last.statsd.as_ref());
            sources.push(self.planned(STATSD, last == Some(statsd), start_statsd(statsd.clone())));
        }
        Ok(Plan { sources, rules: settings.rules.clone() })
    }

    fn planned(&self, name: &'static str, is_same: bool, start: Start) -> Planned {
        let goes_on = is_same && self.running.contains(&name);
        if goes_on { Planned::Running(name) } else { Planned::New(start) }
    }

    fn host(&self, every: Duration) -> Start {
        let name = self.name.to_owned();
        Box::new(move || {
            let sources = granary_agent_host::sources(name, &[])?;
            let every_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
            Ok(Box::new(Together { name: HOST, every_ms, sources }))
        })
    }
}

fn start_scrape(Scrape(config): Scrape) -> Start {
    Box::new(move || Ok(Box::new(granary_agent_scrape::Scrape::start(&config)?)))
}

fn start_statsd(StatsD { listen, series_max, memory_max }: StatsD) -> Start {
    let limits = Limits { series_max, memory_max };
    Box::new(move || Ok(Box::new(granary_agent_statsd::StatsD::listen(listen, limits)?)))
}

/// Sources as one, sampled at multiples of an interval.
struct Together {
    name: &'static str,
    every_ms: i64,
    sources: Vec<Box<dyn Source>>,
}

impl Source for Together {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        if now_ms % self.every_ms == 0 {
            self.sample_alone(now_ms, readings)?;
        }
        Ok(())
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        for source in &mut self.sources {
            if let Err(cause) = source.sample(now_ms, readings) {
                readings.problem(source.name(), cause);
            }
        }
        Ok(())
    }

    fn booted_ms(&self) -> Option<i64> {
        self.sources.iter().find_map(|source| source.booted_ms())
    }

    fn stop(&mut self) -> bool {
        // Each is told, whatever the others have.
        let more: Vec<bool> = self.sources.iter_mut().map(|source| source.stop()).collect();
        more.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tick;

    impl Source for Tick {
        fn name(&self) -> &'static str {
            "tick"
        }

        fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
            readings.gauge("now", "", &[], now_ms as f64);
            Err("half".into())
        }
    }

    #[test]
    fn a_collector_is_sampled_at_multiples_of_its_interval() {
        let mut both = Together { name: "t", every_ms: 10, sources: vec![Box::new(Tick)] };
        let mut readings = Readings::default();
        for now in [5, 10, 15, 20] {
            both.sample(now, &mut readings).unwrap();
        }
        let values: Vec<_> = readings.as_slice().iter().map(|reading| reading.value).collect();
        assert_eq!(values, [10.0, 20.0]);
        assert!(readings.problems().contains_key("tick"));
        both.sample_alone(3, &mut readings).unwrap();
        assert_eq!(readings.len(), 3);
    }
}
