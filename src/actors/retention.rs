//! Retention: drops whole partitions when they expire, and then removes series without samples.
//! It also notes new metrics whose names may be typos, and counts series once a day.
//! While the clock is doubted, it drops nothing, and checks whether the senders confirm the clock.

use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{DiskBudget, Lifeline, Stop, WriterHandle, dropped::DroppedPartitions};
use crate::{
    clock::{Stopwatch, TrustedClock},
    kept::{KnownCardinality, LiveValue, NearName, NearNames},
    model::{Moment, split_stored_name},
    policy::retention,
    store::{PartitionInfo, Store},
    telemetry::{Condition, Health, Metrics},
};

/// The interval between two searches for series that never had a sample.
const SEARCH_INTERVAL: Duration = Duration::from_secs(3600);

/// The number of series that are removed in one run: batches wait meanwhile.
const FORGOTTEN_AT_ONCE: usize = 4096;

/// The role that drops partitions and removes series.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct Retention {
    pub store: Store,
    pub clock: TrustedClock,
    pub health: Health,
    pub lifeline: Lifeline,
    pub interval: LiveValue<Duration>,
    pub writer: WriterHandle,
    pub budget: DiskBudget,
    pub near_names: NearNames,
    /// The numbers of series of each project.
    pub cardinality: Vec<(Store, KnownCardinality)>,
    pub metrics: Metrics,
    /// True when there may be series without samples.
    pub looks_for_series: bool,
    /// The time since the last search for series without samples.
    pub looked_for_series: Stopwatch,
}

/// Drops the expired partitions. While the time is doubted, no partition is expired.
pub fn drop_expired(store: &Store, now: impl Into<Moment>) -> DroppedPartitions {
    let (now, mut dropped) = (store.time_of_retention(now), DroppedPartitions::default());
    let mut expired = store.partitions();
    expired.retain(|partition| {
        retention::is_expired(store.granularity(partition.id.granularity), partition.end, now)
    });
    tracing::debug!(expired = expired.len(), "looked for expired partitions");
    for PartitionInfo { id, .. } in expired {
        dropped.drop_partition(store, id);
    }
    dropped
}

impl Retention {
    fn run(&mut self) {
        self.clock.evaluate();
        let now = self.clock.moment();
        let DroppedPartitions { mut partitions, mut failed } = drop_expired(&self.store, now);
        let early = self.budget.enforce(&self.store, now);
        partitions += early.partitions;
        failed = failed.or(early.failed);
        self.looks_for_series |= partitions > 0;
        match failed {
            Some(fault) => self.health.raise_fault(Condition::Retention, &fault),
            None => self.health.clear(Condition::Retention),
        }
        if self.looks_for_series || self.looked_for_series.elapsed() >= SEARCH_INTERVAL {
            self.forget_series();
        }
        self.compare_names();
        for (store, cardinality) in &self.cardinality {
            if let Err(cause) = cardinality.store_daily(store, now.earliest()) {
                tracing::warn!(cause, "cannot store the numbers of series; the next run retries");
            }
        }
    }

    /// Logs new metrics that may be typos.
    fn compare_names(&self) {
        for note in self.near_names.compare(&self.store, self.clock.now()) {
            let NearName { metric, known, sender, .. } = note;
            self.metrics.near_metric_names.inc();
            let (project, sender) = split_stored_name(&sender);
            tracing::warn!(
                metric,
                known,
                sender,
                project,
                "a new metric may be a typo of a known one"
            );
        }
    }

    fn run_repeatedly(&mut self, ctx: &mut Context<Self>) {
        self.run();
        ctx.run_later(*self.interval.get(), Self::run_repeatedly);
    }

    /// Removes some of the series without samples; the next run continues.
    fn forget_series(&mut self) {
        let now = self.clock.moment();
        if now.is_doubted() {
            return;
        }
        let series = self.store.series_without_samples(now.clock, FORGOTTEN_AT_ONCE);
        self.looked_for_series = Stopwatch::start();
        self.looks_for_series = !series.is_empty();
        if series.is_empty() {
            return;
        }
        let writer = self.writer.clone();
        actix::spawn(async move {
            // The writer itself reports a journal that cannot be written.
            if let Err(fault) = writer.forget_series(series).await {
                tracing::debug!(%fault, "no series were removed; the next run retries");
            }
        });
    }
}

impl Actor for Retention {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.run_repeatedly(ctx);
    }
}

impl Handler<Stop> for Retention {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.lifeline.release();
        ctx.stop();
    }
}
