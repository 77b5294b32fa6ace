//! The synthetic fleet: what each host sends in each round.

use granary_protocol::{Batch, Kind, SeriesDefinition, encode_batch};

use crate::model::UnixMillis;

/// Hosts that all send the same metrics with values of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet {
    pub(super) hosts: usize,
    pub(super) metrics: usize,
    pub(super) epoch: i64,
}

impl Fleet {
    /// Appends one host's batch of one round to a body.
    pub(super) fn encode(
        &self,
        host: usize,
        round: usize,
        at: UnixMillis,
        define: bool,
        body: &mut Vec<u8>,
    ) {
        let mut batch = Batch {
            agent: format!("bench-{host:05}"),
            epoch: self.epoch,
            seq: round as u64 + 1,
            times: vec![at.0],
            refs: (0..self.metrics as u32).collect(),
            values: (0..self.metrics).map(|metric| value(host, metric, round)).collect(),
            ..Batch::default()
        };
        if define {
            batch.series = (0..self.metrics).map(|metric| self.series_of(host, metric)).collect();
        }
        encode_batch(&batch, body);
    }

    /// A host's series.
    pub(super) fn series_of(&self, host: usize, metric: usize) -> SeriesDefinition {
        let kind = if is_counter(metric) { Kind::Counter } else { Kind::Gauge };
        SeriesDefinition {
            reference: metric as u32,
            metric: format!("bench_{}_{:02}", kind, metric / 10),
            tags: vec![
                ("host".into(), format!("bench-{host:05}")),
                ("datacenter".into(), format!("dc{}", host % 4)),
                ("device".into(), format!("d{}", metric % 10)),
                // By which the run's series are found again.
                ("bench".into(), self.epoch.to_string()),
            ],
            kind,
            unit: if is_counter(metric) { "bytes".into() } else { "percent".into() },
        }
    }
}

fn is_counter(metric: usize) -> bool {
    metric % 5 < 3
}

/// The value of a host's series in a round.
pub(super) fn value(host: usize, metric: usize, round: usize) -> f64 {
    let mixed = (host * 31 + metric * 17 + round * 7) % 1000;
    if is_counter(metric) { (round * 1000 + mixed) as f64 } else { mixed as f64 / 10.0 }
}
