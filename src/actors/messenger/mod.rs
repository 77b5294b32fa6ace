//! The messenger: tells receivers of groups of alerts, for who has no Alertmanager.
//!
//! `alerts` decides; here is stored, sent and noted. What is owed is stored before it is sent, what
//! was confirmed at once after: killed in between, it is told again. Each way of a receiver has one
//! message under way at most, in a thread of its own, so one that is away holds up no other. Must
//! never know: HTTP's bodies, mails, rules.

mod sending;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::{
    alerts::{Groups, LabelSet, MessageTemplates, Routing},
    clock::TrustedClock,
    kept::{KnownPosted, KnownRules, Records, fault_of},
    model::UnixMillis,
    notify::Courier,
    store::{ObjectKind, Store},
    telemetry::{Health, Metrics, Shortfall},
};

/// The interval between two looks for due notifications.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// True when an alert with these labels is silenced at a time.
pub type Muting = Arc<dyn Fn(&LabelSet, UnixMillis) -> bool + Send + Sync>;

/// The parts of the role.
#[expect(missing_docs, reason = "the types say it")]
pub struct MessengerParts {
    pub rules: KnownRules,
    pub posted: KnownPosted,
    pub store: Store,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub health: Health,
    pub is_muted: Muting,
    pub lifeline: Lifeline,
}

/// The role. It waits for the disk, so it needs an arbiter of its own.
pub struct Messenger {
    parts: MessengerParts,
    groups: Groups,
    /// The groups as they are stored.
    records: Records<Vec<u8>>,
    couriers: BTreeMap<Way, Courier>,
    written: Option<Written>,
    /// The change counters of the alerts at the last look: of rules, and of other programs.
    seen: Option<(u64, u64)>,
    left_out: usize,
}

/// A receiver's name, and the key of its integration.
type Way = (String, String);

/// Templates as they were read, and of which routes.
struct Written {
    routing: Arc<Routing>,
    templates: Arc<MessageTemplates>,
}

impl fmt::Debug for Messenger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messenger").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl Messenger {
    /// Makes the role from what is stored; nothing runs yet.
    pub fn new(parts: MessengerParts) -> Self {
        let records = Records::new(&parts.store, ObjectKind::Notification);
        let stored = records.load().unwrap_or_else(|cause| {
            let cause: &dyn std::error::Error = &cause;
            tracing::error!(cause, "cannot read what receivers were told; they are told again");
            Vec::default()
        });
        let (groups, faults) = Groups::load(stored.into_iter());
        for fault in faults {
            tracing::error!(fault, "cannot read what a receiver was told; it is told again");
        }
        let (couriers, written) = (BTreeMap::new(), None);
        Self { parts, groups, records, couriers, written, seen: None, left_out: 0 }
    }

    /// Looks at the alerts, and tells what is to be told.
    fn look(&mut self, ctx: &mut Context<Self>) {
        let Some(routing) = self.parts.rules.routing() else {
            if self.written.take().is_some() {
                self.parts.rules.note_unlisted(0);
                self.forget_receivers();
            }
            return;
        };
        if self.written.as_ref().is_none_or(|own| !Arc::ptr_eq(&own.routing, &routing)) {
            // They were checked when the files were read.
            let templates = MessageTemplates::new(&routing.templates).unwrap_or_default();
            self.forget_receivers();
            self.seen = None;
            self.written = Some(Written { routing: routing.clone(), templates: templates.into() });
        }
        let now = self.parts.clock.now();
        self.step(&routing, now);
        self.keep(now);
        self.send(ctx);
        self.count(&routing, now);
    }

    /// Goes on to a time. Alerts are looked at when some have changed; until all rules are known, what
    /// is not there may still fire.
    fn step(&mut self, routing: &Routing, now: UnixMillis) {
        let (rules, posted) = (&self.parts.rules, &self.parts.posted);
        let changes = (rules.told_changes(), posted.changes(now));
        let mut seen = self.seen;
        let mut alerts = || {
            let told = rules.told_alerts().inspect(|_| seen = Some(changes))?;
            Some(told.into_iter().chain(posted.told(now)).collect())
        };
        let is_muted = |labels: &LabelSet| (self.parts.is_muted)(labels, now);
        let are_changed = self.seen != Some(changes);
        self.groups.step(routing, are_changed, &mut alerts, &is_muted, now);
        self.seen = seen;
    }

    /// Stores what has changed. What cannot be stored is known until the end of the process.
    fn keep(&mut self, now: UnixMillis) {
        for (id, bytes) in self.groups.take_changes() {
            let outcome = match bytes {
                Some(bytes) => self.records.put(&id, &bytes, now),
                None => self.records.remove(&id),
            };
            let (name, fault) = (format!("notification/{id}"), fault_of(outcome));
            self.parts.health.fall_short(Shortfall::NotStored, &name, fault.clone());
            if let Some(fault) = fault {
                tracing::error!(name, fault, "cannot store what a receiver was told");
            }
        }
    }

    /// The metrics of receivers begin anew: some may be gone.
    fn forget_receivers(&self) {
        self.parts.metrics.receiver_queue_length.reset();
        self.parts.metrics.receiver_queue_age.reset();
    }

    /// Brings the metrics up to date.
    fn count(&mut self, routing: &Routing, now: UnixMillis) {
        let metrics = &self.parts.metrics;
        let owing = self.groups.owing(routing);
        let names: BTreeSet<_> = routing.receivers.iter().map(|own| own.name.as_str()).collect();
        for name in names {
            let own = || owing.iter().filter(|owing| owing.receiver == name);
            let oldest = own().map(|owing| owing.since).min();
            let age_seconds = oldest.map_or(0, |since| now.since(since).max(0) / 1000);
            metrics.receiver_queue_length.with_label_values(&[name]).set(own().count() as i64);
            metrics.receiver_queue_age.with_label_values(&[name]).set(age_seconds);
        }
        metrics.notification_groups.set(self.groups.len() as i64);
        let left_out = self.groups.left_out();
        metrics.notification_alerts_left_out.set(left_out as i64);
        self.parts.rules.note_unlisted(left_out);
        if left_out > 0 && self.left_out == 0 {
            tracing::error!(left_out, "there are too many alerts; messages only count some");
        }
        self.left_out = left_out;
    }
}

impl Actor for Messenger {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(LOOK_EVERY, Self::look);
    }
}

impl Handler<Stop> for Messenger {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.lifeline.release();
        ctx.stop();
    }
}
