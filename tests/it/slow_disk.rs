//! Batches and queries continue while syncs of the disk block.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use actix::{Actor, System};
use granary::{
    actors::{CheckpointHistory, CheckpointNow, Checkpointer, CheckpointerParts, Stop, lifelines},
    clock::SystemClock,
    kept::LiveValue,
    model::{AcceptedBatch, GranularitySet, Kind, SeriesId, UnixMillis},
    store::{Appender, CheckpointBounds, Store},
    telemetry::{Health, Metrics},
};

use crate::{
    media::{Gate, HookedFolder},
    setup::{self, HOUR, MINUTE, SIX, samples, send, series},
};

const DEADLINE: Duration = Duration::from_secs(30);
const SERIES: u32 = 200;

fn open(dir: &Path, gate: &Arc<Gate>) -> (Store, Appender) {
    let medium = Arc::new(HookedFolder::new(dir, gate.clone()));
    setup::open_on(medium, &GranularitySet::default(), SIX)
}

fn define(appender: &mut Appender) {
    let all_series = (0..SERIES).map(|n| series("events", &[("n", &n.to_string())], Kind::Delta));
    setup::define(appender, &all_series.collect::<Vec<_>>(), SIX);
}

/// Sends a sample of each series.
fn send_round(appender: &mut Appender, at: UnixMillis) {
    let batch = AcceptedBatch {
        series: (0..SERIES).map(SeriesId).collect(),
        times: vec![at.0],
        values: vec![1.0; SERIES as usize],
        ..AcceptedBatch::default()
    };
    send(appender, batch, at);
}

fn count(store: &Store, level: usize, series: u32) -> u64 {
    setup::count(store, level, SIX.minus(6 * HOUR)..SIX.plus(12 * HOUR), SeriesId(series))
}

#[test]
fn batches_and_queries_wait_for_no_sync_of_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let (store, mut appender) = open(dir.path(), &gate);
    define(&mut appender);
    send_round(&mut appender, SIX.plus(10 * MINUTE));
    let later = SIX.plus(125 * MINUTE);
    for word in ["partitions", "head"] {
        gate.set(Some(word));
        let checkpoint = {
            let store = store.clone();
            thread::spawn(move || store.checkpoint(later).map(|_| ()))
        };
        gate.wait_until_a_sync_waits();
        let (finished, received) = mpsc::channel();
        let other_work = {
            let store = store.clone();
            thread::spawn(move || {
                let before = count(&store, 0, 7);
                send_round(&mut appender, later);
                assert_eq!(count(&store, 0, 7), before + 1);
                finished.send(()).unwrap();
                appender
            })
        };
        assert_eq!(received.recv_timeout(DEADLINE), Ok(()), "a batch or a query waits for {word}");
        gate.set(None);
        checkpoint.join().unwrap().unwrap();
        appender = other_work.join().unwrap();
    }
    assert_eq!(count(&store, 0, 7), 3);
}

#[test]
fn views_during_checkpoints_contain_each_sample_once() {
    const BATCHES: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let (store, mut appender) = open(dir.path(), &gate);
    define(&mut appender);
    let (sent, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_finished = AtomicBool::new(false);
    // Each batch is two minutes after the previous one, so that documents become due all the time.
    let time = |batch: u64| SIX.plus(batch as i64 * 2 * MINUTE);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_finished.load(Ordering::SeqCst) {
                store.checkpoint(time(acknowledged.load(Ordering::SeqCst))).unwrap();
            }
        });
        for (level, series) in [(0, 3), (1, 70), (2, 140), (3, 199)] {
            let (store, sent, acknowledged, is_finished) =
                (&store, &sent, &acknowledged, &is_finished);
            scope.spawn(move || {
                while !is_finished.load(Ordering::SeqCst) {
                    let acknowledged_before = acknowledged.load(Ordering::SeqCst);
                    let found = count(store, level, series);
                    let sent_after = sent.load(Ordering::SeqCst);
                    assert!(
                        (acknowledged_before..=sent_after).contains(&found),
                        "{acknowledged_before} {found} {sent_after}"
                    );
                }
            });
        }
        for batch in 1..=BATCHES {
            sent.store(batch, Ordering::SeqCst);
            send_round(&mut appender, time(batch));
            acknowledged.store(batch, Ordering::SeqCst);
        }
        is_finished.store(true, Ordering::SeqCst);
    });
    drop((store, appender));
    let (store, _appender) = open(dir.path(), &gate);
    for level in 0..4 {
        assert_eq!([3, 70, 199].map(|series| count(&store, level, series)), [BATCHES; 3]);
    }
}

#[test]
fn batches_beyond_the_memory_limit_are_refused_until_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), &Arc::new(Gate::default()));
    define(&mut appender);
    let bounds = CheckpointBounds { cell_bytes_max: 1 << 20, journal_bytes_max: 1 << 30 };
    // One series, with each sample in a separate slot.
    let backfill = |from: i64| {
        let times = (from..from + 1000).map(|slot| SIX.0 - slot * MINUTE);
        samples(SeriesId(SERIES - 1), times.map(|at| (at, 1.0)))
    };
    let mut accepted = 0;
    loop {
        let batch = backfill(accepted * 1000);
        if !store.room(&bounds, SIX).take(std::slice::from_ref(&batch)) {
            break;
        }
        appender.commit(&[], &[batch], SIX).unwrap();
        accepted += 1;
    }
    assert!(accepted >= 3, "{accepted}");
    assert!(store.catalog_bytes() <= 2 << 20, "{}", store.catalog_bytes());
    assert!(store.needs_checkpoint(&bounds) && !store.is_full(&bounds));
    store.checkpoint(SIX).unwrap();
    assert!(!store.needs_checkpoint(&bounds));
    // A batch larger than the limit is accepted when the catalog is empty.
    let mut room = store.room(&CheckpointBounds { cell_bytes_max: 1 << 10, ..bounds }, SIX);
    assert!(room.take(&[backfill(0)]) && !room.take(&[backfill(2000)]));
}

#[test]
fn a_stop_waits_only_for_the_running_checkpoint_and_a_last_one() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let (store, mut appender) = open(dir.path(), &gate);
    define(&mut appender);
    send_round(&mut appender, SIX.plus(10 * MINUTE));
    let (lines, _watcher) = lifelines();
    let system = System::new();
    system.block_on(async {
        let parts = CheckpointerParts {
            store: store.clone(),
            clock: Arc::new(SystemClock),
            metrics: Metrics::new().unwrap(),
            health: Health::default(),
            lifeline: lines.for_role("checkpointer"),
            idle_after: None,
            interval: LiveValue::new(Duration::from_secs(3600)),
            bounds: CheckpointBounds { cell_bytes_max: 0, journal_bytes_max: 0 },
            history: CheckpointHistory::default(),
            space: None,
        };
        gate.set(Some("head"));
        let arbiter = actix::Arbiter::new();
        let checkpointer =
            Checkpointer::start_in_arbiter(&arbiter.handle(), |_| Checkpointer::new(parts));
        gate.wait_until_a_sync_waits();
        // These samples are the work of another checkpoint.
        send_round(&mut appender, SIX.plus(11 * MINUTE));
        for _ in 0..10 {
            checkpointer.try_send(CheckpointNow).unwrap();
        }
        let stopped = checkpointer.send(Stop);
        gate.set(None);
        stopped.await.unwrap();
    });
    assert!(store.counters().checkpoints.get() <= 2);
}
