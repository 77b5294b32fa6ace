//! `GET /federate`: the newest sample of each matching series, as text or as messages of Protocol
//! Buffers, for Prometheus servers that scrape it
//! (prometheus.io/docs/prometheus/latest/federation).
//!
//! Must never know: how samples are read.

mod form;
mod messages;
mod text;

use std::collections::BTreeSet;

use actix_web::{
    HttpRequest, HttpResponse,
    body::BoxBody,
    http::header,
    web::{self, Bytes},
};

use self::{form::Form, messages::Messages, text::Exposition};
use super::{
    fault::Fault,
    params::Params,
    query::fault,
    receive::{Received, run_in_turn},
    series::SELECTORS_MAX,
};
use crate::{
    api::{
        QueryParts,
        answer::{self, pulled::PulledBody, slow::SlowReaders},
    },
    model::METRIC_TAG,
    query::{self, Budget, SeriesReadings, newest_readings, series_matchers},
};

/// Scrapers attach their own `instance` to series without this label, unless the label is present
/// and empty.
const INSTANCE: &str = "instance";

pub(super) async fn federate((request, _, parts): Received) -> HttpResponse {
    let metrics = parts.metrics.clone();
    metrics.queries.with_label_values(&["federate"]).inc();
    let slow = SlowReaders::new(&metrics, parts.client_timeout);
    let form = form(&request);
    let found = match Params::read(request.query_string(), b"") {
        Ok(params) => exposition(params, form, parts).await,
        Err(fault) => Err(fault),
    };
    match found {
        Ok((body, memory)) => {
            let mut response = HttpResponse::Ok();
            response.content_type(form.content_type());
            let mut bytes = Some(Bytes::from(body));
            let body = PulledBody::new(
                move || {
                    let rest = bytes.as_mut()?;
                    let next = rest.split_to(rest.len().min(answer::slow::CHUNK_BYTES));
                    (!next.is_empty()).then_some(next)
                },
                memory,
                slow,
            );
            response.message_body(BoxBody::new(body)).unwrap_or_else(HttpResponse::from_error)
        }
        Err(fault) => answer::count_refusal(&metrics, fault.outcome(), fault.text_response()),
    }
}

/// Returns the form that the scraper reads.
fn form(request: &HttpRequest) -> Form {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    Form::from_accept(accept.unwrap_or_default())
}

async fn exposition(
    params: Params,
    form: Form,
    parts: web::Data<QueryParts>,
) -> Result<(Vec<u8>, Option<query::Reservation>), Fault> {
    let limit = params.timeout(parts.promql.get().timeout)?;
    run_in_turn(parts, limit, move |parts, budget| {
        query::run_with_retries(budget, || write(&params, form, parts, budget), Fault::is_transient)
    })
    .await
}

fn write(
    params: &Params,
    form: Form,
    parts: &QueryParts,
    budget: &Budget,
) -> Result<Vec<u8>, Fault> {
    let limits = parts.promql.get().limits(budget);
    let selectors: BTreeSet<_> = params.all("match[]").collect();
    if selectors.is_empty() {
        return Err(Fault::bad_data(
            "no match[] parameter provided: add match[]=SELECTOR, such as match[]=up",
        ));
    }
    if selectors.len() > SELECTORS_MAX {
        return Err(Fault::bad_data(format!(
            "{} different match[] exceed the limit of {SELECTORS_MAX}: combine them",
            selectors.len()
        )));
    }
    let mut sets = Vec::new();
    for selector in selectors {
        let alternatives = series_matchers(selector, &limits)
            .map_err(|cause| Fault::parameter("match[]", fault(cause)))?;
        sets.extend(alternatives);
    }
    let lookback_ms = parts.promql.get().lookback.as_millis() as i64;
    let now = parts.clock.moment();
    let mut answer = Answer::new(form);
    let mut reserved = 0;
    let mut visit = |series: SeriesReadings| {
        answer.push(&series);
        let growth = answer.capacity().saturating_sub(reserved);
        reserved += growth;
        limits.reserve(growth)
    };
    let store = &parts.store;
    newest_readings(store, &sets, lookback_ms, &limits, now.clock, &mut visit).map_err(fault)?;
    Ok(answer.finish())
}

/// The labels of a series, with the empty label that keeps a scraper from adding its own.
fn labels_of(series: &SeriesReadings) -> impl Iterator<Item = (&str, &str)> {
    let tags = series.labels.iter().filter(|(name, _)| *name != METRIC_TAG);
    tags.chain(series.labels.get(INSTANCE).is_empty().then_some((INSTANCE, "")))
}

/// The answer in one of the forms.
#[derive(Debug)]
enum Answer {
    Text(Exposition),
    Messages(Messages),
}

impl Answer {
    fn new(form: Form) -> Self {
        match form {
            Form::Text(names) => Self::Text(Exposition::new(names)),
            Form::Messages(names) => Self::Messages(Messages::new(names)),
        }
    }

    fn push(&mut self, series: &SeriesReadings) {
        match self {
            Self::Text(text) => text.push(series, labels_of(series)),
            Self::Messages(messages) => messages.push(series, labels_of(series)),
        }
    }

    /// Returns the allocated bytes.
    fn capacity(&self) -> usize {
        match self {
            Self::Text(text) => text.capacity(),
            Self::Messages(messages) => messages.capacity(),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.finish().into_bytes(),
            Self::Messages(messages) => messages.finish(),
        }
    }
}
