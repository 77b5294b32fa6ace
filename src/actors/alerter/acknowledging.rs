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
        let ids: Vec<_> = groups.all.iter().map(|entry| entry.id.clone()).collect();
        if groups.pending.len() < ACKNOWLEDGEMENTS_MAX {
            let acknowledge = self.rules.acknowledgements().take_all().into_iter();
            groups.pending.extend(acknowledge.map(|(acknowledge, reply)| {
                let outcome = Err(AcknowledgeFault::NotFound);
                PendingRequest { acknowledge, reply, remaining_ids: ids.clone(), outcome }
            }));
        }
        for mut request in std::mem::take(&mut groups.pending) {
            self.acknowledge_in(groups, &mut request);
            if !request.remaining_ids.is_empty() {
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
        for running in groups.all.iter_mut().filter_map(|entry| entry.running.as_mut()) {
            if running.end_acknowledgements(now) {
                self.rules.note_state(&running.id, &running.state);
            }
        }
    }

    fn acknowledge_in(&self, groups: &mut Groups, request: &mut PendingRequest) {
        let PendingRequest { acknowledge, remaining_ids, outcome, .. } = request;
        remaining_ids.retain(|id| {
            let Some(entry) = groups.all.iter_mut().find(|entry| entry.id == *id) else {
                return false;
            };
            let Some(running) = &mut entry.running else {
                return self.rules.has_alert(id, |alert| acknowledge.is_about(alert));
            };
            let result = running.acknowledge(acknowledge, self.clock.now());
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
