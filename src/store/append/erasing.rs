//! Erasure of samples: a checkpoint, the plan, and its row in the journal.
//!
//! Must never know: how files are changed.

use std::{ops::Range, sync::Arc};

use parking_lot::MutexGuard;

use super::Appender;
use crate::{
    model::{Moment, ProjectName, SeriesId, UnixMillis},
    store::{
        erasure::plan::{ErasedLevel, ErasureRefusal, ErasureRequest},
        error::StoreError,
        journal::{
            erasure_row::{CutSlot, Erasure},
            record::Record,
        },
    },
};

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
        let (store, now) = (self.store.clone(), now.into());
        let Some(no_checkpoint) = store.inner.checkpointing.try_lock() else {
            return Ok(Err(ErasureRefusal::Running));
        };
        if !is_dry {
            store.empty_memory(now)?;
        }
        let plan = match store.for_project(project).plan_erasure(request)? {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut report = ErasureReport { series: plan.matched, levels: Vec::new() };
        if is_dry {
            report.levels = store.count_erased(&plan, &request.range)?;
        } else if !plan.series.is_empty() {
            let (range, now) = (request.range.clone(), now.earliest());
            self.write_erasure(range, (plan.series, plan.cut), now, &no_checkpoint)?;
        }
        Ok(Ok(report))
    }

    /// Stores an erasure durably. The caller holds the lock of checkpoints, and all cells are in
    /// files.
    pub(super) fn write_erasure(
        &mut self,
        range: Range<UnixMillis>,
        (series, cut): (Vec<SeriesId>, Vec<CutSlot>),
        now: UnixMillis,
        held: &MutexGuard<'_, ()>,
    ) -> Result<(), StoreError> {
        let through = self.store.inner.catalog.read().applied();
        let erasure = Erasure { through, is_applied: false, range, series, cut };
        let (erasure, now) = (Some(Arc::new(erasure)), self.time_of_record(now));
        self.write(Record { erasure, ..Record::of_changes(now) }, Some(held)).map(drop)
    }
}
