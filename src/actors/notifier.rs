//! The notifier: tells one Alertmanager of the alerts that fire and end.
//!
//! Each Alertmanager has one, so that one that is away holds up no other. Must never know: rules.

use std::{collections::BTreeSet, ops::Range, time::Duration};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler};

use super::{KnownRules, Lifeline, Stop, TrustedClock};
use crate::{
    alerts::{Telling, ToldAlert, backoff_ms},
    model::{UnixMillis, without_password},
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
    /// Of the Alertmanager, such as `http://localhost:9093`.
    pub url: String,
    pub lifeline: Lifeline,
}

/// The role. It blocks its thread while it waits for answers, so it needs an arbiter of its own.
#[derive(Debug)]
pub struct Notifier {
    parts: NotifierParts,
    http: ureq::Agent,
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
        let http = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0);
        let http = http.build().into();
        let (telling, next_at) = (Telling::default(), UnixMillis::EARLIEST);
        Self { parts, http, telling, failures: 0, next_at, quiet: None }
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
        let alerts = || {
            groups.iter().flat_map(|(interval_ms, status)| {
                let rules = status.state.rules.values();
                rules.flat_map(|own| &own.alerts).map(|alert| (alert, *interval_ms))
            })
        };
        let (due, mut next) = self.telling.due(alerts(), now);
        let (mut told, mut tried) = (0, 0);
        for some in due.chunks(ALERTS_PER_REQUEST) {
            let outcome = match self.send(some) {
                Ok(()) => "sent",
                // The same again would be refused again, and hold up all others.
                Err(cause) if is_refusal(&cause) => {
                    let (url, count) = (self.shown(), some.len());
                    tracing::warn!(url, count, %cause, "an Alertmanager refuses some of these alerts");
                    "failed"
                }
                // It may be about these alerts: the others need not wait.
                Err(cause) if is_answer(&cause) && (told > 0 || tried == 0) => {
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
            let known: BTreeSet<_> = alerts().map(|(alert, _)| &alert.labels).collect();
            self.telling.retain(|labels| known.contains(labels));
        }
        if told > 0 && self.failures > 0 && !self.telling.has_failed() {
            tracing::info!(url = self.shown(), "the Alertmanager takes alerts again");
            self.failures = 0;
        }
        self.quiet = Some(Quiet { told_changes, times: now..next });
    }

    fn send(&self, alerts: &[ToldAlert]) -> Result<(), ureq::Error> {
        // Nothing of them cannot be written.
        let body = serde_json::to_string(alerts).unwrap_or_default();
        let request = self.http.post(format!("{}/api/v2/alerts", self.parts.url));
        request.content_type("application/json").send(body).and_then(taken).map(drop)
    }

    /// Its address without a password, for the log.
    fn shown(&self) -> String {
        without_password(&self.parts.url)
    }

    /// They are told later, as they are then.
    fn fail(&mut self, cause: &ureq::Error, count: usize) {
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

/// An answer that says that what was sent was taken. One that leads elsewhere does not: what is asked
/// there is asked without it.
pub(super) fn taken<B>(
    answer: ureq::http::Response<B>,
) -> Result<ureq::http::Response<B>, ureq::Error> {
    let status = answer.status();
    if status.is_success() { Ok(answer) } else { Err(ureq::Error::StatusCode(status.as_u16())) }
}

/// Whether there was an answer at all.
fn is_answer(cause: &ureq::Error) -> bool {
    matches!(cause, ureq::Error::StatusCode(_))
}

/// Whether what was sent is wrong, and not the time.
pub(super) fn is_refusal(cause: &ureq::Error) -> bool {
    matches!(cause, ureq::Error::StatusCode(400..=407 | 409..=428 | 430..=499))
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
