//! Test alerts: each integration of one receiver gets a test alert, and then its end.
//!
//! Test alerts are not stored, retried or counted as notifications. Must never know: HTTP status
//! codes.

use std::{sync::Arc, thread, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use super::{DeliveryOutcome, deliver};
use crate::{
    alerts::{
        ExternalIdentity, Integration, LabelSet, Message, MessageAlert, MessageTemplates, Receiver,
        Routing,
    },
    clock::Stopwatch,
    model::UnixMillis,
};

/// The maximum number of tests at the same time; more are refused.
const TESTS_MAX: usize = 4;
/// The timeout of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The name of the test alert.
const ALERT: &str = "GranaryTest";

/// A handle for tests of receivers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ReceiverTests(Arc<Semaphore>);

/// The response of one integration of a receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegrationTestResult {
    /// The key of the integration, such as `webhook/0`.
    pub integration: String,
    /// The outcome: `sent`, `refused` or `failed`.
    pub outcome: &'static str,
    /// The response of the receiver, or the reason why there is none, in one line.
    pub answer: String,
    /// The duration of the delivery, in seconds.
    pub seconds: f64,
}

/// The error when too many tests are running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{TESTS_MAX} tests of receivers are running: try again later")]
pub struct TooManyTests;

impl Default for ReceiverTests {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TESTS_MAX)))
    }
}

impl ReceiverTests {
    /// Sends a test alert, and then its end, to all integrations of a receiver at the same time.
    ///
    /// # Errors
    /// When too many tests are running.
    pub async fn test(
        &self,
        routing: &Routing,
        receiver: &Receiver,
        external: &ExternalIdentity,
        now: UnixMillis,
    ) -> Result<Vec<IntegrationTestResult>, TooManyTests> {
        let permit = self.0.clone().try_acquire_owned().map_err(|_| TooManyTests)?;
        let permit = Arc::new(permit);
        // The templates were checked when the files were read.
        let templates = Arc::new(MessageTemplates::new(&routing.templates).unwrap_or_default());
        let message = message(&receiver.name, external, now);
        let start = |integration: &Integration| {
            let delivery = (integration.clone(), message.clone(), templates.clone());
            (integration.key.clone(), start_delivery(delivery, permit.clone()))
        };
        let started: Vec<_> = receiver.integrations.iter().map(start).collect();
        let watch = Stopwatch::start();
        let mut results = Vec::new();
        for (integration, answer) in started {
            let time_left = ANSWER_TIMEOUT.saturating_sub(watch.elapsed());
            let (outcome, seconds) = match timeout(time_left, answer).await {
                Ok(Ok(timed_outcome)) => timed_outcome,
                Ok(Err(_)) => (
                    DeliveryOutcome::Failed("the delivery ended without an outcome".to_owned()),
                    0.0,
                ),
                Err(_) => {
                    let text = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
                    (DeliveryOutcome::Failed(text), watch.seconds())
                }
            };
            let (outcome, answer) = outcome.label_and_response();
            results.push(IntegrationTestResult { integration, outcome, answer, seconds });
        }
        Ok(results)
    }
}

/// The outcome of a delivery, and its duration in seconds.
type TimedOutcome = (DeliveryOutcome, f64);

/// Starts the delivery to one integration in a separate thread, which holds the permit until the
/// delivery ends.
fn start_delivery(
    (integration, message, templates): (Integration, Message, Arc<MessageTemplates>),
    permit: Arc<OwnedSemaphorePermit>,
) -> oneshot::Receiver<TimedOutcome> {
    let (reply, answer) = oneshot::channel();
    let work = move || {
        let watch = Stopwatch::start();
        let outcome = deliver_with_end(&integration, message, &templates);
        // The client of the request may be gone.
        drop(reply.send((outcome, watch.seconds())));
        drop(permit);
    };
    // When the thread cannot be started, the channel closes, which counts as a failure.
    drop(thread::Builder::new().name("test message".to_owned()).spawn(work));
    answer
}

/// Delivers the alert, and its end if the integration sends resolved alerts, so that no incident
/// stays open.
fn deliver_with_end(
    integration: &Integration,
    message: Message,
    templates: &MessageTemplates,
) -> DeliveryOutcome {
    let outcome = deliver(&integration.target, &message, templates);
    if !integration.send_resolved || !matches!(outcome, DeliveryOutcome::Confirmed(_)) {
        return outcome;
    }
    let mut ended = message;
    for alert in &mut ended.alerts {
        alert.ends_at = Some(alert.starts_at);
    }
    let only_firing = |cause: String| format!("the alert was sent, but its end was not: {cause}");
    match deliver(&integration.target, &ended, templates) {
        DeliveryOutcome::Confirmed(_) => outcome,
        DeliveryOutcome::Refused(cause) => DeliveryOutcome::Refused(only_firing(cause)),
        DeliveryOutcome::Failed(cause) => DeliveryOutcome::Failed(only_firing(cause)),
    }
}

/// Returns the test message. Its key is unique, so that services open an incident for each test.
fn message(receiver: &str, external: &ExternalIdentity, now: UnixMillis) -> Message {
    let group_labels: LabelSet = [("alertname".to_owned(), ALERT.to_owned())].into();
    let severity = ("severity".to_owned(), "info".to_owned());
    let labels = group_labels.clone().into_iter().chain([severity]).collect();
    let summary = format!("Test of the receiver {receiver}: nothing is wrong");
    let alert = MessageAlert {
        labels: external.add_labels(&labels),
        annotations: [("summary".to_owned(), summary)].into(),
        starts_at: now.0,
        ..MessageAlert::default()
    };
    Message {
        receiver: receiver.to_owned(),
        alerts: vec![alert],
        group_labels,
        group_key: format!("test/{receiver}/{}", now.0),
        external_url: external.url.clone(),
        decided_at: now.0,
        ..Message::default()
    }
}
