//! From a request to its answer: parameters read, a place among the queries taken, the work done
//! away from the HTTP worker and within its time, the answer written.
//!
//! Must never know: what is asked.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{HttpRequest, HttpResponse, web};
use tokio::time::timeout;

use super::{
    answer::Answer,
    fault::{Fault, FaultKind},
    params::Params,
    writing::Writing,
};
use crate::{
    api::{ApiParts, body, query_memory::Share, refusal::Refusal, streamed::Slow},
    clock::Stopwatch,
    ingest::memory::HeldMemory,
    model::Moment,
    query::{self, PromqlLimits},
    telemetry::QueryOutcome,
};

/// A request and its body, with what it is answered by.
pub(super) type Received = (HttpRequest, web::Payload, web::Data<ApiParts>);

/// One query under way.
pub(super) struct Asked<'a> {
    pub(super) params: &'a Params,
    pub(super) parts: &'a ApiParts,
    pub(super) now: Moment,
    /// Whether its time is over, or nobody waits for it.
    pub(super) expired: &'a dyn Fn() -> bool,
    take_memory: &'a dyn Fn(usize) -> bool,
}

impl Asked<'_> {
    pub(super) fn limits(&self) -> PromqlLimits<'_> {
        let bounds = &self.parts.promql;
        PromqlLimits {
            series_max: bounds.series_max,
            points_max: bounds.points_max,
            steps_max: super::params::STEPS_MAX as usize + 1,
            query_bytes_max: bounds.query_bytes_max,
            regex_bytes_max: bounds.regex_bytes_max,
            expired: self.expired,
            take_memory: self.take_memory,
        }
    }
}

/// Set when the request is dropped: the client went away, or has its answer.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers a request.
pub(super) async fn respond(
    endpoint: &'static str,
    (request, payload, parts): Received,
    run: impl Fn(&Asked<'_>) -> Result<Answer, Fault> + Send + 'static,
) -> HttpResponse {
    let metrics = parts.metrics.clone();
    let refused = |outcome: QueryOutcome, response: HttpResponse| {
        metrics.queries_refused.with_label_values(&[outcome.as_str()]).inc();
        response
    };
    // Its memory is held until the query has its answer: what waits for a turn takes it, too.
    let (read, _memory) = match params(&request, payload, &parts).await {
        Ok(read) => read,
        Err(refusal) => return refused(QueryOutcome::Invalid, refusal.response()),
    };
    metrics.queries.with_label_values(&[endpoint]).inc();
    let slow = Slow::of(&parts);
    let answered = match read {
        Ok(params) => answer(params, parts, run).await,
        Err(fault) => Err(fault),
    };
    match answered {
        Ok((writing, share)) => writing.response(share, slow),
        Err(fault) => refused(fault.outcome(), fault.response()),
    }
}

/// Receives the parameters, with the memory that they take.
async fn params(
    request: &HttpRequest,
    payload: web::Payload,
    parts: &ApiParts,
) -> Result<(Result<Params, Fault>, HeldMemory), Refusal> {
    let form = body::receive_asked(request, payload, parts, body::FORM_BYTES_MAX).await?;
    let body::Body { bytes, mut memory } = form;
    memory.grow(Params::memory(request.query_string(), &bytes))?;
    Ok((Params::read(request.query_string(), &bytes), memory))
}

async fn answer(
    params: Params,
    parts: web::Data<ApiParts>,
    run: impl Fn(&Asked<'_>) -> Result<Answer, Fault> + Send + 'static,
) -> Result<(Writing, Share), Fault> {
    let watch = Stopwatch::start();
    let limit = params.timeout(parts.promql.timeout)?;
    // Prometheus lets queries wait for their turn, and dashboards rely on it.
    let permit = timeout(limit, parts.queries.clone().acquire_owned()).await;
    let permit = permit
        .map_err(|_| late("in the queue", limit))?
        .map_err(|_| Fault::new(FaultKind::Internal, "the daemon is stopping"))?;
    let gone = Arc::new(AtomicBool::new(false));
    let _gone = Gone(gone.clone());
    let worked = web::block(move || {
        // The place is given back when the answer is found; its memory when it is read.
        let _permit = permit;
        let give_up = || watch.elapsed() >= limit || gone.load(Ordering::Relaxed);
        let turn = parts.turns.take(&give_up).ok_or_else(|| late("in the queue", limit))?;
        let expired = || !turn.pass(&give_up) || give_up();
        let share = parts.query_memory.share();
        let take_memory = |bytes| share.take(bytes);
        let now = parts.clock.moment();
        let (expired, take_memory) = (&expired, &take_memory);
        let asked = Asked { params: &params, parts: &parts, now, expired, take_memory };
        let anew = || {
            share.keep(0);
            run(&asked)
        };
        let answer = query::run_until_settled(anew, Fault::is_settled)?;
        share.keep(answer.bytes());
        Ok((Writing::begin(answer), share))
    })
    .await;
    worked.map_err(|cause| Fault::new(FaultKind::Internal, cause))?
}

fn late(place: &str, limit: Duration) -> Fault {
    let message = format!(
        "query timed out {place} after {limit:?}: ask for less, or raise promql.timeout or \
         limits.queries_max"
    );
    Fault::new(FaultKind::Timeout, message)
}
