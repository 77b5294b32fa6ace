//! Acknowledgements of alerts, made in each group that is not being evaluated.
//!
//! Must never know: HTTP, how a state is stored.

use super::{
    Shared,
    groups::{Asking, Groups},
};
use crate::kept::{AcknowledgeFault, WAITING_MAX};

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
            if running.end_acknowledgements(now) {
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
            let own = running.acknowledge(asked, self.clock.now());
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
