//! `GET /api/v1/find` and `/api/v1/facets`: search for metrics and tags.

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;

use super::{
    endpoints::{QueryString, checked, respond},
    params::SERIES_PARAMS,
};
use crate::{
    api::QueryParts,
    query::{self, FindRequest, QueryError},
};

/// The parameters of `find`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindParams {
    #[serde(default)]
    q: String,
    limit: Option<usize>,
}

pub(super) async fn find(
    params: Result<Query<FindParams>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params = params.map_err(|cause| QueryError::Invalid(cause.to_string()));
    let request = params.and_then(|params| FindRequest::new(&params.q, params.limit));
    respond("find", request, parts, |request, parts, budget| {
        query::find(&parts.store, budget, request)
    })
    .await
}

pub(super) async fn facets(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("facets", checked(params), parts, |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS])?;
        query::facets(&parts.store, budget, &params.metric_selector()?)
    })
    .await
}
