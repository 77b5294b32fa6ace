//! MongoDB queries over the documents of the store: pipelines, and `find`, `count` and `distinct`
//! as pipelines.
//!
//! Must never know: HTTP. Only `collections` reads the store; the rest is pure.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "code for one kind of value refuses all other kinds"
)]

mod accumulator;
mod arithmetic;
mod collections;
mod distribution;
mod document;
mod execution;
mod expression;
mod holding;
mod operator;
mod order;
mod path;
mod pattern;
mod percentiles;
mod predicate;
mod projection;
mod pushdown;
mod quota;
mod request;
mod stage;

use serde::Serialize;

use crate::{
    model::UnixMillis,
    query::{Budget, QueryError, QueryLimits, series::suggestion},
    shell::{notation, value},
    store::Store,
};
use collections::{Collection, CollectionRequest, note_of_text_values};
use quota::Quota;
pub use request::AggregateRequest;
use request::AnswerShape;
use value::{Fields, Value};

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AggregateAnswer {
    #[serde(flatten)]
    result: StageResult,
    /// The reason why no document was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// The result of the last stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum StageResult {
    Documents { documents: Vec<Fields> },
    One { document: Option<Fields> },
    Count { n: i64 },
    Values { values: Vec<Value> },
}

impl StageResult {
    fn new(shape: AnswerShape, mut documents: Vec<Fields>) -> Self {
        match shape {
            AnswerShape::Documents => Self::Documents { documents },
            AnswerShape::One => Self::One { document: documents.pop() },
            AnswerShape::Count => {
                let n = documents.first().and_then(|document| document.get("n")?.as_whole());
                Self::Count { n: n.unwrap_or(0) }
            }
            AnswerShape::Values => {
                let ids = documents.into_iter().filter_map(|document| document.into_iter().next());
                Self::Values { values: ids.map(|(_, value)| value).collect() }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Documents { documents } => documents.is_empty(),
            Self::One { document } => document.is_none(),
            Self::Count { n } => *n == 0,
            Self::Values { values } => values.is_empty(),
        }
    }
}

/// Runs a pipeline.
///
/// # Errors
/// When the pipeline would read or hold too much, the budget is used up, or the store cannot be
/// read.
pub fn aggregate(
    store: &Store,
    budget: &Budget,
    request: &AggregateRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<AggregateAnswer, QueryError> {
    let collection_request = CollectionRequest {
        collection: request.collection.as_deref(),
        selector: &request.selector,
        range: request.range.as_ref(),
        needed: &request.needed,
        conditions: &request.conditions,
        shells: request.shells,
    };
    let collection = Collection::open(store, budget, &collection_request, limits, now)?;
    let quota = Quota::new(limits.points_max, budget);
    let documents = execution::run(&request.stages, collection.documents(&quota), &quota)?;
    let result = StageResult::new(request.shape, documents);
    let note = if !result.is_empty() {
        None
    } else if let Some(known) = suggestion::note(store, &request.selector) {
        Some(known)
    } else {
        note_of_text_values(store, budget, &request.conditions)?
    };
    Ok(AggregateAnswer { result, notes: note.into_iter().collect() })
}

/// Entry point for fuzzing: parses a request and runs it over a fixed document.
///
/// # Panics
/// When the pipeline has a bug.
pub fn fuzz(text: &str, now: UnixMillis) {
    let Ok(request) = AggregateRequest::read(text, now) else { return };
    let day = |at: i64| {
        let fields = [("date".into(), Value::Date(now.plus(at))), ("views".into(), Value::Int(at))];
        Value::Fields(fields.into_iter().collect())
    };
    let document = [
        ("host".into(), Value::text("web1")),
        ("date".into(), Value::Date(now)),
        ("days".into(), Value::List((0..3).map(day).collect())),
    ];
    let document: Fields = document.into_iter().collect();
    let quota = Quota::new(1000, &Budget::UNLIMITED);
    let as_document = |fields| Ok(document::Document { fields, share: quota.new_share(0) });
    let source = Box::new(std::iter::repeat_n(document, 3).map(as_document));
    if let Ok(documents) = execution::run(&request.stages, source, &quota) {
        assert!(documents.len() <= 1000);
        assert!(serde_json::to_vec(&documents).is_ok());
    }
}

#[cfg(test)]
mod tests;
