//! The synthetic fleet: what each host sends in each round, and what it says of itself.

use clap::ValueEnum;
use granary_protocol::{Batch, Kind, Ping, SeriesDefinition, encode_batch};

use super::host_like::HostLike;
use crate::model::UnixMillis;

/// What a host sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Like {
    /// As many series as are asked for, with made-up names.
    Numbers,
    /// What the host agent sends, in believable values.
    Host,
}

/// Hosts that all send the same metrics with values of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet {
    pub(super) hosts: usize,
    pub(super) metrics: usize,
    pub(super) epoch: i64,
    pub(super) like: Like,
}

impl Fleet {
    /// Appends one host's batch of one round to a body; false when it sends nothing then.
    pub(super) fn encode(
        &self,
        host: usize,
        round: usize,
        at: UnixMillis,
        define: bool,
        body: &mut Vec<u8>,
    ) -> bool {
        if self.is_silent(host, at) {
            return false;
        }
        let (values, starts) = match self.like {
            Like::Numbers => {
                ((0..self.metrics).map(|metric| value(host, metric, round)).collect(), Vec::new())
            }
            Like::Host => self.host_like(host).values(at),
        };
        let mut batch = Batch {
            agent: self.name(host),
            epoch: self.epoch,
            seq: round as u64 + 1,
            times: vec![at.0],
            refs: (0..values.len() as u32).collect(),
            values,
            starts,
            ..Batch::default()
        };
        if define {
            batch.series = self.definitions(host);
        }
        encode_batch(&batch, body);
        true
    }

    /// Whether a host sends nothing at a time.
    pub(super) fn is_silent(&self, host: usize, at: UnixMillis) -> bool {
        self.like == Like::Host && self.host_like(host).is_silent(at)
    }

    /// Series of each host.
    pub(super) fn series(&self) -> usize {
        match self.like {
            Like::Numbers => self.metrics,
            Like::Host => HostLike::series(),
        }
    }

    /// A host's name, which is its agent's.
    pub(super) fn name(&self, host: usize) -> String {
        match self.like {
            Like::Numbers => format!("bench-{host:05}"),
            Like::Host => self.host_like(host).name(),
        }
    }

    /// What its agent says of it.
    pub(super) fn ping(&self, host: usize, interval_ms: u64, now: UnixMillis) -> Ping {
        let role = (self.like == Like::Host).then(|| self.host_like(host).role());
        let role = role.map(|role| ("role".to_owned(), role.to_owned()));
        Ping {
            agent: self.name(host),
            program: "bench".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.epoch,
            booted: (self.like == Like::Host).then(|| self.host_like(host).booted_ms()),
            interval_ms,
            sent: now.0,
            tags: role.into_iter().chain([datacenter(host)]).collect(),
            ..Ping::default()
        }
    }

    fn host_like(&self, host: usize) -> HostLike {
        HostLike::new(host, self.epoch)
    }

    fn definitions(&self, host: usize) -> Vec<SeriesDefinition> {
        match self.like {
            Like::Numbers => (0..self.metrics).map(|metric| self.series_of(host, metric)).collect(),
            Like::Host => {
                let own = self.host_like(host);
                let mut tags = self.tags(host);
                tags.push(("role".into(), own.role().into()));
                own.definitions(&tags)
            }
        }
    }

    /// Tags of all series of a host.
    fn tags(&self, host: usize) -> Vec<(String, String)> {
        vec![
            ("host".into(), self.name(host)),
            datacenter(host),
            // By which the run's series are found again.
            ("bench".into(), self.epoch.to_string()),
        ]
    }

    /// One of the series with made-up names.
    pub(super) fn series_of(&self, host: usize, metric: usize) -> SeriesDefinition {
        let kind = if is_counter(metric) { Kind::Counter } else { Kind::Gauge };
        let mut tags = self.tags(host);
        tags.push(("device".into(), format!("d{}", metric % 10)));
        SeriesDefinition {
            reference: metric as u32,
            metric: format!("bench_{}_{:02}", kind, metric / 10),
            tags,
            kind,
            unit: if is_counter(metric) { "bytes".into() } else { "percent".into() },
        }
    }
}

fn datacenter(host: usize) -> (String, String) {
    ("datacenter".to_owned(), format!("dc{}", host / 4 % 4))
}

fn is_counter(metric: usize) -> bool {
    metric % 5 < 3
}

/// The value of a host's series in a round.
pub(super) fn value(host: usize, metric: usize, round: usize) -> f64 {
    let mixed = (host * 31 + metric * 17 + round * 7) % 1000;
    if is_counter(metric) { (round * 1000 + mixed) as f64 } else { mixed as f64 / 10.0 }
}
