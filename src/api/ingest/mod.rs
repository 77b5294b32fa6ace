//! Samples over HTTP: one file for each protocol, from a request to its acknowledgement.
//!
//! Must never know: how a body is read, how samples are stored.

mod collectd;
mod influx;
mod native;
mod otlp;
mod ping;
mod remote_write;
mod rows;

use actix::Addr;
use actix_web::{HttpResponse, http::Method, web};

use super::refusal::Refusal;
use super::{body::Bodies, scope::Scope};
use crate::{
    actors::Collector,
    clock::Stopwatch,
    kept::KnownHosts,
    telemetry::{IngestOutcome, Metrics},
};

/// The largest decompressed body that the collector of an HTTP worker reads.
const WORKER_COLLECTOR_BYTES_MAX: usize = 2 << 20;

/// The parts that the handlers of samples need.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct IngestParts {
    pub collectors: Collectors,
    pub bodies: Bodies,
    pub hosts: KnownHosts,
    pub metrics: Metrics,
}

/// The collectors that read bodies of samples.
#[derive(Debug, Clone)]
pub struct Collectors {
    /// The collector of this HTTP worker, on its thread.
    pub worker: Addr<Collector>,
    /// The collector of all large bodies, on a thread of its own, so that other requests do not
    /// wait.
    pub large: Addr<Collector>,
}

impl Collectors {
    fn for_body(&self, body: &[u8]) -> &Addr<Collector> {
        if body.len() > WORKER_COLLECTOR_BYTES_MAX { &self.large } else { &self.worker }
    }
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, IngestParts>) {
    scope.route(Method::POST, "/api/v1/ingest", native::ingest);
    scope.route(Method::POST, "/api/v1/update", native::update);
    scope.route(Method::POST, "/api/v1/ping", ping::ping);
    scope.route(Method::POST, "/api/v1/write", remote_write::write);
    scope.route(Method::POST, "/prometheus/api/v1/write", remote_write::write);
    scope.route(Method::POST, "/v1/metrics", otlp::write);
    scope.route(Method::POST, "/write", influx::write);
    scope.route(Method::POST, "/api/v2/write", influx::write);
    scope.route(Method::POST, "/api/v1/collectd", collectd::write);
    scope.any("/ping", web::to(influx::ping));
    scope.any("/query", web::to(influx::query));
}

/// Answers a request, counts its outcome and measures its duration.
async fn answer_and_count(
    metrics: &Metrics,
    accepted: impl Future<Output = Result<HttpResponse, Refusal>>,
    refuse: fn(&Refusal) -> HttpResponse,
) -> HttpResponse {
    let watch = Stopwatch::start();
    let (outcome, response) = match accepted.await {
        Ok(response) => (IngestOutcome::Acknowledged, response),
        Err(refusal) => (refusal.outcome(), refuse(&refusal)),
    };
    metrics.ingest_requests.with_label_values(&[outcome.as_str()]).inc();
    metrics.ingest_request_duration.observe(watch.seconds());
    response
}
