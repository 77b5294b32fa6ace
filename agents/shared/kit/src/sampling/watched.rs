//! The hosts that an agent monitors remotely, such as database servers. The agent pings on behalf
//! of each host, and reports hosts that did not answer in the last round as absent.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use granary_protocol::{PINGS_PER_REQUEST_MAX, Ping};

use crate::clock::Stopwatch;

/// Tolerance for slow rounds, in addition to the time of two rounds.
const ROUND_SLACK: Duration = Duration::from_secs(30);
/// The maximum number of hosts whose end is reported; the oldest ones are dropped first.
const ENDED_MAX: usize = 900;
/// The number of rounds after a reload in which a host can appear again. Discovery finds some hosts
/// only after several rounds.
const RELOAD_ROUNDS: usize = 12;

/// A monitored host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchedHost {
    /// The name, which is also the tag `host` of its series.
    pub host: String,
    /// The start time of the monitored service, in Unix milliseconds, if known.
    pub started_ms: Option<i64>,
    /// The tags of the host.
    pub tags: Vec<(String, String)>,
    /// True when the host did not answer.
    pub is_absent: bool,
    /// True when the agent no longer monitors the host, because it left: its silence is no failure.
    pub is_ending: bool,
}

/// The time since the end of a round, and the hosts of the round.
type FinishedRound = (Stopwatch, Vec<WatchedHost>);

/// The hosts that left, with the number of each, and the last number.
#[derive(Debug, Default)]
struct EndedHosts {
    hosts: VecDeque<(u64, WatchedHost)>,
    last: u64,
}

/// The hosts of the time before a reload that have not appeared since, and the number of rounds
/// that remain for them.
#[derive(Debug, Default)]
struct ReloadedHosts {
    hosts: Vec<WatchedHost>,
    rounds_left: usize,
}

/// The hosts of the last round. The sampling thread writes, the sending thread reads.
#[derive(Debug, Clone)]
pub(crate) struct WatchedHosts {
    hosts: Arc<Mutex<Option<FinishedRound>>>,
    /// The hosts that left, with ascending numbers.
    ended: Arc<Mutex<EndedHosts>>,
    reloaded: Arc<Mutex<ReloadedHosts>>,
    /// The time for which a round is valid.
    valid_for: Duration,
    /// The number of rounds in which a host was new or changed its state.
    state_changes: Arc<AtomicU64>,
    /// True after a clean stop of the agent.
    has_ended: Arc<AtomicBool>,
}

impl WatchedHosts {
    /// Creates an empty list for an agent with this sampling interval.
    pub(crate) fn new(sampling: Duration) -> Self {
        let valid_for = sampling.saturating_mul(2).saturating_add(ROUND_SLACK);
        Self {
            hosts: Arc::default(),
            ended: Arc::default(),
            reloaded: Arc::default(),
            valid_for,
            state_changes: Arc::default(),
            has_ended: Arc::default(),
        }
    }

    /// Records the clean stop of the agent: no round follows.
    pub(crate) fn record_stop(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Returns true after a clean stop of the agent.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Records that new settings apply: a host that does not appear in the following rounds is no
    /// longer in the settings, and has left. Until then, it keeps its last state.
    pub(crate) fn record_reload(&self) {
        let last = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let hosts = last.as_ref().map_or_else(Vec::new, |(_, hosts)| hosts.clone());
        drop(last);
        let mut reloaded = self.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
        *reloaded = ReloadedHosts { hosts, rounds_left: RELOAD_ROUNDS };
    }

    /// Adds the hosts of the time before a reload to the hosts of a round.
    fn add_reloaded(&self, hosts: &mut Vec<WatchedHost>) {
        let mut reloaded = self.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
        reloaded.hosts.retain(|old| !hosts.iter().any(|host| host.host == old.host));
        reloaded.rounds_left = reloaded.rounds_left.saturating_sub(1);
        let is_over = reloaded.rounds_left == 0;
        if is_over {
            let gone = reloaded.hosts.drain(..);
            hosts.extend(gone.map(|host| WatchedHost { is_ending: true, ..host }));
        } else {
            hosts.extend(reloaded.hosts.iter().cloned());
        }
    }

    /// Replaces the hosts by the hosts of the round that has just ended.
    pub(crate) fn set(&self, mut hosts: Vec<WatchedHost>) {
        self.add_reloaded(&mut hosts);
        let (ending, hosts): (Vec<_>, Vec<_>) = hosts.into_iter().partition(|host| host.is_ending);
        self.note_ended(ending, &hosts);
        let mut last = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().map_or(&[][..], |(_, hosts)| hosts);
        let is_same = |old: &WatchedHost, new: &WatchedHost| {
            (&old.host, old.is_absent) == (&new.host, new.is_absent)
        };
        let is_known = |new: &WatchedHost| known.iter().any(|old| is_same(old, new));
        if !hosts.iter().all(is_known) {
            self.state_changes.fetch_add(1, Ordering::Relaxed);
        }
        *last = (!hosts.is_empty()).then(|| (Stopwatch::start(), hosts));
    }

    fn note_ended(&self, ending: Vec<WatchedHost>, current: &[WatchedHost]) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |name: &String| current.iter().any(|host| host.host == *name);
        // A host that returned, or that ends again, is not reported twice.
        ended.hosts.retain(|(_, known)| {
            !is_current(&known.host) && !ending.iter().any(|host| host.host == known.host)
        });
        for host in ending.into_iter().filter(|host| !is_current(&host.host)) {
            ended.last += 1;
            let number = ended.last;
            ended.hosts.push_back((number, host));
            self.state_changes.fetch_add(1, Ordering::Relaxed);
        }
        let surplus = ended.hosts.len().saturating_sub(ENDED_MAX);
        ended.hosts.drain(..surplus);
    }

    /// Returns a ping for each host that left after the host with the number `reported`, and the
    /// number of the last one.
    pub(crate) fn end_pings(&self, agent_ping: &Ping, reported: u64) -> (Vec<Ping>, u64) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let new = ended.hosts.iter().filter(|(number, _)| *number > reported);
        (new.map(|(_, host)| host.ping(agent_ping)).collect(), ended.last)
    }

    /// Returns a counter that grows when a host is new or changes its state, so that the agent
    /// pings at once.
    pub(crate) fn state_changes(&self) -> u64 {
        self.state_changes.load(Ordering::Relaxed)
    }

    /// Returns the agent's own ping and one ping for each host, up to the limit of a request.
    pub(crate) fn pings(&self, agent_ping: &Ping) -> Vec<Ping> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = hosts.as_ref().filter(|(since, _)| !since.left_of(self.valid_for).is_zero());
        let watched = fresh.map_or(&[][..], |(_, hosts)| hosts);
        let mut pings = vec![agent_ping.clone()];
        let of_hosts = watched.iter().take(PINGS_PER_REQUEST_MAX - 1);
        pings.extend(of_hosts.map(|host| host.ping(agent_ping)));
        pings
    }
}

impl WatchedHost {
    fn ping(&self, agent_ping: &Ping) -> Ping {
        Ping {
            host: Some(self.host.clone()),
            booted: self.started_ms,
            tags: agent_ping.tags.clone().into_iter().chain(self.tags.clone()).collect(),
            absent: self.is_absent && !self.is_ending,
            ending: agent_ping.ending || self.is_ending,
            ..agent_ping.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent_ping() -> Ping {
        let tags = [("env".to_owned(), "prod".to_owned())].into();
        Ping { agent: "a".to_owned(), booted: Some(5), tags, ..Ping::default() }
    }

    fn host(name: &str) -> WatchedHost {
        let tags = vec![("set".to_owned(), "rs0".to_owned())];
        WatchedHost { host: name.to_owned(), started_ms: Some(7), tags, ..WatchedHost::default() }
    }

    #[test]
    fn only_hosts_of_the_last_round_are_pinged_for() {
        let watched = WatchedHosts::new(Duration::from_secs(10));
        assert_eq!(watched.pings(&agent_ping()), [agent_ping()]);
        watched.set(vec![host("db1:27017"), host("db2:27017")]);
        let pings = watched.pings(&agent_ping());
        assert_eq!((pings.len(), watched.state_changes()), (3, 1));
        assert_eq!((pings[2].host.as_deref(), pings[2].booted), (Some("db2:27017"), Some(7)));
        assert_eq!(pings[2].tags.keys().collect::<Vec<_>>(), ["env", "set"]);
        watched.set(vec![host("db2:27017")]);
        assert_eq!(watched.pings(&agent_ping()).len(), 2);
        assert_eq!(watched.state_changes(), 1);
        watched.set(vec![]);
        assert_eq!(watched.pings(&agent_ping()), [agent_ping()]);
        watched.set(vec![host("db1:27017")]);
        assert_eq!(watched.state_changes(), 2, "it is back");
    }

    /// Regression: a target with a misspelled name was invisible.
    #[test]
    fn a_host_that_never_answered_is_absent_and_its_first_answer_is_pinged_at_once() {
        let watched = WatchedHosts::new(Duration::from_secs(10));
        watched.set(vec![WatchedHost { is_absent: true, ..host("typo") }]);
        let pings = watched.pings(&agent_ping());
        assert_eq!((pings.len(), pings[1].absent, watched.state_changes()), (2, true, 1));
        watched.set(vec![host("typo")]);
        assert!(!watched.pings(&agent_ping())[1].absent);
        assert_eq!(watched.state_changes(), 2);
    }

    /// Regression: a member that was removed from its set stayed in the fleet as down.
    #[test]
    fn a_host_that_left_is_reported_as_stopped_until_it_returns() {
        let watched = WatchedHosts::new(Duration::from_secs(10));
        let ends = |reported| watched.end_pings(&agent_ping(), reported);
        watched.set(vec![host("a"), host("b")]);
        let gone = WatchedHost { is_absent: true, is_ending: true, ..host("b") };
        watched.set(vec![host("a"), gone.clone()]);
        assert_eq!(watched.pings(&agent_ping()).len(), 2);
        let (pings, last) = ends(0);
        let shown: Vec<_> = pings.iter().map(|p| (p.host.as_deref(), p.absent, p.ending)).collect();
        assert_eq!(shown, [(Some("b"), false, true)]);
        assert_eq!((ends(last).0, watched.state_changes()), (vec![], 2));
        watched.set(vec![host("a"), host("b")]);
        assert_eq!(ends(0).0, vec![], "it has returned");
        watched.set(
            (0..2 * ENDED_MAX)
                .map(|n| WatchedHost { host: n.to_string(), ..gone.clone() })
                .collect(),
        );
        assert_eq!(ends(last).0.len(), ENDED_MAX);
    }

    /// Regression: a target that was removed from the settings file was down, not stopped.
    #[test]
    fn a_host_that_is_not_in_new_settings_is_stopped_and_others_continue() {
        let watched = WatchedHosts::new(Duration::from_secs(10));
        watched.set(vec![host("kept"), host("late"), host("removed")]);
        watched.record_reload();
        for round in 1..RELOAD_ROUNDS {
            let found_late = (round > 2).then(|| host("late"));
            watched.set([host("kept")].into_iter().chain(found_late).collect());
            assert_eq!(watched.pings(&agent_ping()).len(), 4, "{round}");
            assert_eq!(watched.end_pings(&agent_ping(), 0).0, vec![]);
        }
        for _ in 0..3 {
            watched.set(vec![host("kept"), host("late")]);
            let pings = watched.pings(&agent_ping());
            let hosts: Vec<_> = pings.iter().filter_map(|ping| ping.host.as_deref()).collect();
            assert_eq!(hosts, ["kept", "late"]);
            let (ends, last) = watched.end_pings(&agent_ping(), 0);
            assert_eq!((ends.len(), last, ends[0].host.as_deref()), (1, 1, Some("removed")));
            assert!(ends[0].ending);
        }
    }

    #[test]
    fn the_pings_of_a_request_are_limited_and_an_old_round_is_ignored() {
        let watched = WatchedHosts::new(Duration::from_secs(10));
        watched.set((0..2000).map(|index| host(&format!("db{index}"))).collect());
        assert_eq!(watched.pings(&agent_ping()).len(), PINGS_PER_REQUEST_MAX);
        let past = WatchedHosts { valid_for: Duration::ZERO, ..watched };
        assert_eq!(past.pings(&agent_ping()).len(), 1);
    }
}
