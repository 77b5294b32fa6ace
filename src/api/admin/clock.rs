//! `GET /api/v1/admin/clock` and `POST /api/v1/admin/clock/confirm`.

use actix_web::{HttpResponse, http::StatusCode, web};

use crate::api::{AdminParts, answer};

pub(super) async fn show(parts: web::Data<AdminParts>) -> HttpResponse {
    HttpResponse::Ok().json(parts.clock.report())
}

/// Confirms the machine's clock; the confirmation outlasts a restart.
pub(super) async fn confirm(parts: web::Data<AdminParts>) -> HttpResponse {
    let confirmed = web::block(move || {
        parts.store.remember_time(parts.clock.confirm())?;
        Ok(parts.clock.report())
    })
    .await;
    match confirmed {
        Ok(Ok(report)) => HttpResponse::Ok().json(report),
        Ok(Err(cause)) => answer::store_error(&cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
