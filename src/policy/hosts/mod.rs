//! The hosts that agents report with pings: the state of each (up, late, down or stopped) and its
//! events.
//!
//! Silence counts only while the daemon listens: the time between two runs of the daemon does not
//! count. Silence is therefore measured on the daemon's listening time, which nobody can set; the
//! wall clock only dates events. Must never know: where hosts are stored, who asks.

mod admission;
mod changes;
mod host;
mod presence;
#[cfg(test)]
mod tests;

pub use changes::{ChangedHosts, HostsVersion};
pub use presence::{DOWN_AFTER_MS, LATE_AFTER_MS, state_of};

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    ops::Range,
    sync::Arc,
};

use granary_protocol::Ping;

use crate::model::{
    HostChanges, HostEvent, HostEventEntry, HostEventKind, HostStatus, HostTotals, ListeningSpan,
    StoredHosts, UnixMillis,
};
use host::Host;

/// A point in time while the daemon listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListeningTime {
    /// The wall clock's time.
    pub at: UnixMillis,
    /// The daemon's listening time up to now, in milliseconds.
    pub listened_ms: i64,
}

/// All hosts, up to a limit.
#[derive(Debug)]
pub struct Hosts {
    count_max: usize,
    /// The wall clock's time when this run began to listen.
    since: i64,
    by_name: BTreeMap<Arc<str>, Host>,
    /// The hosts in the order of their last pings, the longest silent first.
    order: BTreeMap<u64, Arc<str>>,
    next_order: u64,
    /// Stored hosts that must be removed from the store.
    removed: BTreeSet<Arc<str>>,
    /// The result of [`Hosts::has_news`].
    has_news: bool,
    forgotten: u64,
}

impl Hosts {
    /// Restores the stored hosts when the daemon begins to listen.
    pub fn new(hosts_max: usize, kept: StoredHosts, now: UnixMillis) -> Self {
        let mut restored = Self {
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
            restored.insert(name, host);
        }
        restored
    }

    /// Changes the maximum number of hosts; a new host then replaces others until the limit is met.
    pub fn set_count_max(&mut self, hosts_max: usize) {
        self.count_max = hosts_max;
    }

    /// Records a ping. Returns true when the change must be stored at once: a host or an agent is
    /// new, its description has changed, or an event has happened. A ping that only confirms
    /// presence can wait.
    ///
    /// # Errors
    /// The fault of a ping that is refused.
    pub fn ping(&mut self, ping: Ping, now: ListeningTime) -> Result<bool, String> {
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
        if is_news == Ok(true) {
            host.described_ms = Some(now.listened_ms);
            self.has_news = true;
        }
        self.insert(name, host);
        is_news
    }

    /// Inserts a host as the latest one; at the limit, the longest silent hosts are removed.
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

    /// Removes a host until its next ping; returns false when there is no such host.
    pub fn remove(&mut self, name: &str) -> bool {
        let found = self.by_name.get_key_value(name).map(|(name, _)| name.clone());
        found.is_some_and(|name| {
            self.drop_host(&name);
            true
        })
    }

    /// Returns all hosts in order of their names, or only the host with a name.
    pub fn list(&self, name: Option<&str>, now: ListeningTime) -> Vec<HostStatus> {
        let status = |(name, host): (&Arc<str>, &Host)| host.status(name, now);
        match name {
            None => self.by_name.iter().map(status).collect(),
            Some(name) => self.by_name.get_key_value(name).map(status).into_iter().collect(),
        }
    }

    /// Returns the number of hosts in each state.
    pub fn totals(&self, now: ListeningTime) -> HostTotals {
        let mut totals = HostTotals::default();
        for host in self.by_name.values() {
            totals.add(host.state(now));
        }
        totals
    }

    /// Returns the number of hosts that were removed at the limit.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns the latest `count` events within a time range, in order of time, of hosts that have
    /// all of these tags; the tag `host` is the host's name.
    pub fn events(
        &self,
        range: &Range<UnixMillis>,
        tags: &[(String, String)],
        count: usize,
        now: ListeningTime,
    ) -> Vec<HostEventEntry> {
        let is_within = |event: &HostEvent| {
            event.at < range.end.0 && event.until.unwrap_or(event.at) >= range.start.0
        };
        // The latest events so far, the oldest on top.
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
        // The sorted vector is in reverse order, with the oldest event last.
        let latest = latest.into_sorted_vec().into_iter().rev();
        latest.map(|Reverse((event, name))| self.entry(name, event)).collect()
    }

    fn entry(&self, name: &Arc<str>, event: HostEvent) -> HostEventEntry {
        let HostEvent { at, until, kind, program } = event;
        let text = match kind {
            HostEventKind::AgentRestart => format!("agent {program} of {name} was restarted"),
            HostEventKind::HostReboot => format!("{name} was rebooted"),
            HostEventKind::Gap => format!("no agent of {name} sent a ping"),
        };
        let mut tags = self.by_name.get(name).map(Host::tags).unwrap_or_default();
        tags.insert("host".to_owned(), name.to_string());
        let id = format!("{}/{at}/{name}", kind.as_str());
        HostEventEntry { time: at, end: until, id, text, tags, source: kind }
    }

    /// Returns true when a change that must be stored at once is not stored yet.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Returns the changes since the last call, which count as stored from now on.
    pub fn take_changes(&mut self, now: ListeningTime) -> HostChanges {
        self.has_news = false;
        let mut changes = HostChanges {
            removed: std::mem::take(&mut self.removed).into_iter().collect(),
            listening: ListeningSpan {
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

    /// Restores changes that could not be stored, so that they are stored later.
    pub fn take_back(&mut self, changes: HostChanges) {
        self.has_news = true;
        for (name, _) in changes.changed {
            match self.by_name.get_mut(&name) {
                Some(host) => host.is_changed = true,
                // The record may have been stored.
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

    /// Returns true when there is nothing to store or to remove.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.removed.is_empty()
    }
}

/// Returns true when a host has all of these tags; the tag `host` is its name.
fn has_tags(name: &str, host: &Host, tags: &[(String, String)]) -> bool {
    if tags.is_empty() {
        return true;
    }
    let host_tags = host.tags();
    tags.iter().all(|(tag, value)| match tag.as_str() {
        "host" => name == value,
        tag => host_tags.get(tag) == Some(value),
    })
}
