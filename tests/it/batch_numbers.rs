//! Deduplication by batch number: a batch counts once, and a group of batches gets the verdicts
//! that its batches would get one by one.

use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Deduplication, Kind, ProjectName, SeriesId,
        TimesTally,
    },
    store::{Appender, Store, StoreLimits},
};
use proptest::prelude::*;

use crate::setup::{HOUR, WITHIN as NOW, count, define, open, samples, series};

fn open_with_series(path: &std::path::Path) -> (Store, Appender) {
    let (store, mut appender) = open(path, NOW);
    define(&mut appender, &[series("m", &[], Kind::Gauge)], NOW);
    (store, appender)
}

fn batch(agent: &str, epoch: i64, seq: u64) -> AcceptedBatch {
    AcceptedBatch {
        deduplication: Deduplication::ByNumber(BatchNumber { sender: agent.into(), epoch, seq }),
        ..samples(SeriesId(0), [(NOW.0, 1.0)])
    }
}

/// Returns the number of samples at the finest granularity.
fn count_samples(store: &Store) -> u64 {
    count(store, 0, NOW.minus(HOUR)..NOW, SeriesId(0))
}

/// Commits one group and returns the verdicts on its batches.
fn commit(appender: &mut Appender, group: &[AcceptedBatch]) -> Vec<BatchVerdict> {
    appender.commit(&[], group, NOW).unwrap().batches
}

#[test]
fn a_group_with_a_jump_in_numbers_calls_no_unaccepted_batch_a_duplicate() {
    // Regression: after [2000, 50] in one group, 1074 was answered "duplicate" and lost.
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with_series(dir.path());
    let accepted = BatchVerdict::Accepted(TimesTally::default());
    assert_eq!(commit(&mut appender, &[batch("a", 1, 100)]), [accepted]);
    let group = [2000, 50, 2000, 1074].map(|seq| batch("a", 1, seq));
    let expected = [accepted, BatchVerdict::StaleNumber, BatchVerdict::Duplicate, accepted];
    assert_eq!(commit(&mut appender, &group), expected);
    let first = [5000, 1, 4097].map(|seq| batch("b", 1, seq));
    assert_eq!(commit(&mut appender, &first), [accepted, BatchVerdict::StaleNumber, accepted]);
    let epochs = [2, 3, 4, 5].map(|epoch| batch("c", epoch, 1));
    assert_eq!(commit(&mut appender, &epochs), [accepted; 4]);
    let late = [batch("c", 6, 1), batch("c", 2, 2), batch("c", 3, 2)];
    assert_eq!(commit(&mut appender, &late), [accepted, BatchVerdict::StaleNumber, accepted]);
    assert_eq!(count_samples(&store), 3 + 2 + 6);
}

fn any_batch_number() -> impl Strategy<Value = (u8, i64, u64)> {
    let seq = prop_oneof![4 => 1..20_u64, 4 => 1..7000_u64, 1 => any::<u64>().prop_map(|n| n | 1)];
    (0..2_u8, 1..8_i64, seq)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_group_gets_the_verdicts_of_its_batches_one_by_one(
        groups in prop::collection::vec(prop::collection::vec(any_batch_number(), 1..12), 1..12),
        restart in 0..12_usize,
    ) {
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [(mut store, mut group_appender), (_, mut single_appender)] = [0, 1].map(|index| open_with_series(dirs[index].path()));
        let mut accepted = 0;
        for (index, group) in groups.iter().enumerate() {
            let group: Vec<_> = group
                .iter()
                .map(|(agent, epoch, seq)| batch(&format!("agent{agent}"), *epoch, *seq))
                .collect();
            let single_verdicts: Vec<_> = group
                .iter()
                .flat_map(|batch| commit(&mut single_appender, std::slice::from_ref(batch)))
                .collect();
            let group_verdicts = commit(&mut group_appender, &group);
            prop_assert_eq!(&group_verdicts, &single_verdicts);
            accepted += group_verdicts.iter().filter(|verdict| verdict.is_accepted()).count();
            if index == restart {
                drop((store, group_appender));
                (store, group_appender) = open(dirs[0].path(), NOW);
            }
        }
        prop_assert_eq!(count_samples(&store) as usize, accepted);
    }
}

#[test]
fn a_batch_without_samples_uses_no_number() {
    // Regression: four empty batches with epochs near 2^63 locked a sender out forever.
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with_series(dir.path());
    let empty = |epoch, seq| AcceptedBatch {
        series: Vec::new(),
        times: Vec::new(),
        values: Vec::new(),
        ..batch("a", epoch, seq)
    };
    let forged: Vec<_> = (0..4).map(|distance| empty(i64::MAX - distance, 1 << 62)).collect();
    assert_eq!(commit(&mut appender, &forged), [BatchVerdict::Empty; 4]);
    assert_eq!((store.sender_count(), store.last_record()), (0, 1));
    let accepted = BatchVerdict::Accepted(TimesTally::default());
    let retried = commit(&mut appender, &[batch("a", 1, 1), empty(1, 1), empty(1, 2)]);
    assert_eq!(retried, [accepted, BatchVerdict::Duplicate, BatchVerdict::Empty]);
    // A retry whose samples are all past their retention.
    assert_eq!(commit(&mut appender, &[empty(1, 1)]), [BatchVerdict::Duplicate]);
    assert_eq!(commit(&mut appender, &[batch("a", 1, 1 << 62)]), [BatchVerdict::FarNumber]);
    assert_eq!(commit(&mut appender, &[batch("a", 1, 2)]), [accepted]);
}

#[test]
fn a_new_sender_replaces_one_of_its_own_project() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with_series(dir.path());
    let limits = StoreLimits { senders_max: 2, sender_idle_ms: 5 * HOUR, ..StoreLimits::default() };
    appender.set_limits(limits);
    let accepted = BatchVerdict::Accepted(TimesTally::default());
    let red = ProjectName::new("red").unwrap();
    let send = |appender: &mut Appender, agents: &[&str], hours: i64| {
        let group: Vec<_> = agents.iter().map(|agent| batch(agent, 1, 1)).collect();
        appender.commit(&[], &group, NOW.plus(hours * HOUR)).unwrap().batches
    };
    let of_red = ["a", "b", "c", "d"].map(|name| red.stored_name(name));
    let [a, b, c, d] = of_red.each_ref().map(|name| &**name);
    assert_eq!(send(&mut appender, &["a", "b", a], 0), [accepted; 3]);
    assert_eq!(send(&mut appender, &[b], 9), [accepted]);
    // The senders of the other project were silent for longest, too, and stay.
    assert_eq!(send(&mut appender, &[c, d], 10), [accepted, BatchVerdict::SenderLimit]);
    let names = |store: &Store| {
        store.senders().into_iter().map(|sender| sender.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&store), ["a", "b"]);
    assert_eq!(names(&store.for_project(&red)), ["b", "c"]);
    assert_eq!((store.sender_count(), store.sender_count_max()), (4, 2));
    // The counts survive a start, and removed senders make room.
    store.checkpoint(NOW).unwrap();
    drop((store, appender));
    let (store, mut appender) = open(dir.path(), NOW);
    appender.set_limits(limits);
    assert_eq!(send(&mut appender, &[d], 10), [BatchVerdict::SenderLimit]);
    assert_eq!(appender.forget(&[c.into()], NOW).unwrap(), 1);
    assert_eq!(send(&mut appender, &[d, "c"], 10), [accepted, accepted]);
    assert_eq!(names(&store), ["b", "c"]);
}

#[test]
fn new_senders_replace_the_senders_that_were_silent_longest() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut appender) = open_with_series(dir.path());
    let limits = StoreLimits { senders_max: 3, sender_idle_ms: 5 * HOUR, ..StoreLimits::default() };
    appender.set_limits(limits);
    let accepted = BatchVerdict::Accepted(TimesTally::default());
    let full = BatchVerdict::SenderLimit;
    let send = |appender: &mut Appender, agents: &[&str], hours: i64| {
        let group: Vec<_> = agents.iter().map(|agent| batch(agent, 1, hours as u64 + 1)).collect();
        appender.commit(&[], &group, NOW.plus(hours * HOUR)).unwrap().batches
    };
    let names = |store: &Store| {
        let all = store.senders().into_iter();
        all.map(|sender| sender.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(send(&mut appender, &["a", "b", "c", "d"], 0), [accepted, accepted, accepted, full]);
    assert_eq!(send(&mut appender, &["b"], 1), [accepted]);
    assert_eq!(send(&mut appender, &["d"], 5), [full], "no sender is idle for long enough");
    // Senders with a batch in the group are kept, however long they were silent.
    assert_eq!(send(&mut appender, &["d", "a"], 6), [accepted, accepted]);
    assert_eq!((names(&store), store.counters().senders_forgotten.get()), ("a b d".into(), 1));
    let commits_and_bytes = |store: &Store| {
        let counters = store.counters();
        (counters.commits.get(), counters.journal_bytes.get())
    };
    let before = commits_and_bytes(&store);
    let forgotten = appender.forget(&["a".into(), "nobody".into()], NOW).unwrap();
    assert_eq!((forgotten, names(&store)), (1, "b d".into()));
    let after = commits_and_bytes(&store);
    assert!(
        after.0 == before.0 + 1 && after.1 > before.1,
        "the removal is one record: {before:?} {after:?}"
    );
    // After a restart, with and without a checkpoint, the store has the same senders; a removed
    // sender starts again as a new sender.
    for checkpoint in [false, true] {
        if checkpoint {
            store.checkpoint(NOW).unwrap();
        }
        drop((store, appender));
        (store, appender) = open(dir.path(), NOW);
        assert_eq!(names(&store), "b d");
    }
    assert_eq!(send(&mut appender, &["b", "a"], 0), [BatchVerdict::Duplicate, accepted]);
}
