//! Acknowledgements on their way to the alerter, which alone changes what is remembered of alerts.
//!
//! Must never know: HTTP, how a state is stored.

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::{Shared, evaluating::Groups};
use crate::alerts::{Acknowledgement, Alert, LabelSet};

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

impl Acknowledge {
    /// Whether it is about an alert.
    pub(super) fn is_about(&self, alert: &Alert) -> bool {
        let mut labels = self.labels.iter();
        alert.is_active() && labels.all(|(name, value)| alert.labels.get(name) == Some(value))
    }
}

/// A request on its way through the groups.
#[derive(Debug)]
pub(super) struct Asking {
    asked: Acknowledge,
    reply: oneshot::Sender<Outcome>,
    /// The groups that it has not come to, by their ids.
    left: Vec<String>,
    outcome: Outcome,
}

impl Shared {
    /// Does what waits, in each group that is here; who asked waits for those alone that are evaluated
    /// now and have such alerts.
    pub(super) fn acknowledge(&self, groups: &mut Groups) {
        let ids: Vec<_> = groups.all.iter().map(|own| own.id.clone()).collect();
        if groups.asking.len() < WAITING_MAX {
            let asked = self.rules.acknowledgements().take().into_iter();
            groups.asking.extend(asked.map(|(asked, reply)| {
                let outcome = Err(AcknowledgeFault::NotFound);
                Asking { asked, reply, left: ids.clone(), outcome }
            }));
        }
        for mut asking in std::mem::take(&mut groups.asking) {
            self.acknowledge_in(groups, &mut asking);
            if !asking.left.is_empty() {
                groups.asking.push(asking);
                continue;
            }
            // Who asked may be gone.
            drop(asking.reply.send(asking.outcome));
        }
    }

    /// Ends acknowledgements whose time is over, in each group that is here.
    pub(super) fn end_acknowledgements(&self, groups: &mut Groups) {
        let now = self.clock.now();
        for running in groups.all.iter_mut().filter_map(|place| place.running.as_mut()) {
            if running.end_acknowledgements(now, &self.recording.store) {
                self.rules.note_state(&running.id, &running.state);
            }
        }
    }

    fn acknowledge_in(&self, groups: &mut Groups, asking: &mut Asking) {
        let Asking { asked, left, outcome, .. } = asking;
        left.retain(|id| {
            let Some(place) = groups.all.iter_mut().find(|own| own.id == *id) else { return false };
            let Some(running) = &mut place.running else {
                return self.rules.has_alert(id, |alert| asked.is_about(alert));
            };
            let own = running.acknowledge(asked, self.clock.now(), &self.recording.store);
            if own == Ok(0) {
                return false;
            }
            self.rules.note_state(id, &running.state);
            *outcome = match (outcome.clone(), own) {
                (Ok(before), Ok(count)) => Ok(before + count),
                (Err(AcknowledgeFault::NotFound) | Ok(_), own) => own,
                (before, _) => before,
            };
            false
        });
    }
}

/// How many alerts were acknowledged.
pub(super) type Outcome = Result<usize, AcknowledgeFault>;

/// A request, and who waits for what becomes of it.
type Asked = (Acknowledge, oneshot::Sender<Outcome>);

/// What waits for the alerter.
#[derive(Debug, Default)]
pub(super) struct Waiting {
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
    pub(super) async fn ask(&self, asked: Acknowledge) -> Outcome {
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

    /// What waits now.
    pub(super) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().all)
    }

    /// Nobody takes anything any more: who waits is told, and who asks from now on.
    pub(super) fn close(&self) {
        let mut queue = self.asked.lock();
        queue.is_closed = true;
        queue.all.clear();
    }

    /// Waits until something does.
    pub(super) async fn some(&self) {
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
