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

/// Which host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    host: String,
}

/// Which hosts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Several {
    hosts: BTreeSet<String>,
}

pub(super) async fn remove(
    params: Result<Query<One>, actix_web::Error>,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let host = match params {
        Ok(params) => params.into_inner().host,
        Err(cause) => return answer::query_error(&QueryError::Invalid(cause.to_string())),
    };
    match removed([host.clone()].into(), parts).await {
        Ok(0) => {
            let message = format!("there is no host {host:?}");
            answer::error(StatusCode::NOT_FOUND, "not_found", message)
        }
        Ok(_) => HttpResponse::NoContent().finish(),
        Err(failed) => failed,
    }
}

pub(super) async fn remove_several(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let which = match series::read::<Several>(&request, payload, &parts).await {
        Ok(which) => which,
        Err(refused) => return refused,
    };
    match removed(which.hosts, parts).await {
        Ok(total) => HttpResponse::Ok().json(HostsRemoved { total }),
        Err(failed) => failed,
    }
}

/// Removes hosts; how many there were.
async fn removed(
    names: BTreeSet<String>,
    parts: web::Data<AdminParts>,
) -> Result<usize, HttpResponse> {
    match web::block(move || parts.hosts.remove(&names)).await {
        Ok(Ok(total)) => Ok(total),
        Ok(Err(cause)) => Err(answer::store_error(&cause)),
        Err(cause) => Err(answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause)),
    }
}
