//! Slots whose cells the head has lost: with damaged rows, or with a whole head that was set aside.
//!
//! Must never know: how a row is read or written.

use std::{ops::Range, sync::Arc};

use super::{Head, keys::slot_of_key, opening::open_file};
use crate::{
    model::{GranularityIndex, UnixMillis},
    store::{
        error::StoreError,
        file::{holes::Holes, names::HEAD_FILE},
        journal::in_head::InHead,
    },
};

impl Head {
    /// Returns the number of rows that were found damaged.
    pub(crate) fn damaged_rows(&self) -> u64 {
        self.damage.iter().chain(&self.histogram_damage).map(|damage| damage.count()).sum()
    }

    /// Returns the number of holes that earlier runs stored, and of holes that were lost with a
    /// whole head.
    pub(crate) fn holes_from_before(&self) -> u64 {
        let lost: usize = self.lost.read().iter().map(|lost| lost.stretches().len()).sum();
        self.damage.iter().map(|damage| damage.holes_from_before()).sum::<u64>() + lost as u64
    }

    /// Returns the slots of a granularity whose rows were damaged or lost with a head, in this run
    /// or an earlier one.
    pub(crate) fn holes(&self, index: GranularityIndex) -> Vec<Range<UnixMillis>> {
        let (damage, width_ms) = (&self.damage[index.0], self.widths_ms[index.0]);
        let keys = damage.keys().into_iter().chain(self.histogram_damage[index.0].keys());
        let mut slots: Vec<_> = keys.map(slot_of_key).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut holes = self.remembered_holes(index).stretches().to_vec();
        holes.extend(slots.into_iter().map(|slot| slot..slot.plus(width_ms)));
        holes
    }

    /// Returns the slots of a granularity whose damaged rows were replaced, or that were lost with
    /// a head.
    pub(crate) fn remembered_holes(&self, index: GranularityIndex) -> Holes {
        let mut holes = self.damage[index.0].holes();
        holes.add_all(&self.lost.read()[index.0]);
        holes
    }

    /// Adds slots whose cells were lost with a head to the holes; the next truncation of the
    /// journal stores them durably.
    pub(crate) fn add_lost(&self, slots: &[InHead]) {
        let mut lost = self.lost.write();
        for (lost_slots, key) in lost.iter_mut().zip(&self.keys) {
            let of_key = slots.iter().filter(|slots| slots.key == *key);
            of_key.for_each(|slots| lost_slots.add_all(&slots.slots));
        }
    }

    /// Stores durably which slots were lost with heads. Must be called before the head is written,
    /// because after a write the head no longer looks older than the journal's last truncation.
    pub(crate) fn keep_lost(&self) -> Result<(), StoreError> {
        self.register.journal().keep_lost(&self.lost(), &self.presumed)
    }

    /// Forgets the slots of a granularity that were lost with heads before the time since which the
    /// granularity is complete; the next truncation of the journal makes this durable.
    pub(crate) fn forget_lost(&self, index: GranularityIndex, before: UnixMillis) {
        self.lost.write()[index.0].forget_before(before);
    }

    /// Removes times of a granularity from the slots that were lost with heads, durably.
    pub(crate) fn note_mended(
        &self,
        index: GranularityIndex,
        mended: &[Range<UnixMillis>],
    ) -> Result<(), StoreError> {
        for range in mended {
            self.lost.write()[index.0].remove(range);
        }
        self.keep_lost()
    }

    /// Returns the slots whose cells were lost with heads.
    pub(crate) fn lost(&self) -> Vec<InHead> {
        let lost = self.lost.read();
        let by_key = self.keys.iter().zip(&*lost);
        by_key.map(|(key, slots)| InHead { key: *key, slots: slots.clone() }).collect()
    }

    /// Sets the head aside and creates a new head if an error was caused by its damage. Returns
    /// true in this case.
    pub(crate) fn replace_if_damaged(&self, fault: &StoreError) -> Result<bool, StoreError> {
        if !fault.is_damage_of(HEAD_FILE) {
            return Ok(false);
        }
        let mut file = self.file.write();
        if !file.is_damaged() {
            // Another thread found the damage first, and has replaced the head.
            return Ok(true);
        }
        self.register.set_aside(HEAD_FILE, fault)?;
        // The first write to the new head makes it as new as the journal's last truncation, so the
        // lost slots must be stored first.
        let in_head = self.register.journal().in_head(&self.presumed)?;
        let in_head = self.keys.iter().zip(in_head);
        let slots = in_head.filter_map(|(key, slots)| Some(InHead { key: *key, slots: slots? }));
        self.add_lost(&slots.collect::<Vec<_>>());
        self.keep_lost()?;
        *file = Arc::new(open_file(&self.medium, &self.names)?);
        self.register.note(HEAD_FILE)?;
        Ok(true)
    }
}
