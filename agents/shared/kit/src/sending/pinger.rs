//! Says at regular times that the agent is there, with samples to deliver or not.
//!
//! A ping needs no spool. One that fails is not sent again: the next one comes soon.

use std::time::Duration;

use granary_protocol::{Ping, ping_interval};
use tracing::{debug, info, warn};

use crate::{
    clock::{Stopwatch, unix_ms},
    sampling::watched::Watched,
    sending::client::Client,
};

/// How long one ping may take: batches wait meanwhile.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Between two pings at least, however often hosts come and go.
const NEWCOMERS_AFTER: Duration = Duration::from_secs(5);

/// When to ping, and what to say.
#[derive(Debug)]
pub(crate) struct Pinger {
    about: Ping,
    every: Duration,
    watched: Watched,
    /// Since the last ping; none before the first.
    last: Option<Stopwatch>,
    /// As of the last ping.
    newcomers: u64,
    /// Why the last ping failed, if it did.
    failure: Option<String>,
}

impl Pinger {
    /// A pinger of an agent that samples so often; `about` is what stays the same. It pings for
    /// the hosts that the agent watches, too.
    pub(crate) fn new(about: Ping, sampling: Duration, watched: Watched) -> Self {
        Self {
            about,
            every: ping_interval(sampling),
            watched,
            last: None,
            newcomers: 0,
            failure: None,
        }
    }

    /// How long until the next ping is due: soon when there is a host that none was sent for.
    pub(crate) fn left(&self) -> Duration {
        let has_newcomer = self.watched.newcomers() != self.newcomers;
        let every = if has_newcomer { self.every.min(NEWCOMERS_AFTER) } else { self.every };
        self.last.map_or(Duration::ZERO, |last| last.left_of(every))
    }

    /// Pings when it is due; logs what begins and what ceases to fail.
    pub(crate) fn ping_if_due(&mut self, client: &Client) {
        if !self.left().is_zero() {
            return;
        }
        self.last = Some(Stopwatch::start());
        self.newcomers = self.watched.newcomers();
        let failure = self.ping(client, false).err();
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

    /// Sends the last ping of an agent that ends in order, so that nobody is alerted to its silence.
    pub(crate) fn ping_end(&self, client: &Client) {
        if self.watched.has_ended()
            && let Err(cause) = self.ping(client, true)
        {
            warn!(cause, "cannot report the ordered end; the daemon will take this host for down");
        }
    }

    fn ping(&self, client: &Client, ending: bool) -> Result<(), String> {
        let own = Ping { sent: unix_ms(), ending, ..self.about.clone() };
        client.ping(self.watched.pings(&own), PING_TIMEOUT)
    }
}
