//! The host keeper: stores once a minute what changed of the hosts that ping.
//!
//! Must never know: when a host is late or down.

use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::kept::KnownHosts;

/// The interval at which changes are stored.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// The role. It blocks its thread while it writes, so it needs an arbiter of its own.
#[derive(Debug)]
pub struct HostKeeper {
    hosts: KnownHosts,
    lifeline: Lifeline,
    failing: bool,
}

impl HostKeeper {
    /// A role that has not begun.
    pub fn new(hosts: KnownHosts, lifeline: Lifeline) -> Self {
        Self { hosts, lifeline, failing: false }
    }

    fn keep(&mut self) {
        let outcome = self.hosts.keep();
        match &outcome {
            Err(cause) if !self.failing => {
                let cause: &dyn std::error::Error = cause;
                tracing::error!(cause, "cannot keep hosts; it will be tried again");
            }
            Ok(()) if self.failing => tracing::info!("hosts can be kept again"),
            Err(_) | Ok(()) => {}
        }
        self.failing = outcome.is_err();
    }
}

impl Actor for HostKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(KEEP_EVERY, |role, _| role.keep());
    }
}

impl Handler<Stop> for HostKeeper {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.keep();
        self.lifeline.release();
        ctx.stop();
    }
}
