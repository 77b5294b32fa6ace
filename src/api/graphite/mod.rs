//! Graphite's HTTP API (graphite.readthedocs.io, "The Render URL API", "The Metrics API" and
//! "Graphite Tag Support"), at the root and below `/graphite`.
//!
//! Errors of queries are plain text, as in Graphite; a request whose body is refused gets a JSON
//! error, as from the other routes. Must never know: how targets are evaluated.

mod forms;
mod image;
mod names;
mod render;
mod tags;

use std::sync::Arc;

use actix_web::{HttpResponse, http::Method, web::Bytes};
use serde::Serialize;

use super::{
    QueryParts,
    answer::{
        self,
        pulled::PulledBody,
        slow::{CHUNK_BYTES, SlowReaders},
    },
    body::{Body, FORM_BYTES_MAX},
    prometheus::{Fault, Params, Received, fault, run_in_turn},
    scope::Scope,
};
use crate::{
    model::graphite::Template,
    query::{self, Budget, ExpressionLimits, GraphiteStore, QueryError},
    telemetry::QueryOutcome,
};

/// Registers the routes.
pub(super) fn routes(mut scope: Scope<'_, QueryParts>) {
    for prefix in ["", "/graphite"] {
        for method in [Method::GET, Method::POST] {
            let at = |path: &str| format!("{prefix}{path}");
            scope.compressed(method.clone(), &at("/render"), render::render);
            scope.compressed(method.clone(), &at("/metrics/find"), names::find);
            scope.compressed(method.clone(), &at("/metrics/expand"), names::expand);
            scope.compressed(method, &at("/tags/findSeries"), tags::find_series);
        }
        let at = |path: &str| format!("{prefix}{path}");
        scope.compressed(Method::GET, &at("/tags"), tags::tags);
        scope.compressed(Method::GET, &at("/tags/autoComplete/tags"), tags::complete_tags);
        scope.compressed(Method::GET, &at("/tags/autoComplete/values"), tags::complete_values);
        scope.compressed(Method::GET, &at("/tags/{tag}"), tags::values);
    }
}

/// A running query.
struct Call<'a> {
    params: &'a Params,
    parts: &'a QueryParts,
    templates: Arc<Vec<Template>>,
    budget: &'a Budget,
}

impl Call<'_> {
    fn limits(&self) -> ExpressionLimits<'_> {
        self.parts.promql.get().limits(self.budget)
    }

    fn store(&self) -> GraphiteStore<'_> {
        GraphiteStore { store: &self.parts.store, templates: &self.templates }
    }

    /// Returns a text parameter.
    fn required_param(&self, name: &str) -> Result<&str, QueryError> {
        self.params.get(name).ok_or_else(|| {
            QueryError::Invalid(format!("the parameter {name} is missing: add {name}=..."))
        })
    }

    /// Returns a value as JSON, and reserves its memory.
    fn json(&self, value: &impl Serialize) -> Result<AnswerBody, QueryError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|cause| QueryError::Execution(format!("write JSON: {cause}")))?;
        self.limits().reserve(bytes.capacity())?;
        Ok(AnswerBody { media_type: "application/json", bytes })
    }
}

/// The body of an answer.
struct AnswerBody {
    media_type: &'static str,
    bytes: Vec<u8>,
}

/// Answers a request.
async fn respond(
    endpoint: &'static str,
    (request, payload, parts): Received,
    run: impl Fn(&Call<'_>) -> Result<AnswerBody, QueryError> + Send + 'static,
) -> HttpResponse {
    let metrics = parts.metrics.clone();
    let refused = |outcome, response| answer::count_refusal(&metrics, outcome, response);
    let received = parts.bodies.receive_query(&request, payload, FORM_BYTES_MAX).await;
    let received = received.and_then(|Body { bytes, mut memory }| {
        memory.grow(Params::memory(request.query_string(), &bytes))?;
        Ok((bytes, memory))
    });
    let (form, _memory) = match received {
        Ok(received) => received,
        Err(refusal) => return refused(QueryOutcome::Invalid, refusal.response()),
    };
    metrics.queries.with_label_values(&[endpoint]).inc();
    let slow = SlowReaders::new(&parts.metrics, parts.client_timeout);
    let limit = *parts.timeout.get();
    let found = match Params::read(request.query_string(), &form) {
        Ok(params) => {
            run_in_turn(parts, limit, move |parts, budget| {
                let templates = parts.graphite_templates.get();
                let call = Call { params: &params, parts, templates, budget };
                let run = || run(&call);
                query::run_with_retries(budget, run, QueryError::is_transient).map_err(fault)
            })
            .await
        }
        Err(fault) => Err(fault),
    };
    let (text, memory): (AnswerBody, _) = match found {
        Ok(found) => found,
        Err(fault) => return refused(fault.outcome(), Fault::text_response(&fault)),
    };
    let mut response = HttpResponse::Ok();
    response.content_type(text.media_type);
    let mut rest = Bytes::from(text.bytes);
    let next = move || {
        let next = rest.split_to(rest.len().min(CHUNK_BYTES));
        (!next.is_empty()).then_some(next)
    };
    let body = PulledBody::new(next, memory, slow);
    response
        .message_body(actix_web::body::BoxBody::new(body))
        .unwrap_or_else(HttpResponse::from_error)
}
