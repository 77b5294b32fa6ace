//! The state of a sharded cluster, as a router reports it: the balancer and the chunks of shards.

use std::sync::{Mutex, PoisonError};

use granary_agent_kit::Readings;
use mongodb::bson::{Bson, Document, doc};

use crate::field::{is_true, number, text};

/// The maximum number of shards with series.
const SHARDS_MAX: usize = 1_000;

/// The silence of a router in rounds, and in milliseconds, after which another one reports.
const SILENCE_ROUNDS: i64 = 3;
const SILENCE_MIN_MS: i64 = 120_000;

/// The router that reports the state of its cluster, so that several routers neither query the
/// config servers for the same values nor report them twice: its address, and its last round.
#[derive(Debug, Default)]
pub(crate) struct Reporter(Mutex<Option<(String, i64)>>);

impl Reporter {
    /// Returns true when this router reports in this round. The first router that answers reports
    /// until it is silent for three rounds, at least two minutes.
    pub(crate) fn is_elected(&self, address: &str, now_ms: i64, interval_ms: i64) -> bool {
        let mut elected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let silence_ms = interval_ms.saturating_mul(SILENCE_ROUNDS).max(SILENCE_MIN_MS);
        let is_other = |(other, at_ms): &(String, i64)| {
            other != address && now_ms.saturating_sub(*at_ms) < silence_ms
        };
        if elected.as_ref().is_some_and(is_other) {
            return false;
        }
        *elected = Some((address.to_owned(), now_ms));
        true
    }
}

/// The balancer and the chunks at the last queries.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sharding {
    balancer: Option<Balancer>,
    /// Each shard with its chunks and its jumbo chunks.
    chunks: Vec<(String, f64, f64)>,
}

/// A response to `balancerStatus`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Balancer {
    is_enabled: bool,
    is_in_round: bool,
    rounds: Option<f64>,
}

/// Builds the query that counts chunks by shard.
pub(crate) fn chunks_command() -> Document {
    doc! {
        "aggregate": "chunks",
        "pipeline": [
            { "$group": {
                "_id": "$shard", "chunks": { "$sum": 1 },
                "jumbo": { "$sum": { "$cond": ["$jumbo", 1, 0] } },
            } },
            { "$sort": { "_id": 1 } },
            { "$limit": SHARDS_MAX as i32 },
        ],
        "cursor": { "batchSize": SHARDS_MAX as i32 },
    }
}

impl Sharding {
    /// Records a response to `balancerStatus`.
    pub(crate) fn note_balancer(&mut self, response: Option<&Document>) {
        self.balancer = response.map(|status| Balancer {
            is_enabled: text(status, "mode") == Some("full"),
            is_in_round: is_true(status, "inBalancerRound"),
            rounds: number(status, "numBalancerRounds"),
        });
    }

    /// Records a response to [`chunks_command`].
    pub(crate) fn note_chunks(&mut self, response: Option<&Document>) {
        let batch = response.and_then(|response| {
            response.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch")).ok()
        });
        let shard = |group: &Bson| {
            let group = group.as_document()?;
            let name = text(group, "_id")?.to_owned();
            Some((name, number(group, "chunks")?, number(group, "jumbo").unwrap_or(0.0)))
        };
        self.chunks = batch.into_iter().flatten().filter_map(shard).take(SHARDS_MAX).collect();
    }

    /// Adds the values.
    pub(crate) fn push_values(&self, readings: &mut Readings) {
        if let Some(Balancer { is_enabled, is_in_round, rounds }) = self.balancer {
            let flag = |flag: bool| f64::from(u8::from(flag));
            readings.gauge("mongodb_balancer_enabled", "", &[], flag(is_enabled));
            readings.gauge("mongodb_balancer_in_round", "", &[], flag(is_in_round));
            if let Some(rounds) = rounds {
                readings.counter("mongodb_balancer_rounds", "rounds", &[], rounds, None);
            }
        }
        for (shard, chunks, jumbo) in &self.chunks {
            let tags = [("shard", shard.as_str())];
            readings.gauge("mongodb_chunks", "chunks", &tags, *chunks);
            readings.gauge("mongodb_chunks_jumbo", "chunks", &tags, *jumbo);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_router_reports_until_it_is_silent() {
        let reporter = Reporter::default();
        let round = |now_ms| ["a", "b"].map(|name| reporter.is_elected(name, now_ms, 10_000));
        assert_eq!(round(0), [true, false]);
        assert_eq!(round(10_000), [true, false]);
        assert!(!reporter.is_elected("b", 129_999, 10_000), "it may be slow");
        assert!(reporter.is_elected("b", 130_000, 10_000));
        assert_eq!(round(140_000), [false, true], "the other one has returned");
        assert!(!reporter.is_elected("a", 500_000, 3_600_000), "its round is not over");
    }

    #[test]
    fn chunks_are_counted_by_shard_and_the_balancer_can_be_off() {
        let mut sharding = Sharding::default();
        let group = |name: &str, chunks: i32, jumbo: i32| {
            doc! { "_id": name, "chunks": chunks, "jumbo": jumbo }
        };
        let groups = vec![group("a", 4, 1), group("b", 5, 0)];
        sharding.note_chunks(Some(&doc! { "cursor": { "firstBatch": groups } }));
        let off = doc! { "mode": "off", "inBalancerRound": false, "numBalancerRounds": 9_i64 };
        sharding.note_balancer(Some(&off));
        let values = |sharding: &Sharding| {
            let mut readings = Readings::default();
            sharding.push_values(&mut readings);
            readings.as_slice().iter().map(|reading| reading.value).collect::<Vec<_>>()
        };
        assert_eq!(values(&sharding), [0.0, 0.0, 9.0, 4.0, 1.0, 5.0, 0.0]);
        sharding.note_chunks(None);
        sharding.note_balancer(None);
        assert!(values(&sharding).is_empty());
    }
}
