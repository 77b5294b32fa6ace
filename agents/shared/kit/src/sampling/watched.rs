//! The hosts that an agent watches from outside, such as databases: it pings for each, so that the
//! daemon knows them as hosts of their own, and says which did not answer in its last round.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use granary_protocol::{PINGS_PER_REQUEST_MAX, Ping};

use crate::clock::Stopwatch;

/// Beside the time of two rounds: a round may be slow.
const ROUND_SLACK: Duration = Duration::from_secs(30);

/// A host that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchedHost {
    /// Its name, the tag `host` of its series.
    pub host: String,
    /// When what is watched on it was started, in Unix milliseconds, where that is known.
    pub started_ms: Option<i64>,
    /// Its tags, as of a host.
    pub tags: Vec<(String, String)>,
    /// It did not answer.
    pub is_absent: bool,
}

/// When a round ended, and who answered.
type Round = (Stopwatch, Vec<WatchedHost>);

/// Those of the last round; the sampling thread writes, the sending thread reads.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    hosts: Arc<Mutex<Option<Round>>>,
    /// For how long a round says who is there.
    lasts: Duration,
    /// How often a host came that was not in the round before.
    newcomers: Arc<AtomicU64>,
    /// The agent ended in order.
    has_ended: Arc<AtomicBool>,
}

impl Watched {
    /// No host yet, of an agent that samples so often.
    pub(crate) fn new(sampling: Duration) -> Self {
        let lasts = sampling.saturating_mul(2).saturating_add(ROUND_SLACK);
        Self { hosts: Arc::default(), lasts, newcomers: Arc::default(), has_ended: Arc::default() }
    }

    /// Ends the watch in order: no round follows.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether the watch ended in order.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Who answered in the round that ended now.
    pub(crate) fn set(&self, hosts: Vec<WatchedHost>) {
        let mut last = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().map_or(&[][..], |(_, hosts)| hosts);
        let is_same = |own: &WatchedHost, new: &WatchedHost| {
            (&own.host, own.is_absent) == (&new.host, new.is_absent)
        };
        let is_known = |new: &WatchedHost| known.iter().any(|own| is_same(own, new));
        if !hosts.iter().all(is_known) {
            self.newcomers.fetch_add(1, Ordering::Relaxed);
        }
        *last = (!hosts.is_empty()).then(|| (Stopwatch::start(), hosts));
    }

    /// A number that grows when there is a host that nobody pinged for yet.
    pub(crate) fn newcomers(&self) -> u64 {
        self.newcomers.load(Ordering::Relaxed)
    }

    /// The agent's own ping, then one for each host; what a request does not hold is left out.
    pub(crate) fn pings(&self, own: &Ping) -> Vec<Ping> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = hosts.as_ref().filter(|(since, _)| !since.left_of(self.lasts).is_zero());
        let watched = fresh.map_or(&[][..], |(_, hosts)| hosts);
        let for_host = |seen: &WatchedHost| Ping {
            host: Some(seen.host.clone()),
            booted: seen.started_ms,
            tags: own.tags.clone().into_iter().chain(seen.tags.clone()).collect(),
            absent: seen.is_absent,
            ..own.clone()
        };
        let mut pings = vec![own.clone()];
        pings.extend(watched.iter().take(PINGS_PER_REQUEST_MAX - 1).map(for_host));
        pings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Ping {
        let tags = [("env".to_owned(), "prod".to_owned())].into();
        Ping { agent: "a".to_owned(), booted: Some(5), tags, ..Ping::default() }
    }

    fn host(name: &str) -> WatchedHost {
        let tags = vec![("set".to_owned(), "rs0".to_owned())];
        WatchedHost { host: name.to_owned(), started_ms: Some(7), tags, is_absent: false }
    }

    #[test]
    fn a_host_that_answered_is_pinged_for_and_one_that_did_not_is_no_more() {
        let watched = Watched::new(Duration::from_secs(10));
        assert_eq!(watched.pings(&own()), [own()]);
        watched.set(vec![host("db1:27017"), host("db2:27017")]);
        let pings = watched.pings(&own());
        assert_eq!((pings.len(), watched.newcomers()), (3, 1));
        assert_eq!((pings[2].host.as_deref(), pings[2].booted), (Some("db2:27017"), Some(7)));
        assert_eq!(pings[2].tags.keys().collect::<Vec<_>>(), ["env", "set"]);
        watched.set(vec![host("db2:27017")]);
        assert_eq!(watched.pings(&own()).len(), 2);
        assert_eq!(watched.newcomers(), 1);
        watched.set(vec![]);
        assert_eq!(watched.pings(&own()), [own()]);
        watched.set(vec![host("db1:27017")]);
        assert_eq!(watched.newcomers(), 2, "it is back");
    }

    /// A target whose name has a typo looked like nothing.
    #[test]
    fn a_host_that_never_answered_is_told_as_absent_and_pinged_for_at_once_when_it_does() {
        let watched = Watched::new(Duration::from_secs(10));
        watched.set(vec![WatchedHost { is_absent: true, ..host("typo") }]);
        let pings = watched.pings(&own());
        assert_eq!((pings.len(), pings[1].absent, watched.newcomers()), (2, true, 1));
        watched.set(vec![host("typo")]);
        assert!(!watched.pings(&own())[1].absent);
        assert_eq!(watched.newcomers(), 2);
    }

    #[test]
    fn a_request_holds_so_many_and_an_old_round_says_nothing() {
        let watched = Watched::new(Duration::from_secs(10));
        watched.set((0..2000).map(|index| host(&format!("db{index}"))).collect());
        assert_eq!(watched.pings(&own()).len(), PINGS_PER_REQUEST_MAX);
        let past = Watched { lasts: Duration::ZERO, ..watched };
        assert_eq!(past.pings(&own()).len(), 1);
    }
}
