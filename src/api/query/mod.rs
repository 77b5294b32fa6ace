//! The store's own queries over HTTP: charts, documents, pages of exports, series, pipelines, tails.
//!
//! Must never know: how an answer is found.

mod endpoints;
mod params;
mod tail;

pub(crate) use params::fuzz_query;
pub(super) use params::selector;
pub use tail::Tails;

use actix_web::web::{self, ServiceConfig};

/// The routes.
pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .route("/api/v1/chart", web::get().to(endpoints::chart))
        .route("/api/v1/documents", web::get().to(endpoints::documents))
        .route("/api/v1/export", web::get().to(endpoints::export))
        .route("/api/v1/aggregate", web::post().to(endpoints::aggregate))
        .route("/api/v1/series", web::get().to(endpoints::series))
        .route("/api/v1/tail", web::get().to(tail::tail));
}
