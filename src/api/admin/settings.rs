//! `GET /api/v1/admin/settings` and, as in Prometheus, `POST /-/reload`: the settings in use, and
//! reading them again.

use actix_web::{HttpResponse, http::StatusCode, web};
use serde::Deserialize;

use crate::api::{AdminParts, answer};

/// Shows the settings in use, without secrets.
pub(super) async fn show(parts: web::Data<AdminParts>) -> HttpResponse {
    HttpResponse::Ok().json(parts.settings.shown())
}

/// The parameters of a reload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadParams {
    /// True when the settings are only compared and checked.
    #[serde(default)]
    dry_run: bool,
}

/// Reloads the settings and the rules. Invalid settings or rules change nothing, and the response
/// names the fault.
pub(super) async fn reload(
    parts: web::Data<AdminParts>,
    params: Result<web::Query<ReloadParams>, actix_web::Error>,
) -> HttpResponse {
    let params = match params {
        Ok(params) => params,
        Err(cause) => return answer::error(StatusCode::BAD_REQUEST, "bad_request", cause),
    };
    match parts.settings.reload(params.dry_run).await {
        Ok(reloaded) => HttpResponse::Ok().json(reloaded),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "bad_settings", cause),
    }
}
