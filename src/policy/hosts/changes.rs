//! The hosts that changed since an earlier list, for clients that follow a fleet.
//!
//! Lists are numbered by the run of the daemon and its listening time, which nobody can set. Must
//! never know: who asks.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{Hosts, ListeningTime};
use crate::model::{HostState, HostStatus};

/// A ping has the time at which its request arrived, and is listed up to this much later, in
/// milliseconds.
const LISTED_LATE_MS: i64 = 2_000;

/// The version of a list of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostsVersion {
    /// The wall clock's time at which the run of the daemon began to listen.
    run: i64,
    /// The listening time of the list in that run, in milliseconds.
    listened_ms: i64,
}

impl fmt::Display for HostsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.listened_ms)
    }
}

impl FromStr for HostsVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('.').and_then(|(run, listened_ms)| {
            Some(Self { run: run.parse().ok()?, listened_ms: listened_ms.parse().ok()? })
        });
        numbers.ok_or_else(|| format!("since: {text:?} is not the version of an earlier answer"))
    }
}

/// Hosts that changed since a version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedHosts {
    /// The hosts with new facts, by name.
    pub hosts: Vec<HostStatus>,
    /// The latest pings of hosts that are up and have no other new facts, as Unix milliseconds.
    pub pings: BTreeMap<String, i64>,
}

impl Hosts {
    /// Returns the version of the list at a time.
    pub fn version(&self, now: ListeningTime) -> HostsVersion {
        HostsVersion { run: self.since, listened_ms: now.listened_ms }
    }

    /// Returns the hosts that changed since a version; `None` when the version is of another run.
    /// Removed hosts are not reported: the number of hosts shows that some are missing.
    pub fn changed_since(&self, version: HostsVersion, now: ListeningTime) -> Option<ChangedHosts> {
        if version.run != self.since || !(0..=now.listened_ms).contains(&version.listened_ms) {
            return None;
        }
        let from_ms = version.listened_ms.saturating_sub(LISTED_LATE_MS);
        let before = ListeningTime { listened_ms: from_ms, ..now };
        let mut changed = ChangedHosts::default();
        for (name, host) in &self.by_name {
            let state = host.state(now);
            let is_pinged = host.heard_ms() >= Some(from_ms);
            if host.described_ms >= Some(from_ms)
                || (is_pinged && state != HostState::Up)
                || (!is_pinged && state != host.state(before))
            {
                changed.hosts.push(host.status(name, now));
            } else if is_pinged {
                changed.pings.insert(name.to_string(), host.pinged());
            }
        }
        Some(changed)
    }
}
