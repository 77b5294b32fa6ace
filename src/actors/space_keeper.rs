//! The space keeper: measures the free disk space, and publishes the forecast of the next turns.
//!
//! Part of the checkpointer, because turns are checkpoints. Must never know: who reads the
//! forecast.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use crate::{
    model::UnixMillis,
    policy::{
        TurnForecast,
        forecast::{Written, forecast},
    },
    store::{DiskSpace, Store},
    telemetry::{Health, Metrics, Shortfall},
};

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
pub struct SpaceKeeper {
    pub store: Store,
    pub data_dir: PathBuf,
    pub metrics: Metrics,
    pub health: Health,
    pub forecast: Forecast,
}

impl SpaceKeeper {
    /// Measures the free space, and publishes the forecast.
    pub fn run(&self, now: UnixMillis) {
        let free = match DiskSpace::of(&self.data_dir) {
            Ok(space) => space.free,
            Err(cause) => {
                tracing::warn!(%cause, "cannot measure the free disk space; the next run retries");
                return;
            }
        };
        let turns = self.turns(free, now);
        for turn in &turns {
            let labels = [turn.granularity.as_str()];
            self.metrics.disk_missing_bytes.with_label_values(&labels).set(turn.missing as i64);
            let reason = (turn.missing > 0).then(|| {
                let TurnForecast { at, bytes, missing, .. } = turn;
                format!(
                    "documents of {bytes} bytes will be written at {at}, and the disk lacks \
                     {missing} bytes: free them by then"
                )
            });
            self.health.set_shortfall(Shortfall::Disk, &turn.granularity, reason);
        }
        let before = std::mem::replace(&mut *self.forecast.0.lock(), turns.clone());
        report_changes(&before, &turns);
    }

    fn turns(&self, free: u64, now: UnixMillis) -> Vec<TurnForecast> {
        let measured = measured(&self.store, now);
        forecast(self.store.granularities().as_slice(), &measured, free, now)
    }
}

/// Returns the documents of the last period of each granularity of the settings.
pub(super) fn measured(store: &Store, now: UnixMillis) -> Vec<Written> {
    let series = store.dictionary().len() as u64;
    let last = |index| store.last_period_bytes(index, now);
    let all = store.granularities().indexed();
    all.map(|(index, _)| Written { series, last: last(index) }).collect()
}

/// Logs the granularities whose next turn begins or ceases to lack space.
fn report_changes(before: &[TurnForecast], turns: &[TurnForecast]) {
    for turn in turns {
        let TurnForecast { granularity, at, bytes, missing } = turn;
        let lacked = before.iter().any(|old| old.granularity == *granularity && old.missing > 0);
        if *missing > 0 && !lacked {
            tracing::warn!(granularity, %at, bytes, missing, "the disk lacks space for documents");
        } else if *missing == 0 && lacked {
            tracing::info!(granularity, %at, bytes, "the disk has space for documents again");
        }
    }
}
