//! Measured costs of the histograms of a slot, in addition to its cell of counts. The histograms
//! count latencies of three shapes for a month, 120 a minute; `tests/it/plan_histograms.rs` has
//! them.
//!
//! Must never know: the numbers of slots and series.

/// The size of a sealed increase over a time in milliseconds: bytes per bucket. The times of an
/// hour and a day are those of `benches/histograms_cost.py`, scaled by the others.
const INCREASE_BUCKET: [(f64, f64); 5] =
    [(1e4, 0.02), (6e4, 0.205), (3e5, 0.39), (3.6e6, 0.6), (8.64e7, 0.7)];
/// Bytes of a sealed increase without its buckets: the sum has random digits.
const INCREASE_SEALED: f64 = 7.0;
/// The maximum slots of a tile, which begins with a whole histogram of each series.
const TILE_SLOTS: f64 = 256.0;
/// Bytes of a stored histogram, and bytes of each of its buckets.
const HISTOGRAM_BYTES: (f64, f64) = (20.0, 4.0);
/// Bytes of a stored increase, most of whose buckets have few observations.
const INCREASE_BYTES: (f64, f64) = (20.0, 1.3);
/// The smallest page of a database. A larger row has pages of its own, whose number is a power of
/// two.
const PAGE_BYTES: f64 = 4096.0;
/// The size of the pages of many rows relative to the rows, when their sizes differ.
const PAGES_OF_ROWS: f64 = 1.35;
/// The size of the remembered readings in the journal's file relative to the pages of one copy, and
/// the free bytes of the file that they use first. Measured with 64 and 300 series.
pub(crate) const READINGS_COPIES: f64 = 1.45;
pub(crate) const READINGS_FREE: f64 = 100e3;
/// The bytes that a checkpoint writes to open a document, relative to its pages. Measured with 300
/// series.
pub(crate) const DOCUMENT_WRITES: f64 = 1.8;
/// The histograms of a cell in memory, and those that are remembered of a counter.
pub(crate) const MEMORY_HISTOGRAMS: [f64; 2] = [3.0, 4.0];
/// Writes of a sealed histogram: its partition is folded after each document period.
pub(crate) const FOLDS: f64 = 3.5;
/// Core seconds per histogram, and per bucket. Measured with `benches/histograms_cost.py`.
pub(crate) const CORE_SECONDS: [f64; 2] = [2e-6, 0.07e-6];

/// Returns the bytes of an increase in a segment, interpolated between the measured points on a
/// logarithmic scale.
fn increase_sealed(millis: f64, buckets: f64) -> f64 {
    let upper = INCREASE_BUCKET.iter().position(|(measured, _)| *measured >= millis);
    let upper = upper.unwrap_or(INCREASE_BUCKET.len() - 1);
    let ((to, high), (from, low)) =
        (INCREASE_BUCKET[upper], INCREASE_BUCKET[upper.saturating_sub(1)]);
    let share =
        if from < to { (millis.clamp(from, to) / from).ln() / (to / from).ln() } else { 0.0 };
    INCREASE_SEALED + (low + (high - low) * share) * buckets
}

/// Returns the bytes of filled slots in segments. A slot with several samples also has the first
/// one.
pub(crate) fn sealed_bytes(slots: f64, (width_ms, interval_ms): (f64, f64), buckets: f64) -> f64 {
    let first = if interval_ms < width_ms { increase_sealed(interval_ms, buckets) } else { 0.0 };
    let slot = increase_sealed(width_ms.max(interval_ms), buckets) + first;
    slots * slot + (slots / TILE_SLOTS).ceil() * record_bytes(buckets)
}

/// Returns the bytes of a slot in a row: the last histogram, the increase, and the first histogram
/// if it is another one.
pub(crate) fn open_bytes(samples: f64, buckets: f64) -> f64 {
    let ends = if samples > 1.0 { 2.0 } else { 1.0 };
    let (increase, bucket) = INCREASE_BYTES;
    ends * record_bytes(buckets) + increase + bucket * buckets
}

/// Returns the bytes of the pages of a row that many series share.
pub(crate) fn pages_bytes(row: f64) -> f64 {
    PAGE_BYTES * (row / PAGE_BYTES).log2().ceil().max(0.0).exp2()
}

/// Returns the bytes of the pages of the row of one series, on average.
pub(crate) fn document_bytes(row: f64) -> f64 {
    PAGES_OF_ROWS * row
}

/// Returns the bytes of a histogram in memory.
pub(crate) fn memory_bytes(buckets: f64) -> f64 {
    130.0 + 16.0 * buckets
}

/// Returns the bytes of a histogram in a record of the log.
pub(crate) fn record_bytes(buckets: f64) -> f64 {
    let (histogram, bucket) = HISTOGRAM_BYTES;
    histogram + bucket * buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_between_measured_points_are_interpolated() {
        for (millis, bucket) in INCREASE_BUCKET {
            assert!((increase_sealed(millis, 10.0) - INCREASE_SEALED - 10.0 * bucket).abs() < 1e-9);
        }
        let minute = increase_sealed(6e4, 9.0);
        assert!((minute..increase_sealed(3e5, 9.0)).contains(&increase_sealed(9e4, 9.0)));
        assert_eq!(increase_sealed(1e12, 3.0), increase_sealed(8.64e7, 3.0));
        assert_eq!(increase_sealed(1.0, 3.0), increase_sealed(1e4, 3.0));
    }

    #[test]
    fn a_row_has_a_power_of_two_of_pages() {
        let rows = [1.0, 4096.0, 4097.0, 12_288.0, 16_384.0];
        assert_eq!(rows.map(pages_bytes), [4096.0, 4096.0, 8192.0, 16_384.0, 16_384.0]);
    }
}
