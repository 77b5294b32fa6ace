//! The steps from a request to its response: reading parameters, waiting for a permit of a
//! concurrent query, running the query outside of the HTTP worker within its timeout, and
//! responding.
//!
//! Must never know: what is queried.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use tokio::time::timeout;

use super::{
    answer::Answer,
    answer_writer::AnswerWriter,
    fault::{Fault, FaultKind},
    params::Params,
};
use crate::{
    api::{
        QueryParts,
        answer::{self, slow::SlowReaders},
        body,
        refusal::Refusal,
    },
    ingest::memory::ReservedMemory,
    model::Moment,
    query::{self, Budget, ExpressionLimits, Reservation},
    telemetry::QueryOutcome,
};

/// A request with its body and the parts that answer it.
pub(in crate::api) type Received = (HttpRequest, web::Payload, web::Data<QueryParts>);

/// A running query.
pub(super) struct Call<'a> {
    pub(super) params: &'a Params,
    pub(super) parts: &'a QueryParts,
    pub(super) now: Moment,
    budget: &'a Budget,
}

impl Call<'_> {
    pub(super) fn limits(&self) -> ExpressionLimits<'_> {
        self.parts.promql.get().limits(self.budget)
    }
}

/// Answers a request.
pub(super) async fn respond(
    endpoint: &'static str,
    (request, payload, parts): Received,
    run: impl Fn(&Call<'_>) -> Result<Answer, Fault> + Send + 'static,
) -> HttpResponse {
    let metrics = parts.metrics.clone();
    let refused = |outcome, response| answer::count_refusal(&metrics, outcome, response);
    // The parameters' memory is reserved until the query ends, because queued queries also hold it.
    let (read, _memory) = match params(&request, payload, &parts).await {
        Ok(read) => read,
        Err(refusal) => return refused(QueryOutcome::Invalid, refusal.response()),
    };
    metrics.queries.with_label_values(&[endpoint]).inc();
    let slow = SlowReaders::new(&parts.metrics, parts.client_timeout);
    let answered = match read {
        Ok(params) => answer(params, parts, run).await,
        Err(fault) => Err(fault),
    };
    match answered {
        Ok((writer, memory)) => writer.response(memory, slow),
        Err(fault) => refused(fault.outcome(), fault.response()),
    }
}

/// Receives the parameters and the memory reserved for them.
async fn params(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &QueryParts,
) -> Result<(Result<Params, Fault>, ReservedMemory), Refusal> {
    let form = parts.bodies.receive_query(request, payload, body::FORM_BYTES_MAX).await?;
    let body::Body { bytes, mut memory } = form;
    memory.grow(Params::memory(request.query_string(), &bytes))?;
    Ok((Params::read(request.query_string(), &bytes), memory))
}

async fn answer(
    params: Params,
    parts: web::Data<QueryParts>,
    run: impl Fn(&Call<'_>) -> Result<Answer, Fault> + Send + 'static,
) -> Result<(AnswerWriter, Option<Reservation>), Fault> {
    let limit = params.timeout(parts.promql.get().timeout)?;
    run_in_turn(parts, limit, move |parts, budget| {
        let now = parts.clock.moment();
        let call = Call { params: &params, parts, now, budget };
        let answer = query::run_with_retries(budget, || run(&call), Fault::is_transient)?;
        budget.shrink_to(answer.bytes());
        Ok(AnswerWriter::start(answer))
    })
    .await
}

/// Waits for the permit of a concurrent query, and runs a query outside of the HTTP worker. Returns
/// its result with the memory that the result holds.
pub(in crate::api) async fn run_in_turn<T: Send + 'static>(
    parts: web::Data<QueryParts>,
    limit: Duration,
    run: impl FnOnce(&QueryParts, &Budget) -> Result<T, Fault> + Send + 'static,
) -> Result<(T, Option<Reservation>), Fault> {
    let budget = parts.resources.budget(limit);
    // Queries wait for their turn, as in Prometheus, because dashboards rely on it.
    let permit = timeout(limit, parts.permits.get().acquire_owned()).await;
    let permit = permit
        .map_err(|_| timeout_fault("in the queue", limit))?
        .map_err(|_| Fault::new(FaultKind::Internal, "the daemon is stopping"))?;
    let _waiter = budget.waiter();
    let worked = web::block(move || {
        // The permit is released when the answer is complete; the memory of the answer is released
        // when the client has read it.
        let _permit = permit;
        budget.check().map_err(|_| timeout_fault("in the queue", limit))?;
        let result = run(&parts, &budget)?;
        Ok((result, budget.into_reservation()))
    })
    .await;
    worked.map_err(|cause| Fault::new(FaultKind::Internal, cause))?
}

fn timeout_fault(phase: &str, limit: Duration) -> Fault {
    let message = format!(
        "query timed out {phase} after {limit:?}: narrow the query, or raise limits.query_timeout \
         or limits.query_memory_max"
    );
    Fault::new(FaultKind::Timeout, message)
}
