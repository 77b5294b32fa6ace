//! The epochs of the rules at a start: which classes exist, and when new rules begin.
//!
//! New rules begin after the latest sample that was ever accepted. Therefore no accepted sample
//! changes its class, neither in files nor in a replay, and a start needs no checkpoint. Must never
//! know: the meaning of a rule.

use crate::{
    model::{Gaps, Granularity, GranularitySet, RetentionRule, UnixMillis, split_level},
    store::{
        classes::resolve::{Known, Resolved, resolve},
        error::StoreError,
        file::names::granularities_with_files,
        handle::Store,
        journal::{
            Journal,
            epoch_row::Epoch,
            granularities::{self, StoredGranularity},
        },
    },
};

/// The time after the end of the last run from which a later start of new rules is reported.
const LATE_MS: i64 = 3_600_000;

/// The granularities and levels of the last run, and the granularities and levels of the settings.
pub(super) struct StoredLevels<'a> {
    pub(super) known: &'a [StoredGranularity],
    pub(super) settings: &'a GranularitySet,
    /// The names of granularities and levels with files.
    pub(super) with_files: &'a [String],
}

/// The granularities and levels of this run.
pub(super) struct Reconciled {
    /// The rows to store, finest first.
    pub(super) stored: Vec<StoredGranularity>,
    /// The gaps in the store's order of levels: granularities, levels of classes, retired ones.
    pub(super) gaps: Vec<Gaps>,
    pub(super) retired: Vec<Granularity>,
}

impl StoredLevels<'_> {
    /// Returns the granularities of this run, with the rows of the levels of classes.
    pub(super) fn reconcile(
        &self,
        mut of_classes: Vec<StoredGranularity>,
        latest: Option<UnixMillis>,
        now: UnixMillis,
    ) -> Reconciled {
        for row in &mut of_classes {
            let after_all = granularities::after_all(latest, now);
            row.complete_since = row.complete_since.min(after_all);
        }
        let known: Vec<_> = self.known.iter().filter(|row| row.is_of_settings()).cloned().collect();
        let is_of_settings = |name: &&String| split_level(name).1.is_none();
        let with_files: Vec<_> = self.with_files.iter().filter(is_of_settings).cloned().collect();
        let mut stored = granularities::reconcile(&known, self.settings, &with_files, latest, now);
        let retired = granularities::retired(&stored);
        let (living, stopped): (Vec<_>, Vec<_>) =
            stored.iter().partition(|known| known.retired.is_none());
        let rows = living.into_iter().chain(&of_classes).chain(stopped);
        let gaps = rows.map(StoredGranularity::gaps).collect();
        stored.extend(of_classes);
        stored.sort_by_key(|row| row.granularity.width_ms);
        Reconciled { stored, gaps, retired }
    }
}

impl Store {
    /// Checks that the store can be opened again with these granularities and rules of retention.
    ///
    /// # Errors
    /// When the journal cannot be read, or the rules changed too often.
    pub fn check_rules(
        &self,
        settings: &GranularitySet,
        rules: &[RetentionRule],
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let journal = &self.inner.journal;
        let (rows, with_files) =
            (journal.granularities()?, granularities_with_files(&self.inner.medium)?);
        Self::resolve(journal, (settings, Some(rules)), (&rows, &with_files), now).map(drop)
    }

    /// Returns the classes and epochs of this run.
    pub(super) fn resolve(
        journal: &Journal,
        (settings, rules): (&GranularitySet, Option<&[RetentionRule]>),
        (rows, with_files): (&[StoredGranularity], &[String]),
        now: UnixMillis,
    ) -> Result<Resolved, StoreError> {
        let epochs = journal.epochs()?;
        // Nothing has expired before the first checkpoint, or because a clock is ahead.
        let ran_until = journal.last_run()?.map_or(UnixMillis(0), |last_run| last_run.min(now));
        resolve(Known { settings, rules, epochs: &epochs, rows, with_files }, ran_until)
    }

    /// Begins a new epoch after the latest sample, durably, and stores the remaining epochs.
    pub(crate) fn begin_epoch(
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
