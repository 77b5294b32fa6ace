//! The document layouts of one granularity: one, or for months one for each length.

use crate::model::{DocumentLayout, Granularity, UnixMillis};

/// See the module.
#[derive(Debug)]
pub(crate) struct Layouts {
    granularity: Granularity,
    /// By number of slots, ascending.
    layouts: Vec<DocumentLayout>,
}

impl Layouts {
    pub(crate) fn new(granularity: &Granularity) -> Self {
        let longest = (granularity.document.longest_ms() / granularity.width_ms) as usize;
        // Four years hold every length that a calendar span can have.
        let mut start = granularity.document_start(UnixMillis(0));
        let mut slots: Vec<usize> = Vec::new();
        for _ in 0..48 {
            slots.push(granularity.slots(start));
            start = granularity.document.next(start);
        }
        slots.sort_unstable();
        slots.dedup();
        assert!(slots.last().is_some_and(|most| *most <= longest));
        let layouts =
            slots.into_iter().map(|n| DocumentLayout::new(n, granularity.width_ms)).collect();
        Self { granularity: granularity.clone(), layouts }
    }

    /// The layout of the document that begins at `start`.
    pub(crate) fn of(&self, start: UnixMillis) -> &DocumentLayout {
        if let [only] = &self.layouts[..] {
            return only;
        }
        let slots = self.granularity.slots(start);
        let found = self.layouts.iter().find(|layout| layout.slots() == slots);
        found.unwrap_or(&self.layouts[0])
    }
}
