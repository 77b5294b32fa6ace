//! The plan of a run: the hosts, rounds and requests, as pure arithmetic.

use std::{ops::Range, time::Duration};

use clap::ValueEnum;

use crate::fleet::Fleet;

/// The protocol of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// Numbered BSON batches.
    Native,
    /// Prometheus remote write 1.0.
    RemoteWrite,
}

/// The samples to send.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) fleet: Fleet,
    pub(crate) rounds: usize,
    /// The time of the first round.
    pub(crate) start_ms: i64,
    pub(crate) interval: Duration,
    pub(crate) connections: usize,
    pub(crate) protocol: Protocol,
    pub(crate) hosts_per_request: usize,
    pub(crate) batches_per_request: usize,
    /// The first round that waits for its time; earlier rounds are sent at once.
    pub(crate) paced_from: usize,
    /// True when a connection waits after a busy response.
    pub(crate) waits_when_busy: bool,
    /// True when each minute's figures are reported.
    pub(crate) reports_minutes: bool,
}

impl Plan {
    /// Returns the rounds that share a request with `first`.
    pub(crate) fn rounds_of_request(&self, first: usize) -> Range<usize> {
        let (rounds, end) = if first < self.paced_from {
            (self.batches_per_request, self.paced_from.min(self.rounds))
        } else {
            (1, self.rounds)
        };
        first..(first + rounds).min(end)
    }

    /// Returns the number of samples that these hosts send in these rounds.
    pub(crate) fn samples(&self, hosts: Range<usize>, rounds: Range<usize>) -> u64 {
        let is_sent = |host, round| !self.fleet.is_silent(host, self.time_of(round));
        let rounds_sent = |host| rounds.clone().filter(|round| is_sent(host, *round)).count();
        (hosts.map(rounds_sent).sum::<usize>() * self.fleet.series_per_host()) as u64
    }

    /// Returns the offset in a round at which a group of hosts sends, in milliseconds. The requests
    /// of a fleet are spread over the interval.
    pub(crate) fn offset_ms(&self, group: usize, groups: usize) -> i64 {
        group as i64 * self.interval.as_millis() as i64 / groups as i64
    }

    /// Returns the time of a round's samples, in Unix milliseconds.
    pub(crate) fn time_of(&self, round: usize) -> i64 {
        self.start_ms + round as i64 * self.interval.as_millis() as i64
    }
}
