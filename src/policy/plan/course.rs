//! The course of a fleet: how often checkpoints run, and what waits and is written meanwhile.
//!
//! Must never know: retentions.

use super::{
    Fleet, PlanBounds,
    costs::{
        CELL_BYTES, COMMIT_BYTES, COMMIT_SECONDS, GROUP_SAMPLES, HEAD_SLOT_BYTES, HEAD_WRITTEN,
        LATENESS_MS, LONG_COMMIT_SECONDS, LONG_REQUESTS, RECORD_SAMPLE_BYTES, SERIES_CELL_BYTES,
        STATE_BYTES, sealed,
    },
};
use crate::model::{Granularity, GranularitySet};

/// The milliseconds between two checkpoints: the interval, or less when many cells wait.
pub(super) fn checkpoint_ms(
    fleet: &Fleet,
    series: f64,
    set: &GranularitySet,
    bounds: &PlanBounds,
) -> f64 {
    let finest = set.as_slice().first().map_or(1, |own| own.width_ms) as f64;
    let slot_ms = finest.max(fleet.interval_ms as f64);
    let [of_one, of_more] = CELL_BYTES;
    let cell_bytes = if finest <= fleet.interval_ms as f64 { of_one } else { of_more };
    let slots = cell_bytes_due(series, bounds) / (cell_bytes * series.max(1.0));
    (bounds.checkpoint_interval_ms as f64).min(slots * slot_ms)
}

pub(super) fn cell_bytes_due(series: f64, bounds: &PlanBounds) -> f64 {
    (bounds.cell_bytes_max as f64).max(SERIES_CELL_BYTES * series)
}

/// The time for which a document waits for late samples and for the next checkpoint.
pub(super) fn wait_ms(checkpoint_ms: f64) -> f64 {
    LATENESS_MS + checkpoint_ms
}

/// The part of a run of this age that documents contain: those whose period is over.
pub(super) fn written_ms(own: &Granularity, checkpoint_ms: f64, age_ms: f64) -> f64 {
    let document = own.document.longest_ms() as f64;
    ((age_ms - wait_ms(checkpoint_ms)) / document).floor().max(0.0) * document
}

/// The maximum size of a series in the rows of the head during a run of this age, because the file
/// does not shrink. The maximum is reached when a document's period is over and the document is not
/// written yet.
pub(super) fn head_bytes(
    fleet: &Fleet,
    set: &GranularitySet,
    checkpoint_ms: f64,
    age_ms: f64,
) -> f64 {
    let longest = set.iter().map(|own| own.document.longest_ms() as f64).fold(0.0, f64::max);
    // By then, all of them have been over at the same time.
    let age_ms = age_ms.min(longest + wait_ms(checkpoint_ms));
    let ends = set.iter().flat_map(|own| {
        let document = own.document.longest_ms() as f64;
        let over = (written_ms(own, checkpoint_ms, age_ms) / document) as u32;
        (1..=over).map(move |n| f64::from(n) * document + wait_ms(checkpoint_ms))
    });
    let at = |time: f64| -> f64 {
        let rows = |own| head_slots(fleet, own, checkpoint_ms, time) * row_bytes(fleet, own);
        set.iter().map(rows).sum()
    };
    ends.chain([age_ms]).map(at).fold(0.0, f64::max)
}

/// The number of a granularity's slots with rows in the head, just before a document is written.
pub(super) fn head_slots(
    fleet: &Fleet,
    own: &Granularity,
    checkpoint_ms: f64,
    time_ms: f64,
) -> f64 {
    let document = own.document.longest_ms() as f64;
    let before = ((time_ms - wait_ms(checkpoint_ms)) / document).ceil() - 1.0;
    let width = (own.width_ms as f64).max(fleet.interval_ms as f64);
    ((time_ms - before.max(0.0) * document) / width).ceil()
}

/// The size of a series in a row of the head, in bytes.
fn row_bytes(fleet: &Fleet, own: &Granularity) -> f64 {
    let [of_one, of_more] = HEAD_SLOT_BYTES;
    if own.width_ms <= fleet.interval_ms { of_one } else { of_more }
}

/// The commits of the journal per second; requests share them.
pub(super) fn commits_per_second(fleet: &Fleet) -> f64 {
    let requests = fleet.hosts as f64 * 1000.0 / fleet.interval_ms as f64;
    if requests < LONG_REQUESTS {
        return requests / (1.0 + requests * COMMIT_SECONDS);
    }
    let full = requests * fleet.metrics as f64 / GROUP_SAMPLES;
    full.max(1.0 / LONG_COMMIT_SECONDS).min(requests)
}

/// The bytes written per second: to the journal, to the head at each checkpoint, and to segments,
/// once at the checkpoint and once when the partition is over.
pub(super) fn written(fleet: &Fleet, set: &GranularitySet, series: f64, checkpoint_ms: f64) -> f64 {
    let interval = fleet.interval_ms as f64;
    let commits = commits_per_second(fleet) / 1000.0;
    let records = commits * COMMIT_BYTES + series / interval * RECORD_SAMPLE_BYTES;
    let journal = records + series / checkpoint_ms * STATE_BYTES;
    let of_granularity = |own: &Granularity| {
        let width = (own.width_ms as f64).max(interval);
        let rows = (checkpoint_ms / width + 1.0) * row_bytes(fleet, own);
        let form = sealed((width / interval).max(1.0));
        series * (rows * HEAD_WRITTEN / checkpoint_ms + 2.0 * form.slot / width)
    };
    (journal + set.iter().map(of_granularity).sum::<f64>()) * 1000.0
}
