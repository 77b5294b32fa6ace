//! Erasure of samples: a checkpoint, the plan, and its row in the journal.
//!
//! Must never know: how files are changed.

use std::{ops::Range, sync::Arc};

use super::Appender;
use crate::{
    model::{Moment, ProjectName, SeriesId, UnixMillis},
    store::{
        erasure::plan::{ErasedLevel, ErasureRefusal, ErasureRequest},
        error::StoreError,
        file::names::JOURNAL_FILE,
        journal::erasure_row::{CutSlot, Erasure, Pending},
    },
};

/// The number of checkpoints after which everything is in files: one may continue an earlier one.
const CHECKPOINTS: usize = 2;

/// An accepted erasure, or the effect that it would have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErasureReport {
    /// The number of series that match.
    pub series: usize,
    /// The levels with cells to erase; only in a dry run.
    pub levels: Vec<ErasedLevel>,
}

impl Appender {
    /// Erases samples of the project `default`; see [`Self::erase_in`].
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn erase(
        &mut self,
        request: &ErasureRequest,
        is_dry: bool,
        now: impl Into<Moment>,
    ) -> Result<Result<ErasureReport, ErasureRefusal>, StoreError> {
        self.erase_in(&ProjectName::default(), request, is_dry, now)
    }

    /// Erases samples of a project: stores the erasure durably. It is complete after
    /// [`crate::store::Store::complete_erasure`]. A dry run changes nothing.
    ///
    /// # Errors
    /// When a file cannot be read or written: the erasure is stored or not, and a later checkpoint
    /// or start completes or removes it.
    pub fn erase_in(
        &mut self,
        project: &ProjectName,
        request: &ErasureRequest,
        is_dry: bool,
        now: impl Into<Moment>,
    ) -> Result<Result<ErasureReport, ErasureRefusal>, StoreError> {
        let (inner, now) = (&*self.store.inner, now.into());
        let Some(_no_checkpoint) = inner.checkpointing.try_lock() else {
            return Ok(Err(ErasureRefusal::Running));
        };
        if !is_dry {
            self.empty_memory(now)?;
        }
        let plan = match self.store.for_project(project).plan_erasure(request)? {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut report = ErasureReport { series: plan.matched, levels: Vec::new() };
        if is_dry {
            report.levels = self.store.count_erased(&plan, &request.range)?;
        } else if !plan.series.is_empty() {
            self.store_erasure(request.range.clone(), plan.series, plan.cut)?;
        }
        Ok(Ok(report))
    }

    /// Stores an erasure durably. No checkpoint may run meanwhile, and all cells are in files.
    pub(super) fn store_erasure(
        &self,
        range: Range<UnixMillis>,
        series: Vec<SeriesId>,
        cut: Vec<CutSlot>,
    ) -> Result<(), StoreError> {
        let inner = &*self.store.inner;
        let through = inner.catalog.read().applied();
        let erasure = Erasure { through, is_applied: false, range, series, cut };
        // A failed transaction may be on the disk.
        *inner.erasure.lock() = Pending::Unsure;
        inner.journal.set_erasure(&erasure)?;
        inner.catalog.write().note_erased(&erasure.series, &erasure.range);
        *inner.erasure.lock() = Pending::Stored(Arc::new(erasure));
        Ok(())
    }

    /// Moves all cells in memory into files.
    pub(super) fn empty_memory(&self, now: Moment) -> Result<(), StoreError> {
        let applied = self.store.inner.catalog.read().applied();
        for _ in 0..CHECKPOINTS {
            if self.store.checkpoint_held(now)?.through == applied {
                return Ok(());
            }
        }
        let problem = "a checkpoint did not include all records: repeat the request".to_owned();
        Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem })
    }
}
