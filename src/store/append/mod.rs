//! The appender: the one writer of the journal, the dictionary and the catalog.
//!
//! Each operation has three steps. It is judged: everything that settings, limits or the clock
//! decide becomes a record. The record is made durable ([`writing`]): in the journal, or in a log
//! that several nodes share. Only then it is applied ([`crate::store::apply`]). When the second
//! step fails, nothing has changed.
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
mod shared;
mod writing;

use std::{collections::HashMap, sync::Arc};

use super::{
    catalog::senders::NoneIdle,
    dictionary::changes::{ChangeRefusal, SeriesChange},
    error::StoreError,
    handle::Store,
    journal::record::Record,
    limits::StoreLimits,
};
use crate::model::{
    AcceptedBatch, BatchVerdict, GroupVerdict, MetricLimits, ProjectName, SeriesInfo, TimesTally,
    UnixMillis,
};
use defining::NewSeries;
pub use erasing::ErasureReport;
use forgotten_series::Forgotten;
use kinds::KindChanges;
use replicas::ReplicaPicks;
pub use room::{CheckpointBounds, Room};
use shared::Leading;

/// The single writer of a store: it commits batches in groups.
#[derive(Debug)]
pub struct Appender {
    pub(super) store: Store,
    /// The shared log of a replica that leads; `None` for an embedded store.
    shared: Option<Arc<Leading>>,
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
            shared: None,
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
        let (mut new_series, now) = (NewSeries::default(), self.time_of_record(now));
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
        let mut picked = self.picks.pick(batches, &batches_verdicts, latest);
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
        let batches: Vec<_> = forgotten.iter().chain(accepted).collect();
        if !batches.is_empty() || !new_series.rows.is_empty() {
            let first_series = self.store.all_series().id_count() as u32;
            let new_series = new_series.rows;
            let mut tallies =
                self.write(Record { first_series, new_series, batches, ..Record::at(now) }, None)?;
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
            let (batches, now) = (forgotten.iter().collect(), self.time_of_record(now));
            self.write(Record { batches, ..Record::at(now) }, None)?;
            self.store.inner.counters.senders_forgotten.add(forgotten.len() as u64);
        }
        Ok(forgotten.len())
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
            let now = self.time_of_record(now);
            self.write(Record { updates: plan.updates, ..Record::of_changes(now) }, None)?;
        }
        Ok(Ok(plan.shown.len()))
    }
}
