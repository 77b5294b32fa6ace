//! The audit keeper: writes the refusals of each minute to the audit.
//!
//! Must never know: what is refused.

use std::{sync::Arc, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::{clock::Clock, kept::Audit};

/// The interval between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// The actor of this role. It blocks its thread while it writes, so it needs its own arbiter.
#[derive(Debug)]
pub struct AuditKeeper {
    audit: Audit,
    clock: Arc<dyn Clock>,
    lifeline: Lifeline,
}

impl AuditKeeper {
    /// Creates the role without starting it.
    pub fn new(audit: Audit, clock: Arc<dyn Clock>, lifeline: Lifeline) -> Self {
        Self { audit, clock, lifeline }
    }
}

impl Actor for AuditKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(WRITE_INTERVAL, |role, _| role.audit.write_refusals(role.clock.now()));
    }
}

impl Handler<Stop> for AuditKeeper {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.audit.write_all_refusals();
        self.lifeline.release();
        ctx.stop();
    }
}
