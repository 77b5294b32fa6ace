//! Erasure: the samples of chosen series in a range of time are deleted at every level.
//!
//! An erasure is a barrier: a checkpoint moves all accepted cells into files, as of a record N, and
//! then the erasure is stored in the journal ([`plan`]). At this point, all cells up to N are in
//! files, and all later cells are in memory; samples that arrive later for an erased time count as
//! usual. The files are changed afterwards ([`apply`]). Cells are set, not merged, so this step can
//! be repeated until the next checkpoint writes files. Therefore each checkpoint, and each start,
//! completes the erasure first. The checkpoint's cut removes the erasure from the journal.
//!
//! Whole slots in the range are emptied. A slot that the range cuts keeps its samples outside of
//! the range: its new cell is merged from the cells of a finer level that has all samples of the
//! slot, and is part of the erasure. When no finer level has all samples of the slot, the erasure
//! is refused.
//!
//! The replacement of single readings ([`replace`]) is an erasure without a range: all of its cells
//! are in slots that keep some samples, including the new readings.
//!
//! Must never know: who erases, and why.

mod apply;
pub(crate) mod cut;
pub(crate) mod plan;
pub(crate) mod replace;

use std::sync::Arc;

use super::{
    encoding::lanes::row_of,
    error::StoreError,
    file::names::JOURNAL_FILE,
    handle::Store,
    journal::erasure_row::{Erasure, Pending},
};
use crate::model::SeriesId;

impl Store {
    /// Returns true while the files of a stored erasure are not changed completely.
    pub fn is_erasing(&self) -> bool {
        !matches!(*self.inner.erasure.lock(), Pending::Nothing)
    }

    /// Completes the stored erasure, unless a checkpoint has already completed it.
    ///
    /// # Errors
    /// When a file cannot be written. The next checkpoint then completes the erasure.
    pub fn complete_erasure(&self) -> Result<(), StoreError> {
        let _no_checkpoint = self.inner.checkpointing.lock();
        self.settle_erasure()
    }

    /// Completes or removes an erasure. The caller holds the lock of checkpoints.
    pub(super) fn settle_erasure(&self) -> Result<(), StoreError> {
        let pending = self.inner.erasure.lock().clone();
        match pending {
            Pending::Nothing => return Ok(()),
            Pending::Unsure => self.inner.journal.remove_erasure()?,
            Pending::Stored(erasure) => {
                let cells = self.apply(&erasure)?;
                let applied = Erasure { is_applied: true, ..(*erasure).clone() };
                self.inner.journal.set_erasure(&applied)?;
                self.inner.counters.cells_erased.add(cells);
            }
        }
        *self.inner.erasure.lock() = Pending::Nothing;
        Ok(())
    }

    /// Restores the effect of the erasure since the last truncation of the journal on the states
    /// that were stored before the erasure.
    pub(super) fn restore_erasure(&self) -> Result<(), StoreError> {
        let Some(erasure) = self.inner.journal.erasure()? else { return Ok(()) };
        let series_count = self.inner.dictionary.read().id_count();
        if erasure.series.last().is_some_and(|last| last.0 as usize >= series_count) {
            let problem =
                format!("a deletion of samples names a series beyond the {series_count} existing");
            return Err(StoreError::Corrupt { file: JOURNAL_FILE.to_owned(), problem });
        }
        // An interrupted cut has stored the states of these rows after the erasure: they contain its
        // effect, and readings that were accepted later.
        let (through, rows) = self.inner.journal.states_ahead()?;
        let is_noted = |id: SeriesId| through > erasure.through && row_of(id) < rows;
        let series: Vec<_> = erasure.series.iter().copied().filter(|id| !is_noted(*id)).collect();
        self.inner.catalog.write().note_erased(&series, &erasure.range);
        if !erasure.is_applied {
            *self.inner.erasure.lock() = Pending::Stored(Arc::new(erasure));
        }
        Ok(())
    }

    /// Completes an erasure at a start. When that fails, the next checkpoint retries.
    pub(super) fn resume_erasure(&self) {
        if let Err(cause) = self.complete_erasure() {
            let cause = cause.with_causes();
            tracing::error!(
                cause,
                "cannot complete a deletion of samples; the next checkpoint retries"
            );
        }
    }
}
