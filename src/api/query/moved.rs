//! `GET /api/v1/moved`: the series that differ most from the time before.

use actix_web::{HttpResponse, web};

use super::{
    endpoints::{QueryString, respond, valid_params},
    params::SERIES_PARAMS,
};
use crate::{
    api::QueryParts,
    query::{self, MovedRequest},
};

/// The parameters other than series.
const MOVED_PARAMS: [&str; 4] = ["range", "start", "end", "top"];

pub(super) async fn moved(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("moved", valid_params(params), parts, |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS, &MOVED_PARAMS])?;
        let now = parts.clock.moment();
        let range = params.range(now.clock)?;
        let request = MovedRequest::new(params.selector()?, range, params.top)?;
        query::moved(&parts.store, budget, &request, &parts.limits.get(), now.earliest())
    })
    .await
}
