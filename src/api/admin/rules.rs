//! `POST /-/reload`, as Prometheus has it: the rule files are read again.

use actix_web::{HttpResponse, http::StatusCode, web};
use serde_json::json;

use crate::{
    api::{AdminParts, answer},
    model::chain,
};

/// A file that cannot be used changes nothing, and is named.
pub(super) async fn reload(parts: web::Data<AdminParts>) -> HttpResponse {
    match web::block(move || parts.rules.reload()).await {
        Ok(Ok(rules)) => HttpResponse::Ok().json(json!({ "rules": rules })),
        Ok(Err(cause)) => {
            answer::error(StatusCode::INTERNAL_SERVER_ERROR, "bad_rules", chain(&cause))
        }
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
