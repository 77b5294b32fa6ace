//! The daemon's state over HTTP: what is stored, and how the daemon performs.
//!
//! Must never know: how samples and queries are processed. The state is available even when queries
//! are refused.

mod limits;
mod status;
mod storage;

use std::path::PathBuf;

use actix_web::{
    HttpResponse,
    http::{Method, StatusCode},
    web,
};
use serde::Serialize;

use super::{AdminParts, QueryParts, answer, scope::Scope};
use crate::{actors::PublishedState, kept::LiveValue, model::UnixMillis, store::CheckpointBounds};

pub use limits::OverviewLimits;

/// The parts that the handlers need.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct OverviewParts {
    pub query: QueryParts,
    pub admin: AdminParts,
    pub published: PublishedState,
    pub data_dir: PathBuf,
    pub bounds: CheckpointBounds,
    pub preallocation_enabled: LiveValue<bool>,
    pub limits: LiveValue<OverviewLimits>,
    /// The time at which the daemon started.
    pub started: UnixMillis,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, OverviewParts>) {
    scope.route(Method::GET, "/api/v1/storage", storage::storage);
    scope.route(Method::GET, "/api/v1/status", status::status);
}

/// Responds with the result of `collect`, which runs outside of the HTTP worker.
async fn respond<T: Serialize>(
    parts: web::Data<OverviewParts>,
    collect: impl FnOnce(&OverviewParts) -> T + Send + 'static,
) -> HttpResponse {
    let failed = |cause: &dyn std::fmt::Display| {
        answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause)
    };
    match web::block(move || serde_json::to_vec(&collect(&parts))).await {
        Ok(Ok(body)) => HttpResponse::Ok().content_type("application/json").body(body),
        Ok(Err(cause)) => failed(&cause),
        Err(cause) => failed(&cause),
    }
}
