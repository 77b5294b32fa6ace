//! The answers of a shard to the questions of the node that answers for the whole.
//!
//! Must never know: HTTP, other shards.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use super::held::{HeldProject, HeldShards};
use crate::{
    api::query::{
        CHART, ChartQuestion, DocumentsQuestion, FACETS, FIND, FindParams, MOVED, MovedQuestion,
        SERIES_LIST, SelectorQuestion,
    },
    clock::{Clock, SystemClock},
    model::UnixMillis,
    query::{
        self, AGGREGATE, Budget, CELLS, DOCUMENTS, EXPORT, ExpressionLimits, FacetCounts, GRAPHITE,
        QueryError, READINGS, Reservation, SENDERS, SERIES_COUNTS, SPARKLINES, SendersRequest,
        TSDB_STATUS, aggregate_of_question, cells_of_question, list_label_names, list_label_values,
        list_metrics, read_question, select_series, series_matchers, with_samples_since, written,
    },
};

/// The kind of a question for the series of a selector.
pub(in crate::api) const SERIES: &str = "series";
/// The kind of a question for the names or the values of labels.
pub(in crate::api) const LABELS: &str = "labels";

/// The kind of a question for the metrics and their metadata.
pub(in crate::api) const METADATA: &str = "metadata";

/// A question for the series of a selector.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::api) struct SeriesQuestion {
    /// The selector.
    pub(in crate::api) selector: String,
    /// Only series with samples since then.
    pub(in crate::api) since: Option<i64>,
}

/// A question for the names of labels, or for the values of one.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::api) struct LabelsQuestion {
    /// The label; `None` for the names.
    pub(in crate::api) name: Option<String>,
    /// Only series with samples since then.
    pub(in crate::api) since: Option<i64>,
}

/// An answer with its memory.
#[derive(Debug)]
pub(super) struct ShardAnswer {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    _memory: Option<Reservation>,
}

impl AsRef<[u8]> for ShardAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Answers a question. It blocks.
pub(super) fn answer(
    held: &HeldShards,
    project: &HeldProject,
    kind: &str,
    question: &[u8],
    time_max: Duration,
) -> Result<ShardAnswer, QueryError> {
    let budget = project.resources.budget(time_max);
    budget.check()?;
    let run = || answer_within(held, project, (kind, question), &budget);
    let bytes = query::run_with_retries(&budget, run, QueryError::is_transient)?;
    budget.reserve(bytes.len().saturating_sub(budget.reserved()))?;
    budget.shrink_to(bytes.len());
    Ok(ShardAnswer { bytes, _memory: budget.into_reservation() })
}

fn answer_within(
    held: &HeldShards,
    project: &HeldProject,
    (kind, question): (&str, &[u8]),
    budget: &Budget,
) -> Result<Vec<u8>, QueryError> {
    let promql = held.promql();
    let limits = promql.limits(budget);
    let now = SystemClock.moment().earliest();
    match kind {
        AGGREGATE => aggregate_of_question(&project.store, question, &limits, now),
        CELLS => cells_of_question(&project.store, question, &limits, now),
        GRAPHITE => query::graphite_of_question(&project.store, question, &limits),
        READINGS => query::readings_of_question(&project.store, question, &limits),
        SPARKLINES => project.sparklines.of_question(&project.store, budget, question),
        SERIES_COUNTS => query::series_counts_of_shard(&project.store, budget),
        DOCUMENTS => {
            let question: DocumentsQuestion = read_question(question)?;
            question.answer(&project.store, budget, &held.limits(), now)
        }
        EXPORT => {
            let own = (&project.store, project.shard);
            query::export_of_question(own, budget, question, &held.limits(), now)
        }
        SENDERS => {
            let request: SendersRequest = read_question(question)?;
            written(&request.part(&project.store, budget)?)
        }
        TSDB_STATUS => query::tsdb_status_of_shard(&project.store, &limits),
        MOVED => {
            let question: MovedQuestion = read_question(question)?;
            written(&question.answer(&project.store, budget, &held.limits())?)
        }
        SERIES => series(project, &read_question(question)?, &limits),
        LABELS => labels(project, &read_question(question)?, &limits),
        FACETS => {
            let selector = read_question::<SelectorQuestion>(question)?.selector();
            written(&FacetCounts::of_store(&project.store, budget, &selector)?)
        }
        FIND => written(&read_question::<FindParams>(question)?.answer(&project.store, budget)?),
        METADATA => {
            let metric: Option<String> = read_question(question)?;
            written(&list_metrics(&project.store, metric.as_deref(), &limits)?)
        }
        SERIES_LIST => {
            let selector = read_question::<SelectorQuestion>(question)?.selector();
            written(&query::series(&project.store, budget, &selector, &held.limits())?)
        }
        CHART => {
            let question: ChartQuestion = read_question(question)?;
            question.answer(&project.store, budget, &held.limits(), now)
        }
        _ => Err(QueryError::Invalid(format!("the shard does not know the question {kind:?}"))),
    }
}

/// Returns the keys of the series of a selector, as bytes.
fn series(
    project: &HeldProject,
    question: &SeriesQuestion,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<u8>, QueryError> {
    let mut found = BTreeSet::new();
    for set in series_matchers(&question.selector, limits)? {
        let more = select_series(&project.store, &set, limits)?;
        let since = question.since.map(UnixMillis);
        for (_, info) in with_samples_since(&project.store, more, since, limits)? {
            limits.reserve(4 * info.key.as_bytes().len())?;
            found.insert(info.key.as_bytes().to_vec());
        }
    }
    written(&found)
}

fn labels(
    project: &HeldProject,
    question: &LabelsQuestion,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<u8>, QueryError> {
    let since = question.since.map(UnixMillis);
    let found = match &question.name {
        None => list_label_names(&project.store, since, limits)?,
        Some(name) => list_label_values(&project.store, name, since, limits)?,
    };
    written(&found)
}
