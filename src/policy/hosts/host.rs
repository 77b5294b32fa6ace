//! One host: what its agents said, how long they were silent, and what follows from a ping.

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

/// Events that are remembered of a host; the oldest make room.
pub(super) const EVENTS_MAX: usize = 50;
/// Agents that are remembered of a host; the one silent longest makes room.
const AGENTS_MAX: usize = 8;
/// Two agents that tell of one boot may differ by so much.
const SAME_BOOT_MS: u64 = 60_000;

/// What is known of a host in this run of the daemon.
#[derive(Debug, Default)]
pub(super) struct Host {
    first_seen: i64,
    /// In order of program and name.
    agents: Vec<Agent>,
    events: VecDeque<HostEvent>,
    /// Its place among those that were heard, the longest silent first.
    pub(super) order: u64,
    /// Whether what is kept of it is out of date.
    pub(super) is_changed: bool,
    /// Whether anything is kept of it.
    pub(super) is_kept: bool,
}

#[derive(Debug)]
struct Agent {
    /// `silent_ms` is how long it was silent before this run.
    record: AgentRecord,
    /// When it was heard last in this run, by the time that the daemon has listened.
    heard_ms: Option<i64>,
    /// When the process before this one was started.
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
    /// A host of which nothing is known yet, but that something else may be kept of it.
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, ..Self::default() }
    }

    /// A host as it was kept by a run that listened until a time. What it was silent then is a
    /// gap of its own if it was long: nobody knows of the time after.
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
            // It was perhaps not heard in all of that run.
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
            // A process that was started again does not come back.
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

    /// Takes note that an agent is there.
    fn hear(&mut self, index: usize, now: Hearing) {
        if let Some(agent) = self.agents.get_mut(index) {
            agent.heard_ms = Some(now.listened_ms);
            (agent.record.pinged, agent.record.silent_ms) = (now.at.0, 0);
            agent.record.stopped = false;
            self.is_changed = true;
        }
    }

    /// Takes in that an agent does not reach the host: one that is not known yet is down from now on,
    /// and of one that is known only the tags are news.
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
            // Other agents reach it.
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

    /// What a ping tells of a known agent besides that it is there.
    fn event(&self, known: &AgentRecord, ping: &Ping, now: Hearing) -> Option<HostEvent> {
        // A clock that is set changes what a kernel says of its boot: only one after the last ping
        // is one.
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

    /// How long no agent was heard.
    fn silent_ms(&self, now: Hearing) -> i64 {
        self.agents.iter().map(|own| own.silent_ms(now)).min().unwrap_or(0)
    }

    /// How long it had been silent when this run began.
    pub(super) fn silent_before_ms(&self) -> i64 {
        self.agents.iter().map(|own| own.record.silent_ms).min().unwrap_or(0)
    }

    /// The agent that was heard last.
    fn last(&self) -> Option<&Agent> {
        self.agents.iter().max_by_key(|own| (own.heard_ms, Reverse(own.record.silent_ms)))
    }

    /// When that was.
    fn pinged(&self) -> i64 {
        self.last().map_or(0, |last| last.record.pinged)
    }

    /// Since when it is silent in this run.
    fn silent_since(&self, since: i64) -> i64 {
        let last = self.last().filter(|last| last.heard_ms.is_some());
        last.map_or(since, |last| last.record.pinged)
    }

    /// The state by the agents that did not end in order. An agent that was down already when
    /// another one ended is no longer expected.
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

    /// What happened, and the gap that goes on.
    pub(super) fn events(&self, now: Hearing, since: i64) -> impl Iterator<Item = HostEvent> {
        let is_silent = self.silent_ms(now) >= DOWN_AFTER_MS;
        let open = is_silent.then(|| gap(self.silent_since(since), now.at.0));
        self.events.iter().cloned().chain(open)
    }

    /// Tags of all agents; the first agent's count.
    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        let all = self.agents.iter().rev().flat_map(|own| own.record.tags.iter());
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// As it is kept.
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

    /// As it is shown.
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

/// A clock that was set back gives none a length below zero.
fn gap(from: i64, until: i64) -> HostEvent {
    HostEvent {
        at: from.min(until),
        until: Some(until),
        kind: HostEventKind::Gap,
        program: String::new(),
    }
}
