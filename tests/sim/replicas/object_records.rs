//! Records of objects and hosts: what followers store, what they refuse, and what a leader does
//! after an unknown outcome.

use std::{sync::Arc, time::Duration};

use granary::{
    alerts::{LabelMatcher, NewSilence},
    kept::{KnownSilences, SilencingFault},
    model::{HostChanges, HostRecord, Kind, ListeningSpan, ProjectName},
    store::{
        Appender, ErasureRequest, LogFault, Medium, ObjectKind, ObjectRefusal, RECORD_BYTES_MAX,
        RecordSink, Replica, ReplicaFault, Store, StoreError,
    },
};
use xxhash_rust::xxh3::xxh3_64;

use super::mutants::{all, define_one, difference, first, pair, send_one};
use crate::{
    faulty::{Call, ENOSPC, Effect, Fault, FaultyMedium},
    memory_log::{Fate, MemoryLog},
    setup::{HOUR, MINUTE, NOW, SECOND, define, samples, send, series},
};

const KIND: ObjectKind = ObjectKind::Dashboard;

fn put(store: &Store, name: &str, expected: Option<u64>, text: &str) -> u64 {
    store.put_object(KIND, name, expected, text.as_bytes(), NOW).unwrap().unwrap()
}

fn version(store: &Store, name: &str) -> Option<u64> {
    store.object(KIND, name).unwrap().map(|object| object.version)
}

fn hosts(count: usize, bytes: usize) -> HostChanges {
    let events = Vec::new();
    let tags = [("role".to_owned(), "x".repeat(bytes))].into();
    let agent = granary::model::AgentRecord { tags, ..Default::default() };
    let record = HostRecord { first_seen: 1, kept_ms: 2, agents: vec![agent], events };
    let name = |number| Arc::from(format!("host{number}"));
    let changed = (0..count).map(|number| (name(number), record.clone())).collect();
    let listening = ListeningSpan { since: 1, until: 2, listened_ms: 3 };
    HostChanges { changed, removed: Vec::new(), listening }
}

#[test]
fn a_follower_that_skips_a_change_of_an_object_or_host_differs() {
    type Change = fn(&Store);
    let changes: [(&str, Change); 4] = [
        ("objects differ", |store| assert_eq!(put(store, "b", None, "x"), 2)),
        ("objects differ", |store| assert_eq!(put(store, "a", Some(1), "y"), 2)),
        ("objects differ", |store| store.delete_object(KIND, "a", Some(1)).unwrap().unwrap()),
        ("hosts differ", |store| store.keep_hosts(&hosts(1, 0)).unwrap()),
    ];
    for (part, change) in changes {
        let (store, _leader, mut log, other, mut follower) = pair();
        put(&store, "a", None, "x");
        follower.follow(&mut log).unwrap();
        assert_eq!(difference(&store, &other), None);
        change(&store);
        follower.pass(log.last()).unwrap();
        assert_eq!(difference(&store, &other).as_deref(), Some(part));
    }
    // A deleted object leaves its version, so that no version is used twice.
    let (store, _leader, mut log, other, mut follower) = pair();
    put(&store, "a", None, "x");
    store.delete_object(KIND, "a", Some(1)).unwrap().unwrap();
    assert_eq!(put(&store, "a", None, "y"), 2);
    store.delete_object(KIND, "a", Some(2)).unwrap().unwrap();
    follower.follow(&mut log).unwrap();
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn a_moment_differs_even_when_all_else_of_its_cell_is_equal() {
    let digest = |second: f64| {
        let (store, mut leader, ..) = pair();
        let id = define_one(&mut leader);
        let at = NOW.0 - HOUR;
        let values = [1.0, second, 10.0 - second, 9.0];
        let times = (0..).map(|index| at + index * SECOND);
        send(&mut leader, samples(id, times.zip(values)), NOW);
        store.digest(NOW).unwrap()
    };
    assert!(digest(4.0).compare(&digest(6.0)).is_ok());
    let differs = digest(4.0).compare(&digest(5.0)).unwrap_err().to_string();
    assert!(differs.starts_with("moments of"), "{differs}");
}

#[test]
fn a_start_that_reads_records_again_never_sees_an_earlier_version() {
    let (store, mut leader, log, ..) = pair();
    put(&store, "a", None, "x");
    put(&store, "b", None, "x");
    store.delete_object(KIND, "b", Some(2)).unwrap().unwrap();
    send_one(&mut leader);
    put(&store, "a", Some(1), "y");
    store.keep_hosts(&hosts(2, 0)).unwrap();
    let (medium, founding) = (FaultyMedium::new(1), log.record(1).unwrap());
    let open = || Replica::open(Arc::new(medium.clone()), Some(&founding), NOW).unwrap();
    let (other, mut follower) = open();
    follower.follow(&mut log.clone()).unwrap();
    assert_eq!((version(&other, "a"), version(&other, "b")), (Some(3), None));
    drop((other, follower));
    let (other, mut follower) = open();
    assert_eq!(follower.applied(), 0);
    for number in 1..=log.last() {
        assert_eq!((version(&other, "a"), version(&other, "b")), (Some(3), None));
        let fault = other.digest(NOW).unwrap_err().to_string();
        assert!(fault.contains("objects.redb: it contains record"), "{fault}");
        follower.apply(number, &log.record(number).unwrap()).unwrap();
    }
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn a_new_leader_continues_the_versions() {
    let (store, leader, mut log, other, mut follower) = pair();
    let acme = ProjectName::new("acme").unwrap();
    assert_eq!((put(&store, "a", None, "x"), put(&store, "b", None, "x")), (1, 2));
    assert_eq!(put(&store.for_project(&acme), "a", None, "x"), 1);
    let of_follower = other.put_object(KIND, "c", None, b"", NOW).unwrap_err().to_string();
    assert!(of_follower.contains("does not lead"), "{of_follower}");
    follower.follow(&mut log).unwrap();
    let mut before = leader.follow().unwrap();
    let _leader = follower.lead(Box::new(log.clone()));
    let conflict = other.put_object(KIND, "a", None, b"", NOW).unwrap().unwrap_err();
    assert!(matches!(conflict, ObjectRefusal::Conflict { found: Some(1), .. }), "{conflict}");
    assert_eq!(put(&other, "a", Some(1), "y"), 3);
    assert_eq!(put(&other.for_project(&acme), "a", Some(1), "y"), 2);
    assert!(store.put_object(KIND, "c", None, b"", NOW).is_err());
    assert!(store.keep_hosts(&hosts(1, 0)).is_err());
    before.follow(&mut log).unwrap();
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn after_an_unknown_outcome_the_next_change_appends_the_record_again() {
    type Next = fn(&Store, &mut Appender);
    let next: [Next; 3] = [
        |_, leader| assert!(leader.retry().unwrap()),
        |store, _| assert_eq!(put(store, "b", None, "x"), 2),
        |_, leader| send_one(leader),
    ];
    for fate in [Fate::AnswerLost, Fate::RecordLost] {
        for next in next {
            let (store, mut leader, mut log, other, mut follower) = pair();
            log.set_fate(fate);
            let fault = store.put_object(KIND, "a", None, b"x", NOW).unwrap_err();
            let is_unknown =
                |fault: &LogFault| matches!(fault, LogFault::Unknown { number: 2, .. });
            assert!(matches!(&fault, StoreError::Log(fault) if is_unknown(fault)), "{fault:?}");
            assert_eq!(version(&store, "a"), None);
            next(&store, &mut leader);
            assert_eq!(version(&store, "a"), Some(1));
            assert!(!leader.retry().unwrap());
            follower.follow(&mut log).unwrap();
            assert_eq!(difference(&store, &other), None);
        }
    }
    // A batch of unknown outcome is the writer's: its repetition is judged after the batch.
    let (store, mut leader, log, ..) = pair();
    log.set_fate(Fate::AnswerLost);
    leader.commit(&[series("m", &[], Kind::Gauge)], &[], NOW).unwrap_err();
    let fault = store.put_object(KIND, "a", None, b"", NOW).unwrap_err().to_string();
    assert!(fault.contains("record 2 may be there"), "{fault}");
    assert!(leader.retry().unwrap());
    put(&store, "a", None, "x");
    log.fence();
    let fault = store.put_object(KIND, "b", None, b"", NOW).unwrap_err();
    let is_fenced = |fault: &LogFault| matches!(fault, LogFault::Fenced { number: 4 });
    assert!(matches!(&fault, StoreError::Log(fault) if is_fenced(fault)), "{fault:?}");
}

#[test]
fn a_silence_expires_after_an_unknown_outcome() {
    for fate in [Fate::AnswerLost, Fate::RecordLost] {
        let (store, _leader, mut log, other, mut follower) = pair();
        let silences = KnownSilences::open(&store, Duration::from_secs(60)).unwrap();
        let new = NewSilence {
            id: None,
            matchers: LabelMatcher::parse_all("host=a").unwrap(),
            starts_at: NOW,
            ends_at: NOW.plus(HOUR),
            created_by: "a person".to_owned(),
            comment: "a test".to_owned(),
            recurring: None,
        };
        let id = silences.create_or_change(new, NOW).unwrap();
        log.set_fate(fate);
        let fault = silences.expire(&id, NOW.plus(SECOND)).unwrap_err();
        assert!(matches!(fault, SilencingFault::Store(StoreError::Log(_))), "{fault}");
        silences.expire(&id, NOW.plus(2 * SECOND)).unwrap();
        follower.follow(&mut log).unwrap();
        assert_eq!(difference(&store, &other), None);
    }
}

#[test]
fn a_leader_that_cannot_store_what_it_appended_gives_up() {
    let (mut log, founding) = (MemoryLog::default(), first(&super::levels("6h")));
    log.append(1, &founding).unwrap();
    let medium = FaultyMedium::new(1);
    let (store, mut replica) =
        Replica::open(Arc::new(medium.clone()), Some(&founding), NOW).unwrap();
    replica.follow(&mut log).unwrap();
    let _leader = replica.lead(Box::new(log.clone()));
    put(&store, "a", None, "x");
    medium.arm(Fault { call: Call::Sync, after: 0, times: 9, effect: Effect::Error(ENOSPC) });
    store.put_object(KIND, "b", None, b"x", NOW).unwrap_err();
    assert!(log.is_given_up() && log.last() == 3);
}

#[test]
fn changes_of_many_hosts_are_divided_into_records() {
    let (store, _leader, mut log, other, mut follower) = pair();
    store.keep_hosts(&hosts(30, 500_000)).unwrap();
    assert!(log.last() > 3, "{}", log.last());
    let sizes = (1..=log.last()).map(|number| log.record(number).unwrap().len());
    assert!(sizes.max().unwrap() < RECORD_BYTES_MAX);
    follower.follow(&mut log).unwrap();
    assert_eq!(other.hosts().unwrap().records.len(), 30);
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn a_replica_whose_objects_were_damaged_or_lost_is_refused() {
    for is_lost in [true, false] {
        let (store, _leader, log, ..) = pair();
        put(&store, "a", None, "some text of an object");
        let (medium, founding) = (FaultyMedium::new(1), first(&super::levels("6h")));
        let open = || Replica::open(Arc::new(medium.clone()), Some(&founding), NOW);
        let (other, mut follower) = open().unwrap();
        follower.follow(&mut log.clone()).unwrap();
        other.checkpoint(NOW).unwrap();
        drop((other, follower));
        if is_lost {
            medium.remove("objects.redb").unwrap();
        } else {
            let dir = tempfile::tempdir().unwrap();
            let copy = dir.path().join("copy");
            medium.copy("objects.redb", &copy).unwrap();
            let mut bytes = std::fs::read(copy).unwrap();
            let text = b"some text of an object";
            let at: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
            for at in at {
                bytes[at] ^= 1;
            }
            medium.put("objects.redb", bytes);
        }
        let fault = open().unwrap_err().to_string();
        assert!(fault.contains("copy it again from another node"), "{fault}");
        assert!(fault.contains("objects.redb"), "{fault}");
    }
}

#[test]
fn a_row_of_no_object_is_refused() {
    let (store, _leader, mut log, other, mut follower) = pair();
    follower.follow(&mut log).unwrap();
    put(&store, "a", None, "x");
    store.keep_hosts(&hosts(1, 0)).unwrap();
    // After the version, the time, the tag and two lengths: the key of an object, its row.
    for (number, at) in [(2, 18), (2, 40), (3, 45), (3, 60)] {
        let mut record = log.record(number).unwrap();
        if number == 3 {
            follower.apply(2, &log.record(2).unwrap()).unwrap();
        }
        record[at] ^= 1;
        let end = record.len() - 8;
        let check = xxh3_64(&record[..end]);
        record[end..].copy_from_slice(&check.to_le_bytes());
        let fault = follower.apply(number, &record).unwrap_err();
        assert!(matches!(fault, ReplicaFault::Damaged { .. }), "{fault}");
        assert!(fault.to_string().contains("none of an object or host"), "{fault}");
    }
    follower.follow(&mut log).unwrap();
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn a_leader_appends_no_record_that_followers_refuse() {
    let (store, _leader, mut log, other, mut follower) = pair();
    let last = log.last();
    let mut changes = hosts(1, 0);
    // No host has an empty name.
    changes.changed[0].0 = Arc::from("");
    let refusal = store.keep_hosts(&changes).unwrap_err();
    assert!(matches!(refusal, StoreError::Mismatch { .. }), "{refusal}");
    assert!(refusal.to_string().contains("none of an object or host"), "{refusal}");
    assert_eq!(log.last(), last);
    // Nothing is unsettled.
    store.keep_hosts(&hosts(1, 0)).unwrap();
    follower.follow(&mut log).unwrap();
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn threads_that_change_objects_and_the_writer_share_one_log() {
    let (store, mut leader, mut log, other, mut follower) = pair();
    let changing = [0, 1].map(|thread| {
        let store = store.clone();
        std::thread::spawn(move || {
            let name = thread.to_string();
            let mut version = None;
            for round in 0..100 {
                version = Some(put(&store, &name, version, &round.to_string()));
                store.keep_hosts(&hosts(1, round)).unwrap();
            }
        })
    });
    let ids = define(&mut leader, &[series("m", &[], Kind::Gauge)], NOW);
    let mut round = 0;
    while round < 20 || !changing.iter().all(std::thread::JoinHandle::is_finished) {
        round += 1;
        send(&mut leader, samples(ids[0], [(NOW.0 - round % 50 * MINUTE, 0.5)]), NOW);
        let range = NOW.minus(round % 60 * MINUTE)..NOW;
        let request = ErasureRequest { matchers: all(), range };
        leader.erase(&request, false, NOW).unwrap().unwrap();
    }
    for thread in changing {
        thread.join().unwrap();
    }
    follower.follow(&mut log).unwrap();
    assert_eq!(difference(&store, &other), None);
}
