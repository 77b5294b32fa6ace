//! `GET /api/v1/tail`: changes of series as server-sent events.
//!
//! Changes are read when the connection can send more, at most once a second. A slow subscriber
//! therefore skips changes, without using memory for them, and its next event reports the skipped
//! seconds. A subscriber that reads nothing is disconnected like any slow reader; see `connection`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, Bytes, Query},
};
use futures_util::stream;
use serde::Deserialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::sleep,
};

use super::{endpoints, params};
use crate::{
    access::Caller,
    api::{QueryParts, answer, caller::caller},
    clock::Stopwatch,
    query::{self, QueryError, QueryLimits, Resolution, Tail, TailEvent, TailRequest},
    telemetry::QueryOutcome,
};

/// The minimum time between two reads of changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The time without an event after which a comment is sent, so that proxies keep the connection.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
const HEARTBEAT: &str = ": nothing new\n\n";

/// The permits of tails, and the signal that ends all tails. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Tails {
    permits: Arc<Semaphore>,
    stopping: Arc<watch::Sender<bool>>,
}

impl Tails {
    /// Creates the permits for at most `tails_max` tails.
    pub fn new(tails_max: usize) -> Self {
        let permits = Semaphore::new(tails_max.min(Semaphore::MAX_PERMITS));
        Self { permits: Arc::new(permits), stopping: Arc::new(watch::Sender::new(false)) }
    }

    /// Returns the number of open tails.
    pub(in crate::api) fn count(&self, tails_max: usize) -> usize {
        tails_max.saturating_sub(self.permits.available_permits())
    }

    /// Ends all tails, and all tails that are opened later.
    pub fn end(&self) {
        self.stopping.send_replace(true);
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TailParams {
    metric: Option<String>,
    tags: Option<String>,
    resolution: Option<String>,
    /// True when the first event contains the current cells.
    #[serde(default = "default_true")]
    state: bool,
}

fn default_true() -> bool {
    true
}

pub(super) async fn tail(
    request: HttpRequest,
    params: Result<Query<TailParams>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let metrics = &parts.metrics;
    let refused = |outcome, response| answer::count_refusal(metrics, outcome, response);
    let Ok(permit) = parts.tails.permits.clone().try_acquire_owned() else {
        let message = "too many tails: close one and retry";
        let response = answer::error(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        return refused(QueryOutcome::Busy, response);
    };
    metrics.queries.with_label_values(&["tail"]).inc();
    let subscription = match params {
        Ok(params) => Subscription::start(&params, &parts, caller(&request), permit).await,
        Err(cause) => Err(QueryError::Invalid(cause.to_string())),
    };
    match subscription {
        Ok(subscription) => HttpResponse::Ok()
            .content_type("text/event-stream")
            .insert_header((header::CACHE_CONTROL, "no-store"))
            // nginx would buffer events.
            .insert_header(("X-Accel-Buffering", "no"))
            .force_close()
            .streaming(stream::unfold(subscription, Subscription::next)),
        Err(cause) => refused(endpoints::outcome(&cause), answer::query_error(&cause)),
    }
}

struct Subscription {
    tail: Option<Tail>,
    parts: web::Data<QueryParts>,
    stopping: watch::Receiver<bool>,
    caller: Option<Caller>,
    shows_state: bool,
    /// The time since the last read; `None` before the first read.
    polled: Option<Stopwatch>,
    /// The time since the last event or comment.
    sent: Stopwatch,
    _permit: OwnedSemaphorePermit,
}

impl Subscription {
    async fn start(
        params: &TailParams,
        parts: &web::Data<QueryParts>,
        caller: Option<Caller>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, QueryError> {
        let selector = params::selector(params.metric.as_deref(), params.tags.as_deref())?;
        if selector.matchers().is_empty() {
            let message = "metric or tags are missing; add metric=NAME or tags=NAME=VALUE";
            return Err(QueryError::Invalid(message.to_owned()));
        }
        let resolution = params.resolution.as_deref().unwrap_or("auto");
        let Ok(resolution) = resolution.parse::<Resolution>();
        let ahead_ms = parts.future_skew.as_millis() as i64;
        let request = TailRequest { selector, resolution, ahead_ms };
        let limits: QueryLimits = *parts.limits.get();
        let (store, now) = (parts.store.clone(), parts.clock.now());
        let budget = parts.resources.budget(*parts.timeout.get());
        let _waiter = budget.waiter();
        let found = web::block(move || {
            budget.check()?;
            Tail::new(&store, &budget, request, limits, now)
        });
        let found = found.await;
        let tail = found.map_err(|cause| QueryError::Invalid(cause.to_string()))??;
        Ok(Self {
            tail: Some(tail),
            parts: parts.clone(),
            stopping: parts.tails.stopping.subscribe(),
            caller,
            shows_state: params.state,
            polled: None,
            sent: Stopwatch::start(),
            _permit: permit,
        })
    }

    /// Waits until there is something to send; `None` ends the stream.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            let since = self.polled.map(|polled| polled.elapsed());
            let wait = since.map_or(Duration::ZERO, |since| POLL_INTERVAL.saturating_sub(since));
            tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                () = sleep(wait) => {}
            }
            if !self.parts.access.still_admits(self.caller.as_ref()) {
                return None;
            }
            let since = self.polled.replace(Stopwatch::start()).map(|polled| polled.elapsed());
            let mut tail = self.tail.take()?;
            let clock = self.parts.clock.clone();
            let budget = self.parts.resources.budget(*self.parts.timeout.get());
            let _waiter = budget.waiter();
            let polled = web::block(move || {
                let poll = || tail.poll(&budget, clock.now());
                let outcome = query::run_with_retries(&budget, poll, QueryError::is_transient);
                (tail, outcome)
            });
            let (tail, outcome) = polled.await.ok()?;
            let text = match outcome {
                // The tail is dropped, so this is the last event.
                Err(cause) => error_event(&cause),
                Ok(mut event) => {
                    self.tail = Some(tail);
                    event.skipped = since.map_or(0, |since| since.as_secs().saturating_sub(1));
                    match since {
                        None if self.shows_state && !event.cells.is_empty() => data_event(&event),
                        None => HEARTBEAT.to_owned(),
                        Some(_) if !event.cells.is_empty() => data_event(&event),
                        Some(_) if self.sent.elapsed() >= HEARTBEAT_INTERVAL => {
                            HEARTBEAT.to_owned()
                        }
                        Some(_) => continue,
                    }
                }
            };
            self.sent = Stopwatch::start();
            return Some((Ok(text.into()), self));
        }
    }
}

fn data_event(event: &TailEvent) -> String {
    // JSON has no line breaks, which would end the field.
    let json = serde_json::to_string(event).unwrap_or_default();
    format!("event: cells\ndata: {json}\n\n")
}

fn error_event(cause: &QueryError) -> String {
    let json = serde_json::json!({ "message": cause.to_string() });
    format!("event: error\ndata: {json}\n\n")
}
