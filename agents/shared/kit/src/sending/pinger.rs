//! The pinger: it reports at regular intervals that the agent is alive, whether or not it has
//! samples.
//!
//! A failed ping is not repeated: the next ping replaces it.

use std::time::Duration;

use granary_protocol::{Ping, ping_interval};
use tracing::{debug, info, warn};

use crate::{
    clock::{Stopwatch, unix_ms},
    sampling::watched::WatchedHosts,
    sending::client::Client,
};

/// The timeout of a ping; batches wait for it.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// The minimum time between two pings when hosts appear or change their state.
const STATE_CHANGE_PING_DELAY: Duration = Duration::from_secs(5);

/// The schedule and the content of pings.
#[derive(Debug)]
pub(crate) struct Pinger {
    common_fields: Ping,
    interval: Duration,
    watched: WatchedHosts,
    /// The time since the last ping; `None` before the first ping.
    last: Option<Stopwatch>,
    /// The counter of state changes at the last ping.
    state_changes: u64,
    /// The number of the last host whose end was delivered.
    ends_reported: u64,
    /// The cause of the last ping's failure.
    failure: Option<String>,
}

impl Pinger {
    /// Creates a pinger for an agent with this sampling interval. `common_fields` contains the
    /// constant fields. The pinger also pings on behalf of the monitored hosts.
    pub(crate) fn new(common_fields: Ping, sampling: Duration, watched: WatchedHosts) -> Self {
        Self {
            common_fields,
            interval: ping_interval(sampling),
            watched,
            last: None,
            state_changes: 0,
            ends_reported: 0,
            failure: None,
        }
    }

    /// Returns the time until the next ping, which is short after a host appeared or changed its
    /// state.
    pub(crate) fn time_left(&self) -> Duration {
        let has_change = self.watched.state_changes() != self.state_changes;
        let interval =
            if has_change { self.interval.min(STATE_CHANGE_PING_DELAY) } else { self.interval };
        self.last.map_or(Duration::ZERO, |last| last.left_of(interval))
    }

    /// Pings when a ping is due, and logs the start and the end of failures.
    pub(crate) fn ping_if_due(&mut self, client: &Client) {
        if !self.time_left().is_zero() {
            return;
        }
        self.last = Some(Stopwatch::start());
        self.state_changes = self.watched.state_changes();
        let failure = self.ping(client, false).and_then(|()| self.ping_ends(client)).err();
        match (&failure, &self.failure) {
            (Some(cause), None) => {
                warn!(cause, "cannot ping; the daemon may report this host as down");
            }
            (Some(cause), Some(_)) => debug!(cause, "still cannot ping"),
            (None, Some(_)) => info!("pinging again"),
            (None, None) => debug!("pinged"),
        }
        self.failure = failure;
    }

    /// Sends the last ping of an agent that shuts down cleanly, so that its silence raises no
    /// alert.
    pub(crate) fn ping_end(&self, client: &Client) {
        if self.watched.has_ended()
            && let Err(cause) = self.ping(client, true)
        {
            warn!(cause, "cannot report the clean stop; the daemon will report this host as down");
        }
    }

    /// Pings a last time for the hosts that left. The pings are repeated until they are delivered.
    fn ping_ends(&mut self, client: &Client) -> Result<(), String> {
        let ping = Ping { sent: unix_ms(), ..self.common_fields.clone() };
        let (pings, last) = self.watched.end_pings(&ping, self.ends_reported);
        if !pings.is_empty() {
            client.ping(pings, PING_TIMEOUT)?;
        }
        self.ends_reported = last;
        Ok(())
    }

    fn ping(&self, client: &Client, ending: bool) -> Result<(), String> {
        let ping = Ping { sent: unix_ms(), ending, ..self.common_fields.clone() };
        client.ping(self.watched.pings(&ping), PING_TIMEOUT)
    }
}
