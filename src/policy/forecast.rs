//! The forecast of disk space: the bytes that the next turn of each granularity writes, and the
//! bytes that the disk lacks for them.
//!
//! A turn is the end of a document period, after which a checkpoint writes the documents of the
//! period. Must never know: the disk, and how the documents of past periods are measured.

use super::plan::document_bytes;
use crate::model::{Granularity, UnixMillis};

/// The growth from one turn to the next that a forecast allows for, in percent.
const GROWTH_PERCENT: u64 = 10;
/// The number of documents below which a turn leaves documents open.
const OPEN_MAX: u64 = 512;
/// The size of an open document: a page.
const OPEN_BYTES: u64 = 4096;

/// The measured documents of one granularity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// The number of series.
    pub series: u64,
    /// The compressed bytes of the last complete document period; `None` before the first one.
    pub last: Option<u64>,
}

/// The forecast of one granularity's next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnForecast {
    /// The name of the granularity.
    pub granularity: String,
    /// The end of the document period.
    pub at: UnixMillis,
    /// The bytes that the turn writes, including finer granularities whose periods end at the same
    /// time.
    pub bytes: u64,
    /// The bytes that the disk lacks for the turn; 0 when there is enough space.
    pub missing: u64,
}

/// Returns the bytes that a turn of a granularity writes. `finest_ms` is the slot width of the
/// finest granularity: until documents of a period have been measured, a slot of that width counts
/// as one sample, at the costs of `granary plan`.
pub fn turn_bytes(granularity: &Granularity, written: Written, finest_ms: i64) -> u64 {
    let sealed = written.last.unwrap_or_else(|| {
        (written.series as f64 * document_bytes(granularity, finest_ms as f64)) as u64
    });
    let open = if written.series < OPEN_MAX { written.series * OPEN_BYTES } else { 0 };
    let bytes = sealed.max(open);
    bytes.saturating_add(bytes.div_ceil(100).saturating_mul(GROWTH_PERCENT))
}

/// Returns the forecast of the next turn of each granularity, finest first, for a disk with `free`
/// bytes. `measured` has the documents of each granularity.
pub fn forecast(
    granularities: &[Granularity],
    measured: &[Written],
    free: u64,
    now: UnixMillis,
) -> Vec<TurnForecast> {
    let finest_ms = granularities.first().map_or(1, |finest| finest.width_ms);
    let all = || granularities.iter().zip(measured);
    let turn = |granularity: &Granularity| {
        let at = granularity.document.next(granularity.document_start(now));
        let due = all().filter(|(other, _)| {
            other.width_ms <= granularity.width_ms && other.document_start(at) == at
        });
        let bytes = due.map(|(other, written)| turn_bytes(other, *written, finest_ms)).sum::<u64>();
        let missing = bytes.saturating_sub(free);
        TurnForecast { granularity: granularity.name.clone(), at, bytes, missing }
    };
    granularities.iter().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GranularitySet;

    /// 2026-11-21T12:20:00Z
    const NOW: UnixMillis = UnixMillis(1_795_263_600_000);
    const MIB: u64 = 1 << 20;

    fn of(last: [Option<u64>; 4], series: u64, free: u64) -> Vec<TurnForecast> {
        let set = GranularitySet::default();
        forecast(set.as_slice(), &last.map(|last| Written { series, last }), free, NOW)
    }

    #[test]
    fn a_turn_writes_the_periods_that_end_at_its_time_and_a_tenth_more() {
        let last = [100, 1000, 10_000, 100_000].map(|kib| Some(kib << 10));
        let turns = of(last, 1000, 12_000 << 10);
        let at: Vec<_> = turns.iter().map(|turn| turn.at.to_string()).collect();
        let expected = ["2026-11-21T13:00", "2026-11-21T16:00", "2026-11-22T00:00", "2026-12-01"];
        for (at, expected) in at.iter().zip(expected) {
            assert!(at.starts_with(expected), "{at} {expected}");
        }
        let kib: Vec<_> = turns.iter().map(|turn| turn.bytes >> 10).collect();
        assert_eq!(kib, [110, 1210, 12_210, 122_210]);
        let missing: Vec<_> = turns.iter().map(|turn| turn.missing >> 10).collect();
        assert_eq!(missing, [0, 0, 210, 110_210]);
    }

    #[test]
    fn a_young_store_is_forecast_with_the_costs_of_the_plan() {
        let turns = of([None; 4], 50_000, 0);
        let mib: Vec<_> = turns.iter().map(|turn| turn.bytes / MIB).collect();
        // An hour of minutes, and each coarser turn with all finer ones.
        assert_eq!(mib, [6, 25, 37, 54]);
        assert!(turns.iter().all(|turn| turn.missing == turn.bytes));
        // Measured bytes replace the estimate.
        let measured = of([Some(9 * MIB), None, None, None], 50_000, 0);
        assert_eq!(measured[0].bytes / MIB, 9);
    }

    #[test]
    fn few_documents_stay_open_and_take_a_page_each() {
        let turns = of([Some(100), None, None, None], 100, 1 << 30);
        assert!((100 * OPEN_BYTES..120 * OPEN_BYTES).contains(&turns[0].bytes));
        assert_eq!(of([None; 4], 0, 0)[3].bytes, 0, "a store without series writes nothing");
    }
}
