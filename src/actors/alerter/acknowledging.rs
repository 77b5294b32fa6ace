//! Acknowledgements on their way to the alerter, which alone changes what is remembered of alerts.
//!
//! Must never know: HTTP, how a state is stored.

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::alerts::{Acknowledgement, LabelSet};

/// Requests that wait for the alerter, at most; with more they are refused.
const WAITING_MAX: usize = 64;

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
    /// It could not be stored. It is kept, and stored with the next evaluation.
    #[error("the acknowledgement is not stored yet: {0}")]
    Unstored(String),
    /// The alerter ends.
    #[error("the daemon is stopping")]
    Stopping,
}

/// How many alerts were acknowledged.
pub(super) type Outcome = Result<usize, AcknowledgeFault>;

/// What waits for the alerter.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    asked: Mutex<Vec<(Acknowledge, oneshot::Sender<Outcome>)>>,
    some: Notify,
}

impl Waiting {
    /// Hands over a request, and waits for what became of it.
    pub(super) async fn ask(&self, asked: Acknowledge) -> Outcome {
        let (reply, outcome) = oneshot::channel();
        {
            let mut all = self.asked.lock();
            if all.len() >= WAITING_MAX {
                return Err(AcknowledgeFault::Busy);
            }
            all.push((asked, reply));
        }
        self.some.notify_one();
        outcome.await.unwrap_or(Err(AcknowledgeFault::Stopping))
    }

    /// What waits now.
    pub(super) fn take(&self) -> Vec<(Acknowledge, oneshot::Sender<Outcome>)> {
        std::mem::take(&mut self.asked.lock())
    }

    /// Waits until something does.
    pub(super) async fn some(&self) {
        self.some.notified().await;
    }
}
