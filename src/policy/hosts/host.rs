//! One host: its agents, the length of their silence, and the events that follow from pings.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
};

use granary_protocol::Ping;

use super::{DOWN_AFTER_MS, ListeningTime, state_of};
use crate::model::{
    AgentRecord, AgentStatus, HostEvent, HostEventKind, HostRecord, HostState, HostStatus,
    ListeningSpan,
};

/// The maximum number of events per host; the oldest are dropped.
pub(super) const EVENTS_MAX: usize = 50;
/// The maximum number of agents per host; the longest silent agent is dropped.
const AGENTS_MAX: usize = 8;
/// The maximum difference between two agents' reports of the same boot.
const SAME_BOOT_MS: u64 = 60_000;

/// The state of a host in this run of the daemon.
#[derive(Debug, Default)]
pub(super) struct Host {
    first_seen: i64,
    /// The agents in order of program and name.
    agents: Vec<Agent>,
    events: VecDeque<HostEvent>,
    /// The listening time of the last ping in this run that reported more than presence.
    pub(super) described_ms: Option<i64>,
    /// The host's position in the order of last pings, the longest silent first.
    pub(super) order: u64,
    /// True when the stored record is outdated.
    pub(super) is_changed: bool,
    /// True when a record of the host is stored.
    pub(super) is_kept: bool,
}

#[derive(Debug)]
struct Agent {
    /// The stored record; `silent_ms` is the silence before this run.
    record: AgentRecord,
    /// The listening time at the last ping in this run.
    heard_ms: Option<i64>,
    /// The start time of the previous process of this agent.
    started_before: Option<i64>,
}

impl Agent {
    fn state(&self, now: ListeningTime) -> HostState {
        if self.record.stopped { HostState::Stopped } else { state_of(self.silent_ms(now)) }
    }

    fn silent_ms(&self, now: ListeningTime) -> i64 {
        let since = match self.heard_ms {
            Some(heard_ms) => now.listened_ms.saturating_sub(heard_ms),
            None => self.record.silent_ms.saturating_add(now.listened_ms),
        };
        since.max(0)
    }
}

impl Host {
    /// Creates a host without agents; `is_kept` is true when an older record of it is stored.
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, ..Self::default() }
    }

    /// Restores a host from the record of a previous run. A long silence at the end of that run
    /// becomes a separate event, because the time after the run is unknown.
    pub(super) fn of_record(record: HostRecord, listening: ListeningSpan) -> Self {
        let HostRecord { first_seen, kept_ms, agents, events } = record;
        let since_kept = listening.listened_ms.saturating_sub(kept_ms).max(0);
        let agent = |mut record: AgentRecord| {
            record.silent_ms = record.silent_ms.saturating_add(since_kept);
            Agent { record, heard_ms: None, started_before: None }
        };
        let agents = agents.into_iter().map(agent).collect();
        let mut host = Self { first_seen, agents, is_kept: true, ..Self::default() };
        for event in events {
            host.note(event);
        }
        let silent_ms = host.silent_before_ms();
        if silent_ms.min(listening.listened_ms) >= DOWN_AFTER_MS {
            // The host may have been silent for the whole run.
            let is_heard = silent_ms < listening.listened_ms;
            let from = if is_heard { host.pinged() } else { listening.since };
            host.note(gap(from, listening.until));
        }
        host.is_changed = true;
        host
    }

    /// Records a ping; `since` is the time since which the daemon listens. Returns true when the
    /// ping reports more than presence.
    ///
    /// # Errors
    /// When two agents of the same name ping in turns. The host still counts as present.
    pub(super) fn ping(
        &mut self,
        ping: Ping,
        now: ListeningTime,
        since: i64,
    ) -> Result<bool, String> {
        if ping.absent {
            return Ok(self.miss(ping, now));
        }
        let mut is_news = false;
        if self.agents.is_empty() {
            self.first_seen = now.at.0;
        } else if self.silent_ms(now) >= DOWN_AFTER_MS {
            self.note(gap(self.silent_since(since), now.at.0));
            is_news = true;
        }
        let position = self.agents.binary_search_by(|known| {
            let AgentRecord { agent, program, .. } = &known.record;
            (program, agent).cmp(&(&ping.program, &ping.agent))
        });
        let known = position.ok().and_then(|index| self.agents.get(index));
        let known_starts = known.map(|agent| (agent.record.started, agent.started_before));
        let started_before = match known_starts {
            // A process that was replaced by a newer one does not return.
            Some((_, Some(before))) if before == ping.started => {
                self.note_ping(position.unwrap_or_default(), now);
                return Err(format!(
                    "another agent {:?} pings from elsewhere: give each agent a unique name with \
                     --agent-id",
                    ping.agent
                ));
            }
            Some((started, before)) if started == ping.started => before,
            Some((started, _)) => Some(started),
            None => None,
        };
        is_news |= ping.ending;
        is_news |= known.is_none_or(|Agent { record, .. }| {
            (&record.version, &record.tags) != (&ping.version, &ping.tags)
        });
        if let Some(event) = known.and_then(|known| self.event(&known.record, &ping, now)) {
            self.note(event);
            is_news = true;
        }
        let heard_ms = Some(now.listened_ms);
        let agent = Agent { record: record_of(ping, now), heard_ms, started_before };
        match position {
            Ok(index) => self.agents[index] = agent,
            Err(index) => self.agents.insert(index, agent),
        }
        if self.agents.len() > AGENTS_MAX {
            let silent = |(index, agent): (usize, &Agent)| (agent.silent_ms(now), index);
            let longest = self.agents.iter().enumerate().map(silent).max();
            longest.map(|(_, index)| self.agents.remove(index));
        }
        self.is_changed = true;
        Ok(is_news)
    }

    /// Records that an agent is present.
    fn note_ping(&mut self, index: usize, now: ListeningTime) {
        if let Some(agent) = self.agents.get_mut(index) {
            agent.heard_ms = Some(now.listened_ms);
            (agent.record.pinged, agent.record.silent_ms) = (now.at.0, 0);
            agent.record.stopped = false;
            self.is_changed = true;
        }
    }

    /// Records that an agent does not reach the host: an unknown host is down from now on; for a
    /// known agent, only its tags are updated.
    fn miss(&mut self, ping: Ping, now: ListeningTime) -> bool {
        self.is_changed = true;
        let known = self.agents.iter_mut().find(|agent| {
            (&agent.record.program, &agent.record.agent) == (&ping.program, &ping.agent)
        });
        if let Some(Agent { record, .. }) = known {
            return std::mem::replace(&mut record.tags, ping.tags.clone()) != ping.tags;
        }
        if !self.agents.is_empty() {
            // Other agents reach the host.
            return false;
        }
        self.first_seen = now.at.0;
        let at = now.at.0.saturating_sub(DOWN_AFTER_MS);
        let (pinged, sent) = (at, at);
        let record =
            AgentRecord { pinged, sent, booted: None, stopped: false, ..record_of(ping, now) };
        let heard_ms = Some(now.listened_ms.saturating_sub(DOWN_AFTER_MS));
        self.agents.push(Agent { record, heard_ms, started_before: None });
        true
    }

    /// Returns the event that a ping of a known agent reports, if any.
    fn event(&self, known: &AgentRecord, ping: &Ping, now: ListeningTime) -> Option<HostEvent> {
        // A clock that is set changes the boot time that the kernel reports; only a boot after the
        // last ping is a reboot.
        let is_later = |booted: &i64| Some(*booted) != known.booted && *booted > known.sent;
        if let Some(booted) = known.booted.and(ping.booted).filter(is_later) {
            let at = booted.min(now.at.0);
            let is_same = |event: &HostEvent| {
                event.kind == HostEventKind::HostReboot && event.at.abs_diff(at) < SAME_BOOT_MS
            };
            let event = HostEvent {
                at,
                until: None,
                kind: HostEventKind::HostReboot,
                program: String::new(),
            };
            return (!self.events.iter().any(is_same)).then_some(event);
        }
        (ping.started != known.started).then(|| HostEvent {
            at: ping.started.min(now.at.0),
            until: None,
            kind: HostEventKind::AgentRestart,
            program: ping.program.clone(),
        })
    }

    fn note(&mut self, event: HostEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Returns the time since the last ping of any agent.
    fn silent_ms(&self, now: ListeningTime) -> i64 {
        self.agents.iter().map(|agent| agent.silent_ms(now)).min().unwrap_or(0)
    }

    /// Returns the length of the silence when this run began.
    pub(super) fn silent_before_ms(&self) -> i64 {
        self.agents.iter().map(|agent| agent.record.silent_ms).min().unwrap_or(0)
    }

    /// Returns the agent with the last ping.
    fn last(&self) -> Option<&Agent> {
        self.agents.iter().max_by_key(|agent| (agent.heard_ms, Reverse(agent.record.silent_ms)))
    }

    /// Returns the listening time of the last ping in this run.
    pub(super) fn heard_ms(&self) -> Option<i64> {
        self.agents.iter().filter_map(|agent| agent.heard_ms).max()
    }

    /// Returns the time of the last ping.
    pub(super) fn pinged(&self) -> i64 {
        self.last().map_or(0, |last| last.record.pinged)
    }

    /// Returns the start of the silence in this run.
    fn silent_since(&self, since: i64) -> i64 {
        let last = self.last().filter(|last| last.heard_ms.is_some());
        last.map_or(since, |last| last.record.pinged)
    }

    /// Returns the state, which depends on the agents that did not shut down cleanly. An agent that
    /// was already down when another agent stopped is no longer expected.
    pub(super) fn state(&self, now: ListeningTime) -> HostState {
        let shortest_silence = |stopped: bool| {
            let agents = self.agents.iter().filter(|agent| agent.record.stopped == stopped);
            agents.map(|agent| agent.silent_ms(now)).min()
        };
        match (shortest_silence(true), shortest_silence(false)) {
            (Some(_), None) => HostState::Stopped,
            (Some(ended), Some(silent)) if silent >= ended.saturating_add(DOWN_AFTER_MS) => {
                HostState::Stopped
            }
            (_, silent) => state_of(silent.unwrap_or(0)),
        }
    }

    /// Returns all events, including a gap that still continues.
    pub(super) fn events(&self, now: ListeningTime, since: i64) -> impl Iterator<Item = HostEvent> {
        let is_silent = self.silent_ms(now) >= DOWN_AFTER_MS;
        let open = is_silent.then(|| gap(self.silent_since(since), now.at.0));
        self.events.iter().cloned().chain(open)
    }

    /// Returns the tags of all agents; the first agent's value wins.
    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        let all = self.agents.iter().rev().flat_map(|agent| agent.record.tags.iter());
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the record to store.
    pub(super) fn record(&self, now: ListeningTime) -> HostRecord {
        let agent_record =
            |agent: &Agent| AgentRecord { silent_ms: agent.silent_ms(now), ..agent.record.clone() };
        HostRecord {
            first_seen: self.first_seen,
            kept_ms: now.listened_ms,
            agents: self.agents.iter().map(agent_record).collect(),
            events: self.events.iter().cloned().collect(),
        }
    }

    /// Returns the status for display.
    pub(super) fn status(&self, name: &str, now: ListeningTime) -> HostStatus {
        let agent_status = |agent: &Agent| {
            let AgentRecord { sent, pinged, started, interval_ms, .. } = agent.record;
            AgentStatus {
                agent: agent.record.agent.clone(),
                program: agent.record.program.clone(),
                version: agent.record.version.clone(),
                started,
                pinged,
                interval_ms,
                state: agent.state(now),
                silent_ms: agent.silent_ms(now),
                skew_ms: sent.saturating_sub(pinged),
            }
        };
        let agents: Vec<_> = self.agents.iter().map(agent_status).collect();
        HostStatus {
            host: name.to_owned(),
            state: self.state(now),
            pinged: self.pinged(),
            first_seen: self.first_seen,
            booted: self.agents.iter().find_map(|agent| agent.record.booted),
            tags: self.tags(),
            version: agents.first().map_or_else(String::new, |first| first.version.clone()),
            agents,
        }
    }
}

fn record_of(ping: Ping, now: ListeningTime) -> AgentRecord {
    AgentRecord {
        agent: ping.agent,
        program: ping.program,
        version: ping.version,
        started: ping.started,
        booted: ping.booted,
        interval_ms: ping.interval_ms,
        sent: ping.sent,
        pinged: now.at.0,
        silent_ms: 0,
        tags: ping.tags,
        stopped: ping.ending,
    }
}

/// Returns a gap; its length is never negative, even when the clock was set back.
fn gap(from: i64, until: i64) -> HostEvent {
    HostEvent {
        at: from.min(until),
        until: Some(until),
        kind: HostEventKind::Gap,
        program: String::new(),
    }
}
