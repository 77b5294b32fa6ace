//! `GET /api/v1/find` and `/api/v1/facets`: search for metrics and tags.

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::{Deserialize, Serialize};

use super::{
    endpoints::{QueryString, respond, valid_params},
    params::SERIES_PARAMS,
};
use crate::{
    api::QueryParts,
    query::{self, Budget, FindRequest, QueryError},
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
        let question = serde_json::to_vec(params).map_err(|cause| damaged(&cause))?;
        let answers = budget.ask_shards(FIND, &question, || params.answer(&parts.store, budget))?;
        let read = |answer: &Vec<u8>| {
            budget.reserve(2 * answer.len())?;
            serde_json::from_slice(answer).map_err(|cause| damaged(&cause))
        };
        Ok(request.join(answers.iter().map(read).collect::<Result<_, _>>()?))
    })
    .await
}

fn damaged(cause: &serde_json::Error) -> QueryError {
    QueryError::Busy(format!("the answer of a shard is damaged: {cause}; retry"))
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
    ) -> Result<Vec<u8>, QueryError> {
        let found = query::find(store, budget, &self.request()?.of_shard())?;
        serde_json::to_vec(&found).map_err(|cause| QueryError::Execution(cause.to_string()))
    }
}

pub(super) async fn facets(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("facets", valid_params(params), parts, |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS])?;
        query::facets(&parts.store, budget, &params.metric_selector()?)
    })
    .await
}
