//! The notifier: tells one Alertmanager of the alerts that fire and end.
//!
//! Each Alertmanager has one, so that one that is away holds up no other. Must never know: rules.

use std::{collections::BTreeSet, fmt, ops::Range, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{Lifeline, Stop};
use crate::{
    alerts::{Alertmanager, Telling, ToldAlert, backoff_ms},
    clock::TrustedClock,
    kept::KnownRules,
    model::{UnixMillis, without_password},
    notify::{client, is_refusal, json_request},
    telemetry::Metrics,
};

/// How often is looked for what is to be told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Alerts of one request, as Prometheus has it.
const ALERTS_PER_REQUEST: usize = 64;

/// What the role is made of.
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
    failures: u32,
    /// Not before this.
    next_at: UnixMillis,
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
        let (telling, next_at) = (Telling::default(), UnixMillis::EARLIEST);
        Self { parts, telling, failures: 0, next_at, quiet: None }
    }

    /// Tells what is to be told.
    fn tell(&mut self) {
        let now = self.parts.clock.now();
        // A clock that was set back makes nobody wait for longer.
        if (1..=backoff_ms(u32::MAX)).contains(&self.next_at.since(now)) {
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
        let (due, mut next) = self.telling.due(alerts(), now);
        let (mut told, mut tried) = (0, 0);
        // Made for each round: certificates are read anew.
        let client = (!due.is_empty()).then(|| client(&self.parts.alertmanager.http, TIMEOUT));
        for some in due.chunks(ALERTS_PER_REQUEST) {
            let outcome = match self.send(client.as_ref(), some) {
                Ok(()) => "sent",
                // The same again would be refused again, and hold up all others.
                Err(cause @ Fault::Status(status)) if is_refusal(status) => {
                    let (url, count) = (self.shown(), some.len());
                    tracing::warn!(url, count, %cause, "an Alertmanager refuses some of these alerts");
                    "failed"
                }
                // It may be about these alerts: the others need not wait.
                Err(cause @ Fault::Status(_)) if told > 0 || tried == 0 => {
                    self.fail(&cause, some.len());
                    tried += some.len();
                    next = next.min(self.telling.note_failed(some, now));
                    continue;
                }
                // No connection, or one error after the other: it is away.
                Err(cause) => {
                    self.next_at = now.plus(backoff_ms(self.failures));
                    return self.fail(&cause, due.len() - tried);
                }
            };
            tried += some.len();
            told += some.len();
            self.telling.note(some, now);
            self.count(outcome, some.len());
        }
        if tried > 0 {
            let known: BTreeSet<_> = alerts().map(|(alert, ..)| &alert.labels).collect();
            self.telling.retain(|labels| known.contains(labels));
        }
        if told > 0 && self.failures > 0 && !self.telling.has_failed() {
            tracing::info!(url = self.shown(), "the Alertmanager takes alerts again");
            self.failures = 0;
        }
        self.quiet = Some(Quiet { told_changes, times: now..next });
    }

    fn send(
        &self,
        client: Option<&Result<ureq::Agent, String>>,
        alerts: &[ToldAlert],
    ) -> Result<(), Fault> {
        let Some(client) = client else { return Ok(()) };
        let client = client.as_ref().map_err(|cause| Fault::Unasked(cause.clone()))?;
        let rules = self.parts.rules.clone();
        let external = rules.external();
        let alerts: Vec<_> = alerts.iter().map(|own| own.outside(external)).collect();
        // Nothing of them cannot be written.
        let body = serde_json::to_string(&alerts).unwrap_or_default();
        let Alertmanager { url, http } = &self.parts.alertmanager;
        let unasked = |cause: &dyn fmt::Display| Fault::Unasked(cause.to_string());
        let request = json_request(client, http, &format!("{url}/api/v2/alerts"));
        let answer = request.map_err(|cause| unasked(&cause))?.send(body);
        let status = answer.map_err(|cause| unasked(&cause))?.status();
        // One that leads elsewhere takes nothing: what is asked there is asked without it.
        if status.is_success() { Ok(()) } else { Err(Fault::Status(status.as_u16())) }
    }

    /// Its address without a password, for the log.
    fn shown(&self) -> String {
        without_password(&self.parts.alertmanager.url)
    }

    /// They are told later, as they are then.
    fn fail(&mut self, cause: &Fault, count: usize) {
        if self.failures == 0 {
            let url = self.shown();
            tracing::warn!(url, %cause, "cannot tell an Alertmanager; it will be tried again");
        }
        self.count("failed", count);
        self.failures = self.failures.saturating_add(1);
    }

    fn count(&self, outcome: &str, count: usize) {
        self.parts.metrics.notifications.with_label_values(&[outcome]).inc_by(count as u64);
    }
}

/// Why alerts were not taken.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// The Alertmanager answered so.
    #[error("status {0}")]
    Status(u16),
    /// There was no answer, or it could not be asked.
    #[error("{0}")]
    Unasked(String),
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
