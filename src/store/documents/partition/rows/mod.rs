//! The layouts of the open documents of one partition: one layout, or for documents of months one
//! layout for each length.
//!
//! Must never know: the bytes of a document, which `layout` describes.

pub(crate) mod layout;
pub(crate) mod moments;

use crate::model::{Span, UnixMillis};
use layout::DocumentLayout;

/// The layouts of the documents of one partition.
#[derive(Debug)]
pub(crate) struct Layouts {
    width_ms: i64,
    document: Span,
    /// Layouts by number of slots, ascending.
    by_slots: Vec<DocumentLayout>,
}

impl Layouts {
    /// Returns the layouts of documents of a span, with slots of a width.
    pub(crate) fn new(width_ms: i64, document: Span) -> Self {
        let longest = (document.longest_ms() / width_ms) as usize;
        // 48 documents of a month are four years, which contain every length of a month.
        let mut start = document.start_of(UnixMillis(0));
        let mut slots: Vec<usize> = Vec::new();
        for _ in 0..48 {
            let next = document.next(start);
            slots.push(((next.0 - start.0) / width_ms) as usize);
            start = next;
        }
        slots.sort_unstable();
        slots.dedup();
        assert!(slots.last().is_some_and(|most| *most <= longest));
        let by_slots =
            slots.into_iter().map(|count| DocumentLayout::new(count, width_ms)).collect();
        Self { width_ms, document, by_slots }
    }

    /// Returns the layout of the document that begins at `start`.
    pub(crate) fn of(&self, start: UnixMillis) -> &DocumentLayout {
        if let [only] = &self.by_slots[..] {
            return only;
        }
        let slots = ((self.document.next(start).0 - start.0) / self.width_ms) as usize;
        let found = self.by_slots.iter().find(|layout| layout.slots() == slots);
        found.unwrap_or(&self.by_slots[0])
    }
}
