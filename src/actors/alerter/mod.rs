//! The alerter: evaluates rules at their times, writes what they record and what alerts they give.
//!
//! `alerts` decides; here is asked, written and remembered. Groups are evaluated side by side, each in
//! a thread of its own, so that a slow one holds up no other; their queries share the turns of all. Must
//! never know: HTTP, what a rule says.

mod acknowledging;
mod adopting;
mod evaluating;
mod former;
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
    alerts::next_after,
    clock::TrustedClock,
    kept::{KnownHosts, KnownRules},
    model::SeriesLimits,
    query::{PromqlSettings, QueryResources},
    store::Store,
    telemetry::{Health, Metrics},
};
use evaluating::UnderWay;
use former::Former;
use groups::Groups;
use recording::Recording;

/// The longest interval between two looks for reloaded rules.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The parts of the role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct AlerterParts {
    pub rules: KnownRules,
    pub hosts: KnownHosts,
    pub store: Store,
    pub writer: WriterHandle,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub resources: QueryResources,
    pub promql: PromqlSettings,
    pub series_limits: SeriesLimits,
    pub health: Health,
    pub lifeline: Lifeline,
}

/// The role. It waits for the disk, so it needs an arbiter of its own.
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
    promql: PromqlSettings,
    under_way: UnderWay,
}

impl Alerter {
    /// Makes the role; nothing runs yet.
    pub fn new(parts: AlerterParts) -> Self {
        let AlerterParts { rules, hosts, store, writer, clock, metrics, resources, .. } = parts;
        let promql = parts.promql;
        let recording = Recording {
            former: Former::of(&store, clock.now()).into(),
            store,
            writer,
            limits: parts.series_limits,
            health: parts.health,
            metrics: metrics.clone(),
        };
        let under_way = UnderWay::default();
        let shared =
            Shared { rules, hosts, recording, clock, metrics, resources, promql, under_way };
        Self { shared: Arc::new(shared), lifeline: parts.lifeline, groups: Groups::default() }
    }

    /// Evaluates what is due, and comes back when something is, or has been evaluated.
    fn work(&mut self, ctx: &mut Context<Self>) {
        let (shared, mut groups) = (self.shared.clone(), std::mem::take(&mut self.groups));
        let worked = async move {
            shared.go_on(&mut groups).await;
            let now = shared.clock.now();
            let here = groups.all.iter().filter_map(|own| own.running.as_ref());
            let next = here.map(|own| next_after(own.group.interval_ms, now).since(now));
            let next = next.min().unwrap_or(i64::MAX).max(0);
            let wait = Duration::from_millis(next.unsigned_abs()).min(LOOK_EVERY);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = shared.rules.acknowledgements().some() => {}
                Some(evaluated) = groups.under_way.join_next() => groups.evaluated.push(evaluated),
            }
            groups
        };
        ctx.spawn(worked.into_actor(self).map(|groups, role, ctx| {
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
        let stopped = async move { shared.under_way.stop().await };
        Box::pin(stopped.into_actor(self).map(|(), role, ctx| {
            role.lifeline.release();
            ctx.stop();
        }))
    }
}
