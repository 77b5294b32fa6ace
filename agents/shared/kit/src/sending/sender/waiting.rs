//! Waiting for a round or for a delay, with pings in between, until the agent stops.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use super::Sender;
use crate::{clock::Stopwatch, sending::pinger::Pinger};

impl Sender {
    /// Waits for a round. Returns true when the agent stops instead.
    pub(super) fn wait_for_round(&self, rounds: &Receiver<()>, pinger: &mut Pinger) -> bool {
        loop {
            match rounds.recv_timeout(pinger.time_left()) {
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => pinger.ping_if_due(&self.client),
                Ok(()) => return false,
            }
        }
    }

    /// Waits for `delay` and ignores rounds. Returns true as soon as the agent stops.
    pub(super) fn wait_pinging(
        &self,
        rounds: &Receiver<()>,
        delay: Duration,
        pinger: &mut Pinger,
    ) -> bool {
        let watch = Stopwatch::start();
        loop {
            if wait(rounds, watch.left_of(delay).min(pinger.time_left())) {
                return true;
            }
            if watch.left_of(delay).is_zero() {
                return false;
            }
            pinger.ping_if_due(&self.client);
        }
    }
}

/// Waits for `delay` and ignores rounds. Returns true as soon as the agent stops.
pub(super) fn wait(rounds: &Receiver<()>, delay: Duration) -> bool {
    let watch = Stopwatch::start();
    loop {
        match rounds.recv_timeout(watch.left_of(delay)) {
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
            Ok(()) if watch.left_of(delay).is_zero() => return false,
            Ok(()) => {}
        }
    }
}
