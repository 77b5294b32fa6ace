//! Reading of the cells of a selector's series.
//!
//! Must never know: how the cells are used.

use std::rc::Rc;

use super::{
    Selectors,
    compiled::matchers_of,
    neighbours::GapSearch,
    plan::{CachedCells, PlannedRead, ReadPlan},
    request::{Held, NeededCells, ReadRequest},
    selected::{PlannedSeries, SelectedSeries},
};
use crate::query::{QueryError, budget::cache::MatchingSeries};
use crate::{
    model::{GranularitySet, Kind, SeriesId, UnixMillis},
    policy::{coverage::Interval, query_plan::Windows},
    query::promql::{
        syntax::tree::VectorSelector,
        value::{
            cells::append_cells,
            histograms::TimedHistogram,
            range_vector::{CellMatrix, CellSeries},
        },
    },
    store::{Columns, Slot, Stretch, View},
};

impl Selectors<'_> {
    /// Returns the cells that a selector's windows need.
    pub(super) fn cells(
        &self,
        selector: &VectorSelector,
        windows: &Windows,
        needed: NeededCells,
        columns: Columns,
    ) -> Result<Rc<CellMatrix>, QueryError> {
        let matchers = || matchers_of(selector, self.bounds.limits);
        let (text, held) = (&selector.series_text(), Held::All);
        let matchers = &matchers;
        self.cells_matching(&ReadRequest { text, matchers, windows, needed, columns, held })
    }

    /// Returns the cells that windows of matching series need.
    pub(super) fn cells_matching(
        &self,
        request: &ReadRequest<'_>,
    ) -> Result<Rc<CellMatrix>, QueryError> {
        let cells = match self.cells_of_shards(request)? {
            Some(cells) => cells,
            None => self.cells_here(request)?,
        };
        self.list(&cells);
        Ok(cells)
    }

    /// Returns the cells of this shard that windows of matching series need.
    pub(super) fn cells_here(
        &self,
        request: &ReadRequest<'_>,
    ) -> Result<Rc<CellMatrix>, QueryError> {
        let (plan, series) = match self.plan(request)? {
            PlannedRead::Read(cells) => return Ok(cells),
            PlannedRead::ToRead(plan, series) => (*plan, series),
        };
        let found = match series {
            PlannedSeries::Found(found) => found,
            PlannedSeries::InChunks(MatchingSeries { ids, positions }) => {
                self.found(&ids, &positions, plan.since)?
            }
        };
        self.read(plan, found, request.windows)
    }

    /// Reads the cells of all series of a plan, and keeps them for other uses of the selector.
    pub(super) fn read(
        &self,
        plan: ReadPlan<'_>,
        found: Vec<SelectedSeries>,
        windows: &Windows,
    ) -> Result<Rc<CellMatrix>, QueryError> {
        let series = self.read_found(&plan, found, windows)?;
        let cells = Rc::new(plan.matrix(series));
        let ReadPlan { key, columns, .. } = plan;
        let mut read = self.read.borrow_mut();
        read.retain(|read| read.key != key);
        read.push(CachedCells { key, columns, cells: cells.clone() });
        Ok(cells)
    }

    /// Reads the cells of series of a plan. The result is in the order of labels.
    pub(super) fn read_found(
        &self,
        plan: &ReadPlan<'_>,
        found: Vec<SelectedSeries>,
        windows: &Windows,
    ) -> Result<Vec<CellSeries>, QueryError> {
        let (columns, intervals) = (plan.columns, &plan.intervals);
        let positions: Vec<_> = found.iter().map(|selected| selected.position).collect();
        let series = match plan.key.needed {
            NeededCells::All => {
                self.cells_of(found, intervals, columns, plan.gap_search.as_ref())?
            }
            NeededCells::Newest => {
                let granularities = self.store.granularities();
                let newest_first = newest_first(intervals, granularities, windows.first);
                self.newest_cells_of(found, &newest_first, windows.first, columns)?
            }
        };
        let mut series: Vec<_> = positions.into_iter().zip(series).collect();
        series.sort_unstable_by_key(|(position, _)| *position);
        Ok(series.into_iter().map(|(_, series)| series).collect())
    }

    fn cells_of(
        &self,
        found: Vec<SelectedSeries>,
        intervals: &[Interval],
        columns: Columns,
        gap_search: Option<&GapSearch<'_>>,
    ) -> Result<Vec<CellSeries>, QueryError> {
        self.read_in_views(found, |ids, series, slots| {
            for interval in intervals {
                let view = self.store.view(interval.stored, interval.range.clone(), ids)?;
                for (id, series) in ids.iter().zip(&mut *series) {
                    self.append(&view, *id, columns, series, slots)?;
                }
            }
            gap_search.map_or(Ok(()), |gap_search| self.add_neighbours(gap_search, ids, series))
        })
    }

    /// Reads intervals from the newest on, until each series has a cell up to a time.
    fn newest_cells_of(
        &self,
        found: Vec<SelectedSeries>,
        newest_first: &[Interval],
        upto: UnixMillis,
        columns: Columns,
    ) -> Result<Vec<CellSeries>, QueryError> {
        self.read_in_views(found, |ids, series, slots| {
            let mut missing: Vec<usize> = (0..ids.len()).collect();
            for interval in newest_first {
                let ids: Vec<_> = missing.iter().map(|index| ids[*index]).collect();
                let view = self.store.view(interval.stored, interval.range.clone(), &ids)?;
                for (id, index) in ids.iter().zip(&missing) {
                    let newer = std::mem::take(&mut series[*index].cells);
                    let newer_histograms = std::mem::take(&mut series[*index].histograms);
                    self.append(&view, *id, columns, &mut series[*index], slots)?;
                    series[*index].cells.extend(newer);
                    series[*index].histograms.extend(newer_histograms);
                }
                missing.retain(|index| {
                    let CellSeries { cells, histograms, .. } = &series[*index];
                    let first = cells.first().map(|cell| cell.first_at);
                    let first_histogram = histograms.first().map(|slot| slot.first_at);
                    let is_older = |first: i64| first <= upto.0;
                    !first.is_some_and(is_older) && !first_histogram.is_some_and(is_older)
                });
                if missing.is_empty() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Reads the cells of the series of one view at a time.
    fn read_in_views(
        &self,
        found: Vec<SelectedSeries>,
        read: impl Fn(&[SeriesId], &mut [CellSeries], &mut Vec<Slot>) -> Result<(), QueryError>,
    ) -> Result<Vec<CellSeries>, QueryError> {
        let mut series = Vec::with_capacity(found.len());
        let mut slots = Vec::new();
        let mut found = found.into_iter();
        while !found.as_slice().is_empty() {
            let part: Vec<_> = found.by_ref().take(self.sizes.view).collect();
            let ids: Vec<_> = part.iter().map(|selected| selected.id).collect();
            let first = series.len();
            series.extend(part.into_iter().map(CellSeries::from));
            read(&ids, &mut series[first..], &mut slots)?;
        }
        Ok(series)
    }

    /// Appends the cells of a series.
    pub(super) fn append(
        &self,
        view: &View,
        id: SeriesId,
        columns: Columns,
        series: &mut CellSeries,
        slots: &mut Vec<Slot>,
    ) -> Result<(), QueryError> {
        self.bounds.check_time()?;
        if let Some(stretches) = view.stretches(id) {
            return self.append_stretches(view, (id, stretches), series, slots);
        }
        if series.kind.is_histogram() {
            return self.append_histograms(view, id, series);
        }
        // The meaning of a counter's aggregates depends on its rates.
        let is_plain =
            series.kind != Kind::Counter || [Columns::NONE, Columns::ENDS].contains(&columns);
        view.slots_into(id, if is_plain { columns } else { columns.and(Columns::VALUES) }, slots)?;
        self.bounds.count_cells(slots.len())?;
        append_cells(slots, series.kind, &mut series.cells);
        Ok(())
    }

    /// Appends the histograms of a series.
    fn append_histograms(
        &self,
        view: &View,
        id: SeriesId,
        series: &mut CellSeries,
    ) -> Result<(), QueryError> {
        let slots = view.histogram_slots(id, &mut |bytes| self.bounds.reserve(bytes))?;
        self.bounds.count_cells(slots.len())?;
        series.histograms.extend(slots.into_iter().map(TimedHistogram::of_slot));
        Ok(())
    }

    /// Appends the histograms of a series of several kinds; those of several kinds of histograms
    /// keep their kind.
    fn append_histogram_stretches(
        &self,
        view: &View,
        stretches: &[Stretch],
        series: &mut CellSeries,
    ) -> Result<(), QueryError> {
        let mut ids: Vec<(Kind, Vec<SeriesId>)> = Vec::new();
        for (id, kind) in stretches.iter().filter(|(_, kind)| kind.is_histogram()) {
            series.histogram_kind = *kind;
            match ids.iter_mut().find(|(known, _)| known == kind) {
                Some((_, ids)) => ids.push(*id),
                None => ids.push((*kind, vec![*id])),
            }
        }
        let (before, has_several) = (series.histograms.len(), ids.len() > 1);
        for (kind, ids) in ids {
            let slots = view.histograms_apart(&ids, &mut |bytes| self.bounds.reserve(bytes))?;
            self.bounds.count_cells(slots.len())?;
            let kind = has_several.then_some(kind);
            let of_slot = |slot| TimedHistogram { kind, ..TimedHistogram::of_slot(slot) };
            series.histograms.extend(slots.into_iter().map(of_slot));
        }
        series.histograms[before..].sort_by_key(|slot| (slot.last_at, slot.first_at));
        Ok(())
    }

    /// Appends the cells of a series of several kinds.
    fn append_stretches(
        &self,
        view: &View,
        (id, stretches): (SeriesId, &[Stretch]),
        series: &mut CellSeries,
        slots: &mut Vec<Slot>,
    ) -> Result<(), QueryError> {
        // The cells of histograms are those of their counts, which are no numbers of the series.
        self.append_histogram_stretches(view, stretches, series)?;
        let stretches: Vec<_> =
            stretches.iter().filter(|(_, kind)| !kind.is_histogram()).copied().collect();
        let stretches = &stretches[..];
        let (before, cells) = (series.cells.len(), &mut series.cells);
        view.each_stretch(stretches, |(_, kind), slots| {
            let first = cells.len();
            append_cells(slots, kind, cells);
            cells[first..].iter_mut().for_each(|cell| cell.kind = Some(kind));
        })?;
        cells[before..].sort_by_key(|cell| (cell.last_at, cell.first_at));
        self.bounds.count_cells(cells.len() - before)?;
        if stretches.iter().any(|(_, kind)| *kind == Kind::Counter) {
            view.slots_as(id, Kind::Counter, slots)?;
            self.bounds.count_cells(slots.len())?;
            append_cells(slots, Kind::Counter, &mut series.counted);
        }
        Ok(())
    }
}

/// Returns the intervals from the newest on. The newest one begins one slot before the slot that
/// contains `at`, because most series have a sample there.
fn newest_first(
    intervals: &[Interval],
    granularities: &GranularitySet,
    at: UnixMillis,
) -> Vec<Interval> {
    let mut out: Vec<_> = intervals.iter().rev().cloned().collect();
    if let Some(newest) = out.first_mut() {
        let granularity = &granularities[newest.granularity];
        let border = granularity.slot_start(at).minus(granularity.width_ms);
        if border > newest.range.start && border < newest.range.end {
            let older = Interval { range: newest.range.start..border, ..newest.clone() };
            newest.range.start = border;
            out.insert(1, older);
        }
    }
    out
}
