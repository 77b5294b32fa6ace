//! HTTP: routes and status codes, and nothing else.
//!
//! Must never know: how anything is computed or stored. The daemon binds it.

mod admin;
mod answer;
mod body;
mod connection;
mod decompress;
mod guard;
mod ingest;
mod operations;
mod prometheus;
mod query;
mod receive;
mod refusal;

use std::{sync::Arc, time::Duration};

pub use body::BodyLimits;
pub use connection::{Connections, OneAtATime};
pub(crate) use decompress::fuzz_decompress;
pub use guard::HostNames;
pub(crate) use prometheus::fuzz_params;
pub use query::Tails;
pub(crate) use query::fuzz_query;
pub use receive::receive;

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
    /// A turn to decompress a body that becomes large.
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
        .configure(ingest::routes)
        .configure(prometheus::routes)
        .configure(query::routes)
        .configure(admin::routes)
        .route("/metrics", web::get().to(operations::metrics))
        .route("/healthz", web::get().to(operations::healthz))
        .route("/readyz", web::get().to(operations::readyz))
        .default_service(web::to(operations::not_found));
}
