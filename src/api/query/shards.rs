//! Charts of a store with several shards: each shard draws its lines, on the same time axis.
//!
//! Must never know: where the shards are.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{QueryParts, params::Params};
use crate::{
    model::UnixMillis,
    query::{Budget, ChartAnswer, ChartRequest, ChartSeries, QueryError, SeriesMerge},
};

/// The kind of a question for a chart.
pub(in crate::api) const CHART: &str = "chart";

/// A question for a chart.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::api) struct ChartQuestion {
    /// The parameters of the request.
    pub(in crate::api) params: Params,
    /// The range in Unix milliseconds, in place of that of the parameters.
    pub(in crate::api) start: i64,
    /// The end of the range.
    pub(in crate::api) end: i64,
    /// The resolution, in place of that of the parameters.
    pub(in crate::api) resolution: Option<String>,
}

impl ChartQuestion {
    /// Returns the request.
    pub(in crate::api) fn request(&self) -> Result<ChartRequest, QueryError> {
        let mut request = self.params.chart(UnixMillis(self.end))?;
        request.range = UnixMillis(self.start)..UnixMillis(self.end);
        if let Some(Ok(resolution)) = self.resolution.as_ref().map(|name| name.parse()) {
            request.resolution = resolution;
        }
        Ok(request)
    }
}

/// Draws a chart of all shards. When they choose several resolutions, all draw the coarsest one.
pub(super) fn chart_of_shards(
    params: &Params,
    request: &ChartRequest,
    (parts, budget): (&QueryParts, &Budget),
    own: &dyn Fn(&ChartRequest) -> Result<ChartAnswer, QueryError>,
) -> Result<ChartAnswer, QueryError> {
    if request.merge != SeriesMerge::Nothing || request.rank.is_some() {
        return Err(QueryError::Execution(
            "merge, group_by, top and bottom cannot be used with several shards yet: use PromQL, or \
             a cluster with cluster.shards = 1"
                .to_owned(),
        ));
    }
    let mut question = ChartQuestion {
        params: params.clone(),
        start: request.range.start.0,
        end: request.range.end.0,
        resolution: None,
    };
    let mut answers = asked(&question, own, budget)?;
    let coarseness = |answer: &ChartAnswer| {
        parts.store.granularities().named(&answer.resolution).map(|(index, _)| index)
    };
    let is_one = answers.iter().all(|answer| answer.resolution == answers[0].resolution);
    if !is_one {
        let coarsest = answers.iter().max_by_key(|answer| coarseness(answer));
        question.resolution = coarsest.map(|answer| answer.resolution.clone());
        answers = asked(&question, own, budget)?;
    }
    let points = answers.iter().flat_map(|answer| &answer.series).map(|line| line.points.len());
    let (points, max) = (points.sum::<usize>(), parts.promql.get().points_max);
    if points > max {
        return Err(QueryError::TooMuch(format!(
            "the chart has more than {max} points: ask for fewer series or a coarser resolution, \
             or raise limits.query_points_max"
        )));
    }
    let whole = joined(answers).ok_or_else(|| QueryError::Busy("no shard answered".to_owned()))?;
    let key = |line: &ChartSeries| {
        (line.series.metric.clone(), line.series.tags.clone(), line.display.clone())
    };
    let keys: BTreeSet<_> = whole.series.iter().map(key).collect();
    if keys.len() < whole.series.len() {
        return Err(QueryError::Execution(
            "a series has samples in several shards, because several senders number batches with \
             it: use PromQL, which merges them"
                .to_owned(),
        ));
    }
    Ok(whole)
}

/// Returns the charts of all shards, the own one first.
fn asked(
    question: &ChartQuestion,
    own: &dyn Fn(&ChartRequest) -> Result<ChartAnswer, QueryError>,
    budget: &Budget,
) -> Result<Vec<ChartAnswer>, QueryError> {
    let damaged = |cause: serde_json::Error| {
        QueryError::Busy(format!("the answer of a shard is damaged: {cause}; retry"))
    };
    let mut answers = vec![own(&question.request()?)?];
    if let Some((others, time_left)) = budget.others() {
        let question = serde_json::to_vec(question).map_err(damaged)?;
        for answer in others.ask(CHART, &question, time_left)? {
            budget.reserve(2 * answer.len())?;
            answers.push(serde_json::from_slice(&answer).map_err(damaged)?);
        }
    }
    Ok(answers)
}

/// Joins charts with the same resolution.
fn joined(answers: Vec<ChartAnswer>) -> Option<ChartAnswer> {
    let has_series = answers.iter().any(|answer| !answer.series.is_empty());
    // A shard without the series suggests others.
    let mut answers = answers.into_iter().filter(|answer| !has_series || !answer.series.is_empty());
    let mut whole = answers.next()?;
    for answer in answers {
        whole.start = whole.start.min(answer.start);
        whole.end = whole.end.max(answer.end);
        whole.incomplete_from = match (whole.incomplete_from, answer.incomplete_from) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        whole.series.extend(answer.series);
        for note in answer.notes {
            if !whole.notes.contains(&note) {
                whole.notes.push(note);
            }
        }
    }
    // The lines of a series keep their order.
    whole.series.sort_by(|one, other| {
        let (one, other) = (&one.series, &other.series);
        (&one.metric, &one.tags).cmp(&(&other.metric, &other.tags))
    });
    Some(whole)
}
