//! The alerter: evaluates rules at their times, writes what they record and what alerts they give.
//!
//! `alerts` decides; here is asked, written and remembered. Groups are evaluated one after the
//! other, each query within a budget as that of any client. Must never know: HTTP, what a rule says.

mod acknowledging;
mod group;
mod hosts;
mod known;
mod recording;
mod reviewing;
mod told;

use std::{sync::Arc, time::Duration};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};

pub use acknowledging::{Acknowledge, AcknowledgeFault};
pub use known::{GroupStatus, KnownRules};

use super::{KnownHosts, Lifeline, Stop, TrustedClock, WriterHandle};
use crate::{
    alerts::{
        Answered, Ask, GroupRun, GroupState, RuleSet, TemplateQuery, TemplateTime, due, next_after,
    },
    model::{SeriesLimits, UnixMillis},
    query::{PromqlSettings, QueryResources, evaluate_vector},
    store::{ObjectKind, Store},
    telemetry::Metrics,
};
use group::{HISTORIES, Running, STATES};
use hosts::HostSeries;
use recording::{Recording, STAGES_MAX, number};
use reviewing::Reviewed;

/// How often is looked for rules that were read again, at least.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the state of a group that is in no file is kept, in milliseconds.
const ORPHANS_KEPT_MS: i64 = 24 * 3_600_000;
/// Under which name ends of series are written whose rules are gone.
const ENDS_OF: &str = "rules";

/// What the role is made of.
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
    pub lifeline: Lifeline,
}

/// The role. It blocks its thread while it evaluates, so it needs an arbiter of its own.
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
}

/// The groups under way, and when their rules were read.
#[derive(Debug, Default)]
struct Groups {
    generation: u64,
    all: Vec<Running>,
    hosts: HostSeries,
    reviewed: Reviewed,
}

impl Alerter {
    /// Makes the role; nothing runs yet.
    pub fn new(parts: AlerterParts) -> Self {
        let AlerterParts { rules, hosts, store, writer, clock, metrics, resources, .. } = parts;
        let promql = parts.promql;
        let recording = Recording { store, writer, limits: parts.series_limits };
        let shared = Shared { rules, hosts, recording, clock, metrics, resources, promql };
        Self { shared: Arc::new(shared), lifeline: parts.lifeline, groups: Groups::default() }
    }

    /// Evaluates what is due, and comes back when something is.
    fn work(&mut self, ctx: &mut Context<Self>) {
        let (shared, groups) = (self.shared.clone(), std::mem::take(&mut self.groups));
        let worked = async move {
            let groups = shared.evaluate_due(groups).await;
            let now = shared.clock.now();
            let next = |own: &Running| next_after(own.group.interval_ms, now).since(now);
            let next = groups.all.iter().map(next).min().unwrap_or(i64::MAX);
            let wait = Duration::from_millis(next.max(0).unsigned_abs()).min(LOOK_EVERY);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = shared.rules.acknowledgements().some() => {}
            }
            groups
        };
        ctx.spawn(worked.into_actor(self).map(|groups, role, ctx| {
            role.groups = groups;
            role.work(ctx);
        }));
    }
}

impl Shared {
    async fn evaluate_due(&self, mut groups: Groups) -> Groups {
        let loaded = self.rules.loaded();
        if loaded.generation != groups.generation {
            groups = self.adopt(groups, loaded).await;
            self.rules.count_alerts();
        }
        self.acknowledge(&mut groups);
        // Rules may ask for them.
        groups.hosts.write(&self.hosts, &self.recording).await;
        let mut is_any = false;
        for place in 0..groups.all.len() {
            let running = &mut groups.all[place];
            let now = self.clock.now();
            let Some(due) = due(running.group.interval_ms, running.state.last(), now) else {
                continue;
            };
            let time_max = Duration::from_millis(running.group.interval_ms.unsigned_abs())
                .min(self.promql.timeout);
            let vector = |expression: &str, at: UnixMillis| self.vector(expression, at, time_max);
            let query = Some(self.query_of_templates(due.at, time_max));
            let ask = Ask { vector: &vector, query, time: TemplateTime::default() };
            let (recording, metrics) = (&self.recording, &self.metrics);
            let status = running.evaluate(due, &ask, recording, now, metrics).await;
            self.rules.note(&running.id, status);
            is_any = true;
            self.acknowledge(&mut groups);
        }
        if is_any {
            self.rules.count_alerts();
        }
        self.review(&mut groups);
        groups
    }

    /// Does what waits for the alerter, as soon as no group is under way.
    fn acknowledge(&self, groups: &mut Groups) {
        for (asked, reply) in self.rules.acknowledgements().take() {
            let mut outcome = Err(AcknowledgeFault::NotFound);
            for running in &mut groups.all {
                let own = running.acknowledge(&asked, self.clock.now(), &self.recording.store);
                if own == Ok(0) {
                    continue;
                }
                self.rules.note_state(&running.id, &running.state);
                outcome = match (outcome, own) {
                    (Ok(before), Ok(count)) => Ok(before + count),
                    (Err(AcknowledgeFault::NotFound) | Ok(_), own) => own,
                    (before, _) => before,
                };
            }
            // Who asked may be gone.
            drop(reply.send(outcome));
        }
    }

    fn vector(&self, expression: &str, at: UnixMillis, time_max: Duration) -> Answered {
        let store = &self.recording.store;
        vector(store, &self.resources, &self.promql, (expression, at), time_max, &self.clock)
    }

    fn query_of_templates(&self, at: UnixMillis, time_max: Duration) -> TemplateQuery {
        let (store, resources) = (self.recording.store.clone(), self.resources.clone());
        let (promql, clock) = (self.promql, self.clock.clone());
        Arc::new(move |expression| {
            vector(&store, &resources, &promql, (expression, at), time_max, &clock)
        })
    }

    /// Goes on with the rules that were read: groups that are still there keep what is remembered.
    async fn adopt(&self, before: Groups, loaded: known::Loaded) -> Groups {
        let Groups { all: mut before, hosts, reviewed, .. } = before;
        let mut all = Vec::new();
        let mut ended = GroupRun::default();
        for group in &loaded.set.groups {
            let id = group.id();
            if let Some(place) = before.iter().position(|own| own.id == id) {
                let mut running = before.swap_remove(place);
                ended.ended.extend(running.adopt(group.clone()).ended);
                all.push(running);
                continue;
            }
            let running = Running::open(group.clone(), &self.recording.store);
            let (state, history) = (running.state.clone(), running.history.clone());
            // It can be asked for before it is evaluated.
            self.rules.note(&id, GroupStatus { state, history, ..GroupStatus::default() });
            all.push(running);
        }
        ended.ended.extend(before.into_iter().flat_map(|own| own.end().ended));
        let now = self.clock.now();
        if !ended.ended.is_empty() {
            // Rules may be read twice within a second.
            let place = (loaded.generation % STAGES_MAX) as usize;
            let number = number(ENDS_OF.into(), now, place);
            if let Some(lost) = self.recording.write(&ended, now, number).await {
                tracing::warn!(lost.cause, "series of rules that are gone end later");
            }
        }
        self.rules.note_unread(self.forget_orphans(&all, &loaded.set, now));
        self.rules.retain(|id| all.iter().any(|own| own.id == id));
        Groups { generation: loaded.generation, all, hosts, reviewed }
    }

    /// Deletes the states of groups that are in no file for long: a file that is missing by mistake
    /// costs nothing. Returns those whose files were left out.
    fn forget_orphans(&self, all: &[Running], set: &RuleSet, now: UnixMillis) -> Vec<GroupState> {
        let mut unread = Vec::new();
        let store = &self.recording.store;
        let listed = store.objects(ObjectKind::Rule).unwrap_or_default();
        for own in listed {
            let Some(id) = own.name.strip_prefix(STATES) else { continue };
            if all.iter().any(|running| running.id == id) {
                continue;
            }
            let Ok(Some(object)) = store.object(ObjectKind::Rule, &own.name) else { continue };
            let state = GroupState::from_bytes(&object.bytes).unwrap_or_default();
            if set.is_unread(&state.file) {
                unread.push(state);
                continue;
            }
            if now.since(UnixMillis(state.last)) < ORPHANS_KEPT_MS {
                continue;
            }
            let deleted = store.delete_object(ObjectKind::Rule, &own.name, own.version);
            let history = format!("{HISTORIES}{id}");
            if let Ok(Some(object)) = store.object(ObjectKind::Rule, &history) {
                let version = Some(object.version);
                drop(store.delete_object(ObjectKind::Rule, &history, version));
            }
            if matches!(deleted, Ok(Ok(()))) {
                tracing::info!(file = state.file, group = state.name, "forgot a group of rules");
            }
        }
        unread
    }
}

/// The series of an expression at a time.
fn vector(
    store: &Store,
    resources: &QueryResources,
    promql: &PromqlSettings,
    (expression, at): (&str, UnixMillis),
    time_max: Duration,
    clock: &TrustedClock,
) -> Answered {
    let budget = resources.budget(time_max);
    evaluate_vector(store, &budget, promql, expression, at, clock.moment())
}

impl Actor for Alerter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.work(ctx);
    }
}

impl Handler<Stop> for Alerter {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.lifeline.release();
        self.shared.rules.acknowledgements().close();
        ctx.stop();
    }
}
