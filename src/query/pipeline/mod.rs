//! A pipeline in the manner of MongoDB's over the documents of the store.
//!
//! Must never know: HTTP. `collections` alone knows the store; the rest is pure.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a place that takes one kind of value refuses all others alike"
)]

mod accumulator;
mod collections;
mod document;
mod execution;
mod expression;
mod notation;
mod path;
mod predicate;
mod projection;
mod pushdown;
mod quota;
mod stage;
mod value;

use std::ops::Range;

use serde::Serialize;

use super::{Budget, QueryError, QueryLimits, Selector, missing};
use crate::{
    model::{Span, UnixMillis},
    store::Store,
};
use collections::{Collection, CollectionRequest};
use pushdown::{Wanted, Words};
use quota::Quota;
use stage::Stage;
use value::{Fields, Value};

/// What is asked.
#[derive(Debug, Clone)]
pub struct AggregateRequest {
    /// A granularity's name: its slots; any other or none: months with their levels.
    collection: Option<String>,
    selector: Selector,
    range: Option<Range<UnixMillis>>,
    stages: Vec<Stage>,
    words: Words,
    wanted: Wanted,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AggregateAnswer {
    /// What came out of the last stage.
    documents: Vec<Fields>,
    /// Why there was nothing to begin with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

const KNOWN: [&str; 7] = ["collection", "pipeline", "metric", "tags", "start", "end", "range"];

impl AggregateRequest {
    /// Reads `{"collection": "1h", "pipeline": [...]}`, the pipeline alone, or the shell's
    /// `db.NAME.aggregate([...])`.
    ///
    /// # Errors
    /// With the place and what to write instead.
    pub fn read(text: &str, now: UnixMillis) -> Result<Self, QueryError> {
        let read = notation::read(text).map_err(QueryError::Invalid)?;
        let none = Fields::default();
        let (fields, pipeline) = match &read.value {
            Value::Fields(fields) if read.collection.is_none() => {
                (fields, fields.get("pipeline").cloned().unwrap_or(Value::Null))
            }
            other => (&none, other.clone()),
        };
        if let Some((other, _)) = fields.iter().find(|(name, _)| !KNOWN.contains(&&***name)) {
            let known = KNOWN.join(", ");
            return Err(QueryError::Invalid(format!("{other} is not known; use {known}")));
        }
        let stages = stage::parse(&pipeline)?;
        Ok(Self {
            collection: match read.collection {
                None => text_of(fields, "collection")?.map(str::to_owned),
                named => named,
            },
            selector: selector(fields)?,
            range: range(fields, now)?,
            words: Words::of(&pipeline, &stages),
            wanted: Wanted::of(&pipeline, &stages),
            stages,
        })
    }
}

fn text_of<'f>(fields: &'f Fields, name: &str) -> Result<Option<&'f str>, QueryError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(QueryError::Invalid(format!("{name} is a text"))),
    }
}

fn selector(fields: &Fields) -> Result<Selector, QueryError> {
    let metric = text_of(fields, "metric")?.map(str::to_owned);
    let message = "tags is a document of texts, such as {\"host\": \"web1\"}";
    let tags = match fields.get("tags") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Fields(tags)) => {
            let tag = |(name, value): (&std::sync::Arc<str>, &Value)| {
                Some((name.to_string(), value.as_text()?.to_string()))
            };
            let tags: Option<Vec<_>> = tags.iter().map(tag).collect();
            tags.ok_or_else(|| QueryError::Invalid(message.to_owned()))?
        }
        Some(_) => return Err(QueryError::Invalid(message.to_owned())),
    };
    Ok(Selector { metric, tags })
}

fn range(fields: &Fields, now: UnixMillis) -> Result<Option<Range<UnixMillis>>, QueryError> {
    let time = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let at =
                value.as_date().or_else(|| value.as_text().and_then(|own| notation::date(own)));
            at.map(Some).ok_or_else(|| {
                QueryError::Invalid(format!("{name} is no time; use \"2026-11-21T08:00:00Z\""))
            })
        }
    };
    let (start, end) = (time("start")?, time("end")?.unwrap_or(now));
    let start = match (start, text_of(fields, "range")?) {
        (Some(_), Some(_)) => {
            let message = "give start and end, or range, not both";
            return Err(QueryError::Invalid(message.to_owned()));
        }
        (Some(start), None) => start,
        (None, Some(span)) => {
            let span: Span =
                span.parse().map_err(|cause| QueryError::Invalid(format!("range: {cause}")))?;
            span.before(end)
        }
        (None, None) if fields.get("end").is_none() => return Ok(None),
        (None, None) => UnixMillis::MIN,
    };
    if start >= end {
        return Err(QueryError::Invalid(format!("start {start} is not before end {end}")));
    }
    Ok(Some(start..end))
}

/// Runs a pipeline.
///
/// # Errors
/// When it would read or hold too much, the budget is used up, or the store cannot be read.
pub fn aggregate(
    store: &Store,
    budget: &Budget,
    request: &AggregateRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<AggregateAnswer, QueryError> {
    let asked = CollectionRequest {
        collection: request.collection.as_deref(),
        selector: &request.selector,
        range: request.range.as_ref(),
        words: &request.words,
        wanted: &request.wanted,
    };
    let collection = Collection::open(store, budget, &asked, limits, now)?;
    let quota = Quota::new(limits.points_max, budget);
    let documents = execution::run(&request.stages, collection.documents(&quota), &quota)?;
    let why = documents.is_empty().then(|| missing::note(store, &request.selector)).flatten();
    Ok(AggregateAnswer { documents, notes: why.into_iter().collect() })
}

/// For fuzzing: reads a request and runs it over a document of its own making.
pub(crate) fn fuzz(text: &str, now: UnixMillis) {
    let Ok(request) = AggregateRequest::read(text, now) else { return };
    let part = |at: i64| {
        let own = [("date".into(), Value::Date(now.plus(at))), ("views".into(), Value::Int(at))];
        Value::Fields(own.into_iter().collect())
    };
    let document = [
        ("host".into(), Value::text("web1")),
        ("date".into(), Value::Date(now)),
        ("days".into(), Value::List((0..3).map(part).collect())),
    ];
    let document: Fields = document.into_iter().collect();
    let quota = Quota::new(1000, &Budget::UNLIMITED);
    let own = |fields| Ok(document::Document { fields, taken: quota.begin(0) });
    let source = Box::new(std::iter::repeat_n(document, 3).map(own));
    if let Ok(documents) = execution::run(&request.stages, source, &quota) {
        assert!(documents.len() <= 1000);
        assert!(serde_json::to_vec(&documents).is_ok());
    }
}

#[cfg(test)]
mod tests;
