//! States and events, compared with a naive model that remembers everything.

mod following;

use std::collections::{BTreeMap, VecDeque};

use granary_protocol::Ping;
use proptest::prelude::*;

use super::{host::EVENTS_MAX, *};
use crate::model::{HostState, StoredHosts};
use following::Follower;

const START: i64 = 1_795_000_000_000;

fn ping(host: &str, agent: &str, at: UnixMillis) -> Ping {
    Ping {
        agent: agent.to_owned(),
        host: Some(host.to_owned()),
        program: "host".to_owned(),
        version: "1".to_owned(),
        started: 1000,
        booted: Some(500),
        interval_ms: 10_000,
        sent: at.0,
        ..Ping::default()
    }
}

/// A step of a random run.
#[derive(Debug, Clone)]
enum Step {
    /// An agent of a host pings, perhaps after a restart or a reboot, perhaps for the last time.
    Ping { host: usize, agent: usize, restart: bool, reboot: bool, ending: bool },
    /// Time passes.
    Wait(i64),
    /// The wall clock is set.
    Set(i64),
    /// Changes are stored.
    Keep,
    /// Changes are taken but cannot be stored.
    FailToKeep,
    /// The daemon is away for a time, after a clean stop or a crash.
    Restart { away: i64, in_order: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3_usize, 0..2_usize, [0.1, 0.1, 0.2].map(prop::bool::weighted)).prop_map(
            |(host, agent, [restart, reboot, ending])| {
                Step::Ping { host, agent, restart, reboot, ending }
            }
        ),
        8 => (1..200_000_i64).prop_map(Step::Wait),
        1 => (-500_000..500_000_i64).prop_map(Step::Set),
        2 => Just(Step::Keep),
        1 => Just(Step::FailToKeep),
        2 => (0..1_000_000_i64, any::<bool>())
            .prop_map(|(away, in_order)| Step::Restart { away, in_order }),
    ]
}

/// The history of all hosts, in the simplest form.
#[derive(Debug, Clone, Default)]
struct Model {
    hosts: BTreeMap<String, ModelHost>,
}

#[derive(Debug, Clone, Default)]
struct ModelHost {
    /// The start, the boot and the clock of each agent at its last ping.
    agents: BTreeMap<String, (i64, i64, i64)>,
    /// The time of the last ping, by the wall clock.
    pinged: i64,
    /// The daemon's listening time since the last ping, in this run and in total.
    silent_in_run: i64,
    silent: i64,
    /// True when the host pinged in this run.
    is_heard: bool,
    /// The silence of each agent that is expected to ping again.
    expected: BTreeMap<String, i64>,
    events: Vec<HostEvent>,
}

fn event(kind: HostEventKind, at: i64, until: Option<i64>) -> HostEvent {
    let program = if kind == HostEventKind::AgentRestart { "host" } else { "" };
    HostEvent { at: until.map_or(at, |until| at.min(until)), until, kind, program: program.into() }
}

impl Model {
    fn wait(&mut self, ms: i64) {
        for host in self.hosts.values_mut() {
            host.silent_in_run += ms;
            host.silent += ms;
            host.expected.values_mut().for_each(|silent| *silent += ms);
        }
    }

    fn ping(&mut self, name: &str, ping: &Ping, now: i64, since: i64) {
        let host = self.hosts.entry(name.to_owned()).or_default();
        if host.silent >= DOWN_AFTER_MS {
            let from = if host.is_heard { host.pinged } else { since };
            host.events.push(event(HostEventKind::Gap, from, Some(now)));
        }
        host.expected.insert(ping.agent.clone(), 0);
        if ping.ending {
            host.expected.remove(&ping.agent);
            host.expected.retain(|_, silent| *silent < DOWN_AFTER_MS);
        }
        let times = (ping.started, ping.booted.unwrap(), ping.sent);
        if let Some((started, booted, sent)) = host.agents.insert(ping.agent.clone(), times) {
            if times.1 != booted && times.1 > sent {
                let reboot = event(HostEventKind::HostReboot, times.1.min(now), None);
                let is_same = |known: &HostEvent| {
                    known.kind == reboot.kind && (known.at - reboot.at).abs() < 60_000
                };
                if !host.events.iter().any(is_same) {
                    host.events.push(reboot);
                }
            } else if times.0 != started {
                host.events.push(event(HostEventKind::AgentRestart, times.0.min(now), None));
            }
        }
        (host.pinged, host.silent_in_run, host.silent, host.is_heard) = (now, 0, 0, true);
    }

    /// Ends a run that lasted from `since` until `until`.
    fn end_run(&mut self, since: i64, until: i64) {
        for host in self.hosts.values_mut() {
            if host.silent_in_run >= DOWN_AFTER_MS {
                let from = if host.is_heard { host.pinged } else { since };
                host.events.push(event(HostEventKind::Gap, from, Some(until)));
            }
            (host.silent_in_run, host.is_heard) = (0, false);
        }
    }
}

/// The hosts, with a store in memory.
struct World {
    hosts: Hosts,
    kept: BTreeMap<Arc<str>, crate::model::HostRecord>,
    listening: ListeningSpan,
    /// The model when the hosts were last stored.
    model_kept: (Model, i64, i64),
    model: Model,
    wall: i64,
    since: i64,
    listened: i64,
    follower: Follower,
}

impl World {
    fn new() -> Self {
        let hosts = Hosts::new(10, StoredHosts::default(), UnixMillis(START));
        Self {
            hosts,
            kept: BTreeMap::new(),
            listening: ListeningSpan::default(),
            model_kept: (Model::default(), START, START),
            model: Model::default(),
            wall: START,
            since: START,
            listened: 0,
            follower: Follower::default(),
        }
    }

    fn now(&self) -> ListeningTime {
        ListeningTime { at: UnixMillis(self.wall), listened_ms: self.listened }
    }

    fn keep(&mut self) {
        let changes = self.hosts.take_changes(self.now());
        self.kept.extend(changes.changed);
        changes.removed.iter().for_each(|name| drop(self.kept.remove(name)));
        self.listening = changes.listening;
        self.model_kept = (self.model.clone(), self.since, self.wall);
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Ping { host, agent, restart, reboot, ending } => {
                // No two pings arrive at the same time.
                self.run(&Step::Wait(1));
                let (name, agent) = (format!("h{host}"), format!("a{agent}"));
                let next_ping = ping(&name, &agent, UnixMillis(self.wall));
                let mut next_ping = Ping { ending, ..next_ping };
                let known = self.model.hosts.get(&name).and_then(|host| host.agents.get(&agent));
                if let Some((started, booted, sent)) = known {
                    let latest = self.wall.max(*sent + 1);
                    next_ping.started = if restart || reboot { latest } else { *started };
                    next_ping.booted = Some(if reboot { latest } else { *booted });
                }
                self.model.ping(&name, &next_ping, self.wall, self.since);
                self.hosts.ping(next_ping, self.now()).unwrap();
            }
            Step::Wait(ms) => {
                self.wall += ms;
                self.listened += ms;
                self.model.wait(ms);
            }
            Step::Set(ms) => self.wall += ms,
            Step::Keep => self.keep(),
            Step::FailToKeep => {
                let changes = self.hosts.take_changes(self.now());
                self.hosts.take_back(changes);
            }
            Step::Restart { away, in_order } => {
                if in_order {
                    self.keep();
                }
                let (model, since, until) = self.model_kept.clone();
                self.model = model;
                self.model.end_run(since, until);
                self.wall += away;
                let records = self.kept.clone().into_iter().collect();
                let kept = StoredHosts { records, listening: self.listening };
                self.hosts = Hosts::new(10, kept, UnixMillis(self.wall));
                (self.since, self.listened) = (self.wall, 0);
            }
        }
    }

    fn check(&mut self) {
        let now = self.now();
        let listed = self.hosts.list(None, now);
        self.follower.refresh(&self.hosts, now);
        let facts = |status: &HostStatus| {
            (status.host.clone(), (status.state, status.pinged, status.tags.clone()))
        };
        assert_eq!(self.follower.known, listed.iter().map(facts).collect());
        assert_eq!(listed.len(), self.model.hosts.len());
        for (status, (name, model)) in listed.iter().zip(&self.model.hosts) {
            let state = match model.expected.values().min() {
                None => HostState::Stopped,
                Some(..90_000) => HostState::Up,
                Some(90_000..240_000) => HostState::Late,
                Some(_) => HostState::Down,
            };
            assert_eq!((&status.host, status.state), (name, state), "{model:?}");
            assert_eq!(status.pinged, model.pinged);
            let all = UnixMillis::EARLIEST..UnixMillis::LATEST;
            let tags = [("host".to_owned(), name.clone())];
            let found = self.hosts.events(&all, &tags, 1000, now).into_iter();
            let mut found: Vec<_> =
                found.map(|event| (event.time, event.end, event.source)).collect();
            let skipped = model.events.len().saturating_sub(EVENTS_MAX);
            let mut expected: Vec<_> = model.events[skipped..].to_vec();
            if model.silent >= DOWN_AFTER_MS {
                let from = if model.is_heard { model.pinged } else { self.since };
                expected.push(event(HostEventKind::Gap, from, Some(self.wall)));
            }
            let mut expected: Vec<_> =
                expected.into_iter().map(|event| (event.at, event.until, event.kind)).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{name}");
        }
    }
}

proptest! {
    #[test]
    fn states_and_events_match_a_naive_model(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.run(step);
            world.check();
        }
    }

    #[test]
    fn the_longest_silent_hosts_are_removed_at_the_limit(
        pings in prop::collection::vec(0..9_usize, 1..60),
        hosts_max in 1..6_usize,
    ) {
        let mut hosts = Hosts::new(hosts_max, StoredHosts::default(), UnixMillis(START));
        let (mut heard, mut kept): (VecDeque<String>, BTreeSet<String>) = Default::default();
        for (at, host) in (0..).zip(pings) {
            let now = ListeningTime { at: UnixMillis(START + at), listened_ms: at };
            let name = format!("h{host}");
            hosts.ping(ping(&name, "a", now.at), now).unwrap();
            heard.retain(|known| *known != name);
            heard.push_back(name);
            if heard.len() > hosts_max {
                heard.pop_front();
            }
            let changes = hosts.take_changes(now);
            changes.removed.iter().for_each(|name| assert!(kept.remove(&**name), "{name}"));
            kept.extend(changes.changed.iter().map(|(name, _)| name.to_string()));
            let known: BTreeSet<_> = heard.iter().cloned().collect();
            let listed = hosts.list(None, now).into_iter().map(|status| status.host);
            prop_assert_eq!(listed.collect::<BTreeSet<_>>(), known.clone());
            prop_assert_eq!(&kept, &known);
        }
    }
}

fn at(listened_ms: i64) -> ListeningTime {
    ListeningTime { at: UnixMillis(START + listened_ms), listened_ms }
}

#[test]
fn a_host_is_up_while_one_of_its_agents_is() {
    let mut hosts = Hosts::new(10, StoredHosts::default(), UnixMillis(START));
    hosts.ping(ping("web1", "web1", at(0).at), at(0)).unwrap();
    let statsd = Ping { program: "statsd".to_owned(), ..ping("web1", "web1", at(0).at) };
    hosts.ping(statsd.clone(), at(100_000)).unwrap();
    let listed = hosts.list(Some("web1"), at(100_000)).remove(0);
    assert_eq!(listed.state, HostState::Up);
    let states: Vec<_> = listed.agents.iter().map(|agent| (&*agent.program, agent.state)).collect();
    assert_eq!(states, [("host", HostState::Late), ("statsd", HostState::Up)]);
    assert!(hosts.list(Some("web2"), at(0)).is_empty());
    assert_eq!(hosts.totals(at(340_000)), HostTotals { down: 1, ..HostTotals::default() });
    assert!(hosts.remove("web1") && !hosts.remove("web1"));
    hosts.ping(statsd, at(400_000)).unwrap();
    assert_eq!(hosts.list(None, at(400_000))[0].first_seen, START + 400_000);
}

#[test]
fn the_daemons_time_away_is_not_silence() {
    let mut hosts = Hosts::new(10, StoredHosts::default(), UnixMillis(START));
    for name in ["living", "silent"] {
        hosts.ping(ping(name, name, at(0).at), at(0)).unwrap();
    }
    hosts.ping(ping("living", "living", at(300_000).at), at(300_000)).unwrap();
    let changes = hosts.take_changes(at(310_000));
    let kept = StoredHosts { records: changes.changed, listening: changes.listening };
    // A day later.
    let mut hosts = Hosts::new(10, kept, UnixMillis(START + 86_400_000));
    let now = |listened_ms| ListeningTime {
        at: UnixMillis(START + 86_400_000 + listened_ms),
        listened_ms,
    };
    let state = |hosts: &Hosts, name: &str, ms| hosts.list(Some(name), now(ms))[0].state;
    assert_eq!(state(&hosts, "living", 79_999), HostState::Up);
    assert_eq!(state(&hosts, "living", 80_000), HostState::Late);
    assert_eq!(state(&hosts, "silent", 0), HostState::Down);
    hosts.ping(ping("silent", "silent", now(20_000).at), now(20_000)).unwrap();
    let all = UnixMillis::EARLIEST..UnixMillis::LATEST;
    let silent = [("host".to_owned(), "silent".to_owned())];
    let gaps = hosts.events(&all, &silent, 10, now(20_000)).into_iter();
    let gaps: Vec<_> = gaps.map(|event| (event.time - START, event.end.unwrap() - START)).collect();
    assert_eq!(gaps, [(0, 310_000), (86_400_000, 86_420_000)]);
}

#[test]
fn a_clock_that_is_set_is_not_a_reboot() {
    let mut hosts = Hosts::new(10, StoredHosts::default(), UnixMillis(START));
    let first = ping("web1", "web1", at(0).at);
    hosts.ping(first.clone(), at(0)).unwrap();
    let set = Ping { booted: Some(700), sent: first.sent + 200, ..first.clone() };
    hosts.ping(set.clone(), at(1000)).unwrap();
    let all = UnixMillis::EARLIEST..UnixMillis::LATEST;
    assert_eq!(hosts.events(&all, &[], 10, at(1000)), []);
    let booted = Ping { booted: Some(set.sent + 1), started: set.sent + 2, ..set };
    hosts.ping(booted, at(2000)).unwrap();
    let events = hosts.events(&all, &[("host".into(), "web1".into())], 10, at(2000));
    let kinds: Vec<_> = events.iter().map(|event| event.source).collect();
    assert_eq!(kinds, [HostEventKind::HostReboot]);
    assert_eq!(events[0].tags["host"], "web1");
    assert_eq!(hosts.events(&all, &[("host".into(), "web2".into())], 10, at(2000)), []);
}

#[test]
fn the_contents_of_a_ping_are_limited() {
    let good = ping("web1", "web1", at(0).at);
    let tags = |count: usize, bytes: usize| {
        (0..count).map(|n| (format!("t{n}"), "x".repeat(bytes))).collect::<BTreeMap<_, _>>()
    };
    let bad = [
        Ping { agent: String::new(), ..good.clone() },
        Ping { host: Some("a\nb".to_owned()), ..good.clone() },
        Ping { host: Some("x".repeat(257)), ..good.clone() },
        Ping { program: "x".repeat(65), ..good.clone() },
        Ping { started: -1, ..good.clone() },
        Ping { booted: Some(i64::MAX), ..good.clone() },
        Ping { interval_ms: 0, ..good.clone() },
        Ping { tags: tags(33, 1), ..good.clone() },
        Ping { tags: tags(30, 100), ..good.clone() },
    ];
    let mut hosts = Hosts::new(10, StoredHosts::default(), UnixMillis(START));
    for ping in bad {
        assert!(hosts.ping(ping.clone(), at(0)).is_err(), "{ping:?}");
    }
    assert!(hosts.is_empty());
    for agent in 0..100 {
        let next_ping = Ping { agent: format!("a{agent}"), tags: tags(30, 10), ..good.clone() };
        hosts.ping(next_ping, at(agent)).unwrap();
    }
    let listed = hosts.list(None, at(100)).remove(0);
    let names: Vec<_> = listed.agents.iter().map(|agent| &*agent.agent).collect();
    assert_eq!(names, ["a92", "a93", "a94", "a95", "a96", "a97", "a98", "a99"]);
}

/// Regression: a database that never answered was not listed as a host, and a killed database
/// stayed a primary.
#[test]
fn a_watched_host_that_does_not_answer_is_down_and_has_no_role() {
    let mut hosts = Hosts::new(10, StoredHosts::default(), at(0).at);
    let role = |tags: &[(&str, &str)]| -> BTreeMap<String, String> {
        tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let primary = Ping { tags: role(&[("role", "primary")]), ..ping("db1", "watcher", at(0).at) };
    let missed = |host: &str, now: ListeningTime| Ping {
        absent: true,
        tags: role(&[]),
        ..ping(host, "watcher", now.at)
    };
    assert!(hosts.ping(primary, at(1_000)).unwrap());
    assert!(hosts.ping(missed("typo", at(1_000)), at(1_000)).unwrap());
    let state = |hosts: &Hosts, name: &str, now: ListeningTime| {
        let host = &hosts.by_name[name];
        (host.state(now), host.tags().len())
    };
    assert_eq!(state(&hosts, "typo", at(1_000)), (HostState::Down, 0));
    assert_eq!(state(&hosts, "db1", at(1_000)), (HostState::Up, 1));
    assert!(hosts.ping(missed("db1", at(2_000)), at(2_000)).unwrap());
    assert!(!hosts.ping(missed("db1", at(3_000)), at(3_000)).unwrap());
    assert_eq!(state(&hosts, "db1", at(3_000)).1, 0, "the last ping was two seconds ago");
    let later = at(1_000 + DOWN_AFTER_MS);
    hosts.ping(missed("db1", later), later).unwrap();
    assert_eq!(
        state(&hosts, "db1", later).0,
        HostState::Down,
        "a missed ping is not a sign of life"
    );
    hosts.ping(ping("typo", "watcher", later.at), later).unwrap();
    assert_eq!(state(&hosts, "typo", later).0, HostState::Up);
}

/// Regression: every stop of an agent for maintenance raised `HostDown`.
#[test]
fn a_host_whose_agents_stopped_in_order_stays_stopped_after_a_restart_of_the_daemon() {
    let mut hosts = Hosts::new(10, StoredHosts::default(), at(0).at);
    let ending =
        |agent: &str, now: ListeningTime| Ping { ending: true, ..ping("web1", agent, now.at) };
    let listed = |hosts: &Hosts, now: ListeningTime| hosts.list(Some("web1"), now).remove(0);
    hosts.ping(ping("web1", "host", at(0).at), at(0)).unwrap();
    hosts.ping(ping("web1", "statsd", at(0).at), at(0)).unwrap();
    assert!(hosts.ping(ending("host", at(1)), at(1)).unwrap(), "the change is stored at once");
    assert_eq!(listed(&hosts, at(2)).state, HostState::Up, "another agent is up");
    assert_eq!(
        listed(&hosts, at(DOWN_AFTER_MS)).state,
        HostState::Down,
        "the other agent was killed"
    );
    hosts.ping(ending("statsd", at(3)), at(3)).unwrap();
    let changes = hosts.take_changes(at(3));
    let kept = StoredHosts { records: changes.changed, listening: changes.listening };
    let mut hosts = Hosts::new(10, kept, at(10).at);
    let day = at(86_400_000);
    let host = listed(&hosts, day);
    let states: Vec<_> = host.agents.iter().map(|agent| agent.state).collect();
    assert_eq!((host.state, &states[..]), (HostState::Stopped, &[HostState::Stopped; 2][..]));
    assert_eq!(hosts.totals(day), HostTotals { stopped: 1, ..HostTotals::default() });
    hosts.ping(ping("web1", "host", day.at), day).unwrap();
    assert_eq!(listed(&hosts, day).state, HostState::Up);
    let killed = at(day.listened_ms + DOWN_AFTER_MS);
    assert_eq!(listed(&hosts, killed).state, HostState::Down);
}

/// Regression: the manual promised a warning, but there was none.
#[test]
fn two_agents_of_the_same_name_are_reported() {
    let mut hosts = Hosts::new(10, StoredHosts::default(), at(0).at);
    let agent_ping =
        |started: i64, now: ListeningTime| Ping { started, ..ping("web", "web", now.at) };
    hosts.ping(agent_ping(1_000, at(0)), at(0)).unwrap();
    hosts.ping(agent_ping(2_000, at(10)), at(10)).unwrap();
    for (started, now) in [(1_000, at(20)), (1_000, at(30))] {
        let fault = hosts.ping(agent_ping(started, now), now).unwrap_err();
        assert!(fault.contains("\"web\"") && fault.contains("--agent-id"), "{fault}");
    }
    hosts.ping(agent_ping(2_000, at(40)), at(40)).unwrap();
    let listed = hosts.list(Some("web"), at(40)).remove(0);
    assert_eq!((listed.state, listed.agents.len()), (HostState::Up, 1));
    // An agent that restarts several times counts as one, even when its clock was set back.
    for (number, started) in [3_000, 500, 4_000].into_iter().enumerate() {
        let now = at(50 + number as i64);
        hosts.ping(agent_ping(started, now), now).unwrap();
        hosts.ping(agent_ping(started, now), now).unwrap();
    }
}
