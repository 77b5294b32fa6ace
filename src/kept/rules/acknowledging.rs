//! A queue of acknowledgements for the alerter, which alone changes the states of alerts.
//!
//! Must never know: HTTP, the storage of states.

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::alerts::{Acknowledgement, Alert, LabelSet};

/// The capacity of the queue; further requests are refused.
pub(crate) const ACKNOWLEDGEMENTS_MAX: usize = 64;

/// A request to acknowledge alerts, or to withdraw their acknowledgement.
#[derive(Debug, Clone)]
pub struct Acknowledge {
    /// The labels that select the alerts.
    pub labels: LabelSet,
    /// The acknowledgement; `None` withdraws it.
    pub by: Option<Acknowledgement>,
}

/// The reason why alerts were not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeFault {
    /// No alert has these labels.
    #[error("no alert that is pending or fires has these labels")]
    NotFound,
    /// The queue is full.
    #[error("too many acknowledgements wait: try again")]
    Busy,
    /// The acknowledgement is in memory, and is stored with the next evaluation.
    #[error("the acknowledgement is not stored yet: {0}")]
    Unstored(String),
    /// The alerter is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

impl Acknowledge {
    /// Returns true when the request selects an alert.
    pub(crate) fn is_about(&self, alert: &Alert) -> bool {
        let mut labels = self.labels.iter();
        alert.is_active() && labels.all(|(name, value)| alert.labels.get(name) == Some(value))
    }
}

/// The number of acknowledged alerts.
pub(crate) type AcknowledgeResult = Result<usize, AcknowledgeFault>;

/// A request with the channel for its result.
pub(crate) type PendingAcknowledgement = (Acknowledge, oneshot::Sender<AcknowledgeResult>);

/// The queue of requests for the alerter.
#[derive(Debug, Default)]
pub(crate) struct AcknowledgementQueue {
    requests: Mutex<Queue>,
    queued: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    all: Vec<PendingAcknowledgement>,
    is_closed: bool,
}

impl AcknowledgementQueue {
    /// Queues a request, and waits for its result.
    pub(crate) async fn submit(&self, request: Acknowledge) -> AcknowledgeResult {
        let (reply, outcome) = oneshot::channel();
        {
            let mut queue = self.requests.lock();
            if queue.is_closed {
                return Err(AcknowledgeFault::Stopping);
            }
            if queue.all.len() >= ACKNOWLEDGEMENTS_MAX {
                return Err(AcknowledgeFault::Busy);
            }
            queue.all.push((request, reply));
        }
        self.queued.notify_one();
        outcome.await.unwrap_or(Err(AcknowledgeFault::Stopping))
    }

    /// Removes and returns all queued requests.
    pub(crate) fn take_all(&self) -> Vec<PendingAcknowledgement> {
        std::mem::take(&mut self.requests.lock().all)
    }

    /// Closes the queue: queued and later requests fail.
    pub(crate) fn close(&self) {
        let mut queue = self.requests.lock();
        queue.is_closed = true;
        queue.all.clear();
    }

    /// Waits until a request is queued.
    pub(crate) async fn wait(&self) {
        self.queued.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn requests_while_the_alerter_stops_fail() {
        let queue = AcknowledgementQueue::default();
        let request = || Acknowledge { labels: LabelSet::new(), by: None };
        let (first, ()) = tokio::join!(queue.submit(request()), async { queue.close() });
        assert_eq!(first, Err(AcknowledgeFault::Stopping));
        assert_eq!(queue.submit(request()).await, Err(AcknowledgeFault::Stopping));
    }
}
