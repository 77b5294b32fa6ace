//! From a request to its answer: parameters read, a place among the queries taken, the work done
//! away from the HTTP worker and within its time, the answer written.
//!
//! Must never know: what is asked.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use tokio::time::timeout;

use super::{
    answer::Answer,
    fault::{Fault, FaultKind},
    params::Params,
    writing::Writing,
};
use crate::{
    api::{
        QueryParts,
        answer::{self, slow::Slow},
        body,
        refusal::Refusal,
    },
    ingest::memory::HeldMemory,
    model::Moment,
    query::{self, Budget, PromqlLimits, Reservation},
    telemetry::QueryOutcome,
};

/// A request and its body, with what it is answered by.
pub(super) type Received = (HttpRequest, web::Payload, web::Data<QueryParts>);

/// One query under way.
pub(super) struct Asked<'a> {
    pub(super) params: &'a Params,
    pub(super) parts: &'a QueryParts,
    pub(super) now: Moment,
    budget: &'a Budget,
}

impl Asked<'_> {
    pub(super) fn limits(&self) -> PromqlLimits<'_> {
        self.parts.promql.limits(self.budget)
    }
}

/// Answers a request.
pub(super) async fn respond(
    endpoint: &'static str,
    (request, payload, parts): Received,
    run: impl Fn(&Asked<'_>) -> Result<Answer, Fault> + Send + 'static,
) -> HttpResponse {
    let metrics = parts.metrics.clone();
    let refused = |outcome, response| answer::refused(&metrics, outcome, response);
    // Its memory is held until the query has its answer: what waits for a turn takes it, too.
    let (read, _memory) = match params(&request, payload, &parts).await {
        Ok(read) => read,
        Err(refusal) => return refused(QueryOutcome::Invalid, refusal.response()),
    };
    metrics.queries.with_label_values(&[endpoint]).inc();
    let slow = Slow::of(&parts.metrics, parts.client_timeout);
    let answered = match read {
        Ok(params) => answer(params, parts, run).await,
        Err(fault) => Err(fault),
    };
    match answered {
        Ok((writing, memory)) => writing.response(memory, slow),
        Err(fault) => refused(fault.outcome(), fault.response()),
    }
}

/// Receives the parameters, with the memory that they take.
async fn params(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &QueryParts,
) -> Result<(Result<Params, Fault>, HeldMemory), Refusal> {
    let form = parts.bodies.receive_asked(request, payload, body::FORM_BYTES_MAX).await?;
    let body::Body { bytes, mut memory } = form;
    memory.grow(Params::memory(request.query_string(), &bytes))?;
    Ok((Params::read(request.query_string(), &bytes), memory))
}

async fn answer(
    params: Params,
    parts: web::Data<QueryParts>,
    run: impl Fn(&Asked<'_>) -> Result<Answer, Fault> + Send + 'static,
) -> Result<(Writing, Option<Reservation>), Fault> {
    let limit = params.timeout(parts.promql.timeout)?;
    let budget = parts.resources.budget(limit);
    // Prometheus lets queries wait for their turn, and dashboards rely on it.
    let permit = timeout(limit, parts.places.clone().acquire_owned()).await;
    let permit = permit
        .map_err(|_| late("in the queue", limit))?
        .map_err(|_| Fault::new(FaultKind::Internal, "the daemon is stopping"))?;
    let _waiter = budget.waiter();
    let worked = web::block(move || {
        // The place is given back when the answer is found; its memory when it is read.
        let _permit = permit;
        budget.check().map_err(|_| late("in the queue", limit))?;
        let now = parts.clock.moment();
        let asked = Asked { params: &params, parts: &parts, now, budget: &budget };
        let answer = query::run_until_settled(&budget, || run(&asked), Fault::is_settled)?;
        budget.keep(answer.bytes());
        Ok((Writing::begin(answer), budget.into_reservation()))
    })
    .await;
    worked.map_err(|cause| Fault::new(FaultKind::Internal, cause))?
}

fn late(place: &str, limit: Duration) -> Fault {
    let message = format!(
        "query timed out {place} after {limit:?}: ask for less, or raise limits.query_timeout or \
         limits.queries_max"
    );
    Fault::new(FaultKind::Timeout, message)
}
