//! The synthetic fleet: the samples of each host in each round, and its pings.

use clap::ValueEnum;
use granary_protocol::{Batch, Kind, Ping, SeriesDefinition, encode_batch};

use crate::synthetic_host::SyntheticHost;

/// The content of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostContent {
    /// Series with made-up names.
    Numbers,
    /// The metrics of the host agent, with plausible values.
    Host,
}

/// Hosts that send the same metrics with different values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fleet {
    pub(crate) hosts: usize,
    pub(crate) metrics: usize,
    pub(crate) epoch: i64,
    pub(crate) like: HostContent,
}

impl Fleet {
    /// Appends a host's batch of a round to a body. Returns false when the host is silent in that
    /// round.
    pub(crate) fn encode(
        &self,
        host: usize,
        round: usize,
        at_ms: i64,
        with_definitions: bool,
        body: &mut Vec<u8>,
    ) -> bool {
        if self.is_silent(host, at_ms) {
            return false;
        }
        let (values, starts) = match self.like {
            HostContent::Numbers => {
                ((0..self.metrics).map(|metric| value(host, metric, round)).collect(), Vec::new())
            }
            HostContent::Host => self.synthetic_host(host).values(at_ms),
        };
        let mut batch = Batch {
            agent: self.name(host),
            epoch: self.epoch,
            seq: round as u64 + 1,
            times: vec![at_ms],
            refs: (0..values.len() as u32).collect(),
            values,
            starts,
            ..Batch::default()
        };
        if with_definitions {
            batch.series = self.definitions(host);
        }
        encode_batch(&batch, body);
        true
    }

    /// Returns true when a host sends nothing at a time.
    pub(crate) fn is_silent(&self, host: usize, at_ms: i64) -> bool {
        self.like == HostContent::Host && self.synthetic_host(host).is_silent(at_ms)
    }

    /// Returns the number of series of each host.
    pub(crate) fn series_per_host(&self) -> usize {
        match self.like {
            HostContent::Numbers => self.metrics,
            HostContent::Host => SyntheticHost::series_per_host(),
        }
    }

    /// Returns the name of a host and its agent.
    pub(crate) fn name(&self, host: usize) -> String {
        match self.like {
            HostContent::Numbers => format!("bench-{host:05}"),
            HostContent::Host => self.synthetic_host(host).name(),
        }
    }

    /// Returns a ping of the host's agent.
    pub(crate) fn ping(&self, host: usize, interval_ms: u64, now_ms: i64) -> Ping {
        let role = (self.like == HostContent::Host).then(|| self.synthetic_host(host).role());
        let role = role.map(|role| ("role".to_owned(), role.to_owned()));
        Ping {
            agent: self.name(host),
            program: "bench".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.epoch,
            booted: (self.like == HostContent::Host).then(|| self.synthetic_host(host).booted_ms()),
            interval_ms,
            sent: now_ms,
            tags: role.into_iter().chain([datacenter(host)]).collect(),
            ..Ping::default()
        }
    }

    fn synthetic_host(&self, host: usize) -> SyntheticHost {
        SyntheticHost::new(host, self.epoch)
    }

    fn definitions(&self, host: usize) -> Vec<SeriesDefinition> {
        match self.like {
            HostContent::Numbers => {
                (0..self.metrics).map(|metric| self.series_of(host, metric)).collect()
            }
            HostContent::Host => {
                let synthetic_host = self.synthetic_host(host);
                let mut tags = self.tags(host);
                tags.push(("role".into(), synthetic_host.role().into()));
                synthetic_host.definitions(&tags)
            }
        }
    }

    /// Returns the tags that all series of a host share.
    fn tags(&self, host: usize) -> Vec<(String, String)> {
        vec![
            ("host".into(), self.name(host)),
            datacenter(host),
            // The clean-up selects the series of this run by this tag.
            ("bench".into(), self.epoch.to_string()),
        ]
    }

    /// Returns the definition of a series with a made-up name.
    pub(crate) fn series_of(&self, host: usize, metric: usize) -> SeriesDefinition {
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

/// Returns the value of a host's series in a round.
pub(crate) fn value(host: usize, metric: usize, round: usize) -> f64 {
    let pseudo_random = (host * 31 + metric * 17 + round * 7) % 1000;
    if is_counter(metric) {
        (round * 1000 + pseudo_random) as f64
    } else {
        pseudo_random as f64 / 10.0
    }
}
