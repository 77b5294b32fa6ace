//! The histograms of series along an axis, merged over slots and series.
//!
//! Must never know: what is shown.

use std::ops::Range;

use crate::{
    model::{Display, Histogram, SeriesId, UnixMillis},
    query::{Budget, QueryError, cells::axis::Axis, series::grouping::Group},
    store::{Store, View},
};

/// Maximum number of series that share one view.
const SERIES_PER_VIEW: usize = 256;

/// Maximum number of slots of a series in memory at a time.
const SLOTS_PER_VIEW: i64 = 1024;

/// The histograms of one line: one per slot, `None` for a slot without samples.
pub(crate) type LineHistograms = Vec<Option<Histogram>>;

/// A reader of the histograms of groups, one group at a time.
pub(crate) struct HistogramReader<'a> {
    store: &'a Store,
    budget: &'a Budget,
    axis: &'a Axis,
    merged: LineHistograms,
    /// Number of bytes that are already reserved, for a line and for the slots of one series.
    reserved: [usize; 2],
}

impl<'a> HistogramReader<'a> {
    /// Creates a reader for the groups, if one of the numbers needs histograms.
    ///
    /// # Errors
    /// When a number needs histograms, and a group has none.
    pub(crate) fn for_displays(
        (store, budget): (&'a Store, &'a Budget),
        axis: &'a Axis,
        groups: &[Group],
        displays: impl IntoIterator<Item = Display>,
    ) -> Result<Option<Self>, QueryError> {
        if !needs_histograms(groups, displays)? {
            return Ok(None);
        }
        budget.reserve(axis.len() * size_of::<Option<Histogram>>())?;
        let merged = vec![None; axis.len()];
        Ok(Some(Self { store, budget, axis, merged, reserved: [0; 2] }))
    }

    /// Returns the merged histograms of a group.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is used up.
    pub(crate) fn read(&mut self, group: &Group) -> Result<&LineHistograms, QueryError> {
        self.merged.fill(None);
        let mut bytes = 0;
        for ids in group.members.chunks(SERIES_PER_VIEW) {
            for interval in &self.axis.intervals {
                let width_ms = self.store.granularities()[interval.stored].width_ms;
                for part in parts(&interval.range, width_ms) {
                    let view = self.store.view(interval.stored, part, ids)?;
                    for id in ids {
                        self.budget.check()?;
                        bytes += self.merge_series(&view, *id)?;
                        self.reserve(0, bytes)?;
                    }
                }
            }
        }
        Ok(&self.merged)
    }

    /// Merges the slots of one series. Returns by how many bytes the line has grown.
    fn merge_series(&mut self, view: &View, id: SeriesId) -> Result<usize, QueryError> {
        let (mut read, mut grown) = (0, 0);
        let slots = view.histogram_slots(id, &mut |bytes| {
            read += bytes;
            self.reserve(1, read)
        })?;
        for slot in slots {
            let index = self.index_of(slot.start);
            let Some(merged) = self.merged.get_mut(index) else { continue };
            if let Some(merged) = merged {
                let before = merged.bytes();
                merged.merge(&slot.cell.total);
                grown += merged.bytes().saturating_sub(before);
            } else {
                grown += slot.cell.total.bytes();
                *merged = Some(slot.cell.total);
            }
        }
        Ok(grown)
    }

    fn index_of(&self, at: UnixMillis) -> usize {
        self.axis.slots().partition_point(|(start, _)| *start <= at.0).saturating_sub(1)
    }

    /// Reserves the memory of a part, unless an earlier line or series needed as much.
    fn reserve(&mut self, part: usize, bytes: usize) -> Result<(), QueryError> {
        let reserved = &mut self.reserved[part];
        self.budget.reserve(bytes.saturating_sub(*reserved))?;
        *reserved = bytes.max(*reserved);
        Ok(())
    }
}

/// Returns true when one of the numbers needs histograms.
///
/// # Errors
/// When a number needs histograms, and a group has none, or has several kinds of series.
pub(crate) fn needs_histograms<'g>(
    groups: impl IntoIterator<Item = &'g Group>,
    displays: impl IntoIterator<Item = Display>,
) -> Result<bool, QueryError> {
    let Some(display) = displays.into_iter().find(|display| display.is_of_histograms()) else {
        return Ok(false);
    };
    let name = display.name();
    for Group { entry, is_one_kind, .. } in groups {
        if !entry.kind.is_histogram() {
            return Err(QueryError::Invalid(format!(
                "display={name} needs histograms, but {} is a {}: choose another number",
                if entry.metric.is_empty() { "a metric" } else { &entry.metric },
                entry.kind.as_str()
            )));
        }
        if !is_one_kind {
            return Err(QueryError::Invalid(format!(
                "display={name} of several kinds of series in one line ({}): select one kind",
                entry.metric
            )));
        }
    }
    Ok(true)
}

/// Divides a range into parts that begin with a slot, except the first one.
fn parts(range: &Range<UnixMillis>, width_ms: i64) -> impl Iterator<Item = Range<UnixMillis>> {
    let (end, length) = (range.end.0, width_ms.saturating_mul(SLOTS_PER_VIEW));
    let mut start = range.start.0;
    std::iter::from_fn(move || {
        let next = start.div_euclid(length).saturating_add(1).saturating_mul(length).min(end);
        let part = (start < end).then_some(UnixMillis(start)..UnixMillis(next));
        start = next;
        part
    })
}

/// Returns a percentile of a histogram; `None` when there is none.
pub(crate) fn percentile(display: Display, histogram: Option<&Histogram>) -> Option<f64> {
    let Display::Percentile(percentile) = display else { return None };
    Some(histogram?.quantile(percentile.share())).filter(|number| number.is_finite())
}

/// Merges the histograms of all slots.
pub(crate) fn merge_all(histograms: &[Option<Histogram>]) -> Option<Histogram> {
    let mut all = histograms.iter().flatten();
    let mut merged = all.next()?.clone();
    all.for_each(|histogram| merged.merge(histogram));
    Some(merged)
}
