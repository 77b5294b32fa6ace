//! Retention: drops whole partitions when their time is over. While the clock is doubted it drops
//! none, and asks whether the senders confirm it.

use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Condition, Health, Lifeline, Stop, TrustedClock};
use crate::{
    policy::retention,
    store::{PartitionInfo, Store},
};

/// The role.
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
