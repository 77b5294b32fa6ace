//! Acknowledgements on their way to the alerter, which alone changes the states of alerts.
//!
//! Must never know: HTTP, how a state is stored.

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::alerts::{Acknowledgement, Alert, LabelSet};

/// Requests that wait for the alerter, at most; with more they are refused.
pub(crate) const WAITING_MAX: usize = 64;

/// Somebody says who looks after alerts, or that nobody does any more.
#[derive(Debug, Clone)]
pub struct Acknowledge {
    /// Which alerts: all that have these labels.
    pub labels: LabelSet,
    /// By whom; `None`: by nobody.
    pub by: Option<Acknowledgement>,
}

/// Why alerts are not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeFault {
    /// No alert has these labels.
    #[error("no alert that is pending or fires has these labels")]
    NotFound,
    /// Too much waits.
    #[error("too many acknowledgements wait: try again")]
    Busy,
    /// The acknowledgement is in memory, and is stored with the next evaluation.
    #[error("the acknowledgement is not stored yet: {0}")]
    Unstored(String),
    /// The alerter ends.
    #[error("the daemon is stopping")]
    Stopping,
}

impl Acknowledge {
    /// True when the request is about an alert.
    pub(crate) fn is_about(&self, alert: &Alert) -> bool {
        let mut labels = self.labels.iter();
        alert.is_active() && labels.all(|(name, value)| alert.labels.get(name) == Some(value))
    }
}

/// The number of acknowledged alerts.
pub(crate) type Acknowledged = Result<usize, AcknowledgeFault>;

/// A request, and who waits for what becomes of it.
pub(crate) type Asked = (Acknowledge, oneshot::Sender<Acknowledged>);

/// Requests that wait for the alerter.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    asked: Mutex<Queue>,
    some: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    all: Vec<Asked>,
    is_closed: bool,
}

impl Waiting {
    /// Hands over a request, and waits for what became of it.
    pub(crate) async fn ask(&self, asked: Acknowledge) -> Acknowledged {
        let (reply, outcome) = oneshot::channel();
        {
            let mut queue = self.asked.lock();
            if queue.is_closed {
                return Err(AcknowledgeFault::Stopping);
            }
            if queue.all.len() >= WAITING_MAX {
                return Err(AcknowledgeFault::Busy);
            }
            queue.all.push((asked, reply));
        }
        self.some.notify_one();
        outcome.await.unwrap_or(Err(AcknowledgeFault::Stopping))
    }

    /// Takes all requests that wait.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().all)
    }

    /// Nobody takes anything any more: who waits is told, and who asks from now on.
    pub(crate) fn close(&self) {
        let mut queue = self.asked.lock();
        queue.is_closed = true;
        queue.all.clear();
    }

    /// Waits until something does.
    pub(crate) async fn some(&self) {
        self.some.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn who_asks_while_the_alerter_ends_is_told_so() {
        let waiting = Waiting::default();
        let asked = || Acknowledge { labels: LabelSet::new(), by: None };
        let (first, ()) = tokio::join!(waiting.ask(asked()), async { waiting.close() });
        assert_eq!(first, Err(AcknowledgeFault::Stopping));
        assert_eq!(waiting.ask(asked()).await, Err(AcknowledgeFault::Stopping));
    }
}
