//! Replicas that differ on purpose: the digest must show each difference.

use granary::{
    model::{
        AcceptedBatch, BatchNumber, Deduplication, GranularitySet, Kind, SeriesId, UnixMillis,
    },
    store::{
        Appender, ErasureRequest, LogFault, Matcher, RecordLog, Replica, ReplicaFault, Store,
        StoreDigest, StoreError,
    },
};
use xxhash_rust::xxh3::xxh3_64;

use super::levels;
use crate::{
    faulty::FaultyMedium,
    memory_log::{Fate, MemoryLog},
    setup::{DAY, HOUR, MINUTE, NOW, SECOND, define, samples, send, series},
};

pub(super) fn first(set: &GranularitySet) -> Vec<u8> {
    Replica::first_record(set, &[], NOW)
}

fn open(first: &[u8]) -> (Store, Replica) {
    let medium = std::sync::Arc::new(FaultyMedium::new(1));
    Replica::open(medium, Some(first), NOW).unwrap()
}

/// Returns a leader, its log, and a follower, which have applied record 1.
pub(super) fn pair() -> (Store, Appender, MemoryLog, Store, Replica) {
    let (mut log, first) = (MemoryLog::default(), first(&levels("6h")));
    log.append(1, &first).unwrap();
    let ((store, mut leader), (other, mut follower)) = (open(&first), open(&first));
    assert_eq!(leader.follow(&mut log).unwrap(), 1);
    follower.follow(&mut log).unwrap();
    (store, leader.lead(Box::new(log.clone())), log, other, follower)
}

/// Sends a sample that the finest level keeps for four to six more hours.
pub(super) fn send_one(appender: &mut Appender) {
    let ids = define(appender, &[series("m", &[], Kind::Gauge)], NOW);
    send(appender, samples(ids[0], [(NOW.0 - 2 * HOUR, 0.5)]), NOW);
}

pub(super) fn difference(store: &Store, other: &Store) -> Option<String> {
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
    for number in 2..=log.last() {
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

/// Returns the difference of a follower that passes the number of the leader's last record.
fn of_skipped(
    before: impl FnOnce(&mut Appender) -> SeriesId,
    last: impl FnOnce(&mut Appender, SeriesId),
) -> String {
    let (store, mut leader, mut log, other, mut follower) = pair();
    let id = before(&mut leader);
    follower.follow(&mut log).unwrap();
    let known = log.last();
    assert_eq!(difference(&store, &other), None);
    last(&mut leader, id);
    assert_eq!(log.last(), known + 1);
    follower.pass(known + 1).unwrap();
    difference(&store, &other).unwrap()
}

pub(super) fn all() -> Vec<Matcher> {
    vec![Matcher { tag: "__name__".into(), value: "m".into() }]
}

pub(super) fn define_one(appender: &mut Appender) -> SeriesId {
    define(appender, &[series("m", &[], Kind::Gauge)], NOW)[0]
}

#[test]
fn a_follower_that_skips_a_record_differs() {
    let retention = of_skipped(define_one, |leader, _| {
        leader.change_retentions(&levels("4h"), &[], NOW).unwrap();
    });
    assert_eq!(retention, "levels differ");
    // No level keeps the sample.
    let send_old = |leader: &mut Appender, id| {
        send(leader, samples(id, [(NOW.0 - 3650 * DAY, 1.0)]), NOW);
    };
    let states = of_skipped(define_one, send_old);
    assert_eq!(states, "states differ");
    let with_old = |leader: &mut Appender| {
        let id = define_one(leader);
        send_old(leader, id);
        id
    };
    let forgotten = of_skipped(with_old, |leader, id| {
        assert_eq!(leader.forget_series(&[id], NOW).unwrap(), 1);
    });
    assert_eq!(forgotten, "series differ");
    let with_sender = |leader: &mut Appender| {
        let id = define_one(leader);
        let number = BatchNumber { sender: "web1".into(), epoch: 1, seq: 1 };
        let deduplication = Deduplication::ByNumber(number);
        let batch = samples(id, [(NOW.0 - HOUR, 1.0)]);
        send(leader, AcceptedBatch { deduplication, ..batch }, NOW);
        id
    };
    let senders = of_skipped(with_sender, |leader, _| {
        assert_eq!(leader.forget(&["web1".into()], NOW).unwrap(), 1);
    });
    assert_eq!(senders, "senders differ");
    let erased = of_skipped(with_sender, |leader, _| {
        let range = NOW.minus(2 * HOUR)..NOW;
        let request = ErasureRequest { matchers: all(), range };
        leader.erase(&request, false, NOW).unwrap().unwrap();
    });
    assert!(erased.starts_with("cells of"), "{erased}");
}

#[test]
fn a_sum_differs_even_when_all_else_of_its_cell_is_equal() {
    let digest = |middle: f64| -> StoreDigest {
        let (store, mut leader, ..) = pair();
        let id = define_one(&mut leader);
        let at = NOW.0 - HOUR;
        let readings = [(at, 1.0), (at + SECOND, middle), (at + 2 * SECOND, 9.0)];
        send(&mut leader, samples(id, readings), NOW);
        store.digest(NOW).unwrap()
    };
    assert!(digest(4.0).compare(&digest(4.0)).is_ok());
    // The moments are equal.
    let differs = digest(4.0).compare(&digest(6.0)).unwrap_err().to_string();
    assert!(differs.starts_with("sums of"), "{differs}");
}

#[test]
fn a_replica_refuses_changes_of_its_own() {
    let (store, mut leader, ..) = pair();
    send_one(&mut leader);
    let fault = store.change_retentions(&levels("4h"), &[], NOW).unwrap_err().to_string();
    assert!(fault.contains("cannot change its retentions alone"), "{fault}");
    // The period of the finest level is over at the record of an hour later.
    define(&mut leader, &[series("n", &[], Kind::Gauge)], NOW.plus(HOUR));
    store.checkpoint(NOW.plus(HOUR)).unwrap();
    let kept = store.partitions().first().map(|partition| partition.id).unwrap();
    let fault = store.drop_partition(kept).unwrap_err().to_string();
    assert!(fault.contains("cannot delete samples before"), "{fault}");
}

#[test]
fn a_new_replica_needs_record_1_and_another_one_keeps_its_levels() {
    let (store, mut leader, log, ..) = pair();
    send_one(&mut leader);
    let medium = FaultyMedium::new(1);
    let at_start =
        |first: Option<&[u8]>| Replica::open(std::sync::Arc::new(medium.clone()), first, NOW);
    let fault = at_start(None).unwrap_err().to_string();
    assert!(fault.contains("begins with record 1"), "{fault}");
    let mut log = log;
    drop(at_start(log.record(1).as_deref()).unwrap());
    // Its node has other settings now.
    let (other, mut late) = at_start(Some(&first(&levels("1d")))).unwrap();
    late.follow(&mut log).unwrap();
    assert_eq!(difference(&store, &other), None);
}

#[test]
fn a_record_of_unknown_outcome_is_appended_again_and_a_fenced_leader_follows() {
    for fate in [Fate::AnswerLost, Fate::RecordLost] {
        let (store, mut leader, mut log, other, mut follower) = pair();
        assert!(!leader.retry().unwrap());
        log.set_fate(fate);
        let info = series("m", &[], Kind::Gauge);
        let fault = leader.commit(std::slice::from_ref(&info), &[], NOW).unwrap_err();
        let is_unknown = |fault: &LogFault| matches!(fault, LogFault::Unknown { number: 2, .. });
        assert!(matches!(&fault, StoreError::Log(fault) if is_unknown(fault)), "{fault:?}");
        let fault = leader.commit(&[info], &[], NOW).unwrap_err().to_string();
        assert!(fault.contains("append it again"), "{fault}");
        assert!(leader.retry().unwrap());
        send_one(&mut leader);
        log.fence();
        let fault = leader.commit(&[series("n", &[], Kind::Gauge)], &[], NOW).unwrap_err();
        let is_fenced = |fault: &LogFault| matches!(fault, LogFault::Fenced { number: 4 });
        assert!(matches!(&fault, StoreError::Log(fault) if is_fenced(fault)), "{fault:?}");
        let mut replica = leader.follow().unwrap();
        assert_eq!(replica.follow(&mut log).unwrap(), 1);
        assert_eq!(follower.follow(&mut log).unwrap(), 3);
        assert_eq!(difference(&store, &other), None);
    }
}

#[test]
fn the_erasure_of_another_record_is_refused() {
    let (_, mut leader, mut log, _, mut follower) = pair();
    send_one(&mut leader);
    follower.follow(&mut log).unwrap();
    let range = NOW.minus(3 * HOUR)..NOW;
    let request = ErasureRequest { matchers: all(), range };
    leader.erase(&request, false, NOW).unwrap().unwrap();
    let number = log.last();
    let record = log.record(number).unwrap();
    // After the version, the time, the tag and the length: the state, then the number before it.
    for (at, bytes) in
        [(14, vec![record[14] | 1]), (15, u64::MAX.to_le_bytes().to_vec()), (15, vec![1])]
    {
        let mut changed = record.clone();
        changed[at..at + bytes.len()].copy_from_slice(&bytes);
        let end = changed.len() - 8;
        let check = xxh3_64(&changed[..end]);
        changed[end..].copy_from_slice(&check.to_le_bytes());
        let fault = follower.apply(number, &changed).unwrap_err();
        assert!(matches!(fault, ReplicaFault::Damaged { .. }), "{fault}");
        assert!(fault.to_string().contains("the erasure of another record"), "{fault}");
    }
    follower.apply(number, &record).unwrap();
}

#[test]
fn a_record_that_is_skipped_repeated_or_damaged_is_not_applied() {
    let (_, mut leader, mut log, other, mut follower) = pair();
    send_one(&mut leader);
    let [second, third] = [2, 3].map(|number| log.record(number).unwrap());
    let gap = follower.apply(3, &third).unwrap_err();
    assert_eq!(gap.to_string(), "record 3 cannot be applied: record 2 is next");
    let mut damaged = second.clone();
    damaged[12] ^= 1;
    let fault = follower.apply(2, &damaged).unwrap_err().to_string();
    assert!(fault.contains("record 2 of the log is damaged"), "{fault}");
    follower.apply(2, &second).unwrap();
    assert_eq!(follower.apply(2, &second).unwrap(), granary::store::Applied::Before);
    // The third record names a series that another store's second record does not define.
    let founding = first(&levels("6h"));
    let (_, mut stranger) = open(&founding);
    let fault = stranger.apply(1, &second).unwrap_err().to_string();
    assert!(fault.contains("only record 1"), "{fault}");
    assert!(stranger.pass(1).is_err());
    stranger.apply(1, &founding).unwrap();
    assert!(stranger.apply(2, &founding).is_err());
    stranger.pass(2).unwrap();
    let fault = stranger.apply(3, &third).unwrap_err().to_string();
    assert!(fault.contains("names series 0 of 0"), "{fault}");
    follower.apply(3, &third).unwrap();
    log.cut(3).unwrap();
    let (_, mut late) = open(&founding);
    let fault = late.follow(&mut log).unwrap_err().to_string();
    assert_eq!(fault, "the log begins after record 3: copy the replica from another node");
    assert_eq!(other.dictionary().len(), 1);
}

#[test]
fn an_embedded_store_and_a_replica_refuse_each_others_directories() {
    let set = levels("6h");
    let (of_replica, of_store) = (FaultyMedium::new(1), FaultyMedium::new(1));
    let medium = |medium: &FaultyMedium| std::sync::Arc::new(medium.clone());
    let first = first(&set);
    drop(Replica::open(medium(&of_replica), Some(&first), NOW).unwrap());
    let fault = Store::open(medium(&of_replica), set.clone(), NOW).unwrap_err().to_string();
    assert!(fault.contains("belongs to a replica"), "{fault}");
    let (_, mut appender, _) = Store::open(medium(&of_store), set.clone(), NOW).unwrap();
    send_one(&mut appender);
    drop(appender);
    let fault = Replica::open(medium(&of_store), Some(&first), NOW).unwrap_err().to_string();
    assert!(fault.contains("embedded store"), "{fault}");
}
