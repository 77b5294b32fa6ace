//! Replica sets and clusters that change.

use mongodb::bson::{DateTime, doc};

use super::*;

fn hello(me: &str, version: i32, hosts: &[&str], arbiters: &[&str]) -> Document {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    doc! {
        "setName": "rs0", "setVersion": version, "me": me, "hosts": texts(hosts),
        "arbiters": texts(arbiters),
    }
}

fn status(members: &[(&str, i32, f64)]) -> Document {
    let member = |(name, state, health): &(&str, i32, f64)| {
        Bson::Document(doc! { "name": *name, "state": *state, "health": *health })
    };
    doc! { "set": "rs0", "members": members.iter().map(member).collect::<Vec<_>>() }
}

fn topology(seeds: &[&str]) -> Topology {
    Topology::new(seeds.iter().map(|seed| (*seed).to_owned()))
}

fn addresses(topology: &Topology) -> Vec<String> {
    topology.found().into_iter().map(|found| found.address).collect()
}

#[test]
fn one_member_reports_all_others_with_hidden_members_and_arbiters() {
    let mut topology = topology(&["10.0.0.1:27017"]);
    let status = status(&[("a:1", 1, 1.0), ("b:1", 2, 1.0), ("hidden:1", 2, 1.0)]);
    let hello = hello("a:1", 1, &["a:1", "b:1"], &["c:1"]);
    topology.note_member("10.0.0.1:27017", &hello, Some(&status), 0);
    // The seed is known to its set as a:1, and not sampled twice.
    assert_eq!(addresses(&topology), ["b:1", "c:1", "hidden:1"]);
    let arbiters: Vec<bool> = topology.found().iter().map(|found| found.is_arbiter).collect();
    assert_eq!(arbiters, [false, true, false]);
}

#[test]
fn the_latest_configuration_wins() {
    let mut topology = topology(&["a:1"]);
    topology.note_member("a:1", &hello("a:1", 1, &["a:1", "b:1"], &[]), None, 0);
    topology.note_member("a:1", &hello("a:1", 2, &["a:1", "c:1"], &[]), None, 0);
    assert_eq!(addresses(&topology), ["c:1"]);
    topology.note_member("b:1", &hello("b:1", 1, &["a:1", "b:1"], &[]), None, 0);
    assert_eq!(addresses(&topology), ["c:1"], "b:1 was removed, and does not know it");
    topology.note_member("a:1", &doc! { "isWritablePrimary": true }, None, 0);
    assert_eq!(addresses(&topology), ["c:1"]);
}

#[test]
fn a_router_reports_shards_config_servers_and_living_routers() {
    let mut topology = topology(&["router:1"]);
    let map = |entries: Document| doc! { "map": entries, "ok": 1 };
    let both = doc! {
        "shard01": "rs1/a:1,b:1", "shard02": "rs2/c:1", "config": "csrs/d:1,e:1",
    };
    topology.note_shard_map(&map(both), 0);
    let time = |minutes: i64| DateTime::from_millis(minutes * 60_000);
    let routers = vec![
        doc! { "_id": "router:1", "ping": time(500) },
        doc! { "_id": "router2:1", "ping": time(497) },
        doc! { "_id": "gone:1", "ping": time(494) },
    ];
    topology.note_routers(&doc! { "cursor": { "firstBatch": routers } });
    assert_eq!(addresses(&topology), ["d:1", "e:1", "a:1", "b:1", "c:1", "router2:1"]);
    assert_eq!(topology.shard_of("rs2"), Some("shard02"));
    assert_eq!(topology.shard_of("csrs"), None);
    let later = map(doc! { "shard01": "rs1/a:1,b:1", "config": "csrs/d:1" });
    // Regression: a router with an old map and one with the new map removed and added a shard.
    topology.note_shard_map(&later, SET_SILENCE_MAX_MS - 1);
    assert_eq!(addresses(&topology), ["d:1", "a:1", "b:1", "c:1", "router2:1"]);
    topology.note_shard_map(&later, SET_SILENCE_MAX_MS);
    assert_eq!(addresses(&topology), ["d:1", "a:1", "b:1", "router2:1"], "a removed shard");
    let mut removed = hello("c:1", 1, &["c:1"], &[]);
    removed.insert("setName", "rs2");
    topology.note_member("c:1", &removed, None, SET_SILENCE_MAX_MS);
    for invalid in [doc! {}, map(doc! {}), map(doc! { "x": 3 }), doc! { "map": 1, "cursor": 2 }] {
        topology.note_shard_map(&invalid, SET_SILENCE_MAX_MS);
        topology.note_routers(&invalid);
    }
    assert_eq!(addresses(&topology), ["d:1", "a:1", "b:1", "router2:1"]);
}

/// Regression: a set that was created again under its name was frozen.
#[test]
fn a_set_that_was_created_again_replaces_the_earlier_one() {
    let mut topology = topology(&["a:1"]);
    topology.note_member("a:1", &hello("a:1", 7, &["a:1", "b:1"], &[]), None, 0);
    let rebuilt = hello("a:1", 1, &["a:1", "c:1"], &[]);
    topology.note_member("a:1", &rebuilt, None, VERSION_AGE_MAX_MS - 1);
    assert_eq!(addresses(&topology), ["b:1"], "it may be a member that was removed");
    topology.note_member("a:1", &rebuilt, None, VERSION_AGE_MAX_MS);
    assert_eq!(addresses(&topology), ["c:1"]);
}

/// Regression: a seed that was down at the start was listed twice, under both of its names.
#[test]
fn a_member_that_is_down_may_be_a_seed_without_a_known_name() {
    let mut topology = topology(&["a:1", "10.0.0.2:1"]);
    let of_a = hello("a:1", 1, &["a:1", "b:1", "c:1"], &[]);
    let states = [("a:1", 1, 1.0), ("b:1", 8, 0.0), ("c:1", 2, 1.0)];
    topology.note_member("a:1", &of_a, Some(&status(&states)), 0);
    let doubts = |topology: &Topology| {
        let found = topology.found();
        found.iter().map(|found| (found.address.clone(), found.may_be_seed)).collect::<Vec<_>>()
    };
    let named = |name: &str, may_be_seed: bool| (name.to_owned(), may_be_seed);
    assert_eq!(doubts(&topology), [named("b:1", true), named("c:1", false)]);
    let of_b = hello("b:1", 1, &["a:1", "b:1", "c:1"], &[]);
    topology.note_member("10.0.0.2:1", &of_b, None, 0);
    assert_eq!(doubts(&topology), [named("c:1", false)]);
}

#[test]
fn a_set_knows_which_members_are_down() {
    let mut topology = topology(&["a:1"]);
    let hello = hello("a:1", 1, &["a:1", "b:1"], &[]);
    let status = status(&[("a:1", 1, 1.0), ("b:1", 8, 0.0)]);
    topology.note_member("a:1", &hello, Some(&status), 1_000);
    let view = topology.view_of("rs0", "b:1", 30_000).unwrap();
    assert_eq!((view.state, view.is_healthy), (8.0, false));
    assert_eq!(topology.view_of("rs0", "b:1", 90_000), None, "nobody has reported since");
    assert_eq!(topology.view_of("rs0", "x:1", 1_000), None);
}
