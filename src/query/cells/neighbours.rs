//! Readings of counters next to a range. A counter's growth in a gap that crosses an edge of the
//! range is spread over both sides of the edge, so that a part of a chart shows the same values as
//! the whole.
//!
//! Most series have a reading in the slots next to the range. For other series, the search
//! continues in coarser granularities, whose cells also have the times of their first and last
//! readings, up to [`GAP_MAX_MS`] from the range. Charts and PromQL use this
//! search. Must never know: what is shown.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    model::{
        GranularityIndex, Reading, SeriesId, UnixMillis,
        counter::spread::{GAP_MAX_MS, Gap, spacing_ms},
    },
    policy::coverage::{Coverage, Interval},
    query::{Budget, QueryError},
    store::{Columns, Slot, Store},
};

/// The number of slots that are searched first. Then follow the slots up to the next edge of a
/// coarser slot, then coarser granularities.
const NEAR_SLOTS: i64 = 2;
/// Maximum number of slots that are read again at the granularity of the range. One slot covers all
/// series whose nearest reading is in that slot.
const REFINED_SLOTS_MAX: usize = 64;

/// The first and last reading of a counter's slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotReadings {
    first: Reading,
    last: Reading,
    slot_start: i64,
    growth: f64,
    spacing_ms: f64,
}

/// A gap between two slots, with the start of the later slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotGap {
    pub(crate) gap: Gap,
    pub(crate) slot_start: i64,
}

impl SlotReadings {
    /// Returns the readings of a slot; `None` when the slot is empty.
    pub(crate) fn of(slot: &Slot) -> Option<Self> {
        let Slot { start: UnixMillis(start), cell } = slot;
        let at = |offset: u32| start + i64::from(offset);
        (cell.n > 0).then(|| Self {
            first: Reading::new(at(cell.first_at), cell.first, 0),
            last: Reading::new(at(cell.last_at), cell.last, 0),
            slot_start: *start,
            growth: cell.sum,
            spacing_ms: spacing_ms(cell.n, at(cell.first_at), at(cell.last_at)),
        })
    }

    /// Returns the gap from this slot to a later slot; `None` when no growth is spread over it.
    /// `width_ms` is the width of the finest slots of the store.
    #[inline]
    pub(crate) fn gap_to(&self, after: &Self, width_ms: i64) -> Option<SlotGap> {
        let spacing = self.spacing_ms.min(after.spacing_ms);
        let growth_and_last = (after.growth, after.last.value);
        let gap = Gap::between(&self.last, &after.first, growth_and_last, spacing, width_ms)?;
        Some(SlotGap { gap, slot_start: after.slot_start })
    }
}

/// The side of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// A search for the slots next to an edge of a range.
pub(crate) struct NeighbourSearch<'a> {
    pub(crate) store: &'a Store,
    pub(crate) budget: &'a Budget,
    pub(crate) coverage: &'a Coverage<'a>,
    /// The granularity of the range at this edge.
    pub(crate) granularity: GranularityIndex,
    pub(crate) edge: UnixMillis,
    pub(crate) side: Side,
}

impl NeighbourSearch<'_> {
    /// Returns the slot of each series that is nearest to the edge; `None` when no slot is found.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is used up.
    pub(crate) fn nearest_slots(
        &self,
        series: &[SeriesId],
    ) -> Result<Vec<Option<Slot>>, QueryError> {
        let mut found = vec![None; series.len()];
        let mut missing: Vec<usize> = (0..series.len()).collect();
        let mut coarse = Vec::new();
        for (granularity, range) in self.search_ranges() {
            if missing.is_empty() {
                break;
            }
            let searched = missing.clone();
            self.search_range(granularity, range, series, &mut missing, &mut found)?;
            if granularity > self.granularity {
                coarse.extend(searched.into_iter().filter(|index| !missing.contains(index)));
            }
        }
        self.refine(series, &coarse, &mut found)?;
        Ok(found)
    }

    /// Returns the ranges to search, from the edge outwards, each with its granularity.
    fn search_ranges(&self) -> Vec<(GranularityIndex, Range<UnixMillis>)> {
        let granularities = self.coverage.granularities();
        let width = |index| granularities[index].width_ms;
        let near_ms = NEAR_SLOTS * width(self.granularity);
        let mut out = Vec::new();
        let (mut granularity, mut at) = (self.granularity, self.edge);
        let furthest = match self.side {
            Side::Before => self.edge.minus(GAP_MAX_MS),
            Side::After => self.edge.plus(GAP_MAX_MS),
        };
        for step in 0.. {
            let is_coarsest = granularity.0 + 1 >= granularities.count();
            let next_edge = |from: UnixMillis| match (is_coarsest && step > 0, self.side) {
                (true, _) => furthest,
                (false, Side::Before) if step == 0 => from.minus(near_ms),
                (false, Side::After) if step == 0 => from.plus(near_ms),
                (false, Side::Before) => granularities[granularity.coarser()].slot_start(from),
                (false, Side::After) => {
                    let coarser = &granularities[granularity.coarser()];
                    coarser.slot_start(from.minus(1)).plus(coarser.width_ms)
                }
            };
            let next = next_edge(at);
            match self.side {
                Side::Before => out.push((granularity, next.max(furthest)..at)),
                Side::After => out.push((granularity, at..next.min(furthest))),
            }
            at = next;
            if step > 0 {
                if is_coarsest {
                    break;
                }
                granularity = granularity.coarser();
            }
        }
        out.retain(|(_, range)| range.start < range.end);
        out
    }

    /// Searches one range for the series that are still missing.
    fn search_range(
        &self,
        granularity: GranularityIndex,
        range: Range<UnixMillis>,
        series: &[SeriesId],
        missing: &mut Vec<usize>,
        found: &mut [Option<Slot>],
    ) -> Result<(), QueryError> {
        let mut intervals = self.coverage.intervals(granularity, range);
        if self.side == Side::Before {
            intervals.reverse();
        }
        let mut slots = Vec::new();
        for Interval { stored, range, .. } in intervals {
            let ids: Vec<_> = missing.iter().map(|index| series[*index]).collect();
            let view = self.store.view(stored, range, &ids)?;
            for (id, index) in ids.into_iter().zip(&*missing) {
                self.budget.check()?;
                view.slots_into(id, Columns::VALUES, &mut slots)?;
                found[*index] = self.nearest(&slots);
            }
            missing.retain(|index| found[*index].is_none());
        }
        Ok(())
    }

    /// Returns the nearest slot whose readings are all on this side of the edge.
    fn nearest(&self, slots: &[Slot]) -> Option<Slot> {
        let is_beside = |slot: &&Slot| {
            SlotReadings::of(slot).is_some_and(|ends| match self.side {
                Side::Before => ends.last.at < self.edge.0,
                Side::After => ends.first.at >= self.edge.0,
            })
        };
        match self.side {
            Side::Before => slots.iter().rfind(is_beside),
            Side::After => slots.iter().find(is_beside),
        }
        .copied()
    }

    /// Replaces slots from coarser granularities with slots at the granularity of the range, where
    /// that granularity still contains them. The spacing of the readings is then computed as in a
    /// range that includes these slots.
    fn refine(
        &self,
        series: &[SeriesId],
        coarse: &[usize],
        found: &mut [Option<Slot>],
    ) -> Result<(), QueryError> {
        let granularity = &self.coverage.granularities()[self.granularity];
        let mut by_slot: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for index in coarse {
            let Some(ends) = found[*index].as_ref().and_then(SlotReadings::of) else { continue };
            let at = if self.side == Side::Before { ends.last.at } else { ends.first.at };
            by_slot.entry(granularity.slot_start(UnixMillis(at)).0).or_default().push(*index);
        }
        for (start, indexes) in by_slot.into_iter().take(REFINED_SLOTS_MAX) {
            let start = UnixMillis(start);
            let range = start..start.plus(granularity.width_ms);
            if !self.coverage.is_whole(self.granularity, &range) {
                continue;
            }
            let mut refined = vec![None; indexes.len()];
            let ids: Vec<_> = indexes.iter().map(|index| series[*index]).collect();
            let mut missing = (0..ids.len()).collect();
            self.search_range(self.granularity, range, &ids, &mut missing, &mut refined)?;
            for (index, slot) in indexes.into_iter().zip(refined) {
                if slot.is_some() {
                    found[index] = slot;
                }
            }
        }
        Ok(())
    }
}
