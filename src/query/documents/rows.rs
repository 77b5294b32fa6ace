//! Documents as rows: one row with a date and a number for each slot.
//!
//! Must never know: the documents in which slots are stored.

use jiff::tz::TimeZone;

use super::{DocumentRow, DocumentsAnswer, DocumentsQuery};
use crate::{
    model::UnixMillis,
    query::{
        Display, QueryError,
        histograms::{HistogramReader, percentile},
        series::grouping::Group,
        time::calendar::local_time,
    },
};

/// Number of slots between checks of the budget.
const SLOTS_AT_A_TIME: usize = 512;

impl DocumentsQuery<'_> {
    /// Returns a row for each slot and group.
    pub(super) fn rows(&self, groups: &[Group]) -> Result<DocumentsAnswer, QueryError> {
        let axis = self.axis(groups, &self.request.resolution, &self.request.range)?;
        let zone = self.request.time_zone.clone().unwrap_or(TimeZone::UTC);
        self.budget.reserve(axis.len() * size_of::<Vec<DocumentRow>>())?;
        let mut by_slot: Vec<Vec<DocumentRow>> = vec![Vec::new(); axis.len()];
        let slots = || axis.slots().chunks(SLOTS_AT_A_TIME);
        let source = (self.store, self.budget);
        if self.request.display == Some(Display::Distribution) {
            let message = "display=distribution needs a chart: rows show one number per slot";
            return Err(QueryError::Invalid(message.to_owned()));
        }
        let mut histogram_reader =
            HistogramReader::for_displays(source, &axis, groups, self.request.display)?;
        self.read(&axis, groups, true, |group, cells| {
            let mut percentiles = histogram_reader
                .as_mut()
                .map(|reader| reader.read(group))
                .transpose()?
                .into_iter()
                .flatten();
            let kind = group.entry.kind;
            let requested = self.request.display.map(|display| display.for_kind(kind));
            let display = requested.unwrap_or_else(|| Display::of_kind(kind));
            let row_bytes = size_of::<DocumentRow>() + group.entry.bytes();
            let cells = cells.chunks(SLOTS_AT_A_TIME);
            for ((slots, cells), rows) in
                slots().zip(cells).zip(by_slot.chunks_mut(SLOTS_AT_A_TIME))
            {
                self.budget.check()?;
                self.budget.reserve(cells.len() * row_bytes)?;
                for ((slot, cell), rows) in slots.iter().zip(cells).zip(rows) {
                    let value = if display.is_percentile() {
                        percentile(display, percentiles.next().and_then(Option::as_ref))
                    } else {
                        group.number(display, cell, *slot, self.now)
                    };
                    rows.push(DocumentRow {
                        date: local_time(UnixMillis(slot.0), &zone),
                        value,
                        metric: group.entry.metric.clone(),
                        tags: group.entry.tags.clone(),
                    });
                }
            }
            Ok(())
        })?;
        let rows = by_slot.into_iter().flatten().collect();
        Ok(DocumentsAnswer::Rows { rows, notes: axis.notes })
    }
}
