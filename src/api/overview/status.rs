//! `GET /api/v1/status`: what comes in and what is refused, senders, limits and how near they are.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::{
    OverviewParts,
    limits::{Limit, limits},
    respond,
};
use crate::{
    api::operations,
    query::quantile_of_buckets,
    telemetry::{RefusedCount, Timing, resident_bytes},
};

/// Senders that are told.
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

/// A sender that made series known.
#[derive(Serialize)]
struct SenderPart {
    agent: String,
    series: usize,
    /// Accepted since the start.
    samples: u64,
    /// `None` when it does not number its batches and sent none since the start.
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
    respond(parts, look).await
}

fn look(parts: &OverviewParts) -> Answer {
    let (metrics, settings) = (&parts.admin.metrics, &parts.limits);
    let (state, reasons) = operations::health(&parts.admin);
    let part = |(name, message)| ConditionPart { name, message };
    let health = HealthPart {
        state,
        conditions: reasons.into_iter().map(part).collect(),
        warnings: operations::warnings(&parts.admin).into_iter().map(part).collect(),
    };
    let protocols = metrics.sample_counts().into_iter().map(|own| ProtocolPart {
        protocol: own.protocol,
        accepted: own.accepted,
        duplicate: own.duplicate,
        refused: own.refused,
    });
    let (commits, requests) = (metrics.commit_timing(), metrics.request_timing());
    let longest = metrics.longest_commit_ms();
    // A bucket is wider than what lies in it: no commit took longer than the longest.
    let commit = |quantile| Some(milliseconds(quantile, &commits)?.min(longest?));
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
            under_way: settings.queries_max - parts.query.places.available_permits(),
            queries_max: settings.queries_max,
            memory_bytes: parts.query.promql.memory_max - memory_free,
            memory_max: parts.query.promql.memory_max,
        },
        limits: limits(parts),
        memory: MemoryPart { resident: resident_bytes() },
    }
}

/// A quantile of what was timed, linear within its bucket, as `histogram_quantile` has it.
fn milliseconds(quantile: f64, timing: &Timing) -> Option<f64> {
    let seconds = quantile_of_buckets(quantile, &timing.buckets);
    Some(seconds * 1000.0).filter(|own| own.is_finite())
}

fn refused(parts: &OverviewParts) -> Vec<RefusedPart> {
    let mut all = parts.admin.metrics.refused_counts();
    all.sort_by_key(|own| Reverse(own.count));
    let tally = &parts.observed.ingest;
    let part = |own: RefusedCount| RefusedPart {
        protocol: own.protocol,
        reason: own.reason,
        count: own.count,
        examples: tally
            .refused(own.protocol, own.reason)
            .into_iter()
            .map(|example| ExamplePart { at: example.at.0, text: example.text })
            .collect(),
    };
    all.into_iter().map(part).collect()
}

/// Those that made most series known, the senders of foreign protocols too.
fn senders(parts: &OverviewParts) -> SendersPart {
    let store = &parts.admin.store;
    let top = store.dictionary().largest_senders(SENDERS_MAX);
    let part = |(agent, series): (Arc<str>, usize)| {
        let accepted = parts.observed.ingest.accepted_from(&agent);
        let heard = store.sender_heard(&agent).max(accepted.map(|own| own.at));
        SenderPart {
            agent: agent.to_string(),
            series,
            samples: accepted.map_or(0, |own| own.samples),
            heard: heard.map(|heard| heard.0),
        }
    };
    SendersPart {
        total: store.dictionary().sender_count(),
        top: top.into_iter().map(part).collect(),
    }
}
