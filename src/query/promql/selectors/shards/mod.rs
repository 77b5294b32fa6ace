//! The cells of a selector in all shards of a store.
//!
//! Each shard plans and reads by itself, and answers with its series. A series is in one shard,
//! unless several senders number batches with its samples: its cells are then merged by time. Must
//! never know: how cells are used, where the shards are.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Selectors,
    request::{Held, NeededCells, ReadRequest},
};
use crate::{
    model::{Histogram, Kind, UnixMillis},
    policy::query_plan::{Detail, Windows},
    query::{
        CELLS, ExpressionLimits, Labels, MatchOperator, QueryError, SeriesMatcher,
        promql::{
            context::bounds::Bounds,
            value::{
                annotations::{Annotations, Notes},
                cells::TimedCell,
                histograms::TimedHistogram,
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
/// The bytes of a cell in an answer.
const CELL_BYTES: usize = 69;

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
        let Some((others, time_left)) = self.bounds.limits.budget.others() else {
            return Ok(None);
        };
        let matchers = (request.matchers)()?;
        let question = serde_json::to_vec(&CellsQuestion::new(request, &matchers))
            .map_err(|cause| QueryError::Execution(cause.to_string()))?;
        let answers = others.ask(CELLS, &question, time_left)?;
        let own = self.cells_here(&ReadRequest { held: Held::All, ..*request })?;
        let mut matrices = vec![own];
        for answer in answers {
            self.bounds.reserve(answer.len())?;
            let decoded = decode(&answer).ok_or_else(|| {
                QueryError::Busy("the answer of a shard is damaged; retry".to_owned())
            })?;
            let (matrix, warnings) = decoded;
            for warning in warnings {
                self.notes.warn(|| warning);
            }
            let cells = matrix.series.iter().map(|series| series.cells.len()).sum();
            self.bounds.count_cells(cells)?;
            matrices.push(Rc::new(matrix));
        }
        let merged = merge(matrices);
        self.bounds.check_points(merged.series.len(), request.windows.count)?;
        if merged.series.len() > self.bounds.limits.series_max {
            return Err(QueryError::TooMuch(format!(
                "more than {} series match: name more labels or raise limits.query_series_max",
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

fn encode(matrix: &CellMatrix, warnings: &[String], out: &mut Vec<u8>) {
    put_count(warnings.len(), out);
    for warning in warnings {
        put_text(warning, out);
    }
    out.extend(matrix.finest_ms.to_le_bytes());
    put_count(matrix.widths.len(), out);
    for (from, width) in &matrix.widths {
        out.extend(from.to_le_bytes());
        out.extend(width.to_le_bytes());
    }
    put_count(matrix.series.len(), out);
    for series in &matrix.series {
        put_count(series.labels.iter().count(), out);
        for (name, value) in series.labels.iter() {
            put_text(name, out);
            put_text(value, out);
        }
        let kinds = [series.kind, series.histogram_kind].map(Kind::code);
        out.extend([u8::from(series.drop_metric), kinds[0], kinds[1]]);
        out.extend(series.ended_at.to_le_bytes());
        for cells in [&series.cells, &series.counted] {
            put_count(cells.len(), out);
            for cell in cells {
                put_cell(cell, out);
            }
        }
        put_count(series.histograms.len(), out);
        for slot in &series.histograms {
            put_histogram(slot, out);
        }
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend((count as u32).to_le_bytes());
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_count(text.len(), out);
    out.extend(text.as_bytes());
}

fn put_cell(cell: &TimedCell, out: &mut Vec<u8>) {
    let TimedCell { first_at, last_at, n, sum, min, max, first, last, m2, kind } = *cell;
    out.extend(first_at.to_le_bytes());
    out.extend(last_at.to_le_bytes());
    out.extend(n.to_le_bytes());
    for value in [sum, min, max, first, last, m2] {
        out.extend(value.to_bits().to_le_bytes());
    }
    out.push(kind.map_or(u8::MAX, Kind::code));
}

fn put_histogram(slot: &TimedHistogram, out: &mut Vec<u8>) {
    let TimedHistogram { first_at, last_at, n, total, first, last, kind } = slot;
    out.extend(first_at.to_le_bytes());
    out.extend(last_at.to_le_bytes());
    out.extend(n.to_le_bytes());
    for histogram in [total, first, last] {
        histogram.encode(out);
    }
    out.push(kind.map_or(u8::MAX, Kind::code));
}

fn decode(mut bytes: &[u8]) -> Option<(CellMatrix, Vec<String>)> {
    let bytes = &mut bytes;
    let mut warnings = Vec::new();
    for _ in 0..count(bytes)? {
        warnings.push(text(bytes)?.to_owned());
    }
    let finest_ms = number(bytes)?;
    let mut widths = Vec::new();
    for _ in 0..count(bytes)? {
        widths.push((number(bytes)?, number(bytes)?));
    }
    let mut series = Vec::new();
    for _ in 0..count(bytes)? {
        let mut labels = Vec::new();
        for _ in 0..count(bytes)? {
            labels.push((text(bytes)?.into(), text(bytes)?.into()));
        }
        let [drop_metric, kind, histogram_kind] = take(bytes)?;
        let kind = *Kind::ALL.get(usize::from(kind))?;
        let histogram_kind = *Kind::ALL.get(usize::from(histogram_kind))?;
        let ended_at = number(bytes)?;
        let (labels, drop_metric) = (Labels::new(labels), drop_metric == 1);
        let (cells, counted) = (cells(bytes)?, cells(bytes)?);
        let mut histograms = Vec::new();
        for _ in 0..count(bytes)? {
            histograms.push(histogram(bytes)?);
        }
        series.push(CellSeries {
            labels,
            drop_metric,
            kind,
            ended_at,
            cells,
            histogram_kind,
            histograms,
            counted,
        });
    }
    Some((CellMatrix { series, widths, finest_ms }, warnings))
}

fn cells(bytes: &mut &[u8]) -> Option<Vec<TimedCell>> {
    let count = count(bytes)?;
    let (all, rest) = bytes.split_at_checked(count.checked_mul(CELL_BYTES)?)?;
    *bytes = rest;
    all.chunks_exact(CELL_BYTES).map(cell).collect()
}

fn cell(mut bytes: &[u8]) -> Option<TimedCell> {
    let bytes = &mut bytes;
    let (first_at, last_at) = (number(bytes)?, number(bytes)?);
    let n = u32::from_le_bytes(take(bytes)?);
    let mut value = || Some(f64::from_bits(u64::from_le_bytes(take(bytes)?)));
    let [sum, min, max] = [value()?, value()?, value()?];
    let [first, last, m2] = [value()?, value()?, value()?];
    let [kind] = take(bytes)?;
    let kind = Kind::ALL.get(usize::from(kind)).copied();
    Some(TimedCell { first_at, last_at, n, sum, min, max, first, last, m2, kind })
}

fn histogram(bytes: &mut &[u8]) -> Option<TimedHistogram> {
    let (first_at, last_at) = (number(bytes)?, number(bytes)?);
    let n = u32::from_le_bytes(take(bytes)?);
    let mut next = || Histogram::decode(bytes).ok().map(Arc::new);
    let (total, first, last) = (next()?, next()?, next()?);
    let [kind] = take(bytes)?;
    let kind = Kind::ALL.get(usize::from(kind)).copied();
    Some(TimedHistogram { first_at, last_at, n, total, first, last, kind })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<i64> {
    take(bytes).map(i64::from_le_bytes)
}

fn count(bytes: &mut &[u8]) -> Option<usize> {
    take(bytes).map(|count| u32::from_le_bytes(count) as usize)
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = count(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(names: &[&str], value: f64) -> CellMatrix {
        let series = |name: &&str| CellSeries {
            labels: Labels::new(vec![("__name__".into(), (*name).into())]),
            drop_metric: false,
            kind: Kind::Counter,
            ended_at: i64::MAX,
            cells: vec![TimedCell { kind: Some(Kind::Delta), ..TimedCell::sample(5, value) }],
            histogram_kind: Kind::GaugeHistogram,
            histograms: vec![TimedHistogram::reading(7, Arc::new(Histogram::empty(3)))],
            counted: Vec::new(),
        };
        let series = names.iter().map(series).collect();
        CellMatrix { series, widths: vec![(0, 60_000)], finest_ms: 60_000 }
    }

    #[test]
    fn a_matrix_comes_back_as_it_was_and_no_prefix_is_one() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        let mut bytes = Vec::new();
        encode(&matrix(&["a", "b"], stale), &["w".to_owned()], &mut bytes);
        let (decoded, warnings) = decode(&bytes).unwrap();
        assert_eq!((warnings, decoded.widths), (vec!["w".to_owned()], vec![(0, 60_000)]));
        assert_eq!(decoded.series[1].labels.get("__name__"), "b");
        let cell = decoded.series[1].cells[0];
        assert_eq!((cell.last.to_bits(), cell.kind), (stale.to_bits(), Some(Kind::Delta)));
        let slot = &decoded.series[1].histograms[0];
        assert_eq!((slot.last_at, slot.last.schema), (7, 3));
        assert_eq!(decoded.series[1].histogram_kind, Kind::GaugeHistogram);
        assert!((0..bytes.len()).all(|length| decode(&bytes[..length]).is_none()));
    }

    #[test]
    fn series_of_all_shards_are_sorted_and_equal_ones_are_one() {
        let parts = [matrix(&["a", "c"], 1.0), matrix(&["b", "c"], 2.0)];
        let merged = merge(parts.into_iter().map(Rc::new).collect());
        let names: Vec<_> = merged.series.iter().map(|s| s.labels.get("__name__")).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(merged.series[2].cells.len(), 2);
    }
}
