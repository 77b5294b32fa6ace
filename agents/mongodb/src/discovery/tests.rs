//! Rounds against scripted clusters that change.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use granary_agent_kit::{Readings, Source};
use mongodb::bson::{Bson, DateTime, Document, doc};

use super::*;
use crate::{
    MongoDb, Settings,
    responder::{Responder, error_document},
    test_responses::{NOW_S, hello, is_of_agent, server_status},
};

const NOW_MS: i64 = NOW_S as i64 * 1000;
const UP: i32 = 1;
const SECONDARY: i32 = 2;
const DOWN: i32 = 8;

/// A replica set: its name, the version of its configuration, and its members with their states.
#[derive(Debug, Default, Clone)]
struct Set {
    name: &'static str,
    version: i32,
    members: Vec<(String, i32)>,
}

type SharedSet = Arc<Mutex<Set>>;

impl Set {
    fn shared(name: &'static str) -> SharedSet {
        Arc::new(Mutex::new(Self { name, version: 1, members: Vec::new() }))
    }

    fn hello(&self, me: &str) -> Document {
        let hosts: Vec<&str> = self.members.iter().map(|(name, _)| name.as_str()).collect();
        let is_primary = self.members.first().is_some_and(|(name, _)| name == me);
        // The other fields of `hello` are those of every server.
        let mut response = hello("standalone");
        response.extend(doc! {
            "setName": self.name, "setVersion": self.version, "hosts": hosts, "me": me,
            "isWritablePrimary": is_primary, "secondary": !is_primary,
        });
        response
    }

    fn status(&self, me: &str) -> Document {
        let member = |(name, state): &(String, i32)| {
            let mut member = doc! {
                "name": name, "state": *state, "health": f64::from(u8::from(*state != DOWN)),
            };
            if name == me {
                member.insert("self", true);
            }
            Bson::Document(member)
        };
        let members: Vec<Bson> = self.members.iter().map(member).collect();
        let state = self.members.iter().find(|(name, _)| name == me).map_or(0, |(_, state)| *state);
        doc! { "set": self.name, "myState": state, "term": 1_i64, "members": members, "ok": 1.0 }
    }
}

/// Starts a member that answers while `is_alive`, and adds it to its set.
fn start_member(set: &SharedSet, state: i32, is_alive: &Arc<AtomicBool>) -> Responder {
    let me: Arc<Mutex<String>> = Arc::default();
    let (of_set, own_name, is_alive) = (Arc::clone(set), Arc::clone(&me), Arc::clone(is_alive));
    let responder = Responder::start(move |_, command| {
        if !is_alive.load(Ordering::SeqCst) {
            return None;
        }
        let (set, me) = (of_set.lock().unwrap(), own_name.lock().unwrap());
        Some(match command.keys().next().map_or("", String::as_str) {
            "hello" | "isMaster" | "ismaster" => set.hello(&me),
            "replSetGetStatus" => set.status(&me),
            "serverStatus" => server_status("8.0.4", "primary"),
            _ => error_document(59, "CommandNotFound"),
        })
    });
    me.lock().unwrap().clone_from(&responder.address);
    set.lock().unwrap().members.push((responder.address.clone(), state));
    responder
}

fn alive() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(true))
}

fn agent_with_seed(address: &str) -> MongoDb {
    let mut target = TargetSettings::new(format!("mongodb://{address}"));
    target.discover = true;
    let timeout = Duration::from_millis(1_500);
    let settings = Settings { targets: vec![target], timeout, ..Settings::default() };
    MongoDb::with_deadline(&settings, Duration::from_millis(1), Duration::from_secs(30), None)
        .unwrap()
}

fn sample(agent: &mut MongoDb, now_ms: i64) -> Readings {
    let mut readings = Readings::default();
    agent.sample(now_ms, &mut readings).unwrap();
    readings
}

/// Returns the values of a metric by host, in the order of hosts.
fn values(readings: &Readings, metric: &str) -> Vec<(String, f64)> {
    let all = readings.as_slice().iter().filter(|reading| reading.metric == metric);
    let mut values: Vec<_> = all.map(|r| (tag(r, "host").unwrap(), r.value)).collect();
    values.sort_by(|left, right| left.0.cmp(&right.0));
    values
}

fn tag(reading: &granary_agent_kit::Reading, name: &str) -> Option<String> {
    reading.tags.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

fn up_hosts<const N: usize>(members: [&Responder; N]) -> Vec<(String, f64)> {
    let mut expected: Vec<_> = members.map(|member| (member.address.clone(), 1.0)).into();
    expected.sort_by(|left, right| left.0.cmp(&right.0));
    expected
}

#[test]
fn one_member_leads_to_all_members_as_the_set_changes() {
    let set = Set::shared("rs0");
    let a = start_member(&set, UP, &alive());
    let b = start_member(&set, SECONDARY, &alive());
    let mut agent = agent_with_seed(&a.address);
    assert_eq!(values(&sample(&mut agent, NOW_MS), "mongodb_up"), up_hosts([&a]));
    let readings = sample(&mut agent, NOW_MS + 10_000);
    assert_eq!(values(&readings, "mongodb_up"), up_hosts([&a, &b]));
    let has_set = |r: &granary_agent_kit::Reading| tag(r, "set").as_deref() == Some("rs0");
    let mut of_servers = readings.as_slice().iter().filter(|r| !is_of_agent(&r.metric));
    assert!(of_servers.all(has_set));
    assert!(!readings.as_slice().iter().any(|r| is_of_agent(&r.metric) && has_set(r)));
    // A member joins, another one leaves.
    let c = start_member(&set, SECONDARY, &alive());
    set.lock().unwrap().version = 2;
    set.lock().unwrap().members.retain(|(name, _)| *name != b.address);
    sample(&mut agent, NOW_MS + 20_000);
    let readings = sample(&mut agent, NOW_MS + 30_000);
    assert_eq!(values(&readings, "mongodb_up"), up_hosts([&a, &c]));
    let is_of_b = |reading: &granary_agent_kit::KnownReading| {
        reading.series.tags().any(|(_, value)| *value == b.address)
    };
    let ended = readings.known().iter().filter(|r| is_of_b(r) && r.value.is_nan()).count();
    assert!(ended > 50, "the series of the removed member ended: {ended}");
}

/// Regression: the agent authenticated at any address that a server named.
#[test]
fn a_server_outside_of_the_seeds_network_is_listed_and_not_contacted() {
    let set = Set::shared("rs0");
    let a = start_member(&set, UP, &alive());
    let foreign = start_member(&set, SECONDARY, &alive());
    let port = foreign.address.rsplit_once(':').unwrap().1;
    // Another network, and a name, of the same machine.
    let addresses = [format!("127.9.9.9:{port}"), format!("localhost:{port}")];
    set.lock().unwrap().members.truncate(1);
    set.lock().unwrap().members.extend(addresses.clone().map(|name| (name, SECONDARY)));
    let mut agent = agent_with_seed(&a.address);
    sample(&mut agent, NOW_MS);
    let readings = sample(&mut agent, NOW_MS + 10_000);
    assert_eq!(values(&readings, "mongodb_up"), up_hosts([&a]));
    assert_eq!(foreign.connections.load(Ordering::SeqCst), 0);
    let problem = &readings.problems()[&format!("mongodb discovery from {}", a.address)];
    assert!(problem.starts_with("2 servers are not sampled"), "{problem}");
    assert!(addresses.iter().all(|address| problem.contains(address)), "{problem}");
}

#[test]
fn discovery_with_a_password_in_plain_text_is_refused() {
    let mut target = TargetSettings::new("mongodb://u:s3cret@db1/?authMechanism=PLAIN");
    target.discover = true;
    let settings = Settings { targets: vec![target], ..Settings::default() };
    let fault = MongoDb::new(&settings, Duration::from_secs(10)).unwrap_err().to_string();
    assert!(fault.starts_with("target db1") && fault.contains("add tls=true"), "{fault}");
    assert!(!fault.contains("s3cret"), "{fault}");
}

#[test]
fn a_router_leads_to_shards_config_servers_and_other_routers() {
    let (first, second, config) = (Set::shared("rs1"), Set::shared("rs2"), Set::shared("csrs"));
    let a = start_member(&first, UP, &alive());
    let b = start_member(&second, UP, &alive());
    let c = start_member(&config, UP, &alive());
    let hidden = start_member(&second, SECONDARY, &alive());
    let routers: Arc<Mutex<Vec<String>>> = Arc::default();
    let map = doc! {
        "shard01": format!("rs1/{}", a.address), "shard02": format!("rs2/{}", b.address),
        "config": format!("csrs/{}", c.address),
    };
    let start_router = || {
        let (routers, map) = (Arc::clone(&routers), map.clone());
        Responder::start(move |_, command| {
            Some(match command.keys().next().map_or("", String::as_str) {
                "hello" | "isMaster" | "ismaster" => hello("mongos"),
                "serverStatus" => server_status("8.0.4", "mongos"),
                "getShardMap" => doc! { "map": map.clone(), "ok": 1.0 },
                "find" => {
                    let ping = DateTime::from_millis(NOW_MS);
                    let router = |name: &String| doc! { "_id": name, "ping": ping };
                    let all: Vec<_> = routers.lock().unwrap().iter().map(router).collect();
                    doc! { "cursor": { "firstBatch": all, "id": 0_i64, "ns": "x.y" }, "ok": 1.0 }
                }
                _ => error_document(59, "CommandNotFound"),
            })
        })
    };
    let (seed, other) = (start_router(), start_router());
    routers.lock().unwrap().extend([seed.address.clone(), other.address.clone()]);
    let mut agent = agent_with_seed(&seed.address);
    for round in 0..2 {
        sample(&mut agent, NOW_MS + round * 10_000);
    }
    let readings = sample(&mut agent, NOW_MS + 20_000);
    assert_eq!(values(&readings, "mongodb_up"), up_hosts([&a, &b, &c, &hidden, &seed, &other]));
    let place = |server: &Responder| {
        let is_uptime = |r: &&granary_agent_kit::Reading| {
            r.metric == "mongodb_uptime" && tag(r, "host").as_ref() == Some(&server.address)
        };
        let reading = readings.as_slice().iter().find(is_uptime).unwrap();
        (tag(reading, "set").unwrap_or_default(), tag(reading, "shard").unwrap_or_default())
    };
    let expected = |set: &str, shard: &str| (set.to_owned(), shard.to_owned());
    assert_eq!(place(&a), expected("rs1", "shard01"));
    assert_eq!(place(&hidden), expected("rs2", "shard02"));
    assert_eq!(place(&c), expected("csrs", ""));
    assert_eq!(place(&other), expected("", ""));
    // A single round finds the servers before it samples them.
    let mut alone = Readings::default();
    agent_with_seed(&seed.address).sample_alone(NOW_MS, &mut alone).unwrap();
    assert_eq!(values(&alone, "mongodb_up").len(), 6);
}

#[test]
fn a_set_reports_which_member_is_down_and_when_it_returns() {
    let set = Set::shared("rs0");
    let is_alive = Arc::new(AtomicBool::new(false));
    let a = start_member(&set, UP, &alive());
    let b = start_member(&set, DOWN, &is_alive);
    let mut agent = agent_with_seed(&a.address);
    // The second minute of silence begins, in which the agent waits for 5 minutes.
    for seconds in [0, 10, 40, 75] {
        sample(&mut agent, NOW_MS + seconds * 1000);
    }
    let readings = sample(&mut agent, NOW_MS + 80_000);
    let of_b = |readings: &Readings, metric: &str| {
        values(readings, metric).into_iter().find(|(host, _)| *host == b.address).map(|(_, v)| v)
    };
    assert_eq!(of_b(&readings, "mongodb_up"), Some(0.0));
    assert_eq!(of_b(&readings, "mongodb_state"), Some(8.0), "its set reports it");
    let problem = &readings.problems()[&format!("mongodb {}", b.address)];
    assert!(problem.ends_with("its set cannot reach it either (state 8)"), "{problem}");
    let state = readings.as_slice().iter().find(|r| r.metric == "mongodb_state" && r.value == 8.0);
    assert_eq!(tag(state.unwrap(), "set").as_deref(), Some("rs0"));
    // The set reaches it again; the agent does not wait.
    is_alive.store(true, Ordering::SeqCst);
    assert_eq!(of_b(&sample(&mut agent, NOW_MS + 90_000), "mongodb_up"), Some(0.0));
    set.lock().unwrap().members[1].1 = SECONDARY;
    sample(&mut agent, NOW_MS + 100_000);
    let readings = sample(&mut agent, NOW_MS + 110_000);
    assert_eq!(of_b(&readings, "mongodb_up"), Some(1.0));
    assert_eq!(of_b(&readings, "mongodb_state"), Some(2.0));
}
