//! HTTP: routes and status codes, and nothing else.
//!
//! Must never know: how anything is computed or stored. The daemon binds it.

mod admin;
mod answer;
mod body;
mod changes;
mod clock;
mod collectd;
mod connection;
mod foreign;
mod guard;
mod influx;
mod ingest;
mod operations;
mod otlp;
mod params;
mod prometheus;
mod queries;
mod receive;
mod refusal;
mod remote_write;
mod senders;
mod streamed;
mod tail;

use std::{sync::Arc, time::Duration};

pub use body::BodyLimits;
pub(crate) use body::fuzz_decompress;
pub use connection::{Connections, OneAtATime};
pub use guard::HostNames;
pub(crate) use params::fuzz_query;
pub(crate) use prometheus::fuzz_params;
pub use receive::receive;
pub use tail::Tails;

use actix::Addr;
use actix_web::web::{self, ServiceConfig};
use tokio::sync::Semaphore;

use crate::{
    actors::{Collector, Health, Snapshots, TrustedClock, WriterHandle},
    ingest::memory::IngestMemory,
    model::SeriesLimits,
    query::{PromqlSettings, QueryLimits, QueryResources},
    store::Store,
    telemetry::Metrics,
};

/// What the handlers share. Cheap to clone.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types say it")]
pub struct ApiParts {
    pub store: Store,
    pub writer: WriterHandle,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub health: Health,
    pub query_limits: QueryLimits,
    pub queries: Arc<Semaphore>,
    pub query_timeout: Duration,
    pub promql: PromqlSettings,
    pub query_resources: QueryResources,
    pub body_limits: BodyLimits,
    pub ingest_memory: IngestMemory,
    /// For bodies that are large once they are decompressed: one at a time.
    pub large_bodies: Arc<Semaphore>,
    pub client_timeout: Duration,
    pub snapshots: Snapshots,
    pub series_limits: SeriesLimits,
    pub future_skew: Duration,
    pub tails: Tails,
    pub host_names: Arc<HostNames>,
}

/// Bytes of a body, decompressed, that a worker's own collector reads, at most.
const OWN_BYTES_MAX: usize = 2 << 20;

/// Who reads the bodies of samples.
#[derive(Debug, Clone)]
pub struct Collectors {
    /// The worker's own, on its thread.
    pub own: Addr<Collector>,
    /// One for all large bodies, on a thread of its own, so that other requests need not wait
    /// while one is read.
    pub large: Addr<Collector>,
}

impl Collectors {
    fn of(&self, body: &[u8]) -> &Addr<Collector> {
        if body.len() > OWN_BYTES_MAX { &self.large } else { &self.own }
    }
}

/// The routes, for one HTTP worker with its collector.
pub fn routes(config: &mut ServiceConfig, parts: ApiParts, collectors: Collectors) {
    config
        .app_data(web::Data::new(parts))
        .app_data(web::Data::new(collectors))
        .route("/api/v1/ingest", web::post().to(ingest::ingest))
        .route("/api/v1/write", web::post().to(remote_write::write))
        .route("/prometheus/api/v1/write", web::post().to(remote_write::write))
        .route("/v1/metrics", web::post().to(otlp::write))
        .route("/write", web::post().to(influx::write))
        .route("/api/v2/write", web::post().to(influx::write))
        .route("/api/v1/collectd", web::post().to(collectd::write))
        .route("/ping", web::route().to(influx::ping))
        .route("/query", web::route().to(influx::query))
        .configure(prometheus::routes)
        .route("/api/v1/chart", web::get().to(queries::chart))
        .route("/api/v1/documents", web::get().to(queries::documents))
        .route("/api/v1/export", web::get().to(queries::export))
        .route("/api/v1/aggregate", web::post().to(queries::aggregate))
        .route("/api/v1/series", web::get().to(queries::series))
        .route("/api/v1/series", web::delete().to(changes::delete_matching))
        .route("/api/v1/senders", web::get().to(senders::list))
        .route("/api/v1/senders", web::delete().to(senders::remove_matching))
        .route("/api/v1/admin/senders/remove", web::post().to(senders::remove))
        .route("/api/v1/tail", web::get().to(tail::tail))
        .route("/api/v1/admin/series/delete", web::post().to(changes::delete))
        .route("/api/v1/admin/series/rename", web::post().to(changes::rename))
        .route("/api/v1/admin/clock", web::get().to(clock::show))
        .route("/api/v1/admin/clock/confirm", web::post().to(clock::confirm))
        .route("/api/v1/admin/snapshot", web::post().to(admin::snapshot))
        .route("/metrics", web::get().to(operations::metrics))
        .route("/healthz", web::get().to(operations::healthz))
        .route("/readyz", web::get().to(operations::readyz))
        .default_service(web::to(operations::not_found));
}
