//! Samples Redis, nginx, PostgreSQL, MySQL and MariaDB servers, with one file for each kind.
//!
//! `target` contains the shared parts: the address, the tags, and whether a server is up.
//! METRICS.md lists the metrics. Must never know: how readings are delivered.

mod discovery;
mod mysql;
mod nginx;
mod postgres;
mod redis;
mod rows;
mod settings;
mod target;

use std::{io, time::Duration};

use granary_agent_kit::{ROUND_DEADLINE, SideBySide, Source};

pub use self::discovery::{FoundService, Program, discover};
pub use self::settings::{Service, ServiceError, check};
use self::target::{Collector, Target};

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Redis and compatible servers: Valkey, KeyDB.
    Redis,
    /// nginx, with its page `stub_status`.
    Nginx,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
}

impl Kind {
    /// Returns the name in settings and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Nginx => "nginx",
            Self::Postgres => "postgres",
            Self::MySql => "mysql",
        }
    }

    /// Creates the collector of one server.
    fn collector(self, service: &Service) -> Result<Box<dyn Collector>, ServiceError> {
        Ok(match self {
            Self::Redis => Box::new(redis::Redis::new(service)),
            Self::Nginx => Box::new(nginx::Nginx::new(service)?),
            Self::Postgres => Box::new(postgres::Postgres::new(service)?),
            Self::MySql => Box::new(mysql::MySql::new(service)),
        })
    }
}

/// Returns the servers of a kind as one source. `agent` is the tag `host` of servers on this
/// machine; `interval` is the default interval.
///
/// # Errors
/// The settings of a server do not fit the kind, or a thread cannot be started.
pub fn source(
    kind: Kind,
    services: &[Service],
    agent: &str,
    interval: Duration,
) -> Result<SideBySide, ServiceError> {
    let mut sources: Vec<(Duration, Box<dyn Source + Send>)> = Vec::new();
    for service in services {
        let target = Target::new(kind, service, kind.collector(service)?, agent);
        sources.push((service.interval.unwrap_or(interval), Box::new(target)));
    }
    let fault = |cause: io::Error| ServiceError(format!("{}: {cause}", kind.name()));
    SideBySide::with_intervals(kind.name(), ROUND_DEADLINE, sources).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_contains_every_metric_with_its_unit() {
        let table = include_str!("../METRICS.md");
        let rows = redis::all_rows().chain(postgres::all_rows()).chain(mysql::all_rows());
        let mut names = std::collections::BTreeSet::new();
        for (name, metric, unit) in rows {
            let row = table.lines().find(|line| line.starts_with(&format!("| `{metric}` |")));
            let row = row.unwrap_or_else(|| panic!("{metric} of {name} is not in METRICS.md"));
            let shown = if unit.is_empty() { "-" } else { unit };
            assert_eq!(row.split(" | ").nth(2), Some(shown), "{metric}");
            assert!(names.insert(metric), "{metric} occurs twice");
        }
        assert!(names.len() > 90, "{}", names.len());
    }
}
