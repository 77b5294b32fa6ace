//! `DELETE /api/v1/hosts` and `POST /api/v1/admin/hosts/remove`.

use std::collections::BTreeSet;

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Query},
};
use serde::Deserialize;

use super::series;
use crate::{
    api::{AdminParts, answer},
    query::{HostsRemoved, QueryError},
};

/// The parameters of `DELETE /api/v1/hosts`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostParams {
    host: String,
}

/// The body of `POST /api/v1/admin/hosts/remove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostsBody {
    hosts: BTreeSet<String>,
}

pub(super) async fn remove(
    params: Result<Query<HostParams>, actix_web::Error>,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let host = match params {
        Ok(params) => params.into_inner().host,
        Err(cause) => return answer::query_error(&QueryError::Invalid(cause.to_string())),
    };
    match remove_hosts([host.clone()].into(), parts).await {
        Ok(0) => {
            let message = format!("there is no host {host:?}");
            answer::error(StatusCode::NOT_FOUND, "not_found", message)
        }
        Ok(_) => HttpResponse::NoContent().finish(),
        Err(response) => response,
    }
}

pub(super) async fn remove_several(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let body = match series::read::<HostsBody>(&request, payload, &parts).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    match remove_hosts(body.hosts, parts).await {
        Ok(total) => HttpResponse::Ok().json(HostsRemoved { total }),
        Err(response) => response,
    }
}

/// Removes hosts, and returns the number of removed hosts.
async fn remove_hosts(
    names: BTreeSet<String>,
    parts: web::Data<AdminParts>,
) -> Result<usize, HttpResponse> {
    match web::block(move || parts.hosts.remove(&names)).await {
        Ok(Ok(total)) => Ok(total),
        Ok(Err(cause)) => Err(answer::store_error(&cause)),
        Err(cause) => Err(answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause)),
    }
}
