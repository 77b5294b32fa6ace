//! The settings file: the agent's options, its collectors, and rules for series.
//!
//! `[agent]` contains the options of the command line of other agents; the same code checks both.

use std::{net::SocketAddr, path::Path, time::Duration};

use clap::Parser;
use granary_agent_kit::{
    AgentArgs, fault_in, read_small,
    relabel::{RULES_MAX, Rule},
    some_span,
};
use granary_agent_scrape::{Config, Shard};
use granary_agent_services::{Kind, Service};
use serde::Deserialize;

/// The memory of an agent without its collectors.
const BASE_BYTES: u64 = 52 << 20;
/// The agent's memory for scraping, as a multiple of `memory_max`: names, batches and requests, and
/// fragmentation, add to the answers.
const SCRAPE_FACTOR: usize = 3;

/// The checked settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) agent: AgentArgs,
    /// The table `[agent]` as written in the file, to detect changes.
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
struct RawSettings {
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

/// The servers by kind.
pub(crate) type Services = Vec<(Kind, Vec<Service>)>;

/// The collector of this host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// The interval, a multiple of the agent's (default: the agent's interval).
    #[serde(deserialize_with = "some_span")]
    pub(crate) interval: Option<Duration>,
    /// The names of processes whose usage is summed up.
    pub(crate) processes: Vec<String>,
    /// True if the processes that use the most in each round are sampled.
    pub(crate) top_processes: bool,
}

impl Default for Host {
    fn default() -> Self {
        Self { interval: None, processes: Vec::new(), top_processes: true }
    }
}

#[cfg(feature = "mongodb")]
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MongoDbFile {
    targets: std::path::PathBuf,
    #[serde(default, deserialize_with = "some_span")]
    interval: Option<Duration>,
}

/// The collector of MongoDB servers, configured by its own file.
#[cfg(feature = "mongodb")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MongoDb {
    pub(crate) targets: granary_agent_mongodb::Settings,
    /// The interval, a multiple of the agent's (default: the agent's interval).
    pub(crate) interval: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScrapeFile {
    config: std::path::PathBuf,
    #[serde(default = "scrape_memory_max")]
    memory_max: usize,
    /// The share of the targets, such as `2/5`.
    #[serde(default)]
    shard: Option<String>,
}

fn scrape_memory_max() -> usize {
    granary_agent_scrape::MEMORY_MAX
}

/// The scraper, configured by its own file, with a memory limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scrape {
    pub(crate) config: Config,
    pub(crate) memory_max: usize,
}

impl Default for Scrape {
    fn default() -> Self {
        Self { config: Config::default(), memory_max: scrape_memory_max() }
    }
}

/// The receiver of StatsD lines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StatsD {
    pub(crate) listen: SocketAddr,
    pub(crate) series_max: usize,
    pub(crate) memory_max: usize,
    pub(crate) quantiles: bool,
}

impl Default for StatsD {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8125)),
            series_max: 100_000,
            memory_max: 12 << 20,
            quantiles: false,
        }
    }
}

/// The table `[agent]`, parsed like a command line.
#[derive(Parser)]
#[command(name = "[agent]", no_binary_name = true, disable_help_flag = true)]
struct AgentTable {
    #[command(flatten)]
    agent: AgentArgs,
}

impl Settings {
    /// Reads the file and the files that it references.
    ///
    /// # Errors
    /// The first error, with the file and the location.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let bytes = read_small(path)?;
        let text =
            String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))?;
        Self::parse(&text, path.parent().unwrap_or(Path::new("")))
            .map_err(|fault| format!("{}: {fault}", path.display()))
    }

    /// Reads the table `[agent]` of the file alone, with the defaults when there is no file.
    ///
    /// # Errors
    /// The file is unreadable, or the table is invalid.
    pub(crate) fn agent_of(path: &Path) -> Result<AgentArgs, String> {
        #[derive(Deserialize)]
        struct AgentOnly {
            #[serde(default)]
            agent: toml::Table,
        }
        let bytes = if path.exists() { read_small(path)? } else { Vec::new() };
        let fault = |fault: String| format!("{}: {fault}", path.display());
        let text = String::from_utf8(bytes).map_err(|_| fault("not UTF-8".to_owned()))?;
        // The full error would quote the line, which may contain a password.
        let AgentOnly { agent } = toml::from_str(&text).map_err(|cause| {
            fault(fault_in(&text, cause.span().map(|span| span.start), cause.message()))
        })?;
        parse_agent(&agent).map_err(fault)
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        // The full error would quote the line, which may contain a password.
        let raw: RawSettings = toml::from_str(text).map_err(|cause| {
            fault_in(text, cause.span().map(|span| span.start), cause.message())
        })?;
        if raw.rules.len() > RULES_MAX {
            return Err(format!("more than {RULES_MAX} rules"));
        }
        let agent = parse_agent(&raw.agent)?;
        let read_scrape = |file: ScrapeFile| file.read(folder);
        let scrape = raw.scrape.map(read_scrape).transpose();
        let settings = Self {
            agent,
            agent_table: raw.agent,
            rules: raw.rules,
            host: raw.host,
            scrape: scrape.map_err(|fault| format!("scrape: {fault}"))?,
            statsd: raw.statsd,
            #[cfg(feature = "mongodb")]
            mongodb: raw.mongodb.map(|file| file.read(folder)).transpose()?,
            exec: raw.exec,
            services: [
                (Kind::Redis, raw.redis),
                (Kind::Nginx, raw.nginx),
                (Kind::Postgres, raw.postgres),
                (Kind::MySql, raw.mysql),
            ]
            .map(|(kind, services)| (kind, resolve_files(services, folder)))
            .into(),
        };
        settings.check()?;
        Ok(settings)
    }

    /// Returns the memory that the agent needs when all collectors reach their limits. A limit such
    /// as `MemoryMax` must not be smaller.
    pub(crate) fn memory_needed(&self) -> u64 {
        let statsd = self.statsd.as_ref().map_or(0, |part| part.memory_max);
        let scrape = self.scrape.as_ref().map_or(0, |part| part.memory_max);
        let collectors = statsd.saturating_add(scrape.saturating_mul(SCRAPE_FACTOR));
        BASE_BYTES.saturating_add(collectors as u64)
    }

    fn check(&self) -> Result<(), String> {
        let memory_min = granary_agent_scrape::MEMORY_MIN;
        if self.scrape.as_ref().is_some_and(|part| part.memory_max < memory_min) {
            return Err(format!("scrape.memory_max: must be {memory_min} bytes or more"));
        }
        if let Some(exec) = &self.exec {
            exec.check().map_err(|fault| format!("exec: {fault}"))?;
        }
        for (kind, services) in &self.services {
            granary_agent_services::check(*kind, services)
                .map_err(|fault| format!("{}: {fault}", kind.name()))?;
        }
        let agent_interval = self.agent.interval;
        for (name, interval) in self.intervals() {
            if interval.as_millis() % agent_interval.as_millis() != 0 || interval.is_zero() {
                return Err(format!(
                    "{name}.interval: {interval:?} is not a multiple of {agent_interval:?}"
                ));
            }
        }
        let is_anything_collected = self.host.is_some()
            || self.scrape.is_some()
            || self.statsd.is_some()
            || self.has_mongodb()
            || self.exec.is_some()
            || self.services.iter().any(|(_, services)| !services.is_empty());
        let fault = "nothing is collected: add [host], [scrape], [statsd] or another collector";
        if is_anything_collected { Ok(()) } else { Err(fault.to_owned()) }
    }

    #[cfg(feature = "mongodb")]
    fn has_mongodb(&self) -> bool {
        self.mongodb.is_some()
    }

    #[cfg(not(feature = "mongodb"))]
    fn has_mongodb(&self) -> bool {
        false
    }

    /// Returns the intervals of collectors and targets.
    fn intervals(&self) -> Vec<(&'static str, Duration)> {
        let mut intervals = vec![("host", self.host.as_ref().and_then(|part| part.interval))];
        #[cfg(feature = "mongodb")]
        intervals.push(("mongodb", self.mongodb.as_ref().and_then(|part| part.interval)));
        let scripts = self.exec.iter().flat_map(|part| &part.scripts);
        intervals.extend(scripts.map(|script| ("exec.script", script.interval)));
        for (kind, services) in &self.services {
            intervals.extend(services.iter().map(|part| (kind.name(), part.interval)));
        }
        intervals.into_iter().filter_map(|(name, interval)| Some((name, interval?))).collect()
    }
}

impl ScrapeFile {
    fn read(self, folder: &Path) -> Result<Scrape, String> {
        let Self { config, memory_max, shard } = self;
        let config = Config::read(&folder.join(config)).map_err(|fault| fault.to_string())?;
        let shard = shard.map(|text| text.parse::<Shard>()).transpose();
        let shard = shard.map_err(|fault| format!("shard: {fault}"))?;
        Ok(Scrape { config: config.with_shard(shard.unwrap_or_default()), memory_max })
    }
}

/// Resolves file names of servers relative to the folder of the settings.
fn resolve_files(mut services: Vec<Service>, folder: &Path) -> Vec<Service> {
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

/// Parses the table `[agent]`.
fn parse_agent(agent_table: &toml::Table) -> Result<AgentArgs, String> {
    let parsed = AgentTable::try_parse_from(table_to_arguments(agent_table)?);
    parsed.map(|parsed| parsed.agent).map_err(|cause| cause.to_string())
}

/// Converts the keys of the table to options: `spool_dir = "x"` becomes `--spool-dir=x`.
fn table_to_arguments(agent_table: &toml::Table) -> Result<Vec<String>, String> {
    let mut arguments = Vec::new();
    for (key, value) in agent_table {
        let option = key.replace('_', "-");
        if let ("tags", Some(pairs)) = (key.as_str(), value.as_table()) {
            for (name, value) in pairs {
                let value = value.as_str();
                let value = value.ok_or_else(|| format!("agent.tags.{name}: must be a text"))?;
                arguments.push(format!("--tag={name}={value}"));
            }
            continue;
        }
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            let number = value.as_integer().map(|number| number.to_string());
            let text = value.as_str().map(str::to_owned).or(number);
            let text = text.ok_or_else(|| format!("agent.{key}: must be a text or a number"))?;
            arguments.push(format!("--{option}={text}"));
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests;
