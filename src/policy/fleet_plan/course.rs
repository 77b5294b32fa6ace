//! A fleet over time: the interval of checkpoints, the cells that wait for them, and the bytes that
//! are written.
//!
//! Must never know: any retention.

use super::{
    super::costs::{
        CELL_BYTES, COMMIT_BYTES, COMMIT_SECONDS, GROUP_SAMPLES, HEAD_SLOT_BYTES, HEAD_WRITTEN,
        LATENESS_MS, LOG_BYTES, LOG_ROOM_BYTES, LONG_COMMIT_SECONDS, LONG_REQUESTS,
        RECORD_SAMPLE_BYTES, SERIES_CELL_BYTES, STATE_BYTES, sealed,
    },
    Fleet, PlanBounds, PlannedClass,
};
use crate::model::{Granularity, GranularitySet};

/// Returns the milliseconds between two checkpoints: the interval of the settings, or less when the
/// catalog fills up earlier.
pub(super) fn checkpoint_ms(
    fleet: &Fleet,
    series: f64,
    set: &GranularitySet,
    bounds: &PlanBounds,
) -> f64 {
    let finest = set.as_slice().first().map_or(1, |granularity| granularity.width_ms) as f64;
    let slot_ms = finest.max(fleet.interval_ms as f64);
    let [one_sample, more_samples] = CELL_BYTES;
    let cell_bytes = if finest <= fleet.interval_ms as f64 { one_sample } else { more_samples };
    let slots = cell_bytes_due(series, bounds) / (cell_bytes * series.max(1.0));
    (bounds.checkpoint_interval_ms as f64).min(slots * slot_ms)
}

/// Returns the bytes of cells in memory at which a checkpoint is due.
pub(super) fn cell_bytes_due(series: f64, bounds: &PlanBounds) -> f64 {
    (bounds.cell_bytes_max as f64).max(SERIES_CELL_BYTES * series)
}

/// Returns the time that a document waits for late samples and for the next checkpoint.
pub(super) fn wait_ms(checkpoint_ms: f64) -> f64 {
    LATENESS_MS + checkpoint_ms
}

/// Returns the milliseconds of a run of this age whose documents are written, because their periods
/// are over.
pub(super) fn written_ms(granularity: &Granularity, checkpoint_ms: f64, age_ms: f64) -> f64 {
    let document = granularity.document.longest_ms() as f64;
    ((age_ms - wait_ms(checkpoint_ms)) / document).floor().max(0.0) * document
}

/// Returns the largest size of the log, which gets these bytes per second.
pub(super) fn log_bytes(bytes_per_second: f64, checkpoint_ms: f64, age_ms: f64) -> f64 {
    let written_in = |millis: f64| bytes_per_second * millis / 1000.0;
    let truncated = written_in(checkpoint_ms.min(age_ms)) + LOG_BYTES;
    truncated.min(written_in(age_ms) + LOG_ROOM_BYTES)
}

/// Returns the largest size that a series' rows in the head reach in a run of this age, because the
/// file does not shrink. The size peaks when a document period is over and the document is not
/// written yet.
pub(super) fn head_bytes(
    fleet: &Fleet,
    set: &GranularitySet,
    checkpoint_ms: f64,
    age_ms: f64,
) -> f64 {
    head_peak(fleet, set, (checkpoint_ms, age_ms), &|granularity| row_bytes(fleet, granularity))
}

/// Returns the largest size of the rows in the head, which have these bytes per slot.
pub(super) fn head_peak(
    fleet: &Fleet,
    set: &GranularitySet,
    (checkpoint_ms, age_ms): (f64, f64),
    slot_bytes: &dyn Fn(&Granularity) -> f64,
) -> f64 {
    let longest =
        set.iter().map(|granularity| granularity.document.longest_ms() as f64).fold(0.0, f64::max);
    // By then, the periods of all granularities have ended at the same time once.
    let age_ms = age_ms.min(longest + wait_ms(checkpoint_ms));
    let ends = set.iter().flat_map(|granularity| {
        let document = granularity.document.longest_ms() as f64;
        let over = (written_ms(granularity, checkpoint_ms, age_ms) / document) as u32;
        (1..=over).map(move |n| f64::from(n) * document + wait_ms(checkpoint_ms))
    });
    let bytes_at = |time: f64| -> f64 {
        let rows = |granularity| {
            head_slots(fleet, granularity, checkpoint_ms, time) * slot_bytes(granularity)
        };
        set.iter().map(rows).sum()
    };
    ends.chain([age_ms]).map(bytes_at).fold(0.0, f64::max)
}

/// Returns the slots of a granularity that are in the head at a time, just before a document is
/// written.
pub(super) fn head_slots(
    fleet: &Fleet,
    granularity: &Granularity,
    checkpoint_ms: f64,
    time_ms: f64,
) -> f64 {
    let document = granularity.document.longest_ms() as f64;
    let before = ((time_ms - wait_ms(checkpoint_ms)) / document).ceil() - 1.0;
    let width = (granularity.width_ms as f64).max(fleet.interval_ms as f64);
    ((time_ms - before.max(0.0) * document) / width).ceil()
}

/// Returns the bytes of a series in a row of the head.
fn row_bytes(fleet: &Fleet, granularity: &Granularity) -> f64 {
    let [one_sample, more_samples] = HEAD_SLOT_BYTES;
    if granularity.width_ms <= fleet.interval_ms { one_sample } else { more_samples }
}

/// Returns the journal's commits per second: requests share commits.
pub(super) fn commits_per_second(fleet: &Fleet) -> f64 {
    let requests = fleet.hosts as f64 * 1000.0 / fleet.interval_ms as f64;
    if requests < LONG_REQUESTS {
        return requests / (1.0 + requests * COMMIT_SECONDS);
    }
    let full = requests * fleet.metrics as f64 / GROUP_SAMPLES;
    full.max(1.0 / LONG_COMMIT_SECONDS).min(requests)
}

/// Returns the bytes written per second: to the journal, to the head at each checkpoint, and to
/// segments, once at the checkpoint and once when the partition is over.
pub(super) fn written(fleet: &Fleet, classes: &[PlannedClass], checkpoint_ms: f64) -> f64 {
    let interval = fleet.interval_ms as f64;
    let series: f64 = classes.iter().map(|class| class.series).sum();
    let commits = commits_per_second(fleet) / 1000.0;
    let records = commits * COMMIT_BYTES + series / interval * RECORD_SAMPLE_BYTES;
    let journal = records + series / checkpoint_ms * STATE_BYTES;
    let written_by = |granularity: &Granularity| {
        let width = (granularity.width_ms as f64).max(interval);
        let rows = (checkpoint_ms / width + 1.0) * row_bytes(fleet, granularity);
        let cost = sealed((width / interval).max(1.0));
        rows * HEAD_WRITTEN / checkpoint_ms + 2.0 * cost.slot / width
    };
    let written_by =
        |class: &PlannedClass| class.series * class.levels.iter().map(written_by).sum::<f64>();
    (journal + classes.iter().map(written_by).sum::<f64>()) * 1000.0
}
