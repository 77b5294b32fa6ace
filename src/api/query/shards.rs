//! Charts and lists of a store with several shards: each shard answers with its lines or series.
//!
//! Must never know: where the shards are, how cells are merged.

use serde::{Deserialize, Serialize};

use super::{QueryParts, params::Params};
use crate::{
    model::UnixMillis,
    query::{
        self, Budget, ChartAnswer, ChartRequest, ChartStep, DOCUMENTS, DocumentsAnswer,
        DocumentsRequest, DocumentsStep, QueryError, QueryLimits, Selector, written,
    },
    store::Store,
};

/// The kind of a question for the number of series of each tag's values.
pub(in crate::api) const FACETS: &str = "facets";
/// The kind of a question for a list of series.
pub(in crate::api) const SERIES_LIST: &str = "series_list";
/// The kind of a question for a chart.
pub(in crate::api) const CHART: &str = "chart";

/// A question for a chart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::api) struct ChartQuestion {
    /// The parameters of the request.
    params: Params,
    /// The range in Unix milliseconds, which replaces the range of the parameters.
    start: i64,
    end: i64,
    step: ChartStep,
}

impl ChartQuestion {
    /// Answers the question for one shard.
    pub(in crate::api) fn answer(
        &self,
        store: &Store,
        budget: &Budget,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Vec<u8>, QueryError> {
        let mut request = self.params.chart(UnixMillis(self.end))?;
        request.range = UnixMillis(self.start)..UnixMillis(self.end);
        query::chart_step(store, budget, (&request, &self.step), limits, now)
    }
}

/// A question for documents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::api) struct DocumentsQuestion {
    /// The parameters of the request.
    params: Params,
    /// The range in Unix milliseconds, which replaces the range of the parameters.
    start: i64,
    end: i64,
    step: DocumentsStep,
}

impl DocumentsQuestion {
    /// Answers the question for one shard.
    pub(in crate::api) fn answer(
        &self,
        store: &Store,
        budget: &Budget,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Vec<u8>, QueryError> {
        let mut request = self.params.documents(UnixMillis(self.end))?;
        request.range = UnixMillis(self.start)..UnixMillis(self.end);
        query::documents_step(store, budget, (&request, &self.step), limits, now)
    }
}

/// A question for a list or for counts of series.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::api) struct SelectorQuestion {
    metric: Option<String>,
    tags: Vec<(String, String)>,
}

impl SelectorQuestion {
    /// Creates a question for the series of a selector.
    pub(super) fn new(selector: &Selector) -> Self {
        Self { metric: selector.metric.clone(), tags: selector.tags.clone() }
    }

    /// Returns the selector.
    pub(in crate::api) fn selector(self) -> Selector {
        Selector { metric: self.metric, tags: self.tags }
    }
}

/// Returns the documents of all shards.
pub(super) fn documents_of_shards(
    params: &Params,
    request: &DocumentsRequest,
    (parts, budget): (&QueryParts, &Budget),
    now: UnixMillis,
) -> Result<DocumentsAnswer, QueryError> {
    let (limits, range) = (&parts.limits.get(), &request.range);
    let ask = |step: &DocumentsStep| {
        let (params, step) = (params.clone(), step.clone());
        let question = DocumentsQuestion { params, start: range.start.0, end: range.end.0, step };
        let bytes = written(&question)?;
        let own = || question.answer(&parts.store, budget, limits, now);
        budget.ask_shards(DOCUMENTS, &bytes, own)
    };
    query::documents_of_shards((&parts.store, budget), request, &ask, limits, now)
}

/// Draws a chart of all shards.
pub(super) fn chart_of_shards(
    params: &Params,
    request: &ChartRequest,
    (parts, budget): (&QueryParts, &Budget),
    now: UnixMillis,
) -> Result<ChartAnswer, QueryError> {
    let (limits, range) = (&parts.limits.get(), &request.range);
    let ask = |step: &ChartStep| {
        let (params, step) = (params.clone(), step.clone());
        let question = ChartQuestion { params, start: range.start.0, end: range.end.0, step };
        let bytes = written(&question)?;
        let own = || question.answer(&parts.store, budget, limits, now);
        budget.ask_shards(CHART, &bytes, own)
    };
    query::chart_of_shards(budget, request, &ask, limits, now)
}
