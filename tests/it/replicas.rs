//! Several senders of the same samples: each sample counts once, even across failovers.

use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Deduplication, Kind, SeriesId, TimesTally,
        UnixMillis, replica::Replica,
    },
    store::{Appender, Store},
};

use crate::setup::{HOUR, SIX, define, open, samples, series, slots};

const STEP: i64 = 10_000;

fn open_with_series(path: &std::path::Path) -> (Store, Appender) {
    let (store, mut appender) = open(path, SIX);
    let all_series = ["clicks", "views"].map(|metric| series(metric, &[], Kind::Delta));
    define(&mut appender, &all_series, SIX);
    (store, appender)
}

fn step_time(step: i64) -> i64 {
    SIX.0 + step * STEP
}

fn numbered_batch(sender: u64, seq: u64, (series, steps): (u32, Vec<i64>)) -> AcceptedBatch {
    let number = BatchNumber { sender: format!("statsd-{sender}").into(), epoch: 1, seq };
    AcceptedBatch {
        deduplication: Deduplication::ByNumber(number),
        ..samples(SeriesId(series), steps.into_iter().map(|step| (step_time(step), 1.0)))
    }
}

/// Sends deltas of 1 for steps of a series; with `is_replica`, the sender is one of two replicas.
fn send(
    appender: &mut Appender,
    sender: u64,
    (series, steps): (u32, impl IntoIterator<Item = i64>),
    is_replica: bool,
) -> TimesTally {
    let steps: Vec<_> = steps.into_iter().collect();
    let replica = is_replica.then_some(Replica { group: 0, failover_ms: 30_000, sender });
    // No test has two batches of a sender with the same series and first step.
    let seq = u64::from(series) * 300 + steps.len() as u64 * 50 + steps[0] as u64 + 1;
    let batch = AcceptedBatch { replica, ..numbered_batch(sender, seq, (series, steps)) };
    let verdict = appender.commit(&[], &[batch], UnixMillis(step_time(100))).unwrap().batches[0];
    let BatchVerdict::Accepted(tally) = verdict else { panic!("{verdict:?}") };
    tally
}

fn sum_of_series(store: &Store, series: u32) -> f64 {
    let all = slots(store, 0, SIX..SIX.plus(HOUR), SeriesId(series));
    all.iter().map(|slot| slot.cell.sum).sum()
}

#[test]
fn deltas_of_two_senders_count_once_across_a_restart_and_a_failover() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with_series(dir.path());
    for step in 0..10 {
        assert_eq!(send(&mut appender, 1, (0, [step]), true).of_replica, 0);
        assert_eq!(send(&mut appender, 2, (0, [step]), true).of_replica, 1);
        // Series of a single sender are not affected.
        assert_eq!(send(&mut appender, 2, (1, [step]), true).of_replica, 0);
    }
    assert_eq!((sum_of_series(&store, 0), sum_of_series(&store, 1)), (10.0, 10.0));
    assert_eq!(store.counters().samples_of_replicas.get(), 10);
    drop((store, appender));
    // The other sender is first after the restart, and repeats the batches that were left out.
    let (store, mut appender) = open(dir.path(), SIX);
    assert_eq!(sum_of_series(&store, 0), 10.0);
    assert_eq!(send(&mut appender, 2, (0, 8..12), true).of_replica, 2);
    assert_eq!(send(&mut appender, 1, (0, 10..12), true).of_replica, 2);
    assert_eq!(sum_of_series(&store, 0), 12.0);
    // Sender 2 is silent for more than 30 s, so sender 1 takes over. When the samples that sender 2
    // stored arrive, those before the failover count.
    assert_eq!(send(&mut appender, 1, (0, 12..17), true).of_replica, 3);
    assert_eq!(send(&mut appender, 2, (0, 12..17), true).of_replica, 2);
    assert_eq!(sum_of_series(&store, 0), 17.0);
    assert_eq!(store.counters().failovers.get(), 1);
    // Samples of a sender that is not a replica are never left out.
    assert_eq!(send(&mut appender, 3, (0, 12..17), false).of_replica, 0);
    assert_eq!(sum_of_series(&store, 0), 22.0);
}

#[test]
fn a_batch_with_a_refused_number_selects_no_sender() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with_series(dir.path());
    let replica = Some(Replica { group: 0, failover_ms: 30_000, sender: 1 });
    let first = AcceptedBatch { replica, ..numbered_batch(1, 1, (0, vec![0])) };
    let repeated = AcceptedBatch { replica, ..numbered_batch(1, 1, (0, vec![50])) };
    let verdicts = appender.commit(&[], &[first, repeated], SIX).unwrap().batches;
    assert_eq!(verdicts, [BatchVerdict::ACCEPTED, BatchVerdict::Duplicate]);
    // The refused batch ends at step 50: had it selected sender 1, these samples would be left out.
    assert_eq!(send(&mut appender, 2, (0, [4, 5]), true).of_replica, 0);
    assert_eq!(sum_of_series(&store, 0), 3.0);
}
