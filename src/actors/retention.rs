//! Retention: drops whole partitions when their time is over. While the clock is doubted it drops
//! none, and asks whether the senders confirm it.

use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Condition, Health, Lifeline, Stop, TrustedClock};
use crate::{
    pipeline::retention,
    store::{PartitionId, Store},
};

/// See the module.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Retention {
    pub store: Store,
    pub clock: TrustedClock,
    pub health: Health,
    pub lifeline: Lifeline,
    pub interval: Duration,
}

impl Retention {
    fn run(&self) {
        self.clock.judge();
        let partitions = self.store.partitions();
        let ids = partitions.iter().map(|partition| (partition.id.level, partition.id.start));
        let expired = retention::expired(self.store.granularities(), ids, self.clock.moment());
        tracing::debug!(
            partitions = partitions.len(),
            expired = expired.len(),
            "looked for expired"
        );
        let mut failed = None;
        for (level, start) in expired {
            let granularity = &self.store.granularities().levels()[level].name;
            match self.store.drop_partition(PartitionId { level, start }) {
                Ok(_) => tracing::info!(granularity, %start, "dropped a partition"),
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
