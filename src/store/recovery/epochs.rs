//! The epochs of the rules at a start: which classes exist, and when new rules begin.
//!
//! New rules begin after the latest sample that was ever accepted. Therefore no accepted sample
//! changes its class, neither in files nor in a replay, and a start needs no checkpoint. Must never
//! know: the meaning of a rule.

use crate::{
    model::{GranularitySet, RetentionRule, UnixMillis},
    store::{
        classes::{
            epochs::Epoch,
            resolve::{Known, Resolved, resolve},
        },
        error::StoreError,
        handle::Store,
        journal::{Journal, granularities::StoredGranularity},
    },
};

/// The time after the end of the last run from which a later start of new rules is reported.
const LATE_MS: i64 = 3_600_000;

impl Store {
    /// Returns the classes and epochs of this run.
    pub(super) fn resolve(
        journal: &Journal,
        (settings, rules): (&GranularitySet, Option<&[RetentionRule]>),
        (rows, with_files): (&[StoredGranularity], &[String]),
        now: UnixMillis,
    ) -> Result<Resolved, StoreError> {
        let epochs = journal.epochs()?;
        // Nothing has expired before the first checkpoint, nor by a clock that is ahead.
        let ran_until = journal.last_run()?.map_or(UnixMillis(0), |last_run| last_run.min(now));
        resolve(Known { settings, rules, epochs: &epochs, rows, with_files }, ran_until)
    }

    /// Begins a new epoch after the latest sample, durably, and stores which epochs remain.
    pub(super) fn begin_epoch(
        &self,
        mut epochs: Vec<Epoch>,
        is_new: bool,
        latest: Option<UnixMillis>,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        if let [before @ .., last] = &mut *epochs
            && is_new
        {
            let start_before = before.last().map_or(UnixMillis::EARLIEST, |before| before.from);
            let after_all = latest.map_or(UnixMillis::EARLIEST, |latest| latest.plus(1));
            last.from = after_all.max(start_before);
            let (from, rules) = (last.from, last.rules.len());
            self.inner.catalog.write().begin_epoch(from);
            if from > now.plus(LATE_MS) {
                tracing::warn!(
                    %from,
                    rules,
                    "new rules of retention begin later, because samples of the future are stored"
                );
            } else {
                tracing::info!(%from, rules, "new rules of retention apply to later samples");
            }
        }
        // An epoch whose successor begins at the same time has no sample.
        let starts: Vec<_> = epochs.iter().skip(1).map(|next| next.from).collect();
        let mut number = 0;
        epochs.retain(|epoch| {
            let next = starts.get(number);
            number += 1;
            next.is_none_or(|next| *next > epoch.from)
        });
        let is_without_rules = epochs.iter().all(|epoch| epoch.rules.is_empty());
        let kept = if is_without_rules { Vec::new() } else { epochs };
        if self.inner.journal.epochs()? != kept {
            self.inner.journal.set_epochs(&kept)?;
        }
        Ok(())
    }
}
