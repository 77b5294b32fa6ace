//! `GET /api/v1/moved`: the series that differ most from the time before.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};

use super::{
    endpoints::{QueryString, respond, valid_params},
    params::{Params, SERIES_PARAMS},
};
use crate::{
    api::QueryParts,
    model::UnixMillis,
    query::{self, Budget, MovedPart, MovedRequest, QueryError, QueryLimits},
    store::Store,
};

/// The kind of a question for the series that moved.
pub(in crate::api) const MOVED: &str = "moved";

/// The parameters other than series.
const MOVED_PARAMS: [&str; 4] = ["range", "start", "end", "top"];

/// A question for the series that moved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::api) struct MovedQuestion {
    /// The parameters of the request.
    params: Params,
    /// The range in Unix milliseconds, which replaces the range of the parameters.
    start: i64,
    end: i64,
    /// The time of the request, so that all shards compare the same times.
    now: i64,
    resolution: String,
}

impl MovedQuestion {
    /// Answers the question for one shard.
    pub(in crate::api) fn answer(
        &self,
        store: &Store,
        budget: &Budget,
        limits: &QueryLimits,
    ) -> Result<MovedPart, QueryError> {
        let range = UnixMillis(self.start)..UnixMillis(self.end);
        let request = MovedRequest::new(self.params.selector()?, range, self.params.top)?;
        let request = (&request, self.resolution.as_str());
        query::moved_of_shard(store, budget, request, limits, UnixMillis(self.now))
    }
}

pub(super) async fn moved(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("moved", valid_params(params), parts, |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS, &MOVED_PARAMS])?;
        let now = parts.clock.moment();
        let (range, limits) = (params.range(now.clock)?, &parts.limits.get());
        let now = now.earliest();
        let request = MovedRequest::new(params.selector()?, range.clone(), params.top)?;
        if budget.others().is_none() {
            return query::moved(&parts.store, budget, &request, limits, now);
        }
        let ask = |resolution: &str| {
            let (params, resolution) = (params.clone(), resolution.to_owned());
            let (start, end, now) = (range.start.0, range.end.0, now.0);
            let question = MovedQuestion { params, start, end, now, resolution };
            let own = || question.answer(&parts.store, budget, limits);
            query::ask_all(budget, (MOVED, &question), own)
        };
        query::moved_of_shards(&request, &ask)
    })
    .await
}
