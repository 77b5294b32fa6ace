//! What changes or keeps the store as a whole, over HTTP: series, senders, the clock, snapshots.
//!
//! Must never know: how any of it is done.

mod clock;
mod senders;
mod series;
mod snapshot;

use actix_web::web::{self, ServiceConfig};

/// The routes.
pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .route("/api/v1/series", web::delete().to(series::delete_matching))
        .route("/api/v1/senders", web::get().to(senders::list))
        .route("/api/v1/senders", web::delete().to(senders::remove_matching))
        .route("/api/v1/admin/senders/remove", web::post().to(senders::remove))
        .route("/api/v1/admin/series/delete", web::post().to(series::delete))
        .route("/api/v1/admin/series/rename", web::post().to(series::rename))
        .route("/api/v1/admin/clock", web::get().to(clock::show))
        .route("/api/v1/admin/clock/confirm", web::post().to(clock::confirm))
        .route("/api/v1/admin/snapshot", web::post().to(snapshot::snapshot));
}
