//! `GET /api/v1/chart`, `/api/v1/documents`, `/api/v1/storage/document`, `/api/v1/export` and
//! `/api/v1/series`, `POST /api/v1/aggregate` and `/api/v1/held`.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Query},
};
use serde::Serialize;
use tokio::sync::oneshot;

use super::params::{OF_RANGE, OF_SERIES, Params};
use crate::{
    api::{
        QueryParts,
        answer::{self, refused, slow::Slow, streamed},
    },
    query::{
        self, AggregateRequest, Budget, ChartRequest, DocumentsRequest, ExportRequest, QueryError,
        StoredDocumentRequest,
    },
    telemetry::QueryOutcome,
};

/// Bytes of a pipeline, at most.
const PIPELINE_BYTES_MAX: usize = 64 << 10;

/// Bytes of a list of series, at most.
const HELD_BYTES_MAX: usize = 1 << 20;

/// What charts take besides series and a range.
const OF_CHARTS: [&str; 9] =
    ["metrics", "display", "tz", "points", "merge", "group_by", "top", "bottom", "by"];
/// What documents take besides series and a range.
const OF_DOCUMENTS: [&str; 7] = ["display", "unfold", "form", "tz", "points", "merge", "group_by"];
/// What a stored document takes besides series.
const OF_STORED: [&str; 2] = ["resolution", "time"];
const OF_EXPORTS: [&str; 2] = ["after", "upto"];

pub(super) type QueryString = Result<Query<Params>, actix_web::Error>;

pub(super) async fn chart(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("chart", checked(params), parts, |params, parts, budget| {
        params.only(&[&OF_SERIES, &OF_RANGE, &OF_CHARTS])?;
        let now = parts.clock.moment();
        let (selector, others) = params.metric_selectors()?;
        let request = ChartRequest {
            selector,
            others,
            resolution: params.resolution(),
            range: params.range(now.clock)?,
            displays: params.displays()?,
            time_zone: params.time_zone()?,
            points: params.points()?,
            merge: params.merge(),
            rank: params.rank()?,
        };
        query::chart(&parts.store, budget, &request, &parts.limits, now.earliest())
    })
    .await
}

pub(super) async fn documents(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("documents", checked(params), parts, |params, parts, budget| {
        params.only(&[&OF_SERIES, &OF_RANGE, &OF_DOCUMENTS])?;
        let now = parts.clock.moment();
        let request = DocumentsRequest {
            selector: params.metric_selector()?,
            resolution: params.resolution(),
            range: params.range(now.clock)?,
            form: params.form()?,
            display: params.display_of_rows()?,
            time_zone: params.time_zone()?,
            points: params.points()?,
            merge: params.merge(),
        };
        query::documents(&parts.store, budget, &request, &parts.limits, now.earliest())
    })
    .await
}

/// A document with its bytes.
pub(super) async fn stored(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("storage", checked(params), parts, |params, parts, budget| {
        params.only(&[&OF_SERIES, &OF_STORED])?;
        let request = StoredDocumentRequest {
            selector: params.metric_selector()?,
            granularity: params.granularity(),
            time: params.time(parts.clock.now())?,
        };
        query::stored_document(&parts.store, budget, &request)
    })
    .await
}

/// A page of `granary export`.
pub(super) async fn export(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("export", checked(params), parts, |params, parts, budget| {
        params.only(&[&OF_SERIES, &OF_RANGE, &OF_EXPORTS])?;
        let now = parts.clock.moment();
        let request = ExportRequest {
            selector: params.selector()?,
            resolution: params.resolution(),
            range: params.range(now.clock)?,
            after: params.after,
            upto: params.upto,
        };
        query::export(&parts.store, budget, &request, &parts.limits, now.earliest())
    })
    .await
}

pub(super) async fn series(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("series", checked(params), parts, |params, parts, budget| {
        params.only(&[&OF_SERIES])?;
        query::series(&parts.store, budget, &params.selector()?, &parts.limits)
    })
    .await
}

/// The times that the store holds of some series.
pub(super) async fn held(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let body = match parts.bodies.receive_asked(&request, payload, HELD_BYTES_MAX).await {
        Ok(body) => body,
        Err(refusal) => {
            return refused(&parts.metrics, QueryOutcome::Invalid, refusal.response());
        }
    };
    respond("held", Ok(body), parts, |body, parts, budget| {
        let request = serde_json::from_slice(&body.bytes)
            .map_err(|cause| QueryError::Invalid(format!("body: {cause}")))?;
        query::held(&parts.store, budget, &request, parts.clock.now())
    })
    .await
}

/// The pipeline is the body, whatever type it says it is of.
pub(super) async fn aggregate(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let body = match parts.bodies.receive_asked(&request, payload, PIPELINE_BYTES_MAX).await {
        Ok(body) => body,
        Err(refusal) => {
            return refused(&parts.metrics, QueryOutcome::Invalid, refusal.response());
        }
    };
    respond("aggregate", Ok(body), parts, |body, parts, budget| {
        let now = parts.clock.now();
        let text = std::str::from_utf8(&body.bytes)
            .map_err(|cause| QueryError::Invalid(format!("the body is no text: {cause}")))?;
        let request = AggregateRequest::read(text, now)?;
        query::aggregate(&parts.store, budget, &request, &parts.limits, now)
    })
    .await
}

pub(super) fn checked(params: QueryString) -> Result<Params, QueryError> {
    params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()))
}

/// Answers a query away from the HTTP worker, within the bound of queries at a time.
pub(super) async fn respond<P: Send + 'static, T: Serialize>(
    endpoint: &'static str,
    params: Result<P, QueryError>,
    parts: web::Data<QueryParts>,
    run: impl Fn(&P, &QueryParts, &Budget) -> Result<T, QueryError> + Send + 'static,
) -> HttpResponse {
    let metrics = parts.metrics.clone();
    let refused = |outcome, response| refused(&metrics, outcome, response);
    let params = match params {
        Ok(params) => params,
        Err(cause) => return refused(outcome(&cause), answer::query_error(&cause)),
    };
    let Ok(permit) = parts.places.clone().try_acquire_owned() else {
        let message = "too many queries at a time: try again, or raise limits.queries_max";
        let response = answer::error(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        return refused(QueryOutcome::Busy, response);
    };
    parts.metrics.queries.with_label_values(&[endpoint]).inc();
    let (sender, begun) = oneshot::channel();
    let slow = Slow::of(&parts.metrics, parts.client_timeout);
    let budget = parts.resources.budget(parts.timeout);
    let _waiter = budget.waiter();
    let work = move || {
        budget.check()?;
        let run = || run(&params, &parts, &budget);
        let found = query::run_until_settled(&budget, run, QueryError::is_settled)?;
        Ok((found, budget.into_reservation()))
    };
    let writing = move || streamed::write(sender, permit, slow, work);
    // It goes on by itself: the beginning of the answer comes from the channel.
    drop(actix_web::rt::task::spawn_blocking(writing));
    match begun.await.map(streamed::response) {
        Ok(Ok(response)) => response,
        Ok(Err(cause)) => refused(outcome(&cause), answer::query_error(&cause)),
        Err(_) => {
            let message = "the query ended without an answer; the log says why";
            let response = answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", message);
            refused(QueryOutcome::Failed, response)
        }
    }
}

pub(in crate::api) fn outcome(cause: &QueryError) -> QueryOutcome {
    match cause {
        QueryError::Invalid(_) => QueryOutcome::Invalid,
        QueryError::TooMuch(_) => QueryOutcome::TooMuch,
        QueryError::Busy(_) => QueryOutcome::Busy,
        QueryError::Timeout(_) => QueryOutcome::Timeout,
        QueryError::Store(_) => QueryOutcome::Failed,
    }
}
