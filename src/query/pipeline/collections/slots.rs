//! The slots of a granularity as documents, one per series and slot.
//!
//! Must never know: how series are selected, and the months.

use std::{collections::BTreeMap, ops::Range};

use super::selection::tag_fields;
use crate::{
    model::{Cell, Granularity, GranularityIndex, Histogram, SeriesId, SeriesInfo, UnixMillis},
    query::{
        Display, QueryError,
        pipeline::{
            distribution,
            document::{Document, Documents},
            quota::{Quota, Share},
            value::{Fields, Value},
        },
    },
    store::{Slot, Store, View},
};

/// Number of values in a document, including the document itself but not its tags.
const ROW_VALUES: usize = 12;

/// The field with the merged histogram of a slot, which is read when a pipeline names it.
pub(super) const DISTRIBUTION: &str = "distribution";

/// The documents of slots.
pub(in crate::pipeline) struct Slots {
    pub(super) view: View,
    /// The preallocated documents, when their empty slots are read too.
    pub(super) shells: Option<Shells>,
    pub(super) granularity: Granularity,
    /// True when the slots of histograms have the field [`DISTRIBUTION`].
    pub(super) has_distributions: bool,
    pub(super) series: Vec<(SeriesId, SeriesInfo)>,
}

/// The preallocated documents that overlap a range.
pub(in crate::pipeline) struct Shells {
    range: Range<UnixMillis>,
    /// The whole documents.
    view: View,
    width_ms: i64,
}

impl Shells {
    /// Opens a view of whole documents.
    pub(super) fn open(
        store: &Store,
        index: GranularityIndex,
        range: &Range<UnixMillis>,
        series: &[SeriesId],
    ) -> Result<Self, QueryError> {
        let granularity = store.granularity(index);
        let last = granularity.document_start(range.end.minus(1).max(range.start));
        let whole_documents =
            granularity.document_start(range.start)..granularity.document.next(last);
        let view = store.view(index, whole_documents, series)?;
        Ok(Self { range: range.clone(), view, width_ms: granularity.width_ms })
    }

    /// Adds the empty slots of a series' preallocated documents that have no samples.
    fn add_empty_slots(&self, series: SeriesId, slots: &mut Vec<Slot>) -> Result<(), QueryError> {
        let document_slots = self.view.slots(series)?;
        for span in self.view.shells(series, &document_slots)? {
            let all = (span.start.0..span.end.0).step_by(self.width_ms as usize).map(UnixMillis);
            let empty = all.filter(|start| {
                *start < self.range.end && start.plus(self.width_ms) > self.range.start
            });
            slots.extend(empty.map(|start| Slot { start, cell: Cell::EMPTY }));
        }
        slots.sort_by_key(|slot| slot.start);
        Ok(())
    }
}

impl Slots {
    /// Returns a document for each series and slot.
    pub(super) fn documents<'a>(&'a self, quota: &'a Quota<'a>) -> Documents<'a> {
        Box::new(self.series.iter().flat_map(move |(id, info)| -> Documents<'a> {
            let tags = tag_fields(info.key.tags());
            let read = || {
                // The quota is held as long as the slots that were read.
                quota.budget().check()?;
                let mut slots = self.view.slots(*id)?;
                if let Some(shells) = &self.shells {
                    shells.add_empty_slots(*id, &mut slots)?;
                }
                let mut held_share = quota.new_share(0);
                held_share.charge_bytes(size_of_val(&slots[..]))?;
                let histograms = self.histograms(*id, info, &mut held_share)?;
                Ok((slots, histograms, held_share))
            };
            match read() {
                Ok((slots, mut histograms, held_share)) => {
                    let document = move |slot: Slot| {
                        let mut share = held_share.sibling();
                        share.charge_read(ROW_VALUES + tags.len())?;
                        let mut fields = self.row(info, &tags, &slot);
                        if let Some(histogram) = histograms.remove(&slot.start) {
                            share.charge_read(distribution::size_of(&histogram))?;
                            let value = Value::Fields(distribution::to_fields(&histogram));
                            fields.set(DISTRIBUTION.into(), value);
                        }
                        Ok(Document { fields, share })
                    };
                    Box::new(slots.into_iter().map(document))
                }
                Err(cause) => Box::new(std::iter::once(Err(cause))),
            }
        }))
    }

    /// Reads the histograms of a series by the starts of their slots, if the pipeline needs them.
    fn histograms(
        &self,
        id: SeriesId,
        info: &SeriesInfo,
        share: &mut Share<'_>,
    ) -> Result<BTreeMap<UnixMillis, Histogram>, QueryError> {
        if !(self.has_distributions && info.kind.is_histogram()) {
            return Ok(BTreeMap::new());
        }
        let slots = self.view.histogram_slots(id, &mut |bytes| share.charge_bytes(bytes))?;
        Ok(slots.into_iter().map(|slot| (slot.start, slot.cell.total)).collect())
    }

    fn row(&self, info: &SeriesInfo, tags: &Fields, slot: &Slot) -> Fields {
        let cell = &slot.cell;
        let width = self.granularity.width_ms;
        let number =
            |display: Display| display.of_cell(cell, width).map_or(Value::Null, Value::Float);
        let mut out = Fields::default();
        out.set("date".into(), Value::Date(slot.start));
        out.set("metric".into(), Value::text(info.key.metric()));
        for (name, tag) in tags.iter() {
            out.set(name.clone(), tag.clone());
        }
        out.set("kind".into(), Value::text(info.kind.as_str()));
        out.set("unit".into(), Value::text(&info.unit));
        out.set("n".into(), Value::Int(i64::from(cell.n)));
        for (name, display) in [
            ("sum", Display::Total),
            ("min", Display::Min),
            ("max", Display::Max),
            ("first", Display::First),
            ("last", Display::Last),
            ("value", Display::of_kind(info.kind)),
        ] {
            out.set(name.into(), number(display));
        }
        out
    }
}
