//! Reading of the cells of matching series at the finest granularities.
//!
//! Must never know: the protocols.

use super::{ReadingsRequest, SeriesReadings};
use crate::{
    model::{
        GranularityIndex, Histogram, HistogramSlot, Kind, STALE_MARKER, SeriesId, SeriesInfo,
        UnixMillis,
    },
    query::{
        ExpressionLimits, Labels, QueryError, SeriesMatcher, budget::cache::MatchingSeries,
        cells::coverage::coverage, series::matched::select_cached, series::selector::CHUNK,
    },
    store::{Columns, Slot, Store, View},
};

/// Number of series per view. Creating a view blocks the writer for a moment.
const SERIES_PER_VIEW: usize = 1024;

/// Calls `visit` with the readings of each matching series of this shard; see
/// [`super::each_series`].
pub(super) fn each_series_here(
    store: &Store,
    sets: &[Vec<SeriesMatcher>],
    request: &ReadingsRequest,
    limits: &ExpressionLimits<'_>,
    now: UnixMillis,
    visit: &mut dyn FnMut(SeriesReadings) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let found = select(store, sets, request, limits)?;
    let mut reader =
        Reader { store, limits, request, now, cells: 0, reserved_slots: 0, slots: Vec::new() };
    for part in found.chunks(SERIES_PER_VIEW) {
        reader.read(part, visit)?;
    }
    Ok(())
}

/// A series to read.
struct SelectedSeries {
    id: SeriesId,
    info: SeriesInfo,
    position: u32,
    /// The time of the stale marker that ended the series.
    ended_at: Option<UnixMillis>,
}

/// Returns the matching series in order of labels.
fn select(
    store: &Store,
    sets: &[Vec<SeriesMatcher>],
    request: &ReadingsRequest,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<SelectedSeries>, QueryError> {
    let text = format!("readings {sets:?}");
    let MatchingSeries { ids, positions } =
        select_cached(store, &text, &|| Ok(sets.to_vec()), limits)?;
    let mut found: Vec<SelectedSeries> = Vec::new();
    for (ids, positions) in ids.chunks(CHUNK).zip(positions.chunks(CHUNK)) {
        limits.budget.check()?;
        let (before, last) = (found.len(), store.last_samples(ids));
        let dictionary = store.dictionary();
        found.extend(ids.iter().zip(positions).zip(last).filter_map(|((id, position), last)| {
            let last = last.filter(|last| last.at >= request.range.start)?;
            let info = dictionary.info(*id)?;
            Some(SelectedSeries { id: *id, info, position: *position, ended_at: last.ended_at })
        }));
        drop(dictionary);
        let keys = found[before..].iter().map(|series| Labels::bytes_of_key(&series.info.key));
        limits.reserve(size_of_val(&found[before..]) + keys.sum::<usize>())?;
    }
    found.sort_unstable_by_key(|series| series.position);
    Ok(found)
}

/// Reads the cells of series, and counts them.
struct Reader<'a> {
    store: &'a Store,
    limits: &'a ExpressionLimits<'a>,
    request: &'a ReadingsRequest,
    now: UnixMillis,
    /// Number of cells read.
    cells: usize,
    /// Number of slots for which memory is reserved.
    reserved_slots: usize,
    slots: Vec<Slot>,
}

impl Reader<'_> {
    fn read(
        &mut self,
        part: &[SelectedSeries],
        visit: &mut dyn FnMut(SeriesReadings) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let range = &self.request.range;
        let mut views = Vec::new();
        if !self.request.labels_only && range.start < range.end {
            let ids: Vec<_> = part.iter().map(|series| series.id).collect();
            let coverage = coverage(self.store, &ids, range, self.now);
            let intervals = coverage.intervals(GranularityIndex::FINEST, range.clone());
            for interval in coverage.with_fine_end(intervals) {
                views.push(self.store.view(interval.stored, interval.range, &ids)?);
            }
        }
        for series in part {
            self.limits.budget.check()?;
            let (mut readings, mut histograms) = (Vec::new(), Vec::new());
            for view in &views {
                if series.info.kind.is_histogram() {
                    self.append_histograms(view, series, &mut histograms)?;
                } else {
                    self.append(view, series, &mut readings)?;
                }
            }
            let marker = series.ended_at.filter(|ended| range.contains(ended));
            if let Some(ended) = marker.filter(|_| !readings.is_empty()) {
                readings.push((ended.0, STALE_MARKER));
            }
            if let Some(ended) = marker.filter(|_| !histograms.is_empty()) {
                histograms.push((ended.0, Histogram::stale()));
            }
            if readings.is_empty() && histograms.is_empty() && !self.request.labels_only {
                continue;
            }
            let labels = Labels::of_key(series.info.key.clone());
            visit(SeriesReadings { labels, kind: series.info.kind, readings, histograms })?;
        }
        Ok(())
    }

    /// Appends the readings of an interval.
    fn append(
        &mut self,
        view: &View,
        series: &SelectedSeries,
        out: &mut Vec<(i64, f64)>,
    ) -> Result<(), QueryError> {
        let is_delta = series.info.kind == Kind::Delta;
        let columns = if is_delta { Columns::VALUES } else { Columns::ENDS };
        view.slots_into(series.id, columns, &mut self.slots)?;
        self.count(self.slots.len())?;
        for slot in &self.slots {
            for (at, value) in readings_of(slot, is_delta).into_iter().flatten() {
                let is_later = out.last().is_none_or(|(before, _)| *before < at);
                if is_later && self.request.range.contains(&UnixMillis(at)) {
                    out.push((at, value));
                }
            }
        }
        Ok(())
    }

    /// Appends the histograms of an interval.
    fn append_histograms(
        &mut self,
        view: &View,
        series: &SelectedSeries,
        out: &mut Vec<(i64, Histogram)>,
    ) -> Result<(), QueryError> {
        let limits = self.limits;
        let (before, mut kept) = (limits.budget.reserved(), 0);
        let slots = view.histogram_slots(series.id, &mut |bytes| limits.reserve(bytes))?;
        for slot in slots {
            self.count(1)?;
            let found = histograms_of(slot, series.info.kind == Kind::DeltaHistogram);
            for (at, histogram) in found.into_iter().flatten() {
                let is_later = out.last().is_none_or(|(before, _)| *before < at);
                if is_later && self.request.range.contains(&UnixMillis(at)) {
                    kept += histogram.bytes();
                    out.push((at, histogram));
                }
            }
        }
        limits.budget.shrink_to(before + kept);
        Ok(())
    }

    fn count(&mut self, more: usize) -> Result<(), QueryError> {
        let max = self.limits.points_max;
        self.cells += more;
        if self.cells > max {
            return Err(QueryError::TooMuch(format!(
                "the query reads more than {max} slots: ask for a shorter range or fewer series, \
                 or raise limits.query_points_max"
            )));
        }
        // The buffers of slots and readings are reused for each series.
        let room = self.slots.capacity();
        let grown = room.saturating_sub(self.reserved_slots);
        self.reserved_slots += grown;
        self.limits.reserve(grown * (size_of::<Slot>() + 2 * size_of::<(i64, f64)>()))
    }
}

/// Returns the known readings of a slot.
fn readings_of(slot: &Slot, is_delta: bool) -> [Option<(i64, f64)>; 2] {
    let Slot { start, cell } = slot;
    let first_at = start.0 + i64::from(cell.first_at);
    let last_at = start.0 + i64::from(cell.last_at);
    match cell.n {
        0 => [None; 2],
        1 => [Some((last_at, cell.last)), None],
        2.. if is_delta && cell.n > 2 => [Some((last_at, cell.sum)), None],
        2.. if first_at == last_at => [Some((last_at, cell.last)), None],
        2.. => [Some((first_at, cell.first)), Some((last_at, cell.last))],
    }
}

/// Returns the known histograms of a slot.
fn histograms_of(slot: HistogramSlot, is_delta: bool) -> [Option<(i64, Histogram)>; 2] {
    let HistogramSlot { start, cell } = slot;
    let first_at = start.0 + i64::from(cell.first_at);
    let last_at = start.0 + i64::from(cell.last_at);
    match cell.n {
        0 => [None, None],
        2.. if is_delta && cell.n > 2 => [Some((last_at, cell.total)), None],
        1.. if first_at == last_at => [Some((last_at, cell.last)), None],
        1.. => [Some((first_at, cell.first)), Some((last_at, cell.last))],
    }
}
