//! Answers about the server: build, runtime, Alertmanagers and cardinality; and empty answers for
//! features that Granary lacks: exemplars, targets, flags and Prometheus' configuration.

use std::fs;

use actix_web::HttpResponse;
use serde_json::json;

use super::{
    answer::{Answer, Data},
    fault::Fault,
    query,
    receive::{Received, respond},
};
use crate::{model::without_password, query::cardinality};

/// The answer to `status/buildinfo`. The version is that of the Prometheus release whose API
/// Granary serves, because clients enable features by the version.
const BUILD: &str = concat!(
    r#"{"version":"2.55.0","revision":"granary-"#,
    env!("CARGO_PKG_VERSION"),
    r#"","branch":"","buildUser":"","buildDate":"","goVersion":""}"#
);

async fn fixed_answer(received: Received, json: &'static str) -> HttpResponse {
    respond("promql_status", received, |_| Ok(Answer::new(Data::Json(json.into())))).await
}

pub(super) async fn build(received: Received) -> HttpResponse {
    fixed_answer(received, BUILD).await
}

pub(super) async fn empty_list(received: Received) -> HttpResponse {
    fixed_answer(received, "[]").await
}

pub(super) async fn targets(received: Received) -> HttpResponse {
    fixed_answer(received, r#"{"activeTargets":[],"droppedTargets":[]}"#).await
}

pub(super) async fn alertmanagers(received: Received) -> HttpResponse {
    respond("promql_status", received, |call| {
        let urls = call.parts.alertmanagers.get();
        let active: Vec<_> = urls
            .iter()
            .map(|url| json!({ "url": format!("{}/api/v2/alerts", without_password(url)) }))
            .collect();
        let answer = json!({ "activeAlertmanagers": active, "droppedAlertmanagers": [] });
        Ok(Answer::new(Data::Json(answer.to_string().into())))
    })
    .await
}

/// Describes the process and its settings in Prometheus' terms; threads count as goroutines.
pub(super) async fn runtime(received: Received) -> HttpResponse {
    respond("promql_status", received, |call| {
        let parts = call.parts;
        let folder = std::env::current_dir().unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let retentions = parts
            .store
            .all_granularities()
            .iter()
            .map(|granularity| format!("{}: {}", granularity.name, granularity.retention()));
        let retentions = retentions.collect::<Vec<_>>().join(", ");
        let json = json!({
            "startTime": parts.started.to_string(),
            "CWD": folder.to_string_lossy(),
            "hostname": rustix::system::uname().nodename().to_string_lossy(),
            "serverTime": parts.clock.now().to_string(),
            "reloadConfigSuccess": parts.rules.fault().is_none(),
            "lastConfigTime": parts.rules.read_at().to_string(),
            "corruptionCount": parts.store.damaged_partitions().len(),
            "goroutineCount": fs::read_dir("/proc/self/task").map_or(0, Iterator::count),
            "GOMAXPROCS": processors,
            "GOMEMLIMIT": 0,
            "GOGC": "",
            "GODEBUG": "",
            "storageRetention": retentions,
        });
        Ok(Answer::new(Data::Json(json.to_string().into())))
    })
    .await
}

/// The default and the maximum number of names in each list, as in Prometheus.
const TSDB_LIMIT: usize = 10;
const TSDB_LIMIT_MAX: usize = 10_000;

pub(super) async fn tsdb(received: Received) -> HttpResponse {
    respond("promql_status", received, |call| {
        let limit = call.params.limit()?.unwrap_or(TSDB_LIMIT);
        if limit > TSDB_LIMIT_MAX {
            return Err(Fault::parameter("limit", format!("must not exceed {TSDB_LIMIT_MAX}")));
        }
        let report = cardinality(&call.parts.store, limit, &call.limits()).map_err(query::fault)?;
        let json = serde_json::to_string(&report).map_err(Fault::bad_data)?;
        Ok(Answer::new(Data::Json(json.into())))
    })
    .await
}

pub(super) async fn flags(received: Received) -> HttpResponse {
    fixed_answer(received, "{}").await
}

pub(super) async fn config(received: Received) -> HttpResponse {
    fixed_answer(received, r#"{"yaml":""}"#).await
}

/// Answers the root path, which some clients request to check the address.
pub(super) async fn root() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .body("Granary serves Prometheus' HTTP API under /api/v1/ and /prometheus/api/v1/.\n")
}
