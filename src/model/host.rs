//! Hosts and the agents that report them: the stored records and the results of queries.
//!
//! Times are Unix milliseconds. Must never know: the state machine of hosts, the storage of
//! records.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The state of a host or an agent, as decided by its pings.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    /// The last ping is recent.
    Up,
    /// A ping is overdue.
    Late,
    /// No ping has arrived for a long time.
    Down,
    /// The agents shut down cleanly.
    Stopped,
}

impl HostState {
    /// All states.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns the state's name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The stored record of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentRecord {
    /// The sender's name.
    pub agent: String,
    /// The kind of agent, such as `host`.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// The start time, by the agent's clock.
    pub started: i64,
    /// The boot time of its host, by the agent's clock, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booted: Option<i64>,
    /// The sampling interval, in milliseconds.
    pub interval_ms: u64,
    /// The time of the agent's clock at its last ping.
    pub sent: i64,
    /// The time at which its last ping arrived.
    pub pinged: i64,
    /// The time from the last ping until the record was stored, without the time in which the
    /// daemon was down.
    pub silent_ms: i64,
    /// The tags of its host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// True when the last ping reported a clean shutdown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// The stored record of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostRecord {
    /// The time at which the first ping arrived.
    pub first_seen: i64,
    /// The total listening time of the daemon when the record was stored, in milliseconds.
    pub kept_ms: i64,
    /// The agents, in order of program and name.
    pub agents: Vec<AgentRecord>,
    /// The latest events, in the order in which the daemon noticed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<HostEvent>,
}

/// The kind of an event of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostEventKind {
    /// An agent was restarted.
    AgentRestart,
    /// The host was rebooted.
    HostReboot,
    /// No agent reported for a while.
    Gap,
}

impl HostEventKind {
    /// Returns the event's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentRestart => "agent_restart",
            Self::HostReboot => "host_reboot",
            Self::Gap => "gap",
        }
    }
}

/// An event of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostEvent {
    /// The time, or the start of a gap.
    pub at: i64,
    /// The end of a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// The kind of event.
    pub kind: HostEventKind,
    /// The kind of agent, for events of an agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
}

/// The records of hosts by name.
pub type HostRecords = Vec<(Arc<str>, HostRecord)>;

/// The time in which the daemon listened for pings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListeningSpan {
    /// The start.
    pub since: i64,
    /// The earliest possible end.
    pub until: i64,
    /// The length in milliseconds, unaffected by clock changes.
    pub listened_ms: i64,
}

/// Everything that the store keeps about hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredHosts {
    /// The records of all hosts.
    pub records: HostRecords,
    /// The last time in which the daemon listened.
    pub listening: ListeningSpan,
}

/// The changes of hosts to store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostChanges {
    /// The hosts that are new or changed.
    pub changed: HostRecords,
    /// The names of removed hosts.
    pub removed: Vec<Arc<str>>,
    /// The time in which the daemon listens.
    pub listening: ListeningSpan,
}

/// The status of a host, for the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// The name.
    pub host: String,
    /// The state of the agent with the latest ping.
    pub state: HostState,
    /// The time of the latest ping.
    pub pinged: i64,
    /// The time at which the first ping arrived.
    pub first_seen: i64,
    /// The boot time, if an agent knows it.
    pub booted: Option<i64>,
    /// The tags from its agents; the first agent wins.
    pub tags: BTreeMap<String, String>,
    /// The version of the first agent.
    pub version: String,
    /// The agents, in order of program and name.
    pub agents: Vec<AgentStatus>,
}

/// The status of an agent, for the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The sender's name.
    pub agent: String,
    /// The kind of agent, such as `host`.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// The start time, by the agent's clock.
    pub started: i64,
    /// The time at which its last ping arrived.
    pub pinged: i64,
    /// The sampling interval, in milliseconds.
    pub interval_ms: u64,
    /// The state of the agent.
    pub state: HostState,
    /// The time without a ping while the daemon listened, in milliseconds.
    pub silent_ms: i64,
    /// The lead of the agent's clock at its last ping, in milliseconds, less the network latency of
    /// the ping.
    pub skew_ms: i64,
}

/// An event of a host as an annotation of charts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostEventEntry {
    /// The time, or the start of a gap.
    pub time: i64,
    /// The end of a gap; a gap that continues ends now.
    pub end: Option<i64>,
    /// A stable identifier.
    pub id: String,
    /// A description for people.
    pub text: String,
    /// The tags of the host, with its name as `host`.
    pub tags: BTreeMap<String, String>,
    /// The kind of event.
    pub source: HostEventKind,
}

/// The number of hosts in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "HostState explains each")]
pub struct HostTotals {
    pub up: usize,
    pub late: usize,
    pub down: usize,
    #[serde(default)]
    pub stopped: usize,
}

impl HostTotals {
    /// Counts a host.
    pub fn add(&mut self, state: HostState) {
        match state {
            HostState::Up => self.up += 1,
            HostState::Late => self.late += 1,
            HostState::Down => self.down += 1,
            HostState::Stopped => self.stopped += 1,
        }
    }

    /// Returns the number of hosts in a state.
    pub fn of(&self, state: HostState) -> usize {
        match state {
            HostState::Up => self.up,
            HostState::Late => self.late,
            HostState::Down => self.down,
            HostState::Stopped => self.stopped,
        }
    }
}
