//! One host: the reports of its agents, its silence, and the effects of a ping.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
};

use granary_protocol::Ping;

use super::{DOWN_AFTER_MS, Hearing, state_of};
use crate::model::{
    AgentRecord, AgentStatus, HostEvent, HostEventKind, HostRecord, HostState, HostStatus,
    Listening,
};

/// The maximum number of stored events of a host; the oldest are dropped.
pub(super) const EVENTS_MAX: usize = 50;
/// The maximum number of agents of a host; the one silent for the longest time is dropped.
const AGENTS_MAX: usize = 8;
/// The maximum difference between the boot times that two agents report for the same boot.
const SAME_BOOT_MS: u64 = 60_000;

/// A host in this run of the daemon.
#[derive(Debug, Default)]
pub(super) struct Host {
    first_seen: i64,
    /// The agents, ordered by program and name.
    agents: Vec<Agent>,
    events: VecDeque<HostEvent>,
    /// The host's position in the order of last pings, the longest silent first.
    pub(super) order: u64,
    /// True when the stored record is out of date.
    pub(super) is_changed: bool,
    /// True when a record is stored.
    pub(super) is_kept: bool,
}

#[derive(Debug)]
struct Agent {
    /// The stored record; `silent_ms` is the silence before this run.
    record: AgentRecord,
    /// The time of the last ping in this run, by the time for which the daemon has listened.
    heard_ms: Option<i64>,
    /// The start time of the process before this one.
    started_before: Option<i64>,
}

impl Agent {
    fn state(&self, now: Hearing) -> HostState {
        if self.record.stopped { HostState::Stopped } else { state_of(self.silent_ms(now)) }
    }

    fn silent_ms(&self, now: Hearing) -> i64 {
        let since = match self.heard_ms {
            Some(heard_ms) => now.listened_ms.saturating_sub(heard_ms),
            None => self.record.silent_ms.saturating_add(now.listened_ms),
        };
        since.max(0)
    }
}

impl Host {
    /// A new host. A record under its name may be stored.
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, ..Self::default() }
    }

    /// A stored host, from a run that listened until a time. A long silence then becomes a gap that
    /// ends there, because nothing is known about the time after it.
    pub(super) fn of_record(record: HostRecord, listening: Listening) -> Self {
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
            // The host may have been silent for all of that run.
            let is_heard = silent_ms < listening.listened_ms;
            let from = if is_heard { host.pinged() } else { listening.since };
            host.note(gap(from, listening.until));
        }
        host.is_changed = true;
        host
    }

    /// Takes in a ping at a time, of a daemon that listens since a time; whether it tells more
    /// than that the agent is still there.
    ///
    /// # Errors
    /// When two agents of one name ping in turns. The host is there for all that.
    pub(super) fn ping(&mut self, ping: Ping, now: Hearing, since: i64) -> Result<bool, String> {
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
        let place = self.agents.binary_search_by(|own| {
            let AgentRecord { agent, program, .. } = &own.record;
            (program, agent).cmp(&(&ping.program, &ping.agent))
        });
        let known = place.ok().and_then(|index| self.agents.get(index));
        let known_starts = known.map(|own| (own.record.started, own.started_before));
        let started_before = match known_starts {
            // A restarted process does not run again.
            Some((_, Some(before))) if before == ping.started => {
                self.hear(place.unwrap_or_default(), now);
                return Err(format!(
                    "another agent {:?} pings from elsewhere: give each its own name, with \
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
        match place {
            Ok(index) => self.agents[index] = agent,
            Err(index) => self.agents.insert(index, agent),
        }
        if self.agents.len() > AGENTS_MAX {
            let silent = |(index, own): (usize, &Agent)| (own.silent_ms(now), index);
            let longest = self.agents.iter().enumerate().map(silent).max();
            longest.map(|(_, index)| self.agents.remove(index));
        }
        self.is_changed = true;
        Ok(is_news)
    }

    /// Records that an agent is alive.
    fn hear(&mut self, index: usize, now: Hearing) {
        if let Some(agent) = self.agents.get_mut(index) {
            agent.heard_ms = Some(now.listened_ms);
            (agent.record.pinged, agent.record.silent_ms) = (now.at.0, 0);
            agent.record.stopped = false;
            self.is_changed = true;
        }
    }

    /// Records that an agent does not reach the host: an unknown host is down from now on; for a
    /// known one only the tags matter.
    fn miss(&mut self, ping: Ping, now: Hearing) -> bool {
        self.is_changed = true;
        let known = self
            .agents
            .iter_mut()
            .find(|own| (&own.record.program, &own.record.agent) == (&ping.program, &ping.agent));
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

    /// Returns the event that a ping of a known agent reports, if any: a restart or a reboot.
    fn event(&self, known: &AgentRecord, ping: &Ping, now: Hearing) -> Option<HostEvent> {
        // Setting the clock changes the boot time that a kernel reports, so a reboot is only one
        // after the last ping.
        let is_later = |booted: &i64| Some(*booted) != known.booted && *booted > known.sent;
        if let Some(booted) = known.booted.and(ping.booted).filter(is_later) {
            let at = booted.min(now.at.0);
            let is_same = |own: &HostEvent| {
                own.kind == HostEventKind::HostReboot && own.at.abs_diff(at) < SAME_BOOT_MS
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

    /// The time since the last ping of any agent.
    fn silent_ms(&self, now: Hearing) -> i64 {
        self.agents.iter().map(|own| own.silent_ms(now)).min().unwrap_or(0)
    }

    /// The time since the last ping when this run began.
    pub(super) fn silent_before_ms(&self) -> i64 {
        self.agents.iter().map(|own| own.record.silent_ms).min().unwrap_or(0)
    }

    /// The agent that was heard last.
    fn last(&self) -> Option<&Agent> {
        self.agents.iter().max_by_key(|own| (own.heard_ms, Reverse(own.record.silent_ms)))
    }

    /// The time of the last ping.
    fn pinged(&self) -> i64 {
        self.last().map_or(0, |last| last.record.pinged)
    }

    /// The start of the host's silence in this run.
    fn silent_since(&self, since: i64) -> i64 {
        let last = self.last().filter(|last| last.heard_ms.is_some());
        last.map_or(since, |last| last.record.pinged)
    }

    /// The state, by the agents that did not stop in order. An agent that was already down when
    /// another one stopped is no longer expected.
    pub(super) fn state(&self, now: Hearing) -> HostState {
        let least = |stopped: bool| {
            let agents = self.agents.iter().filter(|agent| agent.record.stopped == stopped);
            agents.map(|agent| agent.silent_ms(now)).min()
        };
        match (least(true), least(false)) {
            (Some(_), None) => HostState::Stopped,
            (Some(ended), Some(silent)) if silent >= ended.saturating_add(DOWN_AFTER_MS) => {
                HostState::Stopped
            }
            (_, silent) => state_of(silent.unwrap_or(0)),
        }
    }

    /// The past events and the current gap.
    pub(super) fn events(&self, now: Hearing, since: i64) -> impl Iterator<Item = HostEvent> {
        let is_silent = self.silent_ms(now) >= DOWN_AFTER_MS;
        let open = is_silent.then(|| gap(self.silent_since(since), now.at.0));
        self.events.iter().cloned().chain(open)
    }

    /// The tags of all agents; the first agent takes precedence.
    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        let all = self.agents.iter().rev().flat_map(|own| own.record.tags.iter());
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The record to store.
    pub(super) fn record(&self, now: Hearing) -> HostRecord {
        let agent =
            |own: &Agent| AgentRecord { silent_ms: own.silent_ms(now), ..own.record.clone() };
        HostRecord {
            first_seen: self.first_seen,
            kept_ms: now.listened_ms,
            agents: self.agents.iter().map(agent).collect(),
            events: self.events.iter().cloned().collect(),
        }
    }

    /// The status, for people.
    pub(super) fn status(&self, name: &str, now: Hearing) -> HostStatus {
        let agent = |own: &Agent| {
            let AgentRecord { sent, pinged, started, interval_ms, .. } = own.record;
            AgentStatus {
                agent: own.record.agent.clone(),
                program: own.record.program.clone(),
                version: own.record.version.clone(),
                started,
                pinged,
                interval_ms,
                state: own.state(now),
                silent_ms: own.silent_ms(now),
                skew_ms: sent.saturating_sub(pinged),
            }
        };
        let agents: Vec<_> = self.agents.iter().map(agent).collect();
        HostStatus {
            host: name.to_owned(),
            state: self.state(now),
            pinged: self.pinged(),
            first_seen: self.first_seen,
            booted: self.agents.iter().find_map(|own| own.record.booted),
            tags: self.tags(),
            version: agents.first().map_or_else(String::new, |first| first.version.clone()),
            agents,
        }
    }
}

fn record_of(ping: Ping, now: Hearing) -> AgentRecord {
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

/// No gap has a negative length after a clock was set back.
fn gap(from: i64, until: i64) -> HostEvent {
    HostEvent {
        at: from.min(until),
        until: Some(until),
        kind: HostEventKind::Gap,
        program: String::new(),
    }
}
