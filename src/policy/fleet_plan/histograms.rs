//! The resources that the native histograms of a fleet need, in addition to the cells of their
//! counts.
//!
//! Must never know: the series of numbers.

use super::{
    super::costs::{
        RECORD_SAMPLE_BYTES,
        histograms::{
            CORE_SECONDS, DOCUMENT_WRITES, FOLDS, MEMORY_HISTOGRAMS, READINGS_COPIES,
            READINGS_FREE, document_bytes, memory_bytes, open_bytes, pages_bytes, record_bytes,
            sealed_bytes,
        },
    },
    Fleet, Plan, PlanBounds,
    course::{cell_bytes_due, head_peak, log_bytes, written_ms},
};
use crate::model::{Granularity, GranularitySet};

/// The series whose histograms share a row of the head or of the journal.
const SERIES_PER_ROW: f64 = 64.0;

/// The series of histograms of a fleet. Their counts are among the fleet's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedHistograms {
    /// The number of series per host.
    pub series: u64,
    /// The number of buckets with observations, of each series.
    pub buckets: u64,
}

impl Plan {
    /// Adds the histograms of a fleet that is planned with the same settings. No rule of retention
    /// selects them.
    #[must_use]
    pub fn with_histograms(
        mut self,
        fleet: &Fleet,
        histograms: PlannedHistograms,
        (set, bounds): (&GranularitySet, &PlanBounds),
        age_ms: Option<i64>,
    ) -> Self {
        let series = fleet.hosts.saturating_mul(histograms.series) as f64;
        if series == 0.0 {
            return self;
        }
        let (buckets, interval) = (histograms.buckets as f64, fleet.interval_ms as f64);
        let age_ms = age_ms.unwrap_or(i64::MAX) as f64;
        let checkpoint_ms = checkpoint_ms(fleet, series, buckets, (set, bounds));
        // The series of a host are neighbours, so a row has histograms and numbers alike.
        let lanes = SERIES_PER_ROW * histograms.series as f64 / fleet.metrics.max(1) as f64;
        let lanes = lanes.clamp(1.0, SERIES_PER_ROW).min(series);
        let in_row = |bytes: f64| pages_bytes(lanes * bytes) / lanes;
        let samples = |level: &Granularity| (level.width_ms as f64 / interval).max(1.0);
        let open_of = |level: &Granularity| open_bytes(samples(level), buckets);
        let readings = in_row(MEMORY_HISTOGRAMS[1] * record_bytes(buckets));
        let mut written = record_bytes(buckets) / interval + readings / checkpoint_ms;
        for (level, planned) in set.iter().zip(&mut self.granularities) {
            let width = (level.width_ms as f64).max(interval);
            let all = (level.retention().longest_ms() + level.partition.longest_ms()) as f64;
            let kept = all.min(written_ms(level, checkpoint_ms, age_ms));
            let sealed = sealed_bytes(kept / width, (width, interval), buckets);
            planned.bytes += (series * sealed) as u64;
            planned.bytes_at_most += (series * sealed) as u64;
            let period = level.document.longest_ms() as f64;
            self.open +=
                (series * document_bytes(period.min(kept) / width * open_of(level))) as u64;
            written += (checkpoint_ms / width + 1.0) * in_row(open_of(level)) / checkpoint_ms
                + DOCUMENT_WRITES * document_bytes(open_of(level)) / width
                + FOLDS * sealed / kept.max(width);
        }
        let head = head_peak(fleet, set, (checkpoint_ms, age_ms), &|level| in_row(open_of(level)));
        self.head += (series * head) as u64;
        self.journal += (series * readings * READINGS_COPIES - READINGS_FREE).max(0.0) as u64;
        let rate = self.samples_per_second * RECORD_SAMPLE_BYTES
            + series * 1000.0 / interval * record_bytes(buckets);
        self.log = log_bytes(rate, checkpoint_ms, age_ms) as u64;
        self.memory += (series * memory_bytes(buckets) * MEMORY_HISTOGRAMS[1]) as u64;
        self.written_per_second += (series * written * 1000.0) as u64;
        self.cores += series * 1000.0 / interval * (CORE_SECONDS[0] + CORE_SECONDS[1] * buckets);
        self
    }
}

/// Returns the milliseconds between two checkpoints: cells of histograms fill the catalog, too.
fn checkpoint_ms(
    fleet: &Fleet,
    series: f64,
    buckets: f64,
    (set, bounds): (&GranularitySet, &PlanBounds),
) -> f64 {
    let finest = set.as_slice().first().map_or(1, |level| level.width_ms);
    let slot = series * memory_bytes(buckets) * MEMORY_HISTOGRAMS[0];
    let slots = cell_bytes_due(fleet.series() as f64, bounds) / slot.max(1.0);
    (bounds.checkpoint_interval_ms as f64).min(slots * finest.max(fleet.interval_ms) as f64)
}
