//! The plan of the collectors: which of them start, and which continue unchanged.

use std::time::Duration;

use granary_agent_host::ProcessChoice;
use granary_agent_kit::{Plan, PlannedSource, Readings, Source, SourceError};
use granary_agent_statsd::Limits;

use crate::settings::{Host, Scrape, Settings, StatsD};

const HOST: &str = "host";

/// The inputs of a plan: the agent's name, and the running collectors.
pub(crate) struct Collectors<'a> {
    /// The agent's name.
    pub(crate) name: &'a str,
    /// The settings of the running collectors.
    pub(crate) last: Option<&'a Settings>,
    /// The names of the running collectors.
    pub(crate) running: &'a [&'a str],
}

type StartResult = Result<Box<dyn Source>, SourceError>;

impl Collectors<'_> {
    /// Returns the plan for these settings.
    pub(crate) fn plan(&self, settings: &Settings) -> Result<Plan, String> {
        // Referenced files are read before a running collector ends.
        if let Some(Scrape { config, .. }) = &settings.scrape
            && self.last.and_then(|last| last.scrape.as_ref()) != settings.scrape.as_ref()
        {
            config.check_files()?;
        }
        let (name, interval) = (self.name.to_owned(), settings.agent.interval);
        let (scrape_name, statsd_name) = (name.clone(), name.clone());
        let mut sources = vec![
            self.plan_source(
                HOST,
                |settings| settings.host.as_ref(),
                settings,
                move |host| start_host(name, &host, interval),
            ),
            self.plan_source(
                "scrape",
                |settings| settings.scrape.as_ref(),
                settings,
                move |Scrape { config, memory_max }| {
                    Ok(Box::new(granary_agent_scrape::Scrape::start(
                        scrape_name,
                        &config,
                        memory_max,
                    )?))
                },
            ),
            self.plan_source(
                "statsd",
                |settings| settings.statsd.as_ref(),
                settings,
                move |settings| start_statsd(statsd_name, &settings),
            ),
        ];
        #[cfg(feature = "mongodb")]
        sources.push(self.plan_source(
            "mongodb",
            |settings| settings.mongodb.as_ref(),
            settings,
            move |part| start_mongodb(&part, interval),
        ));
        let name = self.name.to_owned();
        sources.push(self.plan_source(
            "exec",
            |settings| settings.exec.as_ref(),
            settings,
            move |part| Ok(Box::new(granary_agent_exec::source(&part, &name, interval)?)),
        ));
        for (index, (kind, _)) in settings.services.iter().enumerate() {
            let (kind, name) = (*kind, self.name.to_owned());
            sources.push(self.plan_source(
                kind.name(),
                |settings| services_of_kind(settings, index),
                settings,
                move |part| {
                    Ok(Box::new(granary_agent_services::source(kind, &part, &name, interval)?))
                },
            ));
        }
        let sources = sources.into_iter().flatten().collect();
        Ok(Plan { sources, rules: settings.rules.clone() })
    }

    /// Returns the plan of a collector if the settings contain it. A running collector continues
    /// when its part of the settings is unchanged.
    fn plan_source<T: Clone + PartialEq + 'static>(
        &self,
        name: &'static str,
        select_part: impl Fn(&Settings) -> Option<&T>,
        settings: &Settings,
        start: impl FnOnce(T) -> StartResult + 'static,
    ) -> Option<PlannedSource> {
        let part = select_part(settings)?;
        let is_unchanged = self.last.and_then(&select_part) == Some(part);
        if is_unchanged && self.running.contains(&name) {
            return Some(PlannedSource::Running(name));
        }
        let part = part.clone();
        Some(PlannedSource::New(Box::new(move || start(part))))
    }
}

/// Returns the servers of a kind, or `None` if there are none.
fn services_of_kind(
    settings: &Settings,
    index: usize,
) -> Option<&Vec<granary_agent_services::Service>> {
    settings
        .services
        .get(index)
        .map(|(_, services)| services)
        .filter(|services| !services.is_empty())
}

fn start_host(name: String, host: &Host, interval: Duration) -> StartResult {
    let (names, has_top) = (&host.processes, host.top_processes);
    let sources = granary_agent_host::sources(name, ProcessChoice { names, has_top })?;
    let interval = host.interval.unwrap_or(interval);
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    Ok(Box::new(GroupedSources { name: HOST, interval_ms, sources }))
}

fn start_statsd(agent: String, settings: &StatsD) -> StartResult {
    let StatsD { listen, series_max, memory_max, quantiles: has_quantiles } = *settings;
    let limits = Limits { series_max, memory_max, has_quantiles };
    Ok(Box::new(granary_agent_statsd::StatsD::listen(agent, listen, limits)?))
}

#[cfg(feature = "mongodb")]
fn start_mongodb(servers: &crate::settings::MongoDb, interval: Duration) -> StartResult {
    let interval = servers.interval.unwrap_or(interval);
    Ok(Box::new(granary_agent_mongodb::MongoDb::new(&servers.targets, interval)?))
}

/// Several sources that act as one source, sampled at multiples of an interval.
struct GroupedSources {
    name: &'static str,
    interval_ms: i64,
    sources: Vec<Box<dyn Source>>,
}

impl GroupedSources {
    fn sample_each(
        &mut self,
        readings: &mut Readings,
        mut sample: impl FnMut(&mut dyn Source, &mut Readings) -> Result<(), SourceError>,
    ) {
        for source in &mut self.sources {
            if let Err(cause) = sample(source.as_mut(), readings) {
                readings.problem(source.name(), cause);
            }
        }
    }
}

impl Source for GroupedSources {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        if now_ms % self.interval_ms == 0 {
            self.sample_each(readings, |source, readings| source.sample(now_ms, readings));
        }
        Ok(())
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.sample_each(readings, |source, readings| source.sample_alone(now_ms, readings));
        Ok(())
    }

    fn booted_ms(&self) -> Option<i64> {
        self.sources.iter().find_map(|source| source.booted_ms())
    }

    fn stop(&mut self) -> bool {
        // Every source is stopped, even when an earlier source has more readings.
        let have_more: Vec<bool> = self.sources.iter_mut().map(|source| source.stop()).collect();
        have_more.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FailingSource;

    impl Source for FailingSource {
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
        let mut grouped =
            GroupedSources { name: "t", interval_ms: 10, sources: vec![Box::new(FailingSource)] };
        let mut readings = Readings::default();
        for now in [5, 10, 15, 20] {
            grouped.sample(now, &mut readings).unwrap();
        }
        let values: Vec<_> = readings.as_slice().iter().map(|reading| reading.value).collect();
        assert_eq!(values, [10.0, 20.0]);
        assert!(readings.problems().contains_key("tick"));
        grouped.sample_alone(3, &mut readings).unwrap();
        assert_eq!(readings.len(), 3);
    }
}
