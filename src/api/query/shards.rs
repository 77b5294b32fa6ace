//! Charts and lists of a store with several shards: each shard answers with its lines or series.
//!
//! Must never know: where the shards are, how cells are merged.

use std::ops::Range;

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

/// A question for one step of a request with parameters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::api) struct StepQuestion<S> {
    /// The parameters of the request.
    params: Params,
    /// The range in Unix milliseconds, which replaces the range of the parameters.
    start: i64,
    end: i64,
    step: S,
}

/// A question for a chart.
pub(in crate::api) type ChartQuestion = StepQuestion<ChartStep>;
/// A question for documents.
pub(in crate::api) type DocumentsQuestion = StepQuestion<DocumentsStep>;

impl<S: Clone> StepQuestion<S> {
    fn new(params: &Params, range: &Range<UnixMillis>, step: &S) -> Self {
        let (params, step) = (params.clone(), step.clone());
        Self { params, start: range.start.0, end: range.end.0, step }
    }

    fn range(&self) -> Range<UnixMillis> {
        UnixMillis(self.start)..UnixMillis(self.end)
    }
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
        request.range = self.range();
        query::chart_step(store, budget, (&request, &self.step), limits, now)
    }
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
        request.range = self.range();
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
    let limits = &parts.limits.get();
    let ask = |step: &DocumentsStep| {
        let question = DocumentsQuestion::new(params, &request.range, step);
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
    let limits = &parts.limits.get();
    let ask = |step: &ChartStep| {
        let question = ChartQuestion::new(params, &request.range, step);
        let bytes = written(&question)?;
        let own = || question.answer(&parts.store, budget, limits, now);
        budget.ask_shards(CHART, &bytes, own)
    };
    query::chart_of_shards(budget, request, &ask, limits, now)
}
