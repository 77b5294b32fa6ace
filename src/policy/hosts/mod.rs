//! The hosts that agents report with pings: the state of each (up, late, down or stopped) and its
//! events.
//!
//! A host is silent while the daemon listens and gets no ping of its agents; the time between two
//! runs of the daemon does not count. Silence is therefore measured by the time for which the daemon
//! has listened, which nobody can set; the wall clock only dates events. Must never know: where hosts
//! are stored.

mod admission;
mod host;
mod presence;
#[cfg(test)]
mod tests;

pub use presence::{DOWN_AFTER_MS, LATE_AFTER_MS, state_of};

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    ops::Range,
    sync::Arc,
};

use granary_protocol::Ping;

use crate::model::{
    HostChanges, HostEvent, HostEventEntry, HostEventKind, HostStatus, HostTotals, KeptHosts,
    Listening, UnixMillis,
};
use host::Host;

/// A time at which the daemon listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hearing {
    /// The time by the wall clock.
    pub at: UnixMillis,
    /// The time for which the daemon has listened, in milliseconds.
    pub listened_ms: i64,
}

/// The maximum number of hosts.
#[derive(Debug)]
pub struct Hosts {
    count_max: usize,
    /// The time at which this run began to listen.
    since: i64,
    by_name: BTreeMap<Arc<str>, Host>,
    /// The hosts by their last ping, the longest silent first.
    order: BTreeMap<u64, Arc<str>>,
    next_order: u64,
    /// Stored hosts to remove.
    removed: BTreeSet<Arc<str>>,
    /// See [`Hosts::has_news`].
    has_news: bool,
    forgotten: u64,
}

impl Hosts {
    /// Restores the stored hosts when the daemon begins to listen.
    pub fn new(hosts_max: usize, kept: KeptHosts, now: UnixMillis) -> Self {
        let mut own = Self {
            count_max: hosts_max,
            since: now.0,
            by_name: BTreeMap::new(),
            order: BTreeMap::new(),
            next_order: 0,
            removed: BTreeSet::new(),
            has_news: false,
            forgotten: 0,
        };
        let host = |(name, record)| (name, Host::of_record(record, kept.listening));
        let mut hosts: Vec<(Arc<str>, Host)> = kept.records.into_iter().map(host).collect();
        hosts.sort_by_key(|(_, host)| Reverse(host.silent_before_ms()));
        for (name, host) in hosts {
            own.insert(name, host);
        }
        own
    }

    /// Records a ping. Returns whether it must be stored at once: a host or an agent is new or has
    /// changed, or there is a new event. A ping that only shows that an agent is alive can wait.
    ///
    /// # Errors
    /// When it is not taken: what is wrong with it.
    pub fn ping(&mut self, ping: Ping, now: Hearing) -> Result<bool, String> {
        admission::check(&ping)?;
        let name: Arc<str> = ping.host.as_deref().unwrap_or(&ping.agent).into();
        let mut host = match self.by_name.remove(&name) {
            Some(host) => {
                self.order.remove(&host.order);
                host
            }
            None => Host::new(self.removed.remove(&name)),
        };
        let is_news = host.ping(ping, now, self.since);
        self.has_news |= is_news == Ok(true);
        self.insert(name, host);
        is_news
    }

    /// Adds a host as the latest one; when there are too many, the host that has been silent for
    /// the longest time is dropped.
    fn insert(&mut self, name: Arc<str>, mut host: Host) {
        while self.by_name.len() >= self.count_max.max(1) {
            let Some((_, longest)) = self.order.pop_first() else { break };
            self.drop_host(&longest);
            self.forgotten += 1;
        }
        host.order = self.next_order;
        self.next_order += 1;
        self.order.insert(host.order, name.clone());
        self.by_name.insert(name, host);
    }

    fn drop_host(&mut self, name: &Arc<str>) {
        if let Some(host) = self.by_name.remove(name) {
            self.order.remove(&host.order);
            if host.is_kept {
                self.removed.insert(name.clone());
            }
        }
    }

    /// Removes a host until its next ping; false when it is unknown.
    pub fn remove(&mut self, name: &str) -> bool {
        let found = self.by_name.get_key_value(name).map(|(name, _)| name.clone());
        found.is_some_and(|name| {
            self.drop_host(&name);
            true
        })
    }

    /// The hosts by name: all, or one.
    pub fn list(&self, name: Option<&str>, now: Hearing) -> Vec<HostStatus> {
        let status = |(name, host): (&Arc<str>, &Host)| host.status(name, now);
        match name {
            None => self.by_name.iter().map(status).collect(),
            Some(name) => self.by_name.get_key_value(name).map(status).into_iter().collect(),
        }
    }

    /// The number of hosts in each state.
    pub fn totals(&self, now: Hearing) -> HostTotals {
        let mut totals = HostTotals::default();
        for host in self.by_name.values() {
            totals.add(host.state(now));
        }
        totals
    }

    /// The number of hosts that were dropped for others.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The latest `count` events in a range of time, in order of time, of the hosts with all of
    /// these tags; the tag `host` is the name.
    pub fn events(
        &self,
        range: &Range<UnixMillis>,
        tags: &[(String, String)],
        count: usize,
        now: Hearing,
    ) -> Vec<HostEventEntry> {
        let is_within =
            |own: &HostEvent| own.at < range.end.0 && own.until.unwrap_or(own.at) >= range.start.0;
        // The latest events so far, the oldest of them on top.
        let mut latest: BinaryHeap<Reverse<(HostEvent, &Arc<str>)>> = BinaryHeap::new();
        for (name, host) in &self.by_name {
            let mut within = host.events(now, self.since).filter(is_within).peekable();
            if within.peek().is_none() || !has_tags(name, host, tags) {
                continue;
            }
            for event in within {
                latest.push(Reverse((event, name)));
                if latest.len() > count {
                    latest.pop();
                }
            }
        }
        // The heap is in reverse order: the oldest comes last.
        let latest = latest.into_sorted_vec().into_iter().rev();
        latest.map(|Reverse((event, name))| self.entry(name, event)).collect()
    }

    fn entry(&self, name: &Arc<str>, event: HostEvent) -> HostEventEntry {
        let HostEvent { at, until, kind, program } = event;
        let text = match kind {
            HostEventKind::AgentRestart => format!("agent {program} of {name} was started again"),
            HostEventKind::HostReboot => format!("{name} was booted"),
            HostEventKind::Gap => format!("no agent of {name} was heard"),
        };
        let mut tags = self.by_name.get(name).map(Host::tags).unwrap_or_default();
        tags.insert("host".to_owned(), name.to_string());
        let id = format!("{}/{at}/{name}", kind.as_str());
        HostEventEntry { time: at, end: until, id, text, tags, source: kind }
    }

    /// Returns whether changes that must be stored at once are not stored yet.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Returns the changes to store, which count as stored from now on.
    pub fn take_changes(&mut self, now: Hearing) -> HostChanges {
        self.has_news = false;
        let mut changes = HostChanges {
            removed: std::mem::take(&mut self.removed).into_iter().collect(),
            listening: Listening {
                since: self.since,
                until: now.at.0,
                listened_ms: now.listened_ms,
            },
            ..HostChanges::default()
        };
        for (name, host) in self.by_name.iter_mut().filter(|(_, host)| host.is_changed) {
            changes.changed.push((name.clone(), host.record(now)));
            (host.is_changed, host.is_kept) = (false, true);
        }
        changes
    }

    /// Returns changes that could not be stored, for the next attempt.
    pub fn take_back(&mut self, changes: HostChanges) {
        self.has_news = true;
        for (name, _) in changes.changed {
            match self.by_name.get_mut(&name) {
                Some(host) => host.is_changed = true,
                // It may be stored by now.
                None => drop(self.removed.insert(name)),
            }
        }
        for name in changes.removed {
            match self.by_name.get_mut(&name) {
                Some(host) => host.is_kept = true,
                None => drop(self.removed.insert(name)),
            }
        }
    }

    /// Returns whether there are neither events nor a gap to store, and none are stored.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.removed.is_empty()
    }
}

/// Returns whether a host has all of these tags; the tag `host` is its name.
fn has_tags(name: &str, host: &Host, tags: &[(String, String)]) -> bool {
    if tags.is_empty() {
        return true;
    }
    let own = host.tags();
    tags.iter().all(|(tag, value)| match tag.as_str() {
        "host" => name == value,
        tag => own.get(tag) == Some(value),
    })
}
