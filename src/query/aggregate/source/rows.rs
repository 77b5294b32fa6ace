//! The slots of a granularity as documents, one for each series and slot.
//!
//! Must never know: how series are chosen, and the months.

use super::tag_fields;
use crate::{
    model::{Granularity, SeriesId},
    query::{
        Display,
        aggregate::{
            flow::Documents,
            value::{Fields, Value},
        },
    },
    store::{SeriesInfo, Slot, View},
};

/// Slots of series, each a document.
pub(in crate::query::aggregate) struct Rows {
    pub(super) view: View,
    pub(super) granularity: Granularity,
    pub(super) found: Vec<(SeriesId, SeriesInfo)>,
}

impl Rows {
    /// A document for each series and slot.
    pub(super) fn documents(&self) -> Documents<'_> {
        Box::new(self.found.iter().flat_map(move |(id, info)| -> Documents<'_> {
            let tags = tag_fields(info.key.tags());
            match self.view.slots(*id) {
                Ok(slots) => {
                    Box::new(slots.into_iter().map(move |slot| Ok(self.row(info, &tags, &slot))))
                }
                Err(cause) => Box::new(std::iter::once(Err(cause.into()))),
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
