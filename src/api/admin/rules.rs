//! `POST /-/reload`, as in Prometheus: reads the rule files again.

use actix_web::{HttpResponse, http::StatusCode, web};
use serde_json::json;

use crate::{
    api::{AdminParts, answer},
    model::with_causes,
};

/// Reloads the rules. An invalid file changes nothing, and the response names it.
pub(super) async fn reload(parts: web::Data<AdminParts>) -> HttpResponse {
    match web::block(move || parts.rules.reload()).await {
        Ok(Ok(rules)) => HttpResponse::Ok().json(json!({ "rules": rules })),
        Ok(Err(cause)) => {
            answer::error(StatusCode::INTERNAL_SERVER_ERROR, "bad_rules", with_causes(&cause))
        }
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
