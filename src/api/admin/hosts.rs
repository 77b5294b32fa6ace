//! `DELETE /api/v1/hosts`.

use actix_web::{
    HttpResponse,
    http::StatusCode,
    web::{self, Query},
};
use serde::Deserialize;

use crate::{
    api::{AdminParts, answer},
    query::QueryError,
};

/// Which host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    host: String,
}

pub(super) async fn remove(
    params: Result<Query<Which>, actix_web::Error>,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let host = match params {
        Ok(params) => params.into_inner().host,
        Err(cause) => return answer::query_error(&QueryError::Invalid(cause.to_string())),
    };
    let name = host.clone();
    match web::block(move || parts.hosts.remove(&name)).await {
        Ok(Ok(true)) => HttpResponse::NoContent().finish(),
        Ok(Ok(false)) => {
            let message = format!("there is no host {host:?}");
            answer::error(StatusCode::NOT_FOUND, "not_found", message)
        }
        Ok(Err(cause)) => answer::store_error(&cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
