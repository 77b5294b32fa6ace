//! Measured costs of a slot, a series, a commit and a sample.
//!
//! Must never know: the numbers of slots, series, commits and samples.

pub(super) mod histograms;

use crate::model::Granularity;

/// The cost of one series in a sealed block, by the number of samples per slot: bytes per slot,
/// bytes per block, and bytes per slot for values that are random to the last bit. Measured with
/// the history of `benches/disk_peers.py`, and with random doubles, at one sample a minute.
pub(super) const SEALED: [(f64, SealedBytes); 4] = [
    (1.0, SealedBytes { slot: 1.79, block: 19.0, random_slot: 7.0 }),
    (5.0, SealedBytes { slot: 7.5, block: 37.0, random_slot: 34.0 }),
    (60.0, SealedBytes { slot: 9.2, block: 30.0, random_slot: 39.4 }),
    (1440.0, SealedBytes { slot: 11.4, block: 32.0, random_slot: 40.7 }),
];
/// Bytes of a partition in addition to its documents: its redb file, which is not compacted while
/// checkpoints seal its documents at once. Measured by `tests/it/year.rs` (68 to 92 KB).
pub(super) const PARTITION_BYTES: f64 = 90e3;
/// Bytes of a series in a row of the head, including the unused space in pages of 4 KiB: for slots
/// with one sample, and for slots with more.
pub(super) const HEAD_SLOT_BYTES: [f64; 2] = [6.5, 20.0];
/// The size of the head's file relative to its rows: a change leaves free pages behind, because
/// redb is copy-on-write. `tests/it/plan.rs` measures this constant and [`HEAD_SLOT_BYTES`].
pub(super) const HEAD_FREE: f64 = 1.1;
/// Bytes that a checkpoint writes relative to the rows that it changes: 90 bytes per series were
/// measured with 2,500,000 series and three slots per checkpoint, in all four granularities.
pub(super) const HEAD_WRITTEN: f64 = 1.3;
/// The time that documents wait for late samples before they are written.
pub(super) const LATENESS_MS: f64 = 120_000.0;
/// Bytes of the journal's tables without series. Measured by `tests/it/plan.rs`, and with 2,600,000
/// series.
pub(super) const JOURNAL_BASE: f64 = 130e3;
/// Bytes of the journal's tables per series: its name and its counter state, which are written to
/// new pages before the old pages are free. Measured like [`JOURNAL_BASE`].
pub(super) const JOURNAL_SERIES_BYTES: f64 = 160.0;
/// Bytes of the state that each checkpoint writes per series. Measured with 12 rounds of
/// `granary-bench --like host` in one checkpoint.
pub(super) const STATE_BYTES: f64 = 25.0;
/// The maximum size of a log file before the next one begins.
pub(super) const LOG_BYTES: f64 = 4e6;
/// The size of a spare file of the log.
pub(super) const SPARE_LOG_BYTES: u64 = (4 << 20) + (256 << 10);
/// Preallocated zeros at the end of the log.
pub(super) const LOG_ROOM_BYTES: f64 = 256e3;
/// Size of a sample in a record of the log, compressed.
pub(super) const RECORD_SAMPLE_BYTES: f64 = 6.5;
/// Bytes of a commit to the log in addition to its record: the rest of its pages. Measured with
/// 2,600,000 series, each host sending one request a minute at a different moment.
pub(super) const COMMIT_BYTES: f64 = 5e3;
/// The duration of a commit in seconds, including its linger time.
pub(super) const COMMIT_SECONDS: f64 = 0.003;
/// The duration of a commit in seconds when two or more requests arrive during its linger time.
pub(super) const LONG_COMMIT_SECONDS: f64 = 0.0105;
/// The requests per second from which on commits take [`LONG_COMMIT_SECONDS`].
pub(super) const LONG_REQUESTS: f64 = 250.0;
/// The samples of a group whose commit does not wait for more requests.
pub(super) const GROUP_SAMPLES: f64 = 2048.0;
/// Bytes of memory of a daemon without series. Measured with 2,500,000 series (1.39 GB, with two
/// slots of cells), and with 100,000 by `granary-bench --protocol remote-write` (195 MB).
pub(super) const MEMORY_BASE: f64 = 60e6;
/// Bytes of memory per series: its name, the index of its tags and its counter state. Measured like
/// [`MEMORY_BASE`].
pub(super) const MEMORY_SERIES_BYTES: f64 = 400.0;
/// Bytes of a cell in memory: with one sample, and with more samples.
pub(super) const CELL_BYTES: [f64; 2] = [32.0, 64.0];
/// Bytes of memory per series whose cells wait for a checkpoint.
pub(super) const SERIES_CELL_BYTES: f64 = 96.0;
/// Core seconds per sample, from the request to the sealed document. Measured with 2,500,000 series
/// at a sample a minute for 49 minutes.
pub(super) const CORE_SECONDS: f64 = 3.1e-6;
/// The share of a core, a machine or a disk that a plan uses; the rest is for queries and other
/// processes.
pub(super) const SHARE_MAX: f64 = 0.8;

#[derive(Debug, Clone, Copy)]
pub(super) struct SealedBytes {
    pub(super) slot: f64,
    pub(super) block: f64,
    pub(super) random_slot: f64,
}

/// Returns the cost of a series for a number of samples per slot, interpolated between the measured
/// points on a logarithmic scale.
pub(super) fn sealed(samples: f64) -> SealedBytes {
    let upper = SEALED.iter().position(|(measured, _)| *measured >= samples);
    let upper = upper.unwrap_or(SEALED.len() - 1);
    let (to, high) = SEALED[upper];
    let (from, low) = SEALED[upper.saturating_sub(1)];
    if samples >= to || samples <= from {
        return if samples >= to { high } else { low };
    }
    let part = (samples / from).ln() / (to / from).ln();
    let between = |low: f64, high: f64| low + (high - low) * part;
    SealedBytes {
        slot: between(low.slot, high.slot),
        block: between(low.block, high.block),
        random_slot: between(low.random_slot, high.random_slot),
    }
}

/// Returns the size of a sealed document of a series with a sample at each interval.
pub(super) fn document_bytes(granularity: &Granularity, interval_ms: f64) -> f64 {
    let width = granularity.width_ms as f64;
    let cost = sealed((width / interval_ms).max(1.0));
    granularity.document.longest_ms() as f64 / width.max(interval_ms) * cost.slot + cost.block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_between_measured_points_are_interpolated() {
        for (samples, bytes) in SEALED {
            assert_eq!(sealed(samples).slot, bytes.slot);
        }
        assert!(sealed(2.0).slot > sealed(1.0).slot && sealed(2.0).slot < sealed(5.0).slot);
        assert_eq!(sealed(1e9).slot, sealed(1440.0).slot);
    }
}
