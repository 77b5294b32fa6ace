//! The lines of a chart: displayed numbers of cells, and their ranking.
//!
//! Must never know: the store.

use super::{ChartRequest, ChartSeries, Point};
use crate::{
    model::{Cell, Histogram, UnixMillis},
    query::{
        Budget, Display, Distribution, QueryError,
        cells::axis::Axis,
        histograms::{merge_all, percentile},
        series::grouping::{Group, Ranking},
    },
};

/// Number of slots between checks of the budget.
const SLOTS_AT_A_TIME: usize = 4096;

/// The lines of a chart so far.
pub(super) struct Lines<'a> {
    budget: &'a Budget,
    request: &'a ChartRequest,
    axis: &'a Axis,
    now: UnixMillis,
    ranking: Option<Ranking<Vec<ChartSeries>>>,
    /// The lines of a chart that is not ranked.
    shown: Vec<ChartSeries>,
}

impl<'a> Lines<'a> {
    /// Reserves the memory of the lines of some groups that are held at a time.
    pub(super) fn new<'g>(
        budget: &'a Budget,
        request: &'a ChartRequest,
        (axis, now): (&'a Axis, UnixMillis),
        groups: impl Iterator<Item = &'g Group>,
    ) -> Result<Self, QueryError> {
        let lines_held =
            request.rank.map_or(usize::MAX, Ranking::<Vec<ChartSeries>>::lines_in_memory_max);
        let displays = request.displays.len().max(1);
        let entries = groups.take(lines_held).map(|group| group.entry.bytes());
        let (count, entries) = entries.fold((0_usize, 0), |(n, sum), bytes| (n + 1, sum + bytes));
        let lines = count.saturating_mul(displays);
        let points = lines.saturating_mul(axis.len()).saturating_mul(size_of::<Point>());
        budget.reserve(points.saturating_add(entries * displays))?;
        let ranking = request.rank.map(Ranking::new);
        Ok(Self { budget, request, axis, now, ranking, shown: Vec::new() })
    }

    /// Adds the lines of a group.
    pub(super) fn push(
        &mut self,
        group: &Group,
        cells: &[Cell],
        histograms: &[Option<Histogram>],
    ) -> Result<(), QueryError> {
        let kind = group.entry.kind;
        let displays = self.request.displays.iter().map(|display| display.for_kind(kind));
        let mut displays: Vec<_> = displays.collect();
        if displays.is_empty() {
            displays.push(Display::of_kind(kind));
        }
        let lines = self.group_lines((cells, histograms), group, &displays)?;
        let number = rank_number(self.request, (self.axis, self.now), group, (cells, histograms));
        match &mut self.ranking {
            Some(ranking) => ranking.push(number, lines),
            None => self.shown.extend(lines),
        }
        Ok(())
    }

    /// Returns the lines in their order.
    pub(super) fn finish(mut self) -> Vec<ChartSeries> {
        let ranked = self.ranking.into_iter().flat_map(Ranking::finish).flatten();
        self.shown.extend(ranked);
        self.shown
    }

    fn group_lines(
        &self,
        (cells, histograms): (&[Cell], &[Option<Histogram>]),
        group: &Group,
        displays: &[Display],
    ) -> Result<Vec<ChartSeries>, QueryError> {
        let mut lines = Vec::with_capacity(displays.len());
        for display in displays {
            let mut points = Vec::with_capacity(cells.len());
            for (index, (slot, cell)) in self.axis.slots().iter().zip(cells).enumerate() {
                if index % SLOTS_AT_A_TIME == 0 {
                    self.budget.check()?;
                }
                let number = if display.is_percentile() {
                    percentile(*display, histograms.get(index).and_then(Option::as_ref))
                } else {
                    group.number(*display, cell, *slot, self.now)
                };
                points.push((slot.0, number));
            }
            lines.push(ChartSeries {
                series: group.entry.clone(),
                merged: group.merged.then_some(group.count),
                display: display.name().into_owned(),
                points,
                distribution: (*display == Display::Distribution)
                    .then(|| Distribution::new(histograms, self.budget))
                    .transpose()?,
            });
        }
        Ok(lines)
    }
}

/// Returns the number by which a group is ranked: over the ended slots, or over all slots for a
/// group without numbers in ended slots. Returns `None` without a ranking.
pub(super) fn rank_number(
    request: &ChartRequest,
    (axis, now): (&Axis, UnixMillis),
    group: &Group,
    (cells, histograms): (&[Cell], &[Option<Histogram>]),
) -> Option<f64> {
    let kind = group.entry.kind;
    let by = request.rank?.by.or_else(|| request.displays.first().copied());
    let display = by.map_or(Display::of_kind(kind), |display| display.for_kind(kind));
    let ended = ended_slots(axis, now);
    let width = ended.iter().map(|(_, width)| width).sum();
    let number = |slots: usize| {
        if display.is_percentile() {
            percentile(display, merge_all(histograms.get(..slots)?).as_ref())
        } else {
            display.of_cell(&merge_slots(cells.get(..slots)?), width)
        }
    };
    number(ended.len()).or_else(|| number(cells.len()))
}

/// Returns the slots that decide the ranking: the ended slots, or all slots when no slot has ended.
fn ended_slots(axis: &Axis, now: UnixMillis) -> &[(i64, i64)] {
    let (slots, incomplete_from) = (axis.slots(), axis.incomplete_from(now));
    let closed = slots.partition_point(|(start, _)| {
        incomplete_from.is_none_or(|incomplete_from| *start < incomplete_from)
    });
    if closed == 0 { slots } else { &slots[..closed] }
}

/// Merges all slots into one cell. The index of each slot replaces its time.
fn merge_slots(cells: &[Cell]) -> Cell {
    let mut all = Cell::EMPTY;
    for (index, cell) in (0..).zip(cells) {
        all.merge(&Cell { first_at: index, last_at: index, ..*cell });
    }
    all
}
