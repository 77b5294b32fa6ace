//! Documents as rows: one row with a date and a number for each slot.
//!
//! Must never know: the documents in which slots are stored.

use jiff::tz::TimeZone;

use super::{DocumentRow, DocumentsAnswer, DocumentsQuery, DocumentsRequest};
use crate::{
    model::{Cell, Histogram, UnixMillis},
    query::{
        Budget, Display, QueryError,
        cells::axis::Axis,
        histograms::{HistogramReader, percentile},
        series::grouping::Group,
        time::calendar::local_time,
    },
};

/// Number of slots between checks of the budget.
const SLOTS_AT_A_TIME: usize = 512;

/// The rows of the groups so far.
pub(super) struct Rows<'a> {
    budget: &'a Budget,
    axis: &'a Axis,
    display: Option<Display>,
    zone: TimeZone,
    now: UnixMillis,
    by_slot: Vec<Vec<DocumentRow>>,
}

impl<'a> Rows<'a> {
    /// Creates rows without groups.
    ///
    /// # Errors
    /// When rows cannot show the requested number, or the budget is used up.
    pub(super) fn new(
        budget: &'a Budget,
        (request, now): (&DocumentsRequest, UnixMillis),
        axis: &'a Axis,
    ) -> Result<Self, QueryError> {
        let zone = request.time_zone.clone().unwrap_or(TimeZone::UTC);
        budget.reserve(axis.len() * size_of::<Vec<DocumentRow>>())?;
        let by_slot: Vec<Vec<DocumentRow>> = vec![Vec::new(); axis.len()];
        if request.display == Some(Display::Distribution) {
            let message = "display=distribution needs a chart: rows show one number per slot";
            return Err(QueryError::Invalid(message.to_owned()));
        }
        Ok(Self { budget, axis, display: request.display, zone, now, by_slot })
    }

    /// Adds a row for each slot of a group.
    ///
    /// # Errors
    /// When the budget is used up.
    pub(super) fn push(
        &mut self,
        group: &Group,
        cells: &[Cell],
        histograms: &[Option<Histogram>],
    ) -> Result<(), QueryError> {
        let mut percentiles = histograms.iter();
        let kind = group.entry.kind;
        let requested = self.display.map(|display| display.for_kind(kind));
        let display = requested.unwrap_or_else(|| Display::of_kind(kind));
        let row_bytes = size_of::<DocumentRow>() + group.entry.bytes();
        let slots = self.axis.slots().chunks(SLOTS_AT_A_TIME);
        let by_slot = self.by_slot.chunks_mut(SLOTS_AT_A_TIME);
        for ((slots, cells), rows) in slots.zip(cells.chunks(SLOTS_AT_A_TIME)).zip(by_slot) {
            self.budget.check()?;
            self.budget.reserve(cells.len() * row_bytes)?;
            for ((slot, cell), rows) in slots.iter().zip(cells).zip(rows) {
                let value = if display.is_percentile() {
                    percentile(display, percentiles.next().and_then(Option::as_ref))
                } else {
                    group.number(display, cell, *slot, self.now)
                };
                rows.push(DocumentRow {
                    date: local_time(UnixMillis(slot.0), &self.zone),
                    value,
                    metric: group.entry.metric.clone(),
                    tags: group.entry.tags.clone(),
                });
            }
        }
        Ok(())
    }

    /// Returns the answer, in order of time and group.
    pub(super) fn finish(self, notes: Vec<String>) -> DocumentsAnswer {
        DocumentsAnswer::Rows { rows: self.by_slot.into_iter().flatten().collect(), notes }
    }
}

impl DocumentsQuery<'_> {
    /// Returns a row for each slot and group.
    pub(super) fn rows(&self, groups: &[Group]) -> Result<DocumentsAnswer, QueryError> {
        let axis = self.axis(groups, &self.request.resolution, &self.request.range)?;
        let mut rows = Rows::new(self.budget, (self.request, self.now), &axis)?;
        let source = (self.store, self.budget);
        let mut histogram_reader =
            HistogramReader::for_displays(source, &axis, groups, self.request.display)?;
        self.read(&axis, groups, true, |group, cells| {
            let histograms = match &mut histogram_reader {
                Some(reader) => &reader.read(group)?[..],
                None => &[],
            };
            rows.push(group, cells, histograms)
        })?;
        Ok(rows.finish(axis.notes.clone()))
    }
}
