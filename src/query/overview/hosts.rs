//! Answers about hosts that send pings: their list, and the result of a removal.

use std::collections::BTreeMap;

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
    /// The version of this list, for a later request of the changes since then.
    #[serde(default)]
    pub version: String,
    /// True when `hosts` contains only the hosts that changed.
    #[serde(default)]
    pub is_partial: bool,
    /// The latest pings of the hosts whose other facts did not change, Unix milliseconds.
    #[serde(default)]
    pub pings: BTreeMap<String, i64>,
    /// The firing alerts that are not silenced: their number by host and severity.
    #[serde(default)]
    pub alerts: HostAlerts,
}

/// Numbers of alerts by host and severity; alerts without a severity have an empty one.
pub type HostAlerts = BTreeMap<String, BTreeMap<String, usize>>;

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
        Self {
            now: now.0,
            late_after_ms,
            down_after_ms,
            totals,
            hosts,
            version: String::new(),
            is_partial: false,
            pings: BTreeMap::new(),
            alerts: HostAlerts::new(),
        }
    }

    /// Returns the approximate memory of the answer in bytes.
    pub fn bytes(hosts: &[HostStatus]) -> usize {
        const HOST_BYTES: usize = 768;
        let tags = |host: &HostStatus| {
            host.tags.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
        };
        hosts.iter().map(|host| HOST_BYTES + tags(host)).sum()
    }

    /// Returns the approximate memory of the pings and of the numbers of alerts in bytes.
    pub fn bytes_beside_hosts(pings: &BTreeMap<String, i64>, alerts: &HostAlerts) -> usize {
        const ENTRY_BYTES: usize = 96;
        let names = pings.keys().chain(alerts.keys()).map(String::len).sum::<usize>();
        let severities = alerts.values().map(BTreeMap::len).sum::<usize>();
        names + (pings.len() + alerts.len() + severities) * ENTRY_BYTES
    }
}

/// The result of a removal of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsRemoved {
    /// Number of removed hosts.
    pub total: usize,
}
