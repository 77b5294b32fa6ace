//! `GET /api/v1/chart`, `/api/v1/documents`, `/api/v1/storage/document`, `/api/v1/export` and
//! `/api/v1/series`, `POST /api/v1/aggregate` and `/api/v1/held`.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{self, Query},
};
use serde::Serialize;
use tokio::sync::oneshot;

use super::{
    params::{Params, RANGE_PARAMS, SERIES_PARAMS},
    shards::{SERIES_LIST, SelectorQuestion, chart_of_shards, documents_of_shards},
};
use crate::{
    api::{
        QueryParts,
        answer::{self, count_refusal, slow::SlowReaders, streamed},
    },
    query::{
        self, AggregateRequest, Budget, ExportRequest, QueryError, SeriesAnswer,
        StoredDocumentAnswer, StoredDocumentRequest,
    },
    telemetry::QueryOutcome,
};

/// The maximum size of a pipeline in bytes.
const PIPELINE_BYTES_MAX: usize = 64 << 10;

/// The maximum size of a list of series in bytes.
const COVERAGE_BYTES_MAX: usize = 1 << 20;

/// The parameters of a stored document other than series.
const STORED_DOCUMENT_PARAMS: [&str; 2] = ["resolution", "time"];
/// The parameters of an export other than series and a range.
const EXPORT_PARAMS: [&str; 3] = ["after", "upto", "shells"];

pub(super) type QueryString = Result<Query<Params>, actix_web::Error>;

pub(super) async fn chart(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("chart", valid_params(params), parts, |params, parts, budget| {
        let now = parts.clock.moment();
        let request = params.chart(now.clock)?;
        let at = now.earliest();
        if budget.others().is_some() {
            return chart_of_shards(params, &request, (parts, budget), at);
        }
        query::chart(&parts.store, budget, &request, &parts.limits.get(), at)
    })
    .await
}

pub(super) async fn documents(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("documents", valid_params(params), parts, |params, parts, budget| {
        let now = parts.clock.moment();
        let request = params.documents(now.clock)?;
        let at = now.earliest();
        if budget.others().is_some() {
            return documents_of_shards(params, &request, (parts, budget), at);
        }
        query::documents(&parts.store, budget, &request, &parts.limits.get(), at)
    })
    .await
}

/// Returns a document with its bytes.
pub(super) async fn stored_document(
    request: HttpRequest,
    params: QueryString,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    // The size of a partition would reveal the amount of data of other projects.
    let shows_partition = parts.access.has_one_project() || parts.access.shows_state(&request);
    respond("storage", valid_params(params), parts, move |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS, &STORED_DOCUMENT_PARAMS])?;
        let request = StoredDocumentRequest {
            selector: params.metric_selector()?,
            granularity: params.granularity(),
            time: params.time(parts.clock.now())?,
        };
        let answer = query::stored_document(&parts.store, budget, &request)?;
        let partition = answer.partition.filter(|_| shows_partition);
        Ok(StoredDocumentAnswer { partition, ..answer })
    })
    .await
}

/// Returns a page of `granary export`.
pub(super) async fn export(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("export", valid_params(params), parts, |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS, &RANGE_PARAMS, &EXPORT_PARAMS])?;
        let now = parts.clock.moment();
        let request = ExportRequest {
            selector: params.selector()?,
            resolution: params.resolution(),
            range: params.range(now.clock)?,
            after: params.after.clone(),
            upto: params.upto.clone(),
            shells: params.shells,
        };
        query::export(&parts.store, budget, &request, &parts.limits.get(), now.earliest())
    })
    .await
}

pub(super) async fn series(params: QueryString, parts: web::Data<QueryParts>) -> HttpResponse {
    respond("series", valid_params(params), parts, |params, parts, budget| {
        params.allow_only(&[&SERIES_PARAMS])?;
        let (selector, limits) = (params.selector()?, &parts.limits.get());
        let own = || query::series(&parts.store, budget, &selector, limits);
        if budget.others().is_none() {
            return own();
        }
        let question = SelectorQuestion::new(&selector);
        Ok(SeriesAnswer::join(query::ask_all(budget, (SERIES_LIST, &question), own)?, limits))
    })
    .await
}

/// Returns the times for which the store has cells of the requested series.
pub(super) async fn series_coverage(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let body = match parts.bodies.receive_query(&request, payload, COVERAGE_BYTES_MAX).await {
        Ok(body) => body,
        Err(refusal) => {
            return count_refusal(&parts.metrics, QueryOutcome::Invalid, refusal.response());
        }
    };
    respond("held", Ok(body), parts, |body, parts, budget| {
        let request = serde_json::from_slice(&body.bytes)
            .map_err(|cause| QueryError::Invalid(format!("body: {cause}")))?;
        query::series_coverage(&parts.store, budget, &request, parts.clock.now())
    })
    .await
}

/// Runs the pipeline in the body, regardless of its `Content-Type`.
pub(super) async fn aggregate(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let body = match parts.bodies.receive_query(&request, payload, PIPELINE_BYTES_MAX).await {
        Ok(body) => body,
        Err(refusal) => {
            return count_refusal(&parts.metrics, QueryOutcome::Invalid, refusal.response());
        }
    };
    respond("aggregate", Ok(body), parts, |body, parts, budget| {
        let now = parts.clock.now();
        let text = std::str::from_utf8(&body.bytes)
            .map_err(|cause| QueryError::Invalid(format!("the body is not UTF-8: {cause}")))?;
        let request = AggregateRequest::read(text, now)?;
        query::aggregate(&parts.store, budget, &request, &parts.limits.get(), now)
    })
    .await
}

pub(super) fn valid_params(params: QueryString) -> Result<Params, QueryError> {
    params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()))
}

/// Answers a query outside of the HTTP worker, within the limit of concurrent queries.
pub(super) async fn respond<P: Send + 'static, T: Serialize>(
    endpoint: &'static str,
    params: Result<P, QueryError>,
    parts: web::Data<QueryParts>,
    run: impl Fn(&P, &QueryParts, &Budget) -> Result<T, QueryError> + Send + 'static,
) -> HttpResponse {
    let metrics = parts.metrics.clone();
    let refused = |outcome, response| count_refusal(&metrics, outcome, response);
    let params = match params {
        Ok(params) => params,
        Err(cause) => return refused(outcome(&cause), answer::query_error(&cause)),
    };
    let Ok(permit) = parts.permits.get().try_acquire_owned() else {
        let message = "too many concurrent queries: retry, or raise limits.query_memory_max";
        let response = answer::error(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        return refused(QueryOutcome::Busy, response);
    };
    parts.metrics.queries.with_label_values(&[endpoint]).inc();
    let (sender, start) = oneshot::channel();
    let slow = SlowReaders::new(&parts.metrics, parts.client_timeout);
    let budget = parts.resources.budget(*parts.timeout.get());
    let _waiter = budget.waiter();
    let work = move || {
        budget.check()?;
        let run = || run(&params, &parts, &budget);
        let found = query::run_with_retries(&budget, run, QueryError::is_transient)?;
        Ok((found, budget.into_reservation()))
    };
    let writing = move || streamed::write(sender, permit, slow, work);
    // The task is detached: the channel returns the start of the answer.
    drop(actix_web::rt::task::spawn_blocking(writing));
    match start.await.map(streamed::response) {
        Ok(Ok(response)) => response,
        Ok(Err(cause)) => refused(outcome(&cause), answer::query_error(&cause)),
        Err(_) => {
            let message = "the query ended without an answer; see the log";
            let response = answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", message);
            refused(QueryOutcome::Failed, response)
        }
    }
}

pub(in crate::api) fn outcome(cause: &QueryError) -> QueryOutcome {
    match cause {
        QueryError::Invalid(_) | QueryError::Execution(_) => QueryOutcome::Invalid,
        QueryError::TooMuch(_) => QueryOutcome::TooMuch,
        QueryError::Busy(_) => QueryOutcome::Busy,
        QueryError::Timeout(_) => QueryOutcome::Timeout,
        QueryError::Store(_) => QueryOutcome::Failed,
    }
}
