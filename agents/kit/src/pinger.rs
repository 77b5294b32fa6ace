//! Says at regular times that the agent is there, with samples to deliver or not.
//!
//! A ping needs no spool. One that fails is not sent again: the next one comes soon.

use std::time::Duration;

use granary_protocol::{Ping, ping_interval};
use tracing::{debug, info, warn};

use crate::{
    client::Client,
    clock::{Stopwatch, unix_ms},
};

/// How long one ping may take: batches wait meanwhile.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// When to ping, and what to say.
#[derive(Debug)]
pub(crate) struct Pinger {
    about: Ping,
    every: Duration,
    /// Since the last ping; none before the first.
    last: Option<Stopwatch>,
    /// Why the last ping failed, if it did.
    failure: Option<String>,
}

impl Pinger {
    /// A pinger of an agent that samples so often; `about` is what stays the same.
    pub(crate) fn new(about: Ping, sampling: Duration) -> Self {
        Self { about, every: ping_interval(sampling), last: None, failure: None }
    }

    /// How long until the next ping is due.
    pub(crate) fn left(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| last.left_of(self.every))
    }

    /// Pings when it is due; logs what begins and what ceases to fail.
    pub(crate) fn ping_if_due(&mut self, client: &Client) {
        if !self.left().is_zero() {
            return;
        }
        self.last = Some(Stopwatch::start());
        let ping = Ping { sent: unix_ms(), ..self.about.clone() };
        let failure = client.ping(ping, PING_TIMEOUT).err();
        match (&failure, &self.failure) {
            (Some(cause), None) => {
                warn!(cause, "cannot ping; the daemon does not know that this agent is there");
            }
            (Some(cause), Some(_)) => debug!(cause, "still cannot ping"),
            (None, Some(_)) => info!("pinging again"),
            (None, None) => debug!("pinged"),
        }
        self.failure = failure;
    }
}
