//! The appender: the one writer of the journal, the dictionary and the catalog.
//!
//! The appender takes the waiting batches as a group, makes the group durable by one append to the
//! journal, and only then applies it. When that fails, nothing has changed.
//!
//! Must never know: who sends what, and in which protocol.

mod defining;
mod erasing;
mod forgetting;
mod forgotten_series;
mod kinds;
mod merging;
mod replacing;
mod replicas;
mod room;

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use super::{
    catalog::senders::NoneIdle,
    dictionary::changes::{ChangeRefusal, SeriesChange},
    error::StoreError,
    handle::Store,
    journal::record,
    limits::StoreLimits,
};
use crate::model::{
    AcceptedBatch, BatchVerdict, GroupVerdict, MetricLimits, ProjectName, SeriesId, SeriesInfo,
    TimesTally, UnixMillis,
};
use defining::NewSeries;
pub use erasing::ErasureReport;
use forgotten_series::Forgotten;
use kinds::KindChanges;
use replicas::ReplicaPicks;
pub use room::{CheckpointBounds, Room};

/// The single writer of a store: it commits batches in groups.
#[derive(Debug)]
pub struct Appender {
    pub(super) store: Store,
    limits: StoreLimits,
    metric_limits: Arc<MetricLimits>,
    project_limits: HashMap<ProjectName, usize>,
    record: Vec<u8>,
    forgotten: Forgotten,
    picks: ReplicaPicks,
    kind_changes: KindChanges,
    none_idle: NoneIdle,
}

impl Appender {
    pub(crate) fn new(store: Store) -> Self {
        let limits = StoreLimits::default();
        Self {
            store,
            limits,
            metric_limits: Arc::default(),
            project_limits: HashMap::new(),
            record: Vec::new(),
            forgotten: Forgotten::default(),
            picks: ReplicaPicks::default(),
            kind_changes: KindChanges::default(),
            none_idle: NoneIdle::new(),
        }
    }

    /// Sets the limits that apply from now on; existing series and senders stay, even beyond them.
    pub fn set_limits(&mut self, limits: StoreLimits) {
        let series_max = limits.series_max.min(StoreLimits::default().series_max);
        self.limits = StoreLimits { series_max, ..limits };
    }

    /// Sets the limits of single metrics that apply from now on; existing series stay.
    pub fn set_metric_limits(&mut self, limits: Arc<MetricLimits>) {
        self.metric_limits = limits;
    }

    /// Sets the maximum numbers of series of projects; existing series stay.
    pub fn set_project_limits(&mut self, limits: HashMap<ProjectName, usize>) {
        self.project_limits = limits;
    }

    /// Makes definitions and batches durable, then applies them. The series of the batches must
    /// have been returned by an earlier call.
    ///
    /// # Errors
    /// When the journal cannot be written; nothing has changed then.
    ///
    /// # Panics
    /// When a batch names a series that was never returned.
    pub fn commit(
        &mut self,
        definitions: &[SeriesInfo],
        batches: &[AcceptedBatch],
        now: UnixMillis,
    ) -> Result<GroupVerdict, StoreError> {
        let mut new_series = NewSeries::default();
        let definitions =
            definitions.iter().map(|info| self.define(info, &mut new_series)).collect();
        let mut judged = self.store.inner.catalog.read().senders().verdicts(
            batches,
            &self.limits,
            now,
            &mut self.none_idle,
        );
        let forgotten: Vec<_> = judged.forgotten.drain(..).map(AcceptedBatch::forget).collect();
        let mut batches_verdicts = judged.verdicts;
        let latest = |series| Some(self.store.last_samples(&[series]).first()?.as_ref()?.at);
        let failover_ms = self.limits.ha_failover_ms;
        let mut picked = self.picks.pick(batches, &batches_verdicts, failover_ms, latest);
        let is_accepted = |position: usize| batches_verdicts[position].is_accepted();
        let dictionary = self.store.all_series();
        let has_start = |series| {
            let whole = dictionary.whole_of(series).unwrap_or(series);
            !dictionary.has_parts_of_another_kind(whole)
        };
        let catalog = self.store.inner.catalog.read();
        catalog.settle_starts(&mut picked.batches, (is_accepted, has_start), now);
        drop((catalog, dictionary));
        let all = picked.batches.iter().zip(&batches_verdicts);
        let accepted = all.filter(|(_, verdict)| verdict.is_accepted()).map(|(batch, _)| batch);
        let accepted: Vec<_> = forgotten.iter().chain(accepted).collect();
        if !accepted.is_empty() || !new_series.rows.is_empty() {
            let mut tallies = self.write_record(&accepted, new_series, now)?;
            let tallies = tallies.split_off(forgotten.len());
            let counters = &self.store.inner.counters;
            counters.senders_forgotten.add(forgotten.len() as u64);
            counters.samples_of_replicas.add(picked.left_out.iter().sum());
            counters.failovers.add(picked.failovers);
            let left_out = picked.left_out.iter().copied().chain(std::iter::repeat(0));
            let verdicts = batches_verdicts.iter_mut().zip(left_out);
            let accepted = verdicts.filter(|(verdict, _)| verdict.is_accepted());
            for ((verdict, of_replica), tally) in accepted.zip(tallies) {
                *verdict = BatchVerdict::Accepted(TimesTally { of_replica, ..tally });
            }
            self.picks.settle(picked.into_moved(), self.limits.series_max);
        }
        Ok(GroupVerdict { definitions, batches: batches_verdicts })
    }

    /// Forgets senders, by their stored names, durably; returns how many of them were known. When a
    /// forgotten sender repeats a batch, the batch counts again.
    ///
    /// # Errors
    /// When the journal cannot be written; nothing has changed then.
    pub fn forget(&mut self, senders: &[Arc<str>], now: UnixMillis) -> Result<usize, StoreError> {
        let forgotten: Vec<_> = {
            let catalog = self.store.inner.catalog.read();
            let known = senders.iter().filter(|sender| catalog.senders().has(sender));
            known.cloned().map(AcceptedBatch::forget).collect()
        };
        if !forgotten.is_empty() {
            self.write_record(&forgotten.iter().collect::<Vec<_>>(), NewSeries::default(), now)?;
            self.store.inner.counters.senders_forgotten.add(forgotten.len() as u64);
        }
        Ok(forgotten.len())
    }

    /// Appends one record to the journal, then applies it to catalog and dictionary. Returns the
    /// tally of each batch.
    fn write_record(
        &mut self,
        batches: &[&AcceptedBatch],
        new_series: NewSeries,
        now: UnixMillis,
    ) -> Result<Vec<TimesTally>, StoreError> {
        let all = || batches.iter().copied();
        self.record.clear();
        record::encode(now, all(), &mut self.record);
        let inner = &*self.store.inner;
        let sequence = inner.catalog.read().applied() + 1;
        let series_count = inner.dictionary.read().id_count() as u32;
        inner.journal.append(sequence, &self.record, series_count, &new_series.rows)?;
        let weight: usize = all().map(AcceptedBatch::weight).sum();
        inner.journal_pending.fetch_add(weight, Ordering::Relaxed);
        let counters = &inner.counters;
        counters.commits.add(1);
        counters.journal_bytes.add(self.record.len() as u64);
        counters.samples.add(all().map(|batch| batch.values.len() as u64).sum());
        let rules = &inner.rules;
        let new =
            new_series.rows.iter().map(|info| (info.kind, rules.history(&info.sender, &info.key)));
        let new: Vec<_> = new.collect();
        let mut catalog = inner.catalog.write();
        for (kind, history) in new {
            catalog.add_series(kind, history);
        }
        let tallies = catalog.apply(sequence, all(), now);
        counters.samples_not_kept.add(catalog.take_not_kept());
        inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
        drop(catalog);
        if !new_series.rows.is_empty() {
            let mut dictionary = inner.dictionary.write();
            for (id, info) in (series_count..).zip(new_series.rows) {
                assert_eq!(dictionary.add(info), SeriesId(id), "ids count up");
            }
            inner.living_series.store(dictionary.len(), Ordering::Relaxed);
        }
        Ok(tallies)
    }

    /// Changes series of the project `default`; see [`Self::change_in`].
    ///
    /// # Errors
    /// When the journal cannot be written; no series has changed then.
    pub fn change(
        &mut self,
        change: &SeriesChange,
        now: UnixMillis,
    ) -> Result<Result<usize, ChangeRefusal>, StoreError> {
        self.change_in(&ProjectName::default(), change, now)
    }

    /// Deletes, renames or merges the series of a project that match, durably; returns their number.
    /// Batches that were resolved before the change count for the series as they were then; samples
    /// of deleted series are lost.
    ///
    /// Before counters are merged, the increase between the last reading of a counter and the first
    /// reading of the next one is committed. If the daemon is killed in between, the repeated merge
    /// commits the same reading again, which adds nothing.
    ///
    /// # Errors
    /// When the journal cannot be written; no series has changed then.
    pub fn change_in(
        &mut self,
        project: &ProjectName,
        change: &SeriesChange,
        now: UnixMillis,
    ) -> Result<Result<usize, ChangeRefusal>, StoreError> {
        let plan = match self.store.for_project(project).plan(change) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !plan.bridge.series.is_empty() {
            self.commit(&[], &[plan.bridge], now)?;
        }
        if !plan.updates.is_empty() {
            self.write_updates(&plan.updates)?;
        }
        Ok(Ok(plan.shown.len()))
    }
}
