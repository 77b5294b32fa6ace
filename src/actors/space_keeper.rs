//! The space keeper: reserves disk space for the next turns, and publishes their forecast.
//!
//! Part of the checkpointer, because turns are checkpoints. Must never know: who reads the
//! forecast.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use crate::{
    model::{Granularity, GranularityIndex, UnixMillis},
    policy::{
        TurnForecast,
        forecast::{MeasuredDocuments, forecast, turn_bytes, writes_segment},
    },
    store::{DiskSpace, DocumentSpace, Store},
    telemetry::{Health, Metrics, Shortfall},
};

/// The number of document periods of which the largest counts.
const PERIODS: usize = 2;

/// The free bytes below which a failed reservation means that none are free.
const UNUSABLE_BYTES_MAX: u64 = 16 << 20;

/// The latest forecast of the next turns. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct Forecast(Arc<Mutex<Vec<TurnForecast>>>);

impl Forecast {
    /// Returns the next turn of each granularity, finest first; empty before the first measurement.
    pub fn turns(&self) -> Vec<TurnForecast> {
        self.0.lock().clone()
    }
}

/// The parts of the space keeper.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct SpaceKeeperParts {
    pub store: Store,
    pub data_dir: PathBuf,
    pub metrics: Metrics,
    pub health: Health,
    pub forecast: Forecast,
}

/// Reserves and measures disk space.
#[derive(Debug)]
pub struct SpaceKeeper {
    parts: SpaceKeeperParts,
    /// The time of the last complete checkpoint, or of the start.
    checkpoint: Option<UnixMillis>,
    /// The measured documents; `None` when they must be measured again, after a checkpoint.
    measured: Option<Vec<MeasuredDocuments>>,
    /// The reserved bytes of each level.
    reserved: Vec<u64>,
    /// True when space must be reserved: after a checkpoint, and after a failed attempt.
    is_due: bool,
    /// True when the last attempt to reserve space failed.
    has_failed: bool,
}

impl SpaceKeeper {
    /// Creates a space keeper that has reserved nothing.
    pub fn new(parts: SpaceKeeperParts) -> Self {
        Self {
            parts,
            checkpoint: None,
            measured: None,
            reserved: Vec::new(),
            is_due: true,
            has_failed: false,
        }
    }

    /// Notes a complete checkpoint, which has written all documents that were due.
    pub fn note_checkpoint(&mut self, at: UnixMillis) {
        self.checkpoint = Some(at);
        self.measured = None;
        self.is_due = true;
    }

    /// Reserves space for the next turns if needed, and publishes the forecast.
    pub fn run(&mut self, now: UnixMillis) {
        let store = &self.parts.store;
        let mut measured = self.measured.get_or_insert_with(|| measured(store, now)).clone();
        for (documents, series) in measured.iter_mut().zip(store.series_by_level(now)) {
            documents.series = series as u64;
        }
        if self.is_due {
            self.reserve(&measured, now);
        }
        for (documents, reserved) in measured.iter_mut().zip(&self.reserved) {
            documents.reserved = *reserved;
        }
        let free = match DiskSpace::of(&self.parts.data_dir) {
            Ok(space) => space.free,
            Err(cause) => {
                tracing::warn!(%cause, "cannot measure the free disk space; the next run retries");
                return;
            }
        };
        // Some file systems report free bytes that they do not give to any file.
        let free = if self.has_failed && free < UNUSABLE_BYTES_MAX { 0 } else { free };
        self.publish(&forecast(self.parts.store.levels(), &measured, free, now));
    }

    /// Reserves space for the log, the head and the documents of the next turns.
    fn reserve(&mut self, measured: &[MeasuredDocuments], now: UnixMillis) {
        let store = &self.parts.store;
        let finest_ms = store.granularities()[GranularityIndex::FINEST].width_ms;
        let needed = |(level, written): (&Granularity, &MeasuredDocuments)| {
            let bytes = turn_bytes(level, *written, finest_ms);
            DocumentSpace { bytes, is_segment: writes_segment(*written) }
        };
        let needed: Vec<_> = store.levels().iter().zip(measured).map(needed).collect();
        let checkpoint = *self.checkpoint.get_or_insert(now);
        let (reserved, documents) = store.reserve_documents(checkpoint, &needed);
        let outcome = documents.and(store.reserve_journal());
        let failed = outcome.is_err();
        match outcome {
            Err(cause) if !self.has_failed => {
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "cannot reserve disk space; the next run retries");
            }
            Ok(()) if self.has_failed => tracing::info!("disk space is reserved again"),
            Ok(()) | Err(_) => {}
        }
        self.reserved = reserved;
        (self.is_due, self.has_failed) = (failed, failed);
    }

    fn publish(&self, turns: &[TurnForecast]) {
        let SpaceKeeperParts { metrics, health, forecast, .. } = &self.parts;
        for turn in turns {
            let TurnForecast { granularity, at, bytes, reserved, missing } = turn;
            let labels = [granularity.as_str()];
            metrics.disk_missing_bytes.with_label_values(&labels).set(*missing as i64);
            metrics.disk_reserved_bytes.with_label_values(&labels).set(*reserved as i64);
            let reason = (*missing > 0).then(|| {
                format!(
                    "documents of {bytes} bytes will be written at {at}, and the disk lacks \
                     {missing} bytes: free them by then"
                )
            });
            health.set_shortfall(Shortfall::Disk, granularity, reason);
        }
        let before = std::mem::replace(&mut *forecast.0.lock(), turns.to_vec());
        report_changes(&before, turns);
    }
}

/// Logs the granularities whose next turn begins or ceases to lack space.
fn report_changes(before: &[TurnForecast], turns: &[TurnForecast]) {
    for turn in turns {
        let TurnForecast { granularity, at, bytes, missing, .. } = turn;
        let lacked = before.iter().any(|old| old.granularity == *granularity && old.missing > 0);
        if *missing > 0 && !lacked {
            tracing::warn!(granularity, %at, bytes, missing, "the disk lacks space for documents");
        } else if *missing == 0 && lacked {
            tracing::info!(granularity, %at, bytes, "the disk has space for documents again");
        }
    }
}

/// Returns the documents of the last period of each level.
pub(super) fn measured(store: &Store, now: UnixMillis) -> Vec<MeasuredDocuments> {
    let written = |(level, series): (usize, usize)| {
        let last = store.last_periods(GranularityIndex(level), now, PERIODS);
        MeasuredDocuments {
            series: series as u64,
            is_young: last.len() < PERIODS,
            last: last.into_iter().max().unwrap_or(0),
            reserved: 0,
        }
    };
    store.series_by_level(now).into_iter().enumerate().map(written).collect()
}
