//! The slots of a granularity as documents, one per series and slot.
//!
//! Must never know: how series are selected, and the months.

use super::selection::tag_fields;
use crate::{
    model::{Granularity, SeriesId, SeriesInfo},
    query::{
        Display,
        pipeline::{
            document::{Document, Documents},
            quota::Quota,
            value::{Fields, Value},
        },
    },
    store::{Slot, View},
};

/// Number of values in a document, including the document itself but not its tags.
const ROW_VALUES: usize = 12;

/// The documents of slots.
pub(in crate::pipeline) struct Slots {
    pub(super) view: View,
    pub(super) granularity: Granularity,
    pub(super) found: Vec<(SeriesId, SeriesInfo)>,
}

impl Slots {
    /// Returns a document for each series and slot.
    pub(super) fn documents<'a>(&'a self, quota: &'a Quota<'a>) -> Documents<'a> {
        Box::new(self.found.iter().flat_map(move |(id, info)| -> Documents<'a> {
            let tags = tag_fields(info.key.tags());
            let read = || {
                // The quota is held as long as the slots that were read.
                quota.budget().check()?;
                let slots = self.view.slots(*id)?;
                let mut held = quota.begin(0);
                held.take_bytes(size_of_val(&slots[..]))?;
                Ok((slots, held))
            };
            match read() {
                Ok((slots, held)) => {
                    let document = move |slot: Slot| {
                        let mut share = held.another();
                        share.take_read(ROW_VALUES + tags.len())?;
                        Ok(Document { fields: self.row(info, &tags, &slot), share })
                    };
                    Box::new(slots.into_iter().map(document))
                }
                Err(cause) => Box::new(std::iter::once(Err(cause))),
            }
        }))
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
