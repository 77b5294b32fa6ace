//! Samples over HTTP: one file a protocol, from a request to its acknowledgement.
//!
//! Must never know: how a body is read, what becomes of samples.

mod collectd;
mod influx;
mod native;
mod otlp;
mod remote_write;
mod rows;

use actix_web::web::{self, ServiceConfig};

/// The routes.
pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .route("/api/v1/ingest", web::post().to(native::ingest))
        .route("/api/v1/write", web::post().to(remote_write::write))
        .route("/prometheus/api/v1/write", web::post().to(remote_write::write))
        .route("/v1/metrics", web::post().to(otlp::write))
        .route("/write", web::post().to(influx::write))
        .route("/api/v2/write", web::post().to(influx::write))
        .route("/api/v1/collectd", web::post().to(collectd::write))
        .route("/ping", web::route().to(influx::ping))
        .route("/query", web::route().to(influx::query));
}
