//! The hosts that ping: in memory for all who ask, and kept in the store.
//!
//! `policy/hosts` decides. What a ping tells for the first time is durable when it is answered; that
//! an agent is still there is kept once a minute: after a crash the hosts were heard as of the last
//! minute, and the time since counts as the daemon's time away. Must never know: HTTP.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use granary_protocol::{Ping, PingAnswer, RefusedPing};
use parking_lot::{Mutex, RwLock};

use crate::{
    clock::{Stopwatch, TrustedClock},
    model::{HostEventEntry, HostStatus, HostTotals, UnixMillis},
    policy::{DOWN_AFTER_MS, Hearing, Hosts, LATE_AFTER_MS},
    store::{Store, StoreError},
};

/// The hosts that ping. Cheap to clone.
#[derive(Debug, Clone)]
pub struct KnownHosts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hosts: RwLock<Hosts>,
    clock: TrustedClock,
    /// Since when the daemon listens.
    watch: Stopwatch,
    store: Store,
    /// Held while changes are taken and written: their order is that of the file.
    keeping: Mutex<()>,
    /// Whose pings are kept: the others wait for it, hold no thread meanwhile, and are kept with it
    /// or together.
    turn: tokio::sync::Mutex<()>,
}

impl KnownHosts {
    /// Silence after which a host is late, in milliseconds.
    pub const LATE_AFTER_MS: i64 = LATE_AFTER_MS;
    /// Silence after which a host is down, in milliseconds.
    pub const DOWN_AFTER_MS: i64 = DOWN_AFTER_MS;

    /// The hosts that were kept; at most so many are known.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open(store: &Store, hosts_max: usize, clock: TrustedClock) -> Result<Self, StoreError> {
        let kept = store.hosts()?;
        let hosts = RwLock::new(Hosts::new(hosts_max, kept, clock.moment().believed));
        let (watch, store) = (Stopwatch::start(), store.clone());
        let (keeping, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self(Arc::new(Inner { hosts, clock, watch, store, keeping, turn })))
    }

    fn now(&self) -> Hearing {
        Hearing {
            // A clock that is doubted may jump, and hosts are not down for that.
            at: self.0.clock.moment().believed,
            listened_ms: self.0.watch.millis() as i64,
        }
    }

    /// Takes in pings, as they could be read. What they tell for the first time is durable then,
    /// or the keeper says why it is not.
    pub async fn ping(&self, pings: Vec<Result<Ping, RefusedPing>>) -> PingAnswer {
        let (answer, is_news) = self.take(pings);
        if is_news {
            let _turn = self.0.turn.lock().await;
            // Another may have kept it meanwhile, with its own.
            if self.0.hosts.read().has_news() {
                let own = self.clone();
                // When it fails, the keeper tries again, and logs it.
                drop(tokio::task::spawn_blocking(move || own.keep()).await);
            }
        }
        answer
    }

    fn take(&self, pings: Vec<Result<Ping, RefusedPing>>) -> (PingAnswer, bool) {
        let now = self.now();
        let (mut answer, mut is_news) = (PingAnswer::default(), false);
        for ping in pings {
            let taken = ping.and_then(|ping| {
                let agent = ping.agent.clone();
                let refused = |reason| RefusedPing { agent, reason };
                // Others may ask in between.
                self.0.hosts.write().ping(ping, now).map_err(refused)
            });
            match taken {
                Ok(own) => {
                    answer.accepted += 1;
                    is_news |= own;
                }
                Err(refused) => answer.refused.push(refused),
            }
        }
        (answer, is_news)
    }

    /// The present time, as hosts are judged by it.
    pub fn time(&self) -> UnixMillis {
        self.now().at
    }

    /// The hosts by name, all or one, and what the time is.
    pub fn list(&self, name: Option<&str>) -> (UnixMillis, Vec<HostStatus>) {
        let now = self.now();
        (now.at, self.0.hosts.read().list(name, now))
    }

    /// The number of hosts in each state.
    pub fn totals(&self) -> HostTotals {
        self.0.hosts.read().totals(self.now())
    }

    /// Hosts that made room for others since the start.
    pub fn forgotten(&self) -> u64 {
        self.0.hosts.read().forgotten()
    }

    /// Events within a range of time of hosts with all of these tags, of which `host` is the
    /// name: the latest `count`, in order of time.
    pub fn events(
        &self,
        range: &Range<UnixMillis>,
        tags: &[(String, String)],
        count: usize,
    ) -> Vec<HostEventEntry> {
        self.0.hosts.read().events(range, tags, count, self.now())
    }

    /// Removes hosts until their next pings, durably; how many there were.
    ///
    /// # Errors
    /// When that cannot be written: they are gone, and may come back with a restart.
    pub fn remove(&self, names: &BTreeSet<String>) -> Result<usize, StoreError> {
        // Others may ask in between.
        let removed = names.iter().filter(|name| self.0.hosts.write().remove(name)).count();
        if removed > 0 {
            self.keep()?;
        }
        Ok(removed)
    }

    /// Writes what changed.
    ///
    /// # Errors
    /// When that cannot be written; the next call writes it.
    pub fn keep(&self) -> Result<(), StoreError> {
        let _keeping = self.0.keeping.lock();
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
