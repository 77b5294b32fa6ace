//! `GET /api/v1/find` and `/api/v1/facets`: search for metrics and tags.

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::{Deserialize, Serialize};

use super::{
    endpoints::{QueryString, respond, valid_params},
    params::SERIES_PARAMS,
    shards::{FACETS, SelectorQuestion},
};
use crate::{
    api::QueryParts,
    query::{self, Budget, FacetCounts, FindAnswer, FindRequest, QueryError},
    store::Store,
};

/// The kind of a question for the metrics that match a search.
pub(in crate::api) const FIND: &str = "find";

/// The parameters of `find`, which are also a question for a shard.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct FindParams {
    #[serde(default)]
    q: String,
    limit: Option<usize>,
}

pub(super) async fn find(
    params: Result<Query<FindParams>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params = params.map_err(|cause| QueryError::Invalid(cause.to_string()));
    let request = params.and_then(|params| Ok((params.request()?, params.into_inner())));
    respond("find", request, parts, |(request, params), parts, budget| {
        if budget.others().is_none() {
            return query::find(&parts.store, budget, request);
        }
        let own = || params.answer(&parts.store, budget);
        Ok(request.join(query::ask_all(budget, (FIND, params), own)?))
    })
    .await
}

impl FindParams {
    fn request(&self) -> Result<FindRequest, QueryError> {
        FindRequest::new(&self.q, self.limit)
    }

    /// Returns all matches of a shard.
    pub(in crate::api) fn answer(
        &self,
        store: &Store,
        budget: &Budget,
    ) -> Result<FindAnswer, QueryError> {
        query::find(store, budget, &self.request()?.of_shard())
    }
}

pub(super) async fn facets(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("facets", valid_params(params), parts, |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS])?;
        let (selector, store) = (params.metric_selector()?, &parts.store);
        if budget.others().is_none() {
            return query::facets(store, budget, &selector);
        }
        let question = SelectorQuestion::new(&selector);
        let own = || FacetCounts::of_store(store, budget, &selector);
        let counts = query::ask_all(budget, (FACETS, &question), own)?;
        FacetCounts::join(counts, (store, budget), &selector)
    })
    .await
}
