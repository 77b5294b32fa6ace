//! The cells of a selector in all shards of a store.
//!
//! Each shard plans and reads by itself, and answers with its series. A series is in one shard,
//! unless several senders number batches with its samples: its cells are then merged by time. Must
//! never know: how cells are used, where the shards are.

mod answer;

use std::{cell::RefCell, rc::Rc};

use serde::{Deserialize, Serialize};

use self::answer::{decode, encode};
use super::{
    Selectors,
    request::{Held, NeededCells, ReadRequest},
};
use crate::{
    model::UnixMillis,
    policy::query_plan::{Detail, Windows},
    query::{
        CELLS, ExpressionLimits, MatchOperator, QueryError, SeriesMatcher,
        promql::{
            context::bounds::Bounds,
            value::{
                annotations::{Annotations, Notes},
                range_vector::{CellMatrix, CellSeries},
                steps::{QueryRange, QueryTimes},
            },
        },
        whole_pattern,
    },
    store::{Columns, Store},
};

/// The details in the order of their numbers in a question.
const DETAILS: [Detail; 4] =
    [Detail::Aggregates, Detail::Values, Detail::Readings, Detail::Samples];

/// A question for the cells of a selector.
#[derive(Debug, Serialize, Deserialize)]
struct CellsQuestion {
    /// The text that identifies the matchers.
    text: String,
    /// The conditions of each alternative: a tag, an operator, and a value or pattern.
    matchers: Vec<Vec<(String, String, String)>>,
    first: i64,
    step_ms: i64,
    count: usize,
    range_ms: i64,
    lookback_ms: i64,
    detail: usize,
    newest: bool,
    columns: u8,
}

impl CellsQuestion {
    fn new(request: &ReadRequest<'_>, matchers: &[Vec<SeriesMatcher>]) -> Self {
        let Windows { first, step_ms, count, range_ms, lookback_ms, detail } = *request.windows;
        Self {
            text: request.text.to_owned(),
            matchers: matchers.iter().map(|set| set.iter().map(written).collect()).collect(),
            first: first.0,
            step_ms,
            count,
            range_ms,
            lookback_ms,
            detail: DETAILS.iter().position(|known| *known == detail).unwrap_or_default(),
            newest: request.needed == NeededCells::Newest,
            columns: request.columns.bits(),
        }
    }

    /// Returns the matchers, compiled within limits.
    fn matchers(
        &self,
        limits: &ExpressionLimits<'_>,
    ) -> Result<Vec<Vec<SeriesMatcher>>, QueryError> {
        let set = |set: &Vec<(String, String, String)>| {
            set.iter().map(|written| compiled(written, limits)).collect()
        };
        self.matchers.iter().map(set).collect()
    }

    fn windows(&self) -> Option<Windows> {
        Some(Windows {
            first: UnixMillis(self.first),
            step_ms: self.step_ms,
            count: self.count,
            range_ms: self.range_ms,
            lookback_ms: self.lookback_ms,
            detail: *DETAILS.get(self.detail)?,
        })
    }
}

/// Returns a condition in words.
fn written(matcher: &SeriesMatcher) -> (String, String, String) {
    let (operator, value) = match &matcher.operator {
        MatchOperator::Equal(value) => ("=", value.as_str()),
        MatchOperator::NotEqual(value) => ("!=", value.as_str()),
        MatchOperator::Pattern(pattern) => ("=~", unanchored(pattern.as_str())),
        MatchOperator::NotPattern(pattern) => ("!~", unanchored(pattern.as_str())),
    };
    (matcher.tag.clone(), operator.to_owned(), value.to_owned())
}

/// Returns a pattern without the anchors of [`whole_pattern`].
fn unanchored(pattern: &str) -> &str {
    let inner = pattern.strip_prefix("^(?s:").and_then(|rest| rest.strip_suffix(")$"));
    inner.unwrap_or(pattern)
}

fn compiled(
    (tag, operator, value): &(String, String, String),
    limits: &ExpressionLimits<'_>,
) -> Result<SeriesMatcher, QueryError> {
    let operator = match operator.as_str() {
        "=" => MatchOperator::Equal(value.clone()),
        "!=" => MatchOperator::NotEqual(value.clone()),
        "=~" => MatchOperator::Pattern(whole_pattern(value, limits)?),
        "!~" => MatchOperator::NotPattern(whole_pattern(value, limits)?),
        other => return Err(QueryError::Invalid(format!("unknown operator {other}"))),
    };
    Ok(SeriesMatcher { tag: tag.clone(), operator })
}

/// Answers another node's question for the cells of a selector.
///
/// # Errors
/// See [`QueryError`].
pub fn cells_of_question(
    store: &Store,
    question: &[u8],
    limits: &ExpressionLimits<'_>,
    now: UnixMillis,
) -> Result<Vec<u8>, QueryError> {
    let invalid = || QueryError::Invalid("the question from another node is damaged".to_owned());
    let question: CellsQuestion = serde_json::from_slice(question).map_err(|_| invalid())?;
    let windows = question.windows().ok_or_else(invalid)?;
    let (bounds, annotations) = (Bounds::new(limits), RefCell::new(Annotations::default()));
    let (start, times) = (question.first, QueryTimes::INSTANT);
    let query = QueryRange { start, end: start, step_ms: 0, times };
    let notes = Notes::new(&annotations);
    let selectors = Selectors::new(store, now, question.lookback_ms, query, &bounds, notes);
    let request = ReadRequest {
        text: &question.text,
        matchers: &|| question.matchers(limits),
        windows: &windows,
        needed: if question.newest { NeededCells::Newest } else { NeededCells::All },
        columns: Columns::from_bits(question.columns),
        held: Held::All,
    };
    let cells = selectors.cells_here(&request)?;
    let warnings = annotations.borrow().warnings.clone();
    let mut out = Vec::new();
    encode(&cells, &warnings, &mut out);
    bounds.reserve(out.capacity())?;
    Ok(out)
}

impl Selectors<'_> {
    /// Returns the cells of all shards; `None` if the store has one.
    pub(super) fn cells_of_shards(
        &self,
        request: &ReadRequest<'_>,
    ) -> Result<Option<Rc<CellMatrix>>, QueryError> {
        let budget = self.bounds.limits.budget;
        if budget.others().is_none() || self.is_of_this_shard.get() {
            return Ok(None);
        }
        let matchers = (request.matchers)()?;
        let question = serde_json::to_vec(&CellsQuestion::new(request, &matchers))
            .map_err(|cause| QueryError::Execution(cause.to_string()))?;
        let own = || self.cells_here(&ReadRequest { held: Held::All, ..*request });
        let (own, answers) = budget.beside_shards(CELLS, &question, own)?;
        let mut matrices = vec![own];
        for answer in answers {
            let decoded = decode(&answer).ok_or_else(|| {
                QueryError::Busy("the answer of a shard is damaged; retry".to_owned())
            })?;
            let (matrix, warnings) = decoded;
            self.notes.add_all(Annotations { warnings, infos: Vec::new() });
            let cells = matrix.series.iter().map(|series| series.cells.len()).sum();
            self.bounds.count_cells(cells)?;
            matrices.push(Rc::new(matrix));
        }
        let merged = merge(matrices);
        self.bounds.check_points(merged.series.len(), request.windows.count)?;
        if merged.series.len() > self.bounds.limits.series_max {
            return Err(QueryError::TooMuch(format!(
                "more than {} series match: name more labels or raise limits.query_points_max",
                self.bounds.limits.series_max
            )));
        }
        Ok(Some(Rc::new(merged)))
    }
}

/// Merges the matrices of all shards. Series with the same labels become one.
fn merge(matrices: Vec<Rc<CellMatrix>>) -> CellMatrix {
    // The coarsest slots are right for all.
    let coarsest = |matrix: &&Rc<CellMatrix>| {
        matrix.widths.iter().map(|(_, width)| *width).max().unwrap_or_default()
    };
    let shape = matrices.iter().max_by_key(coarsest);
    let (widths, finest_ms) =
        shape.map(|matrix| (matrix.widths.clone(), matrix.finest_ms)).unwrap_or_default();
    let mut series: Vec<CellSeries> = matrices
        .into_iter()
        .flat_map(|matrix| match Rc::try_unwrap(matrix) {
            Ok(matrix) => matrix.series,
            Err(shared) => shared.series.iter().map(copy).collect(),
        })
        .collect();
    series.sort_by(|one, other| one.labels.cmp(&other.labels));
    series.dedup_by(|next, kept| {
        let is_same = next.labels == kept.labels;
        if is_same {
            for (from, into) in
                [(&mut next.cells, &mut kept.cells), (&mut next.counted, &mut kept.counted)]
            {
                into.append(from);
                into.sort_by_key(|cell| (cell.last_at, cell.first_at));
            }
            kept.histograms.append(&mut next.histograms);
            kept.histograms.sort_by_key(|slot| (slot.last_at, slot.first_at));
            kept.ended_at = kept.ended_at.max(next.ended_at);
        }
        is_same
    });
    CellMatrix { series, widths, finest_ms }
}

fn copy(series: &CellSeries) -> CellSeries {
    CellSeries {
        labels: series.labels.clone(),
        drop_metric: series.drop_metric,
        kind: series.kind,
        ended_at: series.ended_at,
        cells: series.cells.clone(),
        histogram_kind: series.histogram_kind,
        histograms: series.histograms.clone(),
        counted: series.counted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{answer::tests::matrix, *};

    #[test]
    fn series_of_all_shards_are_sorted_and_equal_ones_are_one() {
        let parts = [matrix(&["a", "c"], 1.0), matrix(&["b", "c"], 2.0)];
        let merged = merge(parts.into_iter().map(Rc::new).collect());
        let names: Vec<_> = merged.series.iter().map(|s| s.labels.get("__name__")).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(merged.series[2].cells.len(), 2);
    }
}
