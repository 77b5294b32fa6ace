//! Documents of a store with several shards. Each shard sends the slots of its series as for a
//! chart, and the node that asks nests them; of the form by levels, each shard sends its documents,
//! which are added up.
//!
//! Must never know: where the shards are.

mod levels;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    AUTO_POINTS, DocumentsAnswer, DocumentsForm, DocumentsRequest, documents_here,
    granularity_of_documents, nested::plan::NestedPlan, rows::Rows,
};
use crate::{
    model::{GranularityIndex, GranularitySet, UnixMillis},
    query::{
        Budget, ChartRequest, ChartStep, QueryError, QueryLimits, Resolution, SeriesMerge,
        cells::coverage::coverage,
        chart::{GatheredChart, chart_step},
        messages::{changed_series, damaged_question, read_answer, written},
        time::resolution::granularity_of_shard,
    },
    store::Store,
};

/// A step of a request for the documents of several shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DocumentsStep {
    /// Each shard chooses the granularity of nested documents.
    Granularity,
    /// Each shard answers a step of a chart of the slots.
    Slots {
        /// The start of the slots, Unix milliseconds.
        start: i64,
        /// Their end.
        end: i64,
        /// The resolution.
        resolution: String,
        /// The step.
        step: ChartStep,
    },
    /// Each shard counts its series.
    Count,
    /// Each shard answers with the levels of its series.
    Levels {
        /// The number of series of all shards.
        series: usize,
    },
}

/// The granularity that a shard chose for nested documents.
#[derive(Debug, Serialize, Deserialize)]
struct ChosenGranularity {
    name: String,
    width_ms: i64,
    /// The number of matching series.
    series: usize,
}

/// Answers a step for one shard.
///
/// # Errors
/// See [`super::documents`].
pub fn documents_step(
    store: &Store,
    budget: &Budget,
    (request, step): (&DocumentsRequest, &DocumentsStep),
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<Vec<u8>, QueryError> {
    match step {
        DocumentsStep::Granularity => {
            let merges = request.merge != SeriesMerge::Nothing;
            let found = request.selector.select_within(store, budget, limits, merges)?;
            let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
            let coverage = coverage(store, &ids, &request.range, now);
            let points = request.points.unwrap_or(AUTO_POINTS);
            let index =
                granularity_of_documents(&coverage, &request.resolution, &request.range, points)?;
            let granularity = &coverage.granularities()[index];
            let (name, width_ms) = (granularity.name.clone(), granularity.width_ms);
            written(&ChosenGranularity { name, width_ms, series: found.len() })
        }
        DocumentsStep::Slots { start, end, resolution, step } => {
            if start >= end {
                return Err(damaged_question());
            }
            let Ok(resolution) = resolution.parse();
            let range = UnixMillis(*start)..UnixMillis(*end);
            let chart = request.chart(resolution, range);
            chart_step(store, budget, (&chart, step), limits, now)
        }
        DocumentsStep::Count => {
            let merges = request.merge != SeriesMerge::Nothing;
            written(&request.selector.select_within(store, budget, limits, merges)?.len())
        }
        DocumentsStep::Levels { series } => {
            let series = Some(*series);
            let answer = documents_here((store, budget), request, limits, series, now)?;
            levels::encoded(answer)
        }
    }
}

/// Asks all shards for a step, and returns their answers in the order of shards.
type AskStep<'a> = dyn Fn(&DocumentsStep) -> Result<Vec<Vec<u8>>, QueryError> + 'a;

/// Answers a request for the documents of all shards, which `ask` asks for a step.
///
/// # Errors
/// When a shard does not answer, the request is for preallocated documents, the answer is too
/// large, or the budget is used up.
pub fn documents_of_shards(
    (store, budget): (&Store, &Budget),
    request: &DocumentsRequest,
    ask: &AskStep<'_>,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<DocumentsAnswer, QueryError> {
    if request.shells {
        let message = "shells=true is not available with several shards; granary export --shells \
                       writes preallocated documents";
        return Err(QueryError::Invalid(message.to_owned()));
    }
    let slots = |resolution: &Resolution, range: &Range<UnixMillis>| {
        let chart = request.chart(resolution.clone(), range.clone());
        let (start, end) = (range.start.0, range.end.0);
        let resolution = resolution.to_string();
        let ask_chart = |step: &ChartStep| {
            let (resolution, step) = (resolution.clone(), step.clone());
            ask(&DocumentsStep::Slots { start, end, resolution, step })
        };
        let gathered = GatheredChart::ask(budget, &chart, &ask_chart, limits)?;
        Ok::<_, QueryError>((chart, gathered))
    };
    match request.form {
        DocumentsForm::Levels => {
            let counts = ask(&DocumentsStep::Count)?;
            let counts = counts.iter().map(|answer| read_answer::<usize>(answer, budget));
            let series = counts.sum::<Result<usize, _>>()?;
            let answers = ask(&DocumentsStep::Levels { series })?;
            levels::added(&answers, budget, &request.merge, limits)
        }
        DocumentsForm::Rows => {
            let (chart, gathered) = slots(&request.resolution, &request.range)?;
            let parts = gathered.parts(budget)?;
            let merged = gathered.merged(&parts, (&chart, budget), limits)?;
            let mut rows = Rows::new(budget, (request, now), &merged.axis)?;
            merged.read(budget, &mut |group, cells, histograms| {
                rows.push(group, cells, histograms)
            })?;
            Ok(rows.finish(merged.notes_of_slots()))
        }
        DocumentsForm::Nested => {
            let coverage = coverage(store, &[], &request.range, now);
            let granularities = coverage.granularities();
            let granularity = coarsest(&ask(&DocumentsStep::Granularity)?, budget, granularities)?;
            let plan = NestedPlan::new(granularities, granularity, request.zoned_range());
            let (chart, gathered) = slots(&plan.resolution(), &plan.whole_documents())?;
            let parts = gathered.parts(budget)?;
            let merged = gathered.merged(&parts, (&chart, budget), limits)?;
            let mut documents = Vec::new();
            merged.read(budget, &mut |group, cells, _| {
                documents.extend(plan.nest(group, (&merged.axis, cells), Vec::new(), budget)?);
                Ok(())
            })?;
            Ok(DocumentsAnswer::Documents { documents, notes: merged.notes_of_slots() })
        }
    }
}

/// Returns the coarsest granularity that the shards with series chose, in those of this shard.
fn coarsest(
    answers: &[Vec<u8>],
    budget: &Budget,
    granularities: &GranularitySet,
) -> Result<GranularityIndex, QueryError> {
    let chosen = answers.iter().map(|answer| read_answer(answer, budget));
    let chosen: Vec<ChosenGranularity> = chosen.collect::<Result<_, _>>()?;
    let has_series = chosen.iter().any(|chosen| chosen.series > 0);
    let counted = chosen.iter().zip(0..).filter(|(chosen, _)| !has_series || chosen.series > 0);
    let coarsest = counted.max_by_key(|(chosen, _)| chosen.width_ms);
    let (coarsest, shard) = coarsest.ok_or_else(changed_series)?;
    Ok(granularity_of_shard(granularities, (&coarsest.name, shard))?.0)
}

impl DocumentsRequest {
    /// Returns the chart whose slots the documents contain. Rows spread the growth of counters.
    fn chart(&self, resolution: Resolution, range: Range<UnixMillis>) -> ChartRequest {
        ChartRequest {
            displays: self.display.into_iter().collect(),
            time_zone: self.time_zone.clone(),
            points: self.points,
            merge: self.merge.clone(),
            spreads: self.form == DocumentsForm::Rows,
            ..ChartRequest::new(self.selector.clone(), resolution, range)
        }
    }
}
