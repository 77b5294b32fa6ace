//! Answers about hosts that send pings: their list, and the result of a removal.

use serde::{Deserialize, Serialize};

use crate::model::{HostStatus, HostTotals, UnixMillis};

/// A list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsAnswer {
    /// The current time, Unix milliseconds.
    pub now: i64,
    /// Time without a ping after which a host is late, in milliseconds.
    pub late_after_ms: i64,
    /// Time without a ping after which a host is down, in milliseconds.
    pub down_after_ms: i64,
    /// Number of hosts in each state.
    pub totals: HostTotals,
    /// The hosts by name.
    pub hosts: Vec<HostStatus>,
}

impl HostsAnswer {
    /// Creates the list of hosts, and counts their states.
    pub fn new(
        hosts: Vec<HostStatus>,
        (late_after_ms, down_after_ms): (i64, i64),
        now: UnixMillis,
    ) -> Self {
        let mut totals = HostTotals::default();
        for host in &hosts {
            totals.add(host.state);
        }
        Self { now: now.0, late_after_ms, down_after_ms, totals, hosts }
    }

    /// Returns the approximate memory of the answer in bytes.
    pub fn bytes(hosts: &[HostStatus]) -> usize {
        const HOST_BYTES: usize = 768;
        let tags = |host: &HostStatus| {
            host.tags.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
        };
        hosts.iter().map(|host| HOST_BYTES + tags(host)).sum()
    }
}

/// The result of a removal of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsRemoved {
    /// Number of removed hosts.
    pub total: usize,
}
