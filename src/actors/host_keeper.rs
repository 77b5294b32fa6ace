//! The host keeper: stores the changed records of hosts once a minute.
//!
//! Must never know: the state machine of hosts.

use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::kept::KnownHosts;

/// The interval between two writes.
const STORE_INTERVAL: Duration = Duration::from_secs(60);

/// The actor of this role. It blocks its thread while it writes, so it needs its own arbiter.
#[derive(Debug)]
pub struct HostKeeper {
    hosts: KnownHosts,
    lifeline: Lifeline,
    is_failing: bool,
}

impl HostKeeper {
    /// Creates the role without starting it.
    pub fn new(hosts: KnownHosts, lifeline: Lifeline) -> Self {
        Self { hosts, lifeline, is_failing: false }
    }

    fn store(&mut self) {
        let outcome = self.hosts.store_changes();
        match &outcome {
            Err(cause) if !self.is_failing => {
                let cause: &dyn std::error::Error = cause;
                tracing::error!(cause, "cannot store hosts; the next write retries");
            }
            Ok(()) if self.is_failing => tracing::info!("hosts are stored again"),
            Err(_) | Ok(()) => {}
        }
        self.is_failing = outcome.is_err();
    }
}

impl Actor for HostKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(STORE_INTERVAL, |role, _| role.store());
    }
}

impl Handler<Stop> for HostKeeper {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.store();
        self.lifeline.release();
        ctx.stop();
    }
}
