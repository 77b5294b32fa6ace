//! `GET /api/v1/status`: accepted and refused samples, senders, and limits with their current use.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::{
    OverviewParts,
    limits::{Limit, limits},
    respond,
};
use crate::{
    api::health,
    model::{DEFAULT_PROJECT, split_stored_name},
    query::quantile_of_buckets,
    telemetry::{RefusedCount, Timing, resident_bytes},
};

/// The warning about the state of a store with several shards.
const OF_FIRST: &str = "this is the state of shard 0 alone; `granary cluster status` lists the other \
                        shards, whose metrics and health are not shown yet";
/// The maximum number of senders in the response.
const SENDERS_MAX: usize = 50;

#[derive(Serialize)]
struct Answer {
    version: &'static str,
    started: i64,
    now: i64,
    health: HealthPart,
    protocols: Vec<ProtocolPart>,
    queue: QueuePart,
    commits: CommitsPart,
    requests: RequestsPart,
    refused: Vec<RefusedPart>,
    senders: SendersPart,
    queries: QueriesPart,
    limits: Vec<Limit>,
    memory: MemoryPart,
}

#[derive(Serialize)]
struct HealthPart {
    state: &'static str,
    conditions: Vec<ConditionPart>,
    warnings: Vec<ConditionPart>,
}

#[derive(Serialize)]
struct ConditionPart {
    name: &'static str,
    message: String,
}

#[derive(Serialize)]
struct ProtocolPart {
    protocol: &'static str,
    accepted: u64,
    duplicate: u64,
    refused: u64,
}

#[derive(Serialize)]
struct QueuePart {
    bytes: usize,
    bytes_max: usize,
}

#[derive(Serialize)]
struct CommitsPart {
    count: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
}

#[derive(Serialize)]
struct RequestsPart {
    outcomes: BTreeMap<&'static str, u64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

#[derive(Serialize)]
struct RefusedPart {
    protocol: &'static str,
    reason: &'static str,
    count: u64,
    examples: Vec<ExamplePart>,
}

#[derive(Serialize)]
struct ExamplePart {
    at: i64,
    text: String,
}

#[derive(Serialize)]
struct SendersPart {
    total: usize,
    top: Vec<SenderPart>,
}

/// A sender that registered series.
#[derive(Serialize)]
struct SenderPart {
    agent: String,
    series: usize,
    /// The number of samples accepted since the start.
    samples: u64,
    /// The time of the last batch; `None` when the sender does not number its batches and sent none
    /// since the start.
    heard: Option<i64>,
}

#[derive(Serialize)]
struct QueriesPart {
    under_way: usize,
    queries_max: usize,
    memory_bytes: usize,
    memory_max: usize,
}

#[derive(Serialize)]
struct MemoryPart {
    resident: u64,
}

pub(super) async fn status(parts: web::Data<OverviewParts>) -> HttpResponse {
    respond(parts, collect).await
}

fn collect(parts: &OverviewParts) -> Answer {
    let (metrics, settings) = (&parts.admin.metrics, parts.limits.get());
    let (state, reasons) = health::health(&parts.admin);
    let part = |(name, message)| ConditionPart { name, message };
    let other_shards = parts.query.resources.has_others().then(|| ("shards", OF_FIRST.to_owned()));
    let health = HealthPart {
        state,
        conditions: reasons.into_iter().map(part).collect(),
        warnings: health::warnings(&parts.admin)
            .into_iter()
            .chain(other_shards)
            .map(part)
            .collect(),
    };
    let protocols = metrics.sample_counts().into_iter().map(|counts| ProtocolPart {
        protocol: counts.protocol,
        accepted: counts.accepted,
        duplicate: counts.duplicate,
        refused: counts.refused,
    });
    let (commits, requests) = (metrics.commit_timing(), metrics.request_timing());
    let longest = metrics.longest_commit_ms();
    // A bucket's upper bound can exceed the longest commit.
    let commit = |quantile| Some(milliseconds(quantile, &commits)?.min(longest?));
    let memory_max = parts.query.promql.get().memory_max;
    let memory_free = parts.query.resources.memory_free();
    Answer {
        version: env!("CARGO_PKG_VERSION"),
        started: parts.started.0,
        now: parts.admin.clock.now().0,
        health,
        protocols: protocols.collect(),
        queue: QueuePart {
            bytes: parts.admin.writer.queued_bytes(),
            bytes_max: settings.queue_bytes_max,
        },
        commits: CommitsPart {
            count: commits.count,
            p50_ms: commit(0.5),
            p99_ms: commit(0.99),
            max_ms: longest,
        },
        requests: RequestsPart {
            outcomes: metrics.request_outcomes().into_iter().collect(),
            p50_ms: milliseconds(0.5, &requests),
            p99_ms: milliseconds(0.99, &requests),
        },
        refused: refused(parts),
        senders: senders(parts),
        queries: QueriesPart {
            under_way: settings
                .queries_max
                .saturating_sub(parts.query.permits.get().available_permits()),
            queries_max: settings.queries_max,
            memory_bytes: memory_max.saturating_sub(memory_free),
            memory_max,
        },
        limits: limits(parts),
        memory: MemoryPart { resident: resident_bytes() },
    }
}

/// Returns a quantile, interpolated within its bucket like `histogram_quantile`.
fn milliseconds(quantile: f64, timing: &Timing) -> Option<f64> {
    let seconds = quantile_of_buckets(quantile, &timing.buckets);
    Some(seconds * 1000.0).filter(|milliseconds| milliseconds.is_finite())
}

fn refused(parts: &OverviewParts) -> Vec<RefusedPart> {
    let mut all = parts.admin.metrics.refused_counts();
    all.sort_by_key(|refused| Reverse(refused.count));
    let tally = &parts.published.ingest;
    let part = |refused: RefusedCount| RefusedPart {
        protocol: refused.protocol,
        reason: refused.reason,
        count: refused.count,
        examples: tally
            .refused(refused.protocol, refused.reason)
            .into_iter()
            .map(|example| ExamplePart { at: example.at.0, text: example.text })
            .collect(),
    };
    all.into_iter().map(part).collect()
}

/// Returns the senders that registered the most series, including senders of foreign protocols.
fn senders(parts: &OverviewParts) -> SendersPart {
    let store = &parts.admin.store;
    let top = store.all_series().largest_senders(SENDERS_MAX);
    let part = |(agent, series): (Arc<str>, usize)| {
        let accepted = parts.published.ingest.samples_of(&agent);
        let heard = store.sender_heard(&agent).max(accepted.map(|accepted| accepted.at));
        SenderPart {
            agent: shown_sender(&agent),
            series,
            samples: accepted.map_or(0, |accepted| accepted.samples),
            heard: heard.map(|heard| heard.0),
        }
    };
    SendersPart {
        total: store.all_series().sender_count(),
        top: top.into_iter().map(part).collect(),
    }
}

/// Returns the name of a sender for people, by its stored name.
fn shown_sender(stored: &str) -> String {
    match split_stored_name(stored) {
        (DEFAULT_PROJECT, name) => name.to_owned(),
        (project, name) => format!("{project}/{name}"),
    }
}
