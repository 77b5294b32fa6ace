//! The writer and a checkpointer on a medium that fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

use std::time::Duration;

use actix::{Actor, Arbiter, System};

use super::*;
use crate::{
    actors::{CheckpointHistory, Checkpointer, CheckpointerParts, lifelines},
    clock::{Stopwatch, SystemClock},
    faulty::{Call, ENOSPC, Effect, Fault, FaultyMedium},
    model::{GranularitySet, Kind},
    setup::{define, open_on, series},
    telemetry::Condition,
};

const DEADLINE: Duration = Duration::from_secs(30);
const BOUNDS: CheckpointBounds =
    CheckpointBounds { cell_bytes_max: 1 << 12, journal_bytes_max: 1 << 30 };

/// Starts a writer for a store with one series.
fn start(medium: &FaultyMedium, health: &Health) -> WriterHandle {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let now = clock.moment().believed;
    let (store, mut appender) = open_on(Arc::new(medium.clone()), &GranularitySet::default(), now);
    define(&mut appender, &[series("events", &[], Kind::Delta)], now);
    let metrics = Metrics::new().unwrap();
    let (lines, _watcher) = lifelines();
    let parts = CheckpointerParts {
        store: store.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        health: health.clone(),
        lifeline: lines.for_role("checkpointer"),
        interval: LiveValue::new(Duration::from_secs(3600)),
        idle_after: None,
        bounds: BOUNDS,
        history: CheckpointHistory::default(),
        space: None,
    };
    let checkpointer =
        Checkpointer::start_in_arbiter(&Arbiter::new().handle(), |_| Checkpointer::new(parts));
    let parts = WriterParts {
        store,
        appender,
        clock,
        metrics,
        health: health.clone(),
        lifeline: lines.for_role("writer"),
        checkpointer: checkpointer.recipient(),
        queue_bytes_max: 1 << 20,
        bounds: BOUNDS,
        limits: LiveValue::default(),
        metric_limits: LiveValue::default(),
    };
    Writer::start(parts).unwrap().1
}

/// Returns a batch with one sample in each of several slots.
fn batch(slots: i64) -> AcceptedBatch {
    let now = SystemClock.moment().believed;
    let times: Vec<_> = (1..=slots).map(|minutes| now.0 - minutes * 60_000).collect();
    let series = vec![SeriesId(0); times.len()];
    AcceptedBatch { series, values: vec![1.0; times.len()], times, ..AcceptedBatch::default() }
}

#[test]
fn a_disk_too_full_for_checkpoints_is_reported_to_senders_and_operators() {
    // Regression: head.redb could not grow, and the preallocated log accepted samples until the
    // limit; senders then got 429, and /readyz said only "write in head.redb".
    let medium = FaultyMedium::new(7);
    let health = Health::default();
    System::new().block_on(async {
        let writer = start(&medium, &health);
        let effect = Effect::Error(ENOSPC);
        medium.arm(Fault { call: Call::SetLen, after: 0, times: u64::MAX, effect });
        let watch = Stopwatch::start();
        let fault = loop {
            match writer.append(vec![batch(500)]).await {
                Err(WriteFault::DiskFull(text)) => break text,
                Ok(_) | Err(WriteFault::Busy(_)) => tokio::task::yield_now().await,
                Err(other) => panic!("{other}"),
            }
            assert!(watch.elapsed() < DEADLINE, "{:?}", health.reasons());
        };
        assert!(writer.is_full(), "the log was full, not the checkpoint");
        let [(Condition::Checkpoint, reason)] = &health.reasons()[..] else {
            panic!("{:?}", health.reasons());
        };
        for text in [&fault, reason] {
            assert!(text.contains("the disk is full, free some space"), "{text}");
            assert!(text.contains("No space left on device"), "{text}");
        }
        assert_eq!(health.full_disk().as_ref(), Some(reason));
        medium.lift();
    });
}
