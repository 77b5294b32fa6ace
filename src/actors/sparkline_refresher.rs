//! The sparkline refresher: caches the sparklines of all hosts for the last hour, so that the
//! fleet's page reads only the last minutes.
//!
//! Must never know: the queries.

use std::{fmt, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};

/// The interval of the timer; a sparkline has one point per minute.
const INTERVAL: Duration = Duration::from_secs(60);

/// The actor of this role. It blocks its thread while it reads, so it needs its own arbiter.
pub struct SparklineRefresher {
    refresh: Box<dyn Fn() -> Result<(), String> + Send>,
    interval: Duration,
    lifeline: Lifeline,
    is_failing: bool,
}

impl SparklineRefresher {
    /// Creates the role; `refresh` updates the cache, or returns the reason why it failed.
    pub fn new(
        refresh: impl Fn() -> Result<(), String> + Send + 'static,
        lifeline: Lifeline,
    ) -> Self {
        Self { refresh: Box::new(refresh), interval: INTERVAL, lifeline, is_failing: false }
    }

    fn run(&mut self) {
        let outcome = (self.refresh)();
        if let Some(cause) = outcome.as_ref().err().filter(|_| !self.is_failing) {
            tracing::warn!(
                cause,
                "cannot cache the last hour of all hosts: the fleet's page is slower"
            );
        }
        self.is_failing = outcome.is_err();
    }
}

impl fmt::Debug for SparklineRefresher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparklineRefresher")
            .field("is_failing", &self.is_failing)
            .finish_non_exhaustive()
    }
}

impl Actor for SparklineRefresher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.run();
        ctx.run_interval(self.interval, |role, _| role.run());
    }
}

impl Handler<Stop> for SparklineRefresher {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.lifeline.release();
        ctx.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::sync::Notify;

    use super::*;
    use crate::actors::lifelines;

    #[test]
    fn sparklines_are_refreshed_at_once_and_repeatedly_even_after_a_failure() {
        actix::System::new().block_on(async {
            let (lifelines, _watcher) = lifelines();
            let (count, third) = (AtomicUsize::new(0), Arc::new(Notify::new()));
            let reached = third.clone();
            let refresh = move || match count.fetch_add(1, Ordering::Relaxed) {
                0 => Err("no".to_owned()),
                1 => Ok(()),
                _ => {
                    reached.notify_one();
                    Ok(())
                }
            };
            let mut role =
                SparklineRefresher::new(refresh, lifelines.for_role("sparkline refresher"));
            role.interval = Duration::from_millis(1);
            let role = role.start();
            third.notified().await;
            role.send(Stop).await.unwrap();
        });
    }
}
