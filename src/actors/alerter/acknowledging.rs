//! Acknowledgements of alerts, applied to each group that is not being evaluated.
//!
//! Must never know: HTTP, the storage of states.

use super::{
    Shared,
    groups::{Groups, PendingRequest},
};
use crate::kept::{ACKNOWLEDGEMENTS_MAX, AcknowledgeFault};

impl Shared {
    /// Applies waiting acknowledgements to each idle group. A request is answered after the
    /// evaluation of its alerts' groups at the latest.
    pub(super) fn acknowledge(&self, groups: &mut Groups) {
        let ids: Vec<_> = groups.all.iter().map(|place| place.id.clone()).collect();
        if groups.pending.len() < ACKNOWLEDGEMENTS_MAX {
            let asked = self.rules.acknowledgements().take_all().into_iter();
            groups.pending.extend(asked.map(|(asked, reply)| {
                let outcome = Err(AcknowledgeFault::NotFound);
                PendingRequest { asked, reply, left: ids.clone(), outcome }
            }));
        }
        for mut request in std::mem::take(&mut groups.pending) {
            self.acknowledge_in(groups, &mut request);
            if !request.left.is_empty() {
                groups.pending.push(request);
                continue;
            }
            // The client may have disconnected.
            drop(request.reply.send(request.outcome));
        }
    }

    /// Ends expired acknowledgements in each idle group.
    pub(super) fn end_acknowledgements(&self, groups: &mut Groups) {
        let now = self.clock.now();
        for running in groups.all.iter_mut().filter_map(|place| place.running.as_mut()) {
            if running.end_acknowledgements(now) {
                self.rules.note_state(&running.id, &running.state);
            }
        }
    }

    fn acknowledge_in(&self, groups: &mut Groups, request: &mut PendingRequest) {
        let PendingRequest { asked, left, outcome, .. } = request;
        left.retain(|id| {
            let Some(place) = groups.all.iter_mut().find(|place| place.id == *id) else {
                return false;
            };
            let Some(running) = &mut place.running else {
                return self.rules.has_alert(id, |alert| asked.is_about(alert));
            };
            let result = running.acknowledge(asked, self.clock.now());
            if result == Ok(0) {
                return false;
            }
            self.rules.note_state(id, &running.state);
            *outcome = match (outcome.clone(), result) {
                (Ok(before), Ok(count)) => Ok(before + count),
                (Err(AcknowledgeFault::NotFound) | Ok(_), result) => result,
                (before, _) => before,
            };
            false
        });
    }
}
