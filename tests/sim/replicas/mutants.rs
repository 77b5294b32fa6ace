//! Replicas that differ on purpose: the digest must show each difference.

use granary::{
    model::{GranularitySet, Kind, UnixMillis},
    store::{Appender, RecordLog, Replica, Store},
};
use xxhash_rust::xxh3::xxh3_64;

use super::levels;
use crate::{
    faulty::FaultyMedium,
    memory_log::MemoryLog,
    setup::{HOUR, MINUTE, NOW, define, samples, send, series},
};

fn open(set: &GranularitySet) -> (Store, Replica) {
    let medium = std::sync::Arc::new(FaultyMedium::new(1));
    Replica::open(medium, set, &[], NOW).unwrap()
}

/// Returns a leader, its log, and a follower.
fn pair() -> (Store, Appender, MemoryLog, Store, Replica) {
    let (log, set) = (MemoryLog::default(), levels("6h"));
    let ((store, leader), (other, follower)) = (open(&set), open(&set));
    (store, leader.lead(Box::new(log.clone())), log, other, follower)
}

/// Sends a sample that the finest level keeps for four to six more hours.
fn send_one(appender: &mut Appender) {
    let ids = define(appender, &[series("m", &[], Kind::Gauge)], NOW);
    send(appender, samples(ids[0], [(NOW.0 - 2 * HOUR, 0.5)]), NOW);
}

fn difference(store: &Store, other: &Store) -> Option<String> {
    let digest = |store: &Store| store.digest(NOW.plus(MINUTE)).unwrap();
    digest(store).compare(&digest(other)).err().map(|difference| difference.to_string())
}

#[test]
fn a_follower_with_the_same_records_has_the_same_digest() {
    let (store, mut leader, mut log, other, mut follower) = pair();
    send_one(&mut leader);
    assert!(difference(&store, &other).unwrap().contains("numbers"));
    assert_eq!(follower.follow(&mut log).unwrap(), 2);
    assert_eq!(difference(&store, &other), None);
    store.checkpoint(NOW).unwrap();
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn a_follower_that_applies_records_at_its_own_time_differs() {
    let (store, mut leader, log, other, mut follower) = pair();
    send_one(&mut leader);
    for number in 1..=log.last() {
        let mut record = log.record(number).unwrap();
        if number == log.last() {
            // A record of batches: its version, its time, its batches, its checksum.
            let later: UnixMillis = NOW.plus(9 * HOUR);
            record[1..9].copy_from_slice(&later.0.to_le_bytes());
            let end = record.len() - 8;
            let check = xxh3_64(&record[..end]);
            record[end..].copy_from_slice(&check.to_le_bytes());
        }
        follower.apply(number, &record).unwrap();
    }
    assert_eq!(difference(&store, &other).as_deref(), Some("cells of 1m differ"));
}

#[test]
fn a_follower_with_its_own_retention_differs() {
    let (store, mut leader, mut log, other, mut follower) = pair();
    other.change_retentions(&levels("4h"), &[], NOW).unwrap();
    send_one(&mut leader);
    follower.follow(&mut log).unwrap();
    assert_eq!(difference(&store, &other).as_deref(), Some("levels differ"));
}

#[test]
fn a_record_that_is_skipped_repeated_or_damaged_is_not_applied() {
    let (_, mut leader, mut log, other, mut follower) = pair();
    send_one(&mut leader);
    let [first, second] = [1, 2].map(|number| log.record(number).unwrap());
    let gap = follower.apply(2, &second).unwrap_err();
    assert_eq!(gap.to_string(), "record 2 cannot be applied: record 1 is next");
    let mut damaged = first.clone();
    damaged[12] ^= 1;
    let fault = follower.apply(1, &damaged).unwrap_err().to_string();
    assert!(fault.contains("record 1 of the log is damaged"), "{fault}");
    follower.apply(1, &first).unwrap();
    assert_eq!(follower.apply(1, &first).unwrap(), granary::store::Applied::Before);
    // The second record names a series that another store's first record does not define.
    let (_, mut stranger) = open(&levels("6h"));
    stranger.pass(1).unwrap();
    let fault = stranger.apply(2, &second).unwrap_err().to_string();
    assert!(fault.contains("names series 0 of 0"), "{fault}");
    follower.apply(2, &second).unwrap();
    log.cut(2).unwrap();
    let (_, mut late) = open(&levels("6h"));
    let fault = late.follow(&mut log).unwrap_err().to_string();
    assert_eq!(fault, "the log begins after record 2: copy the replica from another node");
    assert_eq!(other.dictionary().len(), 1);
}

#[test]
fn an_embedded_store_and_a_replica_refuse_each_others_directories() {
    let set = levels("6h");
    let (of_replica, of_store) = (FaultyMedium::new(1), FaultyMedium::new(1));
    let medium = |medium: &FaultyMedium| std::sync::Arc::new(medium.clone());
    drop(Replica::open(medium(&of_replica), &set, &[], NOW).unwrap());
    let fault = Store::open(medium(&of_replica), set.clone(), NOW).unwrap_err().to_string();
    assert!(fault.contains("belongs to a replica"), "{fault}");
    let (_, mut appender, _) = Store::open(medium(&of_store), set.clone(), NOW).unwrap();
    send_one(&mut appender);
    drop(appender);
    let fault = Replica::open(medium(&of_store), &set, &[], NOW).unwrap_err().to_string();
    assert!(fault.contains("embedded store"), "{fault}");
}
