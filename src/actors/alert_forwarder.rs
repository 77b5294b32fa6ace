//! The alert forwarder: sends firing and resolved alerts to one Alertmanager.
//!
//! Each Alertmanager has a forwarder, so that an unavailable Alertmanager does not delay the
//! others. The notifier sends to webhooks and all other receivers. Must never know: rules.

use std::{collections::BTreeSet, ops::Range, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::{
    alerts::{Alertmanager, OutgoingAlert, SentAlerts, fingerprint},
    clock::TrustedClock,
    kept::KnownRules,
    model::{UnixMillis, without_password},
    notify::{AlertmanagerClient, DeliveryOutcome, Retries},
    telemetry::Metrics,
};

/// The interval between two checks for due notifications.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of alerts in a request, as in Prometheus.
const ALERTS_PER_REQUEST: usize = 64;

/// The parts of the role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct AlertForwarderParts {
    pub rules: KnownRules,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub alertmanager: Alertmanager,
    pub lifeline: Lifeline,
}

/// The actor of this role. It blocks its thread while it waits for answers, so it needs its own
/// arbiter.
#[derive(Debug)]
pub struct AlertForwarder {
    parts: AlertForwarderParts,
    sent: SentAlerts,
    retries: Retries,
    is_failing: bool,
    quiet: Option<QuietTimes>,
}

/// The times at which nothing is due unless alerts change.
#[derive(Debug)]
struct QuietTimes {
    notified_changes: u64,
    times: Range<UnixMillis>,
}

impl AlertForwarder {
    /// Creates the role without starting it.
    pub fn new(parts: AlertForwarderParts) -> Self {
        let (sent, retries) = (SentAlerts::default(), Retries::default());
        Self { parts, sent, retries, is_failing: false, quiet: None }
    }

    /// Sends the alerts that are due.
    fn send_due(&mut self) {
        let now = self.parts.clock.now();
        if self.retries.is_waiting(now) {
            return;
        }
        let notified_changes = self.parts.rules.notified_changes();
        let is_quiet = |quiet: &QuietTimes| {
            quiet.notified_changes == notified_changes && quiet.times.contains(&now)
        };
        if self.quiet.as_ref().is_some_and(is_quiet) {
            return;
        }
        let (groups, _) = self.parts.rules.notified_groups();
        let rules = self.parts.rules.clone();
        let external = &rules.external();
        let alerts = || {
            groups.iter().flat_map(|group| {
                let interval_ms = group.interval_ms();
                group.alerts(external).map(move |(alert, link)| (alert, interval_ms, link))
            })
        };
        let (due, next) = self.sent.due(alerts(), now);
        let (is_all_delivered, is_any_delivered) = self.send(&due, now);
        if is_any_delivered {
            let known: BTreeSet<_> = alerts().map(|(alert, ..)| &alert.labels).collect();
            self.sent.retain(|labels| known.contains(labels));
        }
        self.quiet = is_all_delivered.then_some(QuietTimes { notified_changes, times: now..next });
    }

    /// Sends alerts in batches; returns whether all were delivered, and whether any was.
    fn send(&mut self, due: &[OutgoingAlert], now: UnixMillis) -> (bool, bool) {
        let (rules, alertmanager) = (self.parts.rules.clone(), self.parts.alertmanager.clone());
        let client = (!due.is_empty()).then(|| AlertmanagerClient::new(&alertmanager));
        let mut remaining: Vec<_> = due.chunks(ALERTS_PER_REQUEST).collect();
        let total = remaining.len();
        // Requests have no names: for retries, the first alert of a request identifies it.
        let name =
            |alerts: &&[OutgoingAlert]| alerts.first().map(|alert| fingerprint(&alert.labels));
        let mut names: Vec<_> =
            remaining.iter().map(|alerts| name(alerts).unwrap_or_default()).collect();
        loop {
            let waiting: Vec<_> = names.iter().map(String::as_str).collect();
            let Some(index) = self.retries.take_due(&waiting, now) else { break };
            let Some(client) = &client else { break };
            let outcome = client.send(remaining[index], &rules.external());
            if self.note_outcome(&outcome, &names[index], remaining[index], now) {
                remaining.remove(index);
                names.remove(index);
            }
        }
        if remaining.is_empty() {
            if std::mem::take(&mut self.is_failing) && total > 0 {
                tracing::info!(url = self.shown_url(), "the Alertmanager accepts alerts again");
            }
            // Nothing is waiting, so past failures no longer matter.
            self.retries = Retries::default();
        }
        (remaining.is_empty(), remaining.len() < total)
    }

    /// Notes the outcome of a request; returns true if its alerts are delivered or refused for
    /// good.
    fn note_outcome(
        &mut self,
        outcome: &DeliveryOutcome,
        name: &str,
        alerts: &[OutgoingAlert],
        now: UnixMillis,
    ) -> bool {
        let (url, count) = (self.shown_url(), alerts.len());
        let label = match outcome {
            DeliveryOutcome::Confirmed(_) => "sent",
            // A retry would be refused again, and would delay all other alerts.
            DeliveryOutcome::Refused(cause) => {
                tracing::warn!(url, count, cause, "an Alertmanager refused some of these alerts");
                "failed"
            }
            DeliveryOutcome::Failed(cause) => {
                if !self.is_failing {
                    tracing::warn!(
                        url,
                        cause,
                        "cannot notify an Alertmanager; the request will be retried"
                    );
                }
                self.is_failing = true;
                self.retries.record_failure(name, now);
                "failed"
            }
        };
        self.parts.metrics.notifications.with_label_values(&[label]).inc_by(count as u64);
        let is_delivered = !matches!(outcome, DeliveryOutcome::Failed(_));
        if is_delivered {
            self.retries.record_answer(name);
            self.sent.record_sent(alerts, now);
        }
        is_delivered
    }

    /// Returns the Alertmanager's address without its password, for the log.
    fn shown_url(&self) -> String {
        without_password(&self.parts.alertmanager.url)
    }
}

impl Actor for AlertForwarder {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(CHECK_INTERVAL, |role, _| role.send_due());
    }
}

impl Handler<Stop> for AlertForwarder {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.lifeline.release();
        ctx.stop();
    }
}
