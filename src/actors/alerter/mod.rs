//! The alerter: evaluates rules at their times, and writes recorded series and alerts.
//!
//! `alerts` decides; this folder queries, writes and stores. Groups are evaluated in parallel, each
//! in its own thread, so that a slow group does not delay the others; their queries wait for turns
//! like all queries. Must never know: HTTP, the content of rules.

mod acknowledging;
mod adopting;
mod evaluating;
mod group;
mod groups;
mod hosts;
mod recording;
mod reviewing;
mod stored;

use std::{sync::Arc, time::Duration};

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, ResponseActFuture,
    WrapFuture,
};

use super::{Lifeline, Stop, WriterHandle};
use crate::{
    alerts::next_evaluation,
    clock::TrustedClock,
    kept::{KnownHosts, KnownRules, LiveValue},
    model::SeriesLimits,
    query::{PromqlSettings, QueryResources},
    store::Store,
    telemetry::{Health, Metrics},
};
use evaluating::ActiveEvaluations;
use groups::Groups;
use recording::Recording;

/// The longest interval between two checks for reloaded rules.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The parts of the role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct AlerterParts {
    pub rules: KnownRules,
    pub hosts: KnownHosts,
    pub store: Store,
    pub writer: WriterHandle,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub resources: QueryResources,
    pub promql: LiveValue<PromqlSettings>,
    pub series_limits: SeriesLimits,
    pub health: Health,
    pub lifeline: Lifeline,
}

/// The actor of this role. It waits for the disk, so it needs its own arbiter.
#[derive(Debug)]
pub struct Alerter {
    shared: Arc<Shared>,
    lifeline: Lifeline,
    groups: Groups,
}

#[derive(Debug)]
struct Shared {
    rules: KnownRules,
    hosts: KnownHosts,
    recording: Recording,
    clock: TrustedClock,
    metrics: Metrics,
    resources: QueryResources,
    promql: LiveValue<PromqlSettings>,
    in_flight: ActiveEvaluations,
}

impl Alerter {
    /// Creates the role without starting it.
    pub fn new(parts: AlerterParts) -> Self {
        let AlerterParts { rules, hosts, store, writer, clock, metrics, resources, .. } = parts;
        let promql = parts.promql;
        let recording = Recording {
            store,
            writer,
            limits: parts.series_limits,
            health: parts.health,
            metrics: metrics.clone(),
        };
        let in_flight = ActiveEvaluations::default();
        let shared =
            Shared { rules, hosts, recording, clock, metrics, resources, promql, in_flight };
        Self { shared: Arc::new(shared), lifeline: parts.lifeline, groups: Groups::default() }
    }

    /// Evaluates the groups that are due, and schedules the next call.
    fn work(&mut self, ctx: &mut Context<Self>) {
        let (shared, mut groups) = (self.shared.clone(), std::mem::take(&mut self.groups));
        let cycle = async move {
            shared.advance(&mut groups).await;
            let now = shared.clock.now();
            let idle = groups.all.iter().filter_map(|entry| entry.running.as_ref());
            let next =
                idle.map(|running| next_evaluation(running.group.interval_ms, now).since(now));
            let next = next.min().unwrap_or(i64::MAX).max(0);
            let wait = Duration::from_millis(next.unsigned_abs()).min(CHECK_INTERVAL);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = shared.rules.acknowledgements().wait() => {}
                Some(evaluated) = groups.in_flight.join_next() => groups.evaluated.push(evaluated),
            }
            groups
        };
        ctx.spawn(cycle.into_actor(self).map(|groups, role, ctx| {
            role.groups = groups;
            role.work(ctx);
        }));
    }
}

impl Actor for Alerter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.work(ctx);
    }
}

impl Handler<Stop> for Alerter {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: Stop, _: &mut Self::Context) -> Self::Result {
        let shared = self.shared.clone();
        shared.rules.acknowledgements().close();
        let stopped = async move { shared.in_flight.stop().await };
        Box::pin(stopped.into_actor(self).map(|(), role, ctx| {
            role.lifeline.release();
            ctx.stop();
        }))
    }
}
