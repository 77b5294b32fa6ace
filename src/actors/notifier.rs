//! The notifier: tells one Alertmanager of the alerts that fire and end.
//!
//! Each Alertmanager has one, so that one that is away holds up no other. Must never know: rules.

use std::{collections::BTreeSet, ops::Range, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::{
    alerts::{Alertmanager, Telling, ToldAlert, fingerprint},
    clock::TrustedClock,
    kept::KnownRules,
    model::{UnixMillis, without_password},
    notify::{AlertmanagerClient, Courier, Outcome},
    telemetry::Metrics,
};

/// The interval between two looks for due notifications.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Alerts of one request, as Prometheus has it.
const ALERTS_PER_REQUEST: usize = 64;

/// The parts of the role.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct NotifierParts {
    pub rules: KnownRules,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub alertmanager: Alertmanager,
    pub lifeline: Lifeline,
}

/// The role. It blocks its thread while it waits for answers, so it needs an arbiter of its own.
#[derive(Debug)]
pub struct Notifier {
    parts: NotifierParts,
    telling: Telling,
    courier: Courier,
    is_failing: bool,
    quiet: Option<Quiet>,
}

/// All was told, and nothing is to be as long as nothing changes.
#[derive(Debug)]
struct Quiet {
    told_changes: u64,
    times: Range<UnixMillis>,
}

impl Notifier {
    /// Makes the role; nothing runs yet.
    pub fn new(parts: NotifierParts) -> Self {
        let (telling, courier) = (Telling::default(), Courier::default());
        Self { parts, telling, courier, is_failing: false, quiet: None }
    }

    /// Tells what is to be told.
    fn tell(&mut self) {
        let now = self.parts.clock.now();
        if self.courier.is_waiting(now) {
            return;
        }
        let told_changes = self.parts.rules.told_changes();
        let is_quiet = |own: &Quiet| own.told_changes == told_changes && own.times.contains(&now);
        if self.quiet.as_ref().is_some_and(is_quiet) {
            return;
        }
        let (groups, _) = self.parts.rules.told_groups();
        let rules = self.parts.rules.clone();
        let external = rules.external();
        let alerts = || {
            groups.iter().flat_map(|group| {
                let interval_ms = group.interval_ms();
                group.alerts(external).map(move |(alert, link)| (alert, interval_ms, link))
            })
        };
        let (due, next) = self.telling.due(alerts(), now);
        let (is_all_told, is_any_told) = self.send(&due, now);
        if is_any_told {
            let known: BTreeSet<_> = alerts().map(|(alert, ..)| &alert.labels).collect();
            self.telling.retain(|labels| known.contains(labels));
        }
        self.quiet = is_all_told.then_some(Quiet { told_changes, times: now..next });
    }

    /// Sends alerts, some in each request; returns whether all are told, and whether any is.
    fn send(&mut self, due: &[ToldAlert], now: UnixMillis) -> (bool, bool) {
        let (rules, alertmanager) = (self.parts.rules.clone(), self.parts.alertmanager.clone());
        let client = (!due.is_empty()).then(|| AlertmanagerClient::new(&alertmanager));
        let mut left: Vec<_> = due.chunks(ALERTS_PER_REQUEST).collect();
        let all = left.len();
        // Requests have no names: the first alert of each stands for it.
        let name = |alerts: &&[ToldAlert]| alerts.first().map(|own| fingerprint(&own.labels));
        let mut names: Vec<_> =
            left.iter().map(|alerts| name(alerts).unwrap_or_default()).collect();
        loop {
            let owed: Vec<_> = names.iter().map(String::as_str).collect();
            let Some(at) = self.courier.take(&owed, now) else { break };
            let Some(client) = &client else { break };
            let outcome = client.send(left[at], rules.external());
            if self.note(&outcome, &names[at], left[at], now) {
                left.remove(at);
                names.remove(at);
            }
        }
        if left.is_empty() {
            if std::mem::take(&mut self.is_failing) && all > 0 {
                tracing::info!(url = self.shown(), "the Alertmanager takes alerts again");
            }
            // Nothing waits, so nothing is to be remembered of failures.
            self.courier = Courier::default();
        }
        (left.is_empty(), left.len() < all)
    }

    /// Notes the outcome of a request; returns whether its alerts are told.
    fn note(
        &mut self,
        outcome: &Outcome,
        name: &str,
        alerts: &[ToldAlert],
        now: UnixMillis,
    ) -> bool {
        let (url, count) = (self.shown(), alerts.len());
        let word = match outcome {
            Outcome::Confirmed(_) => "sent",
            // The same again would be refused again, and hold up all others.
            Outcome::Refused(cause) => {
                tracing::warn!(url, count, cause, "an Alertmanager refuses some of these alerts");
                "failed"
            }
            Outcome::Failed(cause) => {
                if !self.is_failing {
                    tracing::warn!(
                        url,
                        cause,
                        "cannot tell an Alertmanager; it will be tried again"
                    );
                }
                self.is_failing = true;
                self.courier.fail(name, now);
                "failed"
            }
        };
        self.parts.metrics.notifications.with_label_values(&[word]).inc_by(count as u64);
        let is_told = !matches!(outcome, Outcome::Failed(_));
        if is_told {
            self.courier.answer(name);
            self.telling.note(alerts, now);
        }
        is_told
    }

    /// Its address without a password, for the log.
    fn shown(&self) -> String {
        without_password(&self.parts.alertmanager.url)
    }
}

impl Actor for Notifier {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(LOOK_EVERY, |role, _| role.tell());
    }
}

impl Handler<Stop> for Notifier {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.lifeline.release();
        ctx.stop();
    }
}
