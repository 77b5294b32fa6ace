//! The known hosts: in memory for queries, and in the store for restarts.
//!
//! `policy/hosts` decides which hosts are up. New facts of a ping are durable before its response.
//! The times of pings are stored once a minute: after a crash, they are up to a minute old, and the
//! time since then counts as downtime of the daemon. Must never know: HTTP.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use granary_protocol::{Ping, PingAnswer, RefusedPing};
use parking_lot::{Mutex, RwLock};

use crate::{
    clock::{Stopwatch, TrustedClock},
    model::{HostEventEntry, HostStatus, HostTotals, UnixMillis},
    policy::{ChangedHosts, DOWN_AFTER_MS, Hosts, HostsVersion, LATE_AFTER_MS, ListeningTime},
    store::{Store, StoreError},
};

/// The known hosts. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownHosts(Arc<SharedHosts>);

/// A list of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedHosts {
    /// The time that determines the states.
    pub at: UnixMillis,
    /// The version, for a later list of changes.
    pub version: HostsVersion,
    /// The number of all hosts in each state when only changed hosts are listed.
    pub totals: Option<HostTotals>,
    /// The listed hosts.
    pub changed: ChangedHosts,
}

#[derive(Debug)]
struct SharedHosts {
    hosts: RwLock<Hosts>,
    clock: TrustedClock,
    /// The time since the daemon began to listen.
    watch: Stopwatch,
    store: Store,
    /// Writers hold this lock, so that changes are written in the order in which they are taken.
    write_lock: Mutex<()>,
    /// One request at a time writes all changes so far; the others wait without a thread, and then
    /// write only if changes are left.
    write_turn: tokio::sync::Mutex<()>,
}

impl KnownHosts {
    /// The silence after which a host is late, in milliseconds.
    pub const LATE_AFTER_MS: i64 = LATE_AFTER_MS;
    /// The silence after which a host is down, in milliseconds.
    pub const DOWN_AFTER_MS: i64 = DOWN_AFTER_MS;

    /// Loads the stored hosts; at most `hosts_max` are known.
    ///
    /// # Errors
    /// The hosts cannot be read.
    pub fn open(store: &Store, hosts_max: usize, clock: TrustedClock) -> Result<Self, StoreError> {
        let stored = store.hosts()?;
        let hosts = RwLock::new(Hosts::new(hosts_max, stored, clock.moment().believed));
        let (watch, store) = (Stopwatch::start(), store.clone());
        let (write_lock, write_turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self(Arc::new(SharedHosts { hosts, clock, watch, store, write_lock, write_turn })))
    }

    /// Changes the maximum number of known hosts.
    pub fn set_hosts_max(&self, hosts_max: usize) {
        self.0.hosts.write().set_count_max(hosts_max);
    }

    fn now(&self) -> ListeningTime {
        ListeningTime {
            // A doubted clock may jump, which must not make hosts look down.
            at: self.0.clock.moment().believed,
            listened_ms: self.0.watch.millis() as i64,
        }
    }

    /// Accepts parsed pings. New facts are durable afterwards; if the write fails, the host keeper
    /// logs the reason and retries.
    pub async fn ping(&self, pings: Vec<Result<Ping, RefusedPing>>) -> PingAnswer {
        let (answer, is_news) = self.accept_pings(pings);
        if is_news {
            let _write_turn = self.0.write_turn.lock().await;
            // Another request may have stored these changes together with its own.
            if self.0.hosts.read().has_news() {
                let hosts = self.clone();
                // After a failure, the host keeper retries and logs the reason.
                drop(tokio::task::spawn_blocking(move || hosts.store_changes()).await);
            }
        }
        answer
    }

    /// Applies the pings; returns the answer, and true if new facts must be stored.
    fn accept_pings(&self, pings: Vec<Result<Ping, RefusedPing>>) -> (PingAnswer, bool) {
        let now = self.now();
        let (mut answer, mut is_news) = (PingAnswer::default(), false);
        for ping in pings {
            let outcome = ping.and_then(|ping| {
                let agent = ping.agent.clone();
                let refused = |reason| RefusedPing { agent, reason };
                // The lock is released after each ping, so that queries can run in between.
                self.0.hosts.write().ping(ping, now).map_err(refused)
            });
            match outcome {
                Ok(is_new) => {
                    answer.accepted += 1;
                    is_news |= is_new;
                }
                Err(refused) => answer.refused.push(refused),
            }
        }
        (answer, is_news)
    }

    /// Returns the time that determines the states of hosts.
    pub fn time(&self) -> UnixMillis {
        self.now().at
    }

    /// Returns the hosts by name, all or one, with the current time.
    pub fn list(&self, name: Option<&str>) -> (UnixMillis, Vec<HostStatus>) {
        let now = self.now();
        (now.at, self.0.hosts.read().list(name, now))
    }

    /// Returns all hosts by name or one, or the hosts that changed since the version of a list, if
    /// the version is of this run of the daemon.
    pub fn listed(&self, name: Option<&str>, since: Option<HostsVersion>) -> ListedHosts {
        let now = self.now();
        let hosts = self.0.hosts.read();
        let changed = since.and_then(|since| hosts.changed_since(since, now));
        let totals = changed.is_some().then(|| hosts.totals(now));
        let changed = changed.unwrap_or_else(|| {
            let hosts = hosts.list(name, now);
            ChangedHosts { hosts, ..ChangedHosts::default() }
        });
        ListedHosts { at: now.at, version: hosts.version(now), totals, changed }
    }

    /// Returns the number of hosts in each state.
    pub fn totals(&self) -> HostTotals {
        self.0.hosts.read().totals(self.now())
    }

    /// Returns the number of hosts that were removed to admit others since the start.
    pub fn forgotten(&self) -> u64 {
        self.0.hosts.read().forgotten()
    }

    /// Returns the events within a time range of hosts with all of these tags, including `host` for
    /// the name: the latest `count`, in order of time.
    pub fn events(
        &self,
        range: &Range<UnixMillis>,
        tags: &[(String, String)],
        count: usize,
    ) -> Vec<HostEventEntry> {
        self.0.hosts.read().events(range, tags, count, self.now())
    }

    /// Removes hosts until their next pings, durably; returns their number.
    ///
    /// # Errors
    /// The change cannot be written: the hosts are removed, but may return after a restart.
    pub fn remove(&self, names: &BTreeSet<String>) -> Result<usize, StoreError> {
        // The lock is released after each name, so that queries can run in between.
        let removed = names.iter().filter(|name| self.0.hosts.write().remove(name)).count();
        if removed > 0 {
            self.store_changes()?;
        }
        Ok(removed)
    }

    /// Writes the changes.
    ///
    /// # Errors
    /// The changes cannot be written; the next call retries.
    pub fn store_changes(&self) -> Result<(), StoreError> {
        let _write_lock = self.0.write_lock.lock();
        let changes = {
            let mut hosts = self.0.hosts.write();
            if hosts.is_empty() {
                return Ok(());
            }
            hosts.take_changes(self.now())
        };
        self.0.store.keep_hosts(&changes).inspect_err(|_| {
            self.0.hosts.write().take_back(changes);
        })
    }
}
