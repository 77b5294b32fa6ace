//! Hosts by what their agents say of themselves: as they are kept, and as they are shown.
//!
//! Times are Unix milliseconds. Must never know: when a host is late, how records are written.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Whether a host's agents are heard.
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
    /// One was heard just now.
    Up,
    /// A ping is overdue.
    Late,
    /// None was heard for long.
    Down,
    /// The agents ended in order.
    Stopped,
}

impl HostState {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What is known of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentRecord {
    /// The sender's name.
    pub agent: String,
    /// Which kind of agent.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// When it was started, by its clock.
    pub started: i64,
    /// When its host was booted, by its clock, where it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booted: Option<i64>,
    /// How often it samples, in milliseconds.
    pub interval_ms: u64,
    /// What its clock said at its last ping.
    pub sent: i64,
    /// When its last ping came.
    pub pinged: i64,
    /// How long it was silent when the record was kept, without the daemon's own time away.
    pub silent_ms: i64,
    /// What it says of its host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Its last ping reported an ordered end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// What is known of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostRecord {
    /// When the first ping came.
    pub first_seen: i64,
    /// How long the daemon had listened when the record was kept, in milliseconds.
    pub kept_ms: i64,
    /// Its agents, in order of program and name.
    pub agents: Vec<AgentRecord>,
    /// What happened to it last, in the order in which it was known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<HostEvent>,
}

/// What happened to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostEventKind {
    /// An agent was started again.
    AgentRestart,
    /// The host was booted.
    HostReboot,
    /// No agent was heard.
    Gap,
}

impl HostEventKind {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentRestart => "agent_restart",
            Self::HostReboot => "host_reboot",
            Self::Gap => "gap",
        }
    }
}

/// When something happened to a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostEvent {
    /// When, or since when.
    pub at: i64,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// What.
    pub kind: HostEventKind,
    /// Which kind of agent, if it was one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
}

/// Hosts as they are read and written: by name.
pub type HostRecords = Vec<(Arc<str>, HostRecord)>;

/// When the daemon listened for pings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listening {
    /// From when.
    pub since: i64,
    /// Until when, at least.
    pub until: i64,
    /// How long that was, in milliseconds, however clocks were set meanwhile.
    pub listened_ms: i64,
}

/// Everything that is kept of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptHosts {
    /// The hosts.
    pub records: HostRecords,
    /// When the daemon last listened.
    pub listening: Listening,
}

/// What is to be kept anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostChanges {
    /// Hosts that are new or changed.
    pub changed: HostRecords,
    /// Hosts that are gone.
    pub removed: Vec<Arc<str>>,
    /// When the daemon listens.
    pub listening: Listening,
}

/// A host as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub host: String,
    /// The state of the agent that was heard last.
    pub state: HostState,
    /// When that was.
    pub pinged: i64,
    /// When the first ping came.
    pub first_seen: i64,
    /// When it was booted, where an agent knows.
    pub booted: Option<i64>,
    /// What its agents say of it; of two values the one of the first agent.
    pub tags: BTreeMap<String, String>,
    /// Of its first agent.
    pub version: String,
    /// Its agents, in order of program and name.
    pub agents: Vec<AgentStatus>,
}

/// An agent as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The sender's name.
    pub agent: String,
    /// Which kind of agent.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// When it was started, by its clock.
    pub started: i64,
    /// When its last ping came.
    pub pinged: i64,
    /// How often it samples, in milliseconds.
    pub interval_ms: u64,
    /// Whether it is heard.
    pub state: HostState,
    /// How long it was not heard while the daemon listened, in milliseconds.
    pub silent_ms: i64,
    /// How far its clock was ahead at its last ping, in milliseconds; what the ping took on its
    /// way makes it less.
    pub skew_ms: i64,
}

/// Something that happened to a host, for charts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostEventEntry {
    /// When, or since when.
    pub time: i64,
    /// Until when; a gap that goes on ends now.
    pub end: Option<i64>,
    /// The same whenever it is asked for.
    pub id: String,
    /// What happened, in words.
    pub text: String,
    /// The host's, with its name as `host`.
    pub tags: BTreeMap<String, String>,
    /// What happened.
    pub source: HostEventKind,
}

/// How many hosts are in each state.
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

    /// Those of a state.
    pub fn of(&self, state: HostState) -> usize {
        match state {
            HostState::Up => self.up,
            HostState::Late => self.late,
            HostState::Down => self.down,
            HostState::Stopped => self.stopped,
        }
    }
}
