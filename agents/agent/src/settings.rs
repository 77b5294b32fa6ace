//! The file: the agent's options, what is collected, and rules for series.
//!
//! `[agent]` has the options that every agent has on its command line, checked by the same code.

use std::{net::SocketAddr, path::Path, time::Duration};

use clap::Parser;
use granary_agent_kit::{
    AgentArgs, fault_in, read_small,
    relabel::{RULES_MAX, Rule},
    some_span,
};
use granary_agent_scrape::Config;
use granary_agent_services::{Kind, Service};
use serde::Deserialize;

/// Memory of an agent without what is set for its collectors.
const BASE_BYTES: u64 = 52 << 20;
/// A scraped answer is kept once by the collector; names, batches and requests of it take as much again,
/// and the allocator's gaps.
const SCRAPE_FACTOR: usize = 3;

/// The file, checked.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) agent: AgentArgs,
    /// As it is written, to see whether it has changed.
    pub(crate) agent_table: toml::Table,
    pub(crate) rules: Vec<Rule>,
    pub(crate) host: Option<Host>,
    pub(crate) scrape: Option<Scrape>,
    pub(crate) statsd: Option<StatsD>,
    #[cfg(feature = "mongodb")]
    pub(crate) mongodb: Option<MongoDb>,
    pub(crate) exec: Option<granary_agent_exec::Settings>,
    pub(crate) services: Services,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Written {
    agent: toml::Table,
    rules: Vec<Rule>,
    host: Option<Host>,
    scrape: Option<ScrapeFile>,
    statsd: Option<StatsD>,
    #[cfg(feature = "mongodb")]
    mongodb: Option<MongoDbFile>,
    exec: Option<granary_agent_exec::Settings>,
    redis: Vec<Service>,
    nginx: Vec<Service>,
    postgres: Vec<Service>,
    mysql: Vec<Service>,
}

/// Servers, by their kind.
pub(crate) type Services = Vec<(Kind, Vec<Service>)>;

/// This host is sampled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// How often, a multiple of the agent's interval; as often as that without it.
    #[serde(deserialize_with = "some_span")]
    pub(crate) interval: Option<Duration>,
    /// Processes of these names are added up.
    pub(crate) processes: Vec<String>,
}

#[cfg(feature = "mongodb")]
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MongoDbFile {
    targets: std::path::PathBuf,
    #[serde(default, deserialize_with = "some_span")]
    interval: Option<Duration>,
}

/// MongoDB servers are asked, as their own file says.
#[cfg(feature = "mongodb")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MongoDb {
    pub(crate) targets: granary_agent_mongodb::Settings,
    /// How often, a multiple of the agent's interval; as often as that without it.
    pub(crate) interval: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScrapeFile {
    config: std::path::PathBuf,
    #[serde(default = "scrape_memory_max")]
    memory_max: usize,
}

fn scrape_memory_max() -> usize {
    granary_agent_scrape::MEMORY_MAX
}

/// Scraped targets, as their own file names them, within a number of bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scrape {
    pub(crate) config: Config,
    pub(crate) memory_max: usize,
}

/// StatsD lines are received.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StatsD {
    pub(crate) listen: SocketAddr,
    pub(crate) series_max: usize,
    pub(crate) memory_max: usize,
}

impl Default for StatsD {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8125)),
            series_max: 100_000,
            memory_max: 12 << 20,
        }
    }
}

/// Takes the table as a command line.
#[derive(Parser)]
#[command(name = "[agent]", no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    agent: AgentArgs,
}

impl Settings {
    /// Reads the file and those that it names.
    ///
    /// # Errors
    /// What is wrong, in which file, and where.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let bytes = read_small(path)?;
        let text =
            String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))?;
        Self::parse(&text, path.parent().unwrap_or(Path::new("")))
            .map_err(|fault| format!("{}: {fault}", path.display()))
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        // The whole of the error shows the line, which may hold a password.
        let written: Written = toml::from_str(text).map_err(|cause| {
            fault_in(text, cause.span().map(|span| span.start), cause.message())
        })?;
        if written.rules.len() > RULES_MAX {
            return Err(format!("more than {RULES_MAX} rules"));
        }
        let line =
            Line::try_parse_from(words(&written.agent)?).map_err(|cause| cause.to_string())?;
        let read = |ScrapeFile { config, memory_max }: ScrapeFile| {
            Config::read(&folder.join(config)).map(|config| Scrape { config, memory_max })
        };
        let scrape = written.scrape.map(read).transpose();
        let settings = Self {
            agent: line.agent,
            agent_table: written.agent,
            rules: written.rules,
            host: written.host,
            scrape: scrape.map_err(|fault| format!("scrape: {fault}"))?,
            statsd: written.statsd,
            #[cfg(feature = "mongodb")]
            mongodb: written.mongodb.map(|file| file.read(folder)).transpose()?,
            exec: written.exec,
            services: [
                (Kind::Redis, written.redis),
                (Kind::Nginx, written.nginx),
                (Kind::Postgres, written.postgres),
                (Kind::MySql, written.mysql),
            ]
            .map(|(kind, services)| (kind, in_folder(services, folder)))
            .into(),
        };
        settings.check()?;
        Ok(settings)
    }

    /// The memory that the agent needs when all of them take what they may: what a limit such as
    /// `MemoryMax` of its unit must leave it.
    pub(crate) fn memory_needed(&self) -> u64 {
        let statsd = self.statsd.as_ref().map_or(0, |own| own.memory_max);
        let scrape = self.scrape.as_ref().map_or(0, |own| own.memory_max);
        let more = statsd.saturating_add(scrape.saturating_mul(SCRAPE_FACTOR));
        BASE_BYTES.saturating_add(more as u64)
    }

    fn check(&self) -> Result<(), String> {
        let least = granary_agent_scrape::MEMORY_MIN;
        if self.scrape.as_ref().is_some_and(|own| own.memory_max < least) {
            return Err(format!("scrape.memory_max: must be {least} bytes or more"));
        }
        if let Some(exec) = &self.exec {
            exec.check().map_err(|fault| format!("exec: {fault}"))?;
        }
        for (kind, services) in &self.services {
            granary_agent_services::check(*kind, services)
                .map_err(|fault| format!("{}: {fault}", kind.word()))?;
        }
        let own = self.agent.interval;
        for (name, interval) in self.intervals() {
            if interval.as_millis() % own.as_millis() != 0 || interval.is_zero() {
                return Err(format!("{name}.interval: {interval:?} is no multiple of {own:?}"));
            }
        }
        let is_any = self.host.is_some()
            || self.scrape.is_some()
            || self.statsd.is_some()
            || self.has_mongodb()
            || self.exec.is_some()
            || self.services.iter().any(|(_, services)| !services.is_empty());
        let none = "nothing is collected: add [host], [scrape], [statsd] or another collector";
        if is_any { Ok(()) } else { Err(none.to_owned()) }
    }

    #[cfg(feature = "mongodb")]
    fn has_mongodb(&self) -> bool {
        self.mongodb.is_some()
    }

    #[cfg(not(feature = "mongodb"))]
    fn has_mongodb(&self) -> bool {
        false
    }

    /// The intervals of their own that collectors and their targets have.
    fn intervals(&self) -> Vec<(&'static str, Duration)> {
        let mut all = vec![("host", self.host.as_ref().and_then(|own| own.interval))];
        #[cfg(feature = "mongodb")]
        all.push(("mongodb", self.mongodb.as_ref().and_then(|own| own.interval)));
        let scripts = self.exec.iter().flat_map(|own| &own.scripts);
        all.extend(scripts.map(|script| ("exec.script", script.interval)));
        for (kind, services) in &self.services {
            all.extend(services.iter().map(|own| (kind.word(), own.interval)));
        }
        all.into_iter().filter_map(|(name, own)| Some((name, own?))).collect()
    }
}

/// Files that servers name are relative to the folder of the settings.
fn in_folder(mut services: Vec<Service>, folder: &Path) -> Vec<Service> {
    for file in services.iter_mut().filter_map(|service| service.password_file.as_mut()) {
        *file = folder.join(&*file);
    }
    services
}

#[cfg(feature = "mongodb")]
impl MongoDbFile {
    fn read(self, folder: &Path) -> Result<MongoDb, String> {
        let fault = |fault: granary_agent_mongodb::SettingsError| format!("mongodb: {fault}");
        let targets = granary_agent_mongodb::Settings::read(&folder.join(self.targets));
        let targets = targets.map_err(fault)?;
        targets.check().map_err(fault)?;
        Ok(MongoDb { targets, interval: self.interval })
    }
}

/// The table's keys as options: `spool_dir = "x"` is `--spool-dir=x`.
fn words(table: &toml::Table) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (key, value) in table {
        let option = key.replace('_', "-");
        if let ("tags", Some(pairs)) = (key.as_str(), value.as_table()) {
            for (name, value) in pairs {
                let value = value.as_str();
                let value = value.ok_or_else(|| format!("agent.tags.{name}: must be a text"))?;
                words.push(format!("--tag={name}={value}"));
            }
            continue;
        }
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            let number = value.as_integer().map(|number| number.to_string());
            let text = value.as_str().map(str::to_owned).or(number);
            let text = text.ok_or_else(|| format!("agent.{key}: must be a text or a number"))?;
            words.push(format!("--{option}={text}"));
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests;
