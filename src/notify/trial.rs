//! Test alerts: all integrations of one receiver get a test alert, and then its end.
//!
//! Tests are not stored, retried or counted as notifications. Must never know: HTTP's
//! status codes.

use std::{sync::Arc, thread, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use super::{Outcome, deliver};
use crate::{
    alerts::{
        External, Integration, LabelSet, Message, MessageAlert, MessageTemplates, Receiver, Routing,
    },
    clock::Stopwatch,
    model::UnixMillis,
};

/// The maximum number of concurrent tests; more are refused.
const AT_ONCE: usize = 4;
/// The timeout of a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The name of the test alert.
const ALERT: &str = "GranaryTest";

/// A handle for tests of receivers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ReceiverTests(Arc<Semaphore>);

/// The outcome of one integration.
#[derive(Debug, Clone, PartialEq)]
pub struct WayTested {
    /// The key of the integration, such as `webhook/0`.
    pub way: String,
    /// `sent`, `refused` or `failed`.
    pub outcome: &'static str,
    /// The response of the receiver, or the cause of its absence; one line.
    pub answer: String,
    /// The time that it took.
    pub seconds: f64,
}

/// Too many tests are running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{AT_ONCE} tests of receivers are under way: try again")]
pub struct TooManyTests;

impl Default for ReceiverTests {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl ReceiverTests {
    /// Sends a test alert to all integrations of a receiver at once, and then its end.
    ///
    /// # Errors
    /// When too many tests are under way.
    pub async fn test(
        &self,
        routing: &Routing,
        receiver: &Receiver,
        external: &External,
        now: UnixMillis,
    ) -> Result<Vec<WayTested>, TooManyTests> {
        let permit = self.0.clone().try_acquire_owned().map_err(|_| TooManyTests)?;
        let permit = Arc::new(permit);
        // The texts were checked when the files were read.
        let templates = Arc::new(MessageTemplates::new(&routing.templates).unwrap_or_default());
        let message = message(&receiver.name, external, now);
        let begin = |integration: &Integration| {
            let asked = (integration.clone(), message.clone(), templates.clone());
            (integration.key.clone(), begin(asked, permit.clone()))
        };
        let begun: Vec<_> = receiver.integrations.iter().map(begin).collect();
        let watch = Stopwatch::start();
        let mut tested = Vec::new();
        for (way, answer) in begun {
            let left = ANSWER_TIMEOUT.saturating_sub(watch.elapsed());
            let (outcome, seconds) = match timeout(left, answer).await {
                Ok(Ok(answered)) => answered,
                Ok(Err(_)) => {
                    (Outcome::Failed("the sending thread ended without a result".to_owned()), 0.0)
                }
                Err(_) => {
                    let text = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
                    (Outcome::Failed(text), watch.seconds())
                }
            };
            let (outcome, answer) = outcome.shown();
            tested.push(WayTested { way, outcome, answer, seconds });
        }
        Ok(tested)
    }
}

type Answered = (Outcome, f64);

/// Tests one integration in a new thread, which holds the permit until it ends.
fn begin(
    (integration, message, templates): (Integration, Message, Arc<MessageTemplates>),
    permit: Arc<OwnedSemaphorePermit>,
) -> oneshot::Receiver<Answered> {
    let (reply, answer) = oneshot::channel();
    let work = move || {
        let watch = Stopwatch::start();
        let outcome = tell(&integration, message, &templates);
        // The client may have disconnected.
        drop(reply.send((outcome, watch.seconds())));
        drop(permit);
    };
    // Without a thread nobody replies, which is reported as the answer.
    drop(thread::Builder::new().name("test message".to_owned()).spawn(work));
    answer
}

/// Sends the alert, and its end if the integration gets ends, so that no incident stays open.
fn tell(integration: &Integration, message: Message, templates: &MessageTemplates) -> Outcome {
    let outcome = deliver(&integration.target, &message, templates);
    if !integration.send_resolved || !matches!(outcome, Outcome::Confirmed(_)) {
        return outcome;
    }
    let mut ended = message;
    for alert in &mut ended.alerts {
        alert.ends_at = Some(alert.starts_at);
    }
    let of_end = |cause: String| format!("the alert was sent, its end was not: {cause}");
    match deliver(&integration.target, &ended, templates) {
        Outcome::Confirmed(_) => outcome,
        Outcome::Refused(cause) => Outcome::Refused(of_end(cause)),
        Outcome::Failed(cause) => Outcome::Failed(of_end(cause)),
    }
}

/// Creates the message; each test has another group key, so that services open an incident for
/// each.
fn message(receiver: &str, external: &External, now: UnixMillis) -> Message {
    let group_labels: LabelSet = [("alertname".to_owned(), ALERT.to_owned())].into();
    let severity = ("severity".to_owned(), "info".to_owned());
    let labels = group_labels.clone().into_iter().chain([severity]).collect();
    let summary = format!("Test of the receiver {receiver}: nothing is wrong");
    let alert = MessageAlert {
        labels: external.labelled(&labels),
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
