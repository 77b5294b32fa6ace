//! The cells of a selector in all shards of a store.
//!
//! Each shard plans and reads by itself, and answers with its series. A series is in one shard,
//! unless several senders number batches with its samples: its cells are then merged by time. Must
//! never know: how cells are used, where the shards are.

mod answer;
pub(crate) mod read_series;

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
        CELLS, ExpressionLimits, QueryError, SeriesMatcher,
        messages::{damaged_question, read_question, written},
        promql::{
            context::bounds::Bounds,
            value::{
                annotations::{Annotations, Notes},
                range_vector::{CellMatrix, CellSeries},
                steps::{QueryRange, QueryTimes},
            },
        },
        series::sent_matchers::{SentMatcher, compiled, sent},
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
    /// The conditions of each alternative.
    matchers: Vec<Vec<SentMatcher>>,
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
            matchers: matchers.iter().map(|set| set.iter().map(sent).collect()).collect(),
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
        let set = |set: &Vec<SentMatcher>| set.iter().map(|sent| compiled(sent, limits)).collect();
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
    let question: CellsQuestion = read_question(question)?;
    let windows = question.windows().ok_or_else(damaged_question)?;
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
        if budget.others().is_none() || self.is_of_this_shard() {
            return Ok(None);
        }
        let matchers = (request.matchers)()?;
        let question = written(&CellsQuestion::new(request, &matchers))?;
        let own = || self.cells_here(&ReadRequest { held: Held::All, ..*request });
        let (own, answers) = budget.beside_shards(CELLS, &question, own)?;
        let mut matrices = vec![own];
        for answer in answers {
            let (matrix, warnings) = decode(&answer, &mut |bytes| self.bounds.reserve(bytes))?;
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
            kept.ended_at = ended_at(next, kept);
            for (from, into) in
                [(&mut next.cells, &mut kept.cells), (&mut next.counted, &mut kept.counted)]
            {
                into.append(from);
                into.sort_by_key(|cell| (cell.last_at, cell.first_at));
            }
            kept.histograms.append(&mut next.histograms);
            kept.histograms.sort_by_key(|slot| (slot.last_at, slot.first_at));
        }
        is_same
    });
    CellMatrix { series, widths, finest_ms }
}

/// Returns the time from which a stale marker ends a series of two shards: a marker after the
/// newest sample of both.
fn ended_at(one: &CellSeries, other: &CellSeries) -> i64 {
    let newest = |series: &CellSeries| {
        let cells = [&series.cells, &series.counted].map(|cells| cells.last().map(|it| it.last_at));
        let histogram = series.histograms.last().map(|slot| slot.last_at);
        cells.into_iter().chain([histogram]).max().flatten()
    };
    let newest = newest(one).max(newest(other));
    let ends = [one.ended_at, other.ended_at].into_iter();
    ends.filter(|ended_at| Some(*ended_at) > newest).min().unwrap_or(i64::MAX)
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

    #[test]
    fn only_a_stale_marker_after_the_newest_sample_ends_a_series_of_two_shards() {
        const ENDLESS: i64 = i64::MAX;
        for (parts, expected) in [
            // The first sender was killed, and the second one ended.
            ([(10, ENDLESS), (20, 25)], 25),
            // The second sender began after the marker of the first one.
            ([(10, 12), (20, ENDLESS)], ENDLESS),
            // The marker of the first sender came later than the samples of the second one.
            ([(10, 22), (20, ENDLESS)], 22),
            ([(10, 22), (20, 21)], 21),
            ([(10, ENDLESS), (20, ENDLESS)], ENDLESS),
        ] {
            let of = |(last_at, ended_at): (i64, i64)| {
                let mut part = matrix(&["a"], 1.0);
                part.series[0].ended_at = ended_at;
                part.series[0].cells[0].last_at = last_at;
                Rc::new(part)
            };
            for parts in [parts, [parts[1], parts[0]]] {
                let merged = merge(parts.map(of).to_vec());
                assert_eq!(merged.series[0].ended_at, expected, "{parts:?}");
            }
        }
    }
}
