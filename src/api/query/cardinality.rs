//! `GET /api/v1/cardinality`: the metrics, tags and senders with the most series.

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;

use super::{QueryParts, endpoints::respond};
use crate::query::QueryError;

/// The default number of entries in each list.
const LIMIT: usize = 10;
/// The maximum number of entries in each list.
const LIMIT_MAX: usize = 1000;

/// The parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CardinalityParams {
    limit: Option<usize>,
}

pub(super) async fn cardinality(
    params: Result<Query<CardinalityParams>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params = params.map_err(|cause| QueryError::Invalid(cause.to_string()));
    let limit = params.and_then(|params| match params.limit.unwrap_or(LIMIT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        limit => Err(QueryError::Invalid(format!("limit = {limit} is not in 1 to {LIMIT_MAX}"))),
    });
    respond("cardinality", limit, parts, |limit, parts, budget| {
        parts.cardinality.answer(&parts.store, *limit, budget)
    })
    .await
}
