//! The notifier: notifies receivers of groups of alerts, as a replacement for an Alertmanager.
//!
//! Each second, the notifier asks whether the alerts of rules changed (`kept/rules/notified.rs`);
//! `alerts` decides; this folder stores, sends and notes the results. A notification is stored
//! before it is sent, and marked as delivered right after the confirmation: after a crash in
//! between, it is sent again. Each integration of a receiver has at most one message in flight, in
//! its own thread, so that an unavailable integration does not delay the others. Must never know:
//! HTTP bodies, mails, rules.

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
    alerts::{AlertDeliveries, Groups, LabelSet, MessageTemplates, Routing},
    clock::TrustedClock,
    kept::{KnownPostedAlerts, KnownRules, Records, fault_of},
    model::UnixMillis,
    notify::Retries,
    store::{ObjectKind, Store},
    telemetry::{Health, Metrics, Shortfall},
};

/// The interval between two checks for due notifications.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A function that returns true when an alert with these labels is silenced at a time.
pub type IsSilenced = Arc<dyn Fn(&LabelSet, UnixMillis) -> bool + Send + Sync>;

/// The parts of the role.
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct NotifierParts {
    pub rules: KnownRules,
    pub posted: KnownPostedAlerts,
    pub store: Store,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub health: Health,
    pub is_silenced: IsSilenced,
    pub lifeline: Lifeline,
}

/// The actor of this role. It waits for the disk, so it needs its own arbiter.
pub struct Notifier {
    parts: NotifierParts,
    groups: Groups,
    /// The stored groups.
    records: Records<Vec<u8>>,
    retries: BTreeMap<IntegrationId, Retries>,
    parsed: Option<ParsedRouting>,
    /// The change counters at the last check: of rules' alerts, and of other programs' alerts.
    seen: Option<(u64, u64)>,
    left_out: usize,
}

/// The name of a receiver, and the key of its integration.
type IntegrationId = (String, String);

/// The parsed templates, with their routing tree.
struct ParsedRouting {
    routing: Arc<Routing>,
    templates: Arc<MessageTemplates>,
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl Notifier {
    /// Creates the role from the stored groups without starting it.
    pub fn new(parts: NotifierParts) -> Self {
        let records = Records::new(&parts.store, ObjectKind::Notification);
        let stored = records.load().unwrap_or_else(|cause| {
            let cause: &dyn std::error::Error = &cause;
            tracing::error!(
                cause,
                "cannot read the log of notifications; receivers are notified again"
            );
            Vec::default()
        });
        let (groups, faults) = Groups::load(stored.into_iter());
        for fault in faults {
            tracing::error!(
                fault,
                "cannot read the notifications of a group; its receiver is notified again"
            );
        }
        let (retries, parsed) = (BTreeMap::new(), None);
        Self { parts, groups, records, retries, parsed, seen: None, left_out: 0 }
    }

    /// Checks the alerts, and sends due notifications.
    fn check(&mut self, ctx: &mut Context<Self>) {
        let Some(routing) = self.parts.rules.routing() else {
            if self.parsed.take().is_some() {
                self.parts.rules.note_unlisted(0);
                self.parts.rules.note_deliveries(AlertDeliveries::new());
                self.reset_receiver_metrics();
            }
            return;
        };
        if self.parsed.as_ref().is_none_or(|parsed| !Arc::ptr_eq(&parsed.routing, &routing)) {
            // The templates were checked when the files were loaded.
            let templates = MessageTemplates::new(&routing.templates).unwrap_or_default();
            self.reset_receiver_metrics();
            self.seen = None;
            self.parts.rules.note_deliveries(self.groups.deliveries(&routing));
            self.parsed =
                Some(ParsedRouting { routing: routing.clone(), templates: templates.into() });
        }
        let now = self.parts.clock.now();
        self.advance_groups(&routing, now);
        self.store_groups(now);
        self.send(ctx);
        self.update_metrics(&routing, now);
    }

    /// Advances the groups to a time. Alerts are read when some have changed, but not before all
    /// groups of rules are known: until then, a missing alert may still fire.
    fn advance_groups(&mut self, routing: &Routing, now: UnixMillis) {
        let (rules, posted) = (&self.parts.rules, &self.parts.posted);
        let changes = (rules.notified_changes(), posted.changes(now));
        let mut seen = self.seen;
        let mut alerts = || {
            let alerts = rules.notified_alerts().inspect(|_| seen = Some(changes))?;
            Some(alerts.into_iter().chain(posted.message_alerts(now)).collect())
        };
        let is_muted = |labels: &LabelSet| (self.parts.is_silenced)(labels, now);
        let are_changed = self.seen != Some(changes);
        self.groups.step(routing, are_changed, &mut alerts, &is_muted, now);
        self.seen = seen;
    }

    /// Publishes and stores the changes. After a failure they stay in memory until the process ends.
    fn store_groups(&mut self, now: UnixMillis) {
        let changes = self.groups.take_changes();
        if let Some(ParsedRouting { routing, .. }) = &self.parsed
            && !changes.is_empty()
        {
            self.parts.rules.note_deliveries(self.groups.deliveries(routing));
        }
        for (id, bytes) in changes {
            let outcome = match bytes {
                Some(bytes) => self.records.put(&id, &bytes, now),
                None => self.records.remove(&id),
            };
            let (name, fault) = (format!("notification/{id}"), fault_of(outcome));
            self.parts.health.set_shortfall(Shortfall::NotStored, &name, fault.clone());
            if let Some(fault) = fault {
                tracing::error!(name, fault, "cannot store the notifications of a group");
            }
        }
    }

    /// Resets the metrics of receivers, because some may have been removed.
    fn reset_receiver_metrics(&self) {
        self.parts.metrics.receiver_queue_length.reset();
        self.parts.metrics.receiver_queue_age.reset();
    }

    fn update_metrics(&mut self, routing: &Routing, now: UnixMillis) {
        let metrics = &self.parts.metrics;
        let notifications = self.groups.pending_notifications(routing);
        let names: BTreeSet<_> =
            routing.receivers.iter().map(|receiver| receiver.name.as_str()).collect();
        for name in names {
            let of_receiver =
                || notifications.iter().filter(|notification| notification.receiver == name);
            let oldest = of_receiver().map(|notification| notification.since).min();
            let age_seconds = oldest.map_or(0, |since| now.since(since).max(0) / 1000);
            metrics
                .receiver_queue_length
                .with_label_values(&[name])
                .set(of_receiver().count() as i64);
            metrics.receiver_queue_age.with_label_values(&[name]).set(age_seconds);
        }
        metrics.notification_groups.set(self.groups.len() as i64);
        let left_out = self.groups.left_out();
        metrics.notification_alerts_left_out.set(left_out as i64);
        self.parts.rules.note_unlisted(left_out);
        if left_out > 0 && self.left_out == 0 {
            tracing::error!(left_out, "too many alerts; messages only count some of them");
        }
        self.left_out = left_out;
    }
}

impl Actor for Notifier {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(CHECK_INTERVAL, Self::check);
    }
}

impl Handler<Stop> for Notifier {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.lifeline.release();
        ctx.stop();
    }
}
