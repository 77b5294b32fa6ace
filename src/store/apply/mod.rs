//! The effect of a durable record in memory. The appender, a start and a follower share this code.
//!
//! The effect depends on the state and the record alone: not on settings, limits or the clock.
//! Must never know: how a record was decided, and how it became durable.

mod lost_cells;
pub(crate) mod replay;
pub(crate) mod replicated;

use std::{
    borrow::Borrow,
    sync::{Arc, atomic::Ordering},
};

use super::{
    error::StoreError,
    file::names::JOURNAL_FILE,
    handle::Store,
    journal::{
        erasure_row::{Erasure, Pending},
        record::Record,
    },
};
use crate::model::{AcceptedBatch, Moment, SeriesId, SeriesInfo, TimesTally};

/// The number of checkpoints after which everything is in files: one may continue an earlier one.
const CHECKPOINTS: usize = 2;

/// The position of a record, and the files that are ahead of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Step {
    /// The number of the record; `None` for a change that only the tables contain.
    pub(crate) number: Option<u64>,
    /// True when the dictionary already has the changes of the record.
    pub(crate) is_in_dictionary: bool,
    /// True when the files already have the cells up to this record.
    pub(crate) freezes: bool,
}

/// The effect of a record.
#[derive(Debug, Default)]
pub(crate) struct Effect {
    /// The tally of each batch.
    pub(crate) tallies: Vec<TimesTally>,
    /// The number of samples that are beyond the retention of every level.
    pub(crate) not_kept: u64,
}

impl Store {
    /// Applies a durable record to catalog, dictionary and levels.
    ///
    /// # Panics
    /// On a bug: the numbers of records, or the ids of series, have a gap.
    pub(crate) fn apply_record<B: Borrow<AcceptedBatch>>(
        &self,
        step: Step,
        record: Record<B>,
    ) -> Effect {
        let inner = &*self.inner;
        let weight: usize = record.batches().map(AcceptedBatch::weight).sum();
        inner.journal_pending.fetch_add(weight, Ordering::Relaxed);
        let new = if step.is_in_dictionary { &[][..] } else { &record.new_series };
        let history = |info: &SeriesInfo| inner.rules.history(&info.sender, &info.key);
        let new: Vec<_> = new.iter().map(|info| (info.kind, history(info))).collect();
        let mut catalog = inner.catalog.write();
        for (kind, history) in new {
            catalog.add_series(kind, history);
        }
        let tallies = step.number.map(|number| {
            let batches = record.batches.iter().map(Borrow::borrow);
            catalog.apply(number, batches, record.now)
        });
        if let Some(erasure) = &record.erasure {
            catalog.note_erased(&erasure.series, &erasure.range);
        }
        if step.freezes {
            catalog.freeze();
        }
        let not_kept = catalog.take_not_kept();
        inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
        drop(catalog);
        if let Some(erasure) = record.erasure {
            *inner.erasure.lock() = Pending::Stored(erasure);
        }
        let changes_series = !record.new_series.is_empty() || !record.updates.is_empty();
        if changes_series && !step.is_in_dictionary {
            let mut dictionary = inner.dictionary.write();
            for (id, info) in (record.first_series..).zip(record.new_series) {
                assert_eq!(dictionary.add(info), SeriesId(id), "ids count up");
            }
            if !record.updates.is_empty() {
                dictionary.update(&record.updates);
            }
            inner.living_series.store(dictionary.len(), Ordering::Relaxed);
        }
        if !record.forgotten.is_empty() {
            inner.catalog.write().forget(&record.forgotten);
        }
        if !record.retentions.is_empty() {
            let changes = self.changed_retentions(&record.retentions, record.now);
            self.set_retentions(&changes);
        }
        Effect { tallies: tallies.unwrap_or_default(), not_kept }
    }

    /// Checks that all series of a record exist, and that its new series follow them. In a damaged
    /// record, or in a record of another store, they may not.
    pub(crate) fn check_record<B: Borrow<AcceptedBatch>>(
        &self,
        number: u64,
        record: &Record<B>,
        is_in_dictionary: bool,
    ) -> Result<(), StoreError> {
        let count = self.inner.dictionary.read().id_count();
        let corrupt = |problem| {
            let file = JOURNAL_FILE.to_owned();
            Err(StoreError::Corrupt { file, problem: format!("record {number} {problem}") })
        };
        let (first, new) = (record.first_series as usize, record.new_series.len());
        if !is_in_dictionary && new > 0 && first != count {
            return corrupt(format!("defines series {first}, but the next one is {count}"));
        }
        let count = if is_in_dictionary { count } else { count + new };
        let of_batches = record.batches().flat_map(|batch| &batch.series).copied();
        let of_updates =
            record.updates.iter().flat_map(|update| [update.id].into_iter().chain(update.into));
        let erasures = || record.erasure.iter();
        let is_of_record = |erasure: &Arc<Erasure>| erasure.through.checked_add(1) == Some(number);
        if erasures().any(|erasure| erasure.is_applied || !is_of_record(erasure)) {
            return corrupt("has the erasure of another record".to_owned());
        }
        let erased = erasures().flat_map(|erasure| &erasure.series).copied();
        let cut = erasures().flat_map(|erasure| &erasure.cut).flat_map(|slot| &slot.cells);
        let cut = cut.map(|(id, _)| *id);
        let forgotten = record.forgotten.iter().copied();
        let mut series = of_batches.chain(of_updates).chain(forgotten).chain(erased).chain(cut);
        match series.find(|series| series.0 as usize >= count) {
            None => Ok(()),
            Some(series) => corrupt(format!("names series {} of {count}", series.0)),
        }
    }

    /// Moves all cells in memory into files. The caller holds the lock of checkpoints.
    pub(crate) fn empty_memory(&self, now: Moment) -> Result<(), StoreError> {
        let applied = self.inner.catalog.read().applied();
        for _ in 0..CHECKPOINTS {
            // Other threads may have changed objects meanwhile.
            if self.checkpoint_held(now)?.through >= applied {
                return Ok(());
            }
        }
        let problem = "a checkpoint did not include all records: repeat the request".to_owned();
        Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem })
    }
}
