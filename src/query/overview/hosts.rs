//! The hosts that ping, as they are listed.

use serde::{Deserialize, Serialize};

use crate::model::{HostStatus, HostTotals, UnixMillis};

/// The hosts that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsAnswer {
    /// What the time is, Unix milliseconds.
    pub now: i64,
    /// Silence after which a host is late, in milliseconds.
    pub late_after_ms: i64,
    /// Silence after which a host is down, in milliseconds.
    pub down_after_ms: i64,
    /// How many of them are in each state.
    pub totals: HostTotals,
    /// The hosts by name.
    pub hosts: Vec<HostStatus>,
}

impl HostsAnswer {
    /// Of hosts as they are at a time.
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

    /// Bytes that it takes, about.
    pub fn bytes(hosts: &[HostStatus]) -> usize {
        const HOST_BYTES: usize = 768;
        let tags = |host: &HostStatus| {
            host.tags.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
        };
        hosts.iter().map(|host| HOST_BYTES + tags(host)).sum()
    }
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsRemoved {
    /// How many hosts.
    pub total: usize,
}
