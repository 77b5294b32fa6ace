//! Retention: drops whole partitions when their time is over, and then has those series forgotten of
//! which no sample is left. While the clock is doubted it drops none, and asks whether the senders
//! confirm it.

use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Condition, Health, Lifeline, Stop, TrustedClock, WriterHandle};
use crate::{
    policy::retention,
    store::{PartitionInfo, Store},
};

/// Series that are forgotten in one run: batches wait meanwhile.
const FORGOTTEN_AT_ONCE: usize = 4096;

/// The role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Retention {
    pub store: Store,
    pub clock: TrustedClock,
    pub health: Health,
    pub lifeline: Lifeline,
    pub interval: Duration,
    pub writer: WriterHandle,
    /// Whether there may be series without samples.
    pub looks_for_series: bool,
}

impl Retention {
    fn run(&mut self) {
        self.clock.judge();
        let now = self.clock.moment();
        let mut expired = self.store.partitions();
        expired.retain(|own| {
            retention::is_expired(self.store.granularity(own.id.granularity), own.end, now)
        });
        tracing::debug!(expired = expired.len(), "looked for expired partitions");
        let mut failed = None;
        for PartitionInfo { id, .. } in expired {
            let (granularity, start) = (&self.store.granularity(id.granularity).name, id.start);
            match self.store.drop_partition(id) {
                Ok(_) => {
                    self.looks_for_series = true;
                    tracing::info!(granularity, %start, "dropped a partition");
                }
                Err(cause) => {
                    failed = Some(cause.to_string());
                    let cause: &dyn std::error::Error = &cause;
                    tracing::error!(granularity, %start, cause, "cannot drop a partition");
                }
            }
        }
        match failed {
            Some(reason) => self.health.raise(Condition::Retention, reason),
            None => self.health.clear(Condition::Retention),
        }
        if self.looks_for_series {
            self.forget_series();
        }
    }

    /// Has some of the series forgotten that have no samples left; the others in the next run.
    fn forget_series(&mut self) {
        let now = self.clock.moment();
        let Some(since) = retention::kept_since(self.store.granularities(), now) else { return };
        let series = self.store.series_without_samples(since, FORGOTTEN_AT_ONCE);
        self.looks_for_series = !series.is_empty();
        if series.is_empty() {
            return;
        }
        let writer = self.writer.clone();
        actix::spawn(async move {
            // The writer says itself when the journal cannot be written.
            if let Err(fault) = writer.forget_series(series).await {
                tracing::debug!(%fault, "no series were forgotten; the next run tries again");
            }
        });
    }
}

impl Actor for Retention {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.run();
        ctx.run_interval(self.interval, |role, _| role.run());
    }
}

impl Handler<Stop> for Retention {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.lifeline.release();
        ctx.stop();
    }
}
