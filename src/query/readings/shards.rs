//! The readings of series in all shards of a store: each shard sends those of its series.
//!
//! Must never know: the protocols, where the shards are.

use serde::{Deserialize, Serialize};

use super::{ReadingsRequest, SeriesReadings, reader::each_series_here};
use crate::{
    model::{Histogram, Kind, UnixMillis, is_stale_marker},
    query::{
        ExpressionLimits, Labels, QueryError, READINGS, SeriesMatcher,
        messages::{damaged_answer, read_question, written},
        series::sent_matchers::{SentMatcher, compiled, sent},
        wire::{
            count, has_element, number, put_count, put_element, put_end, put_value, take, value,
        },
    },
    store::Store,
};

/// A question for readings.
#[derive(Debug, Serialize, Deserialize)]
struct ReadingsQuestion {
    sets: Vec<Vec<SentMatcher>>,
    start: i64,
    end: i64,
    labels_only: bool,
    now: i64,
}

/// Calls `visit` with the readings of each series that matches all matchers of one of the sets, in
/// order of labels. Series without samples since the start of the range are left out.
///
/// # Errors
/// When a limit is exceeded, the budget is used up, the store cannot be read, a shard does not
/// answer, or `visit` fails.
pub fn each_series(
    store: &Store,
    sets: &[Vec<SeriesMatcher>],
    request: &ReadingsRequest,
    limits: &ExpressionLimits<'_>,
    now: UnixMillis,
    visit: &mut dyn FnMut(SeriesReadings) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    if limits.budget.others().is_none() {
        return each_series_here(store, sets, request, limits, now, visit);
    }
    let question = ReadingsQuestion {
        sets: sets.iter().map(|set| set.iter().map(sent).collect()).collect(),
        start: request.range.start.0,
        end: request.range.end.0,
        labels_only: request.labels_only,
        now: now.0,
    };
    let question = written(&question)?;
    let own = || {
        let mut all = Vec::new();
        each_series_here(store, sets, request, limits, now, &mut |series| {
            limits.reserve(bytes_of(&series))?;
            all.push(series);
            Ok(())
        })?;
        Ok(all)
    };
    let (mut all, answers) = limits.budget.beside_shards(READINGS, &question, own)?;
    for answer in answers {
        limits.budget.check()?;
        let mut bytes = &answer[..];
        while has_element(&mut bytes).ok_or_else(damaged_answer)? {
            let series = decode(&mut bytes).ok_or_else(damaged_answer)?;
            limits.reserve(bytes_of(&series))?;
            all.push(series);
        }
    }
    for series in merged(all, limits)? {
        limits.budget.check()?;
        visit(series)?;
    }
    Ok(())
}

/// Calls `visit` with the newest reading of each matching series that is younger than the lookback.
/// Series that ended with a stale marker are left out.
///
/// # Errors
/// See [`each_series`].
pub fn newest_readings(
    store: &Store,
    sets: &[Vec<SeriesMatcher>],
    lookback_ms: i64,
    limits: &ExpressionLimits<'_>,
    now: UnixMillis,
    visit: &mut dyn FnMut(SeriesReadings) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let range = now.minus(lookback_ms).plus(1)..now.plus(1);
    let request = ReadingsRequest { range, labels_only: false };
    each_series(store, sets, &request, limits, now, &mut |series| {
        if let Some(newest) = series.histograms.last().filter(|(_, newest)| !newest.is_stale()) {
            let histograms = vec![newest.clone()];
            return visit(SeriesReadings { histograms, ..series });
        }
        let newest = series.readings.last().copied();
        match newest.filter(|(_, value)| !is_stale_marker(*value)) {
            Some(newest) => visit(SeriesReadings { readings: vec![newest], ..series }),
            None => Ok(()),
        }
    })
}

/// Answers another node's question for readings.
///
/// # Errors
/// See [`each_series`].
pub fn readings_of_question(
    store: &Store,
    question: &[u8],
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<u8>, QueryError> {
    let question: ReadingsQuestion = read_question(question)?;
    let set = |set: &Vec<SentMatcher>| set.iter().map(|sent| compiled(sent, limits)).collect();
    let sets: Vec<_> = question.sets.iter().map(set).collect::<Result<_, _>>()?;
    let range = UnixMillis(question.start)..UnixMillis(question.end);
    let request = ReadingsRequest { range, labels_only: question.labels_only };
    let (mut out, mut reserved) = (Vec::new(), 0);
    each_series_here(store, &sets, &request, limits, UnixMillis(question.now), &mut |series| {
        put_element(&mut out);
        encode(&series, &mut out);
        let grown = out.capacity() - reserved;
        reserved = out.capacity();
        limits.reserve(grown)
    })?;
    put_end(&mut out);
    Ok(out)
}

/// Returns the approximate memory of the readings of a series.
fn bytes_of(series: &SeriesReadings) -> usize {
    let histograms = series.histograms.iter().map(|(_, histogram)| histogram.bytes());
    let readings = size_of_val(&series.readings[..]) + histograms.sum::<usize>();
    size_of::<SeriesReadings>() + series.labels.bytes() + readings
}

/// Orders the series of all shards, and merges those with the same labels.
fn merged(
    mut all: Vec<SeriesReadings>,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<SeriesReadings>, QueryError> {
    all.sort_by(|one, other| one.labels.cmp(&other.labels));
    all.dedup_by(|next, kept| {
        let is_same = next.labels == kept.labels;
        if is_same {
            kept.readings.append(&mut next.readings);
            kept.histograms.append(&mut next.histograms);
            let newest = kept.readings.iter().filter(|(_, value)| !is_stale_marker(*value));
            let newest = newest.map(|(at, _)| *at).max();
            // Only a marker after all readings ends the series.
            kept.readings.retain(|(at, value)| !is_stale_marker(*value) || Some(*at) > newest);
            kept.readings.sort_by_key(|(at, _)| *at);
            kept.readings.dedup_by_key(|(at, _)| *at);
            let newest = kept.histograms.iter().filter(|(_, histogram)| !histogram.is_stale());
            let newest = newest.map(|(at, _)| *at).max();
            kept.histograms.retain(|(at, histogram)| !histogram.is_stale() || Some(*at) > newest);
            kept.histograms.sort_by_key(|(at, _)| *at);
            kept.histograms.dedup_by_key(|(at, _)| *at);
        }
        is_same
    });
    let max = limits.series_max;
    if all.len() > max {
        return Err(QueryError::TooMuch(format!(
            "more than {max} series match: name more labels or raise limits.query_points_max"
        )));
    }
    Ok(all)
}

fn encode(series: &SeriesReadings, out: &mut Vec<u8>) {
    series.labels.encode(out);
    out.push(series.kind.code());
    put_count(series.readings.len(), out);
    for (at, value) in &series.readings {
        out.extend(at.to_le_bytes());
        put_value(*value, out);
    }
    put_count(series.histograms.len(), out);
    for (at, histogram) in &series.histograms {
        out.extend(at.to_le_bytes());
        histogram.encode(out);
    }
}

/// Reads the readings of a series; `None` when the bytes are damaged.
fn decode(bytes: &mut &[u8]) -> Option<SeriesReadings> {
    let labels = Labels::decode(bytes)?;
    let [kind] = take(bytes)?;
    let kind = *Kind::ALL.get(usize::from(kind))?;
    let (mut readings, mut histograms) = (Vec::new(), Vec::new());
    for _ in 0..count(bytes)? {
        readings.push((number(bytes)?, value(bytes)?));
    }
    for _ in 0..count(bytes)? {
        histograms.push((number(bytes)?, Histogram::decode(bytes).ok()?));
    }
    Some(SeriesReadings { labels, kind, readings, histograms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::STALE_MARKER;

    #[test]
    fn readings_come_back_as_they_were_and_no_prefix_is_whole() {
        let labels = Labels::new(vec![("__name__".into(), "m".into()), ("a".into(), "b".into())]);
        let readings = vec![(5, 1.5), (9, STALE_MARKER)];
        let histograms = vec![(7, Histogram::empty(3))];
        let series = SeriesReadings { labels, kind: Kind::Counter, readings, histograms };
        let mut bytes = Vec::new();
        encode(&series, &mut bytes);
        let mut rest = &bytes[..];
        let decoded = decode(&mut rest).unwrap();
        assert!(rest.is_empty());
        assert_eq!(format!("{decoded:?}"), format!("{series:?}"));
        assert!((0..bytes.len()).all(|length| decode(&mut &bytes[..length]).is_none()));
    }
}
