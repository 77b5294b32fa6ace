//! What the daemon tells people of itself: what is stored, and how it fares.
//!
//! Must never know: how any of it comes about. It answers also when queries are refused.

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
use crate::{actors::Observed, model::UnixMillis, store::CheckpointBounds};

pub use limits::OverviewLimits;

/// What the handlers need.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types say it")]
pub struct OverviewParts {
    pub query: QueryParts,
    pub admin: AdminParts,
    pub observed: Observed,
    pub data_dir: PathBuf,
    pub bounds: CheckpointBounds,
    pub preallocation_enabled: bool,
    pub limits: OverviewLimits,
    /// When the daemon was started.
    pub started: UnixMillis,
}

/// The routes.
pub(super) fn routes(mut scope: Scope<'_, OverviewParts>) {
    scope.route(Method::GET, "/api/v1/storage", storage::storage);
    scope.route(Method::GET, "/api/v1/status", status::status);
}

/// Answers with what `look` finds, away from the HTTP worker.
async fn respond<T: Serialize>(
    parts: web::Data<OverviewParts>,
    look: impl FnOnce(&OverviewParts) -> T + Send + 'static,
) -> HttpResponse {
    let failed = |cause: &dyn std::fmt::Display| {
        answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause)
    };
    match web::block(move || serde_json::to_vec(&look(&parts))).await {
        Ok(Ok(body)) => HttpResponse::Ok().content_type("application/json").body(body),
        Ok(Err(cause)) => failed(&cause),
        Err(cause) => failed(&cause),
    }
}
