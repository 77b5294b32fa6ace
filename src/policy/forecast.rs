//! The forecast of disk space: the bytes that the next turn of each granularity writes, and the
//! bytes that the disk lacks for them.
//!
//! A turn is the end of a document period, after which a checkpoint writes the documents of the
//! period. Must never know: the disk, and how the documents of past periods are measured.

use super::costs::document_bytes;
use crate::model::{Granularity, UnixMillis};

/// The growth from one turn to the next that a forecast allows for, in percent.
const GROWTH_PERCENT: u64 = 10;
/// The number of documents below which a turn leaves documents open.
const OPEN_MAX: u64 = 512;
/// The size of an open document: a page.
const OPEN_BYTES: u64 = 4096;

/// The measured documents of one level: a granularity, or a level of a rule of retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeasuredDocuments {
    /// The number of series.
    pub series: u64,
    /// The compressed bytes of the larger of the last two document periods; 0 before the first one.
    pub last: u64,
    /// True before two periods have documents: the first one may only have samples of its end.
    pub is_young: bool,
    /// The bytes that are reserved for the next turn.
    pub reserved: u64,
}

/// The forecast of one granularity's next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnForecast {
    /// The name of the granularity.
    pub granularity: String,
    /// The end of the document period.
    pub at: UnixMillis,
    /// The bytes that the turn writes, including finer granularities whose periods end at the same
    /// time, and levels of rules of retention.
    pub bytes: u64,
    /// The bytes that are reserved for the turn on the disk.
    pub reserved: u64,
    /// The bytes that the disk lacks for the turn; 0 when there is enough space.
    pub missing: u64,
}

/// Returns true when a turn writes a segment; fewer documents stay open.
pub fn writes_segment(written: MeasuredDocuments) -> bool {
    written.series >= OPEN_MAX
}

/// Returns the bytes that a turn of a granularity writes. `finest_ms` is the slot width of the
/// finest granularity: until the documents of two periods have been measured, a slot of that width
/// counts as one sample, at the costs of `granary plan`.
pub fn turn_bytes(granularity: &Granularity, written: MeasuredDocuments, finest_ms: i64) -> u64 {
    if written.series == 0 {
        return 0;
    }
    let planned = || (written.series as f64 * document_bytes(granularity, finest_ms as f64)) as u64;
    let sealed = if written.is_young { written.last.max(planned()) } else { written.last };
    let open = if written.series < OPEN_MAX { written.series * OPEN_BYTES } else { 0 };
    let bytes = sealed.max(open);
    bytes.saturating_add(bytes.div_ceil(100).saturating_mul(GROWTH_PERCENT))
}

/// Returns the forecast of the next turn of each granularity, finest first, for a disk with `free`
/// bytes. `levels` are the granularities and the levels of rules of retention, and `measured` has
/// the documents of each.
pub fn forecast(
    levels: &[Granularity],
    measured: &[MeasuredDocuments],
    free: u64,
    now: UnixMillis,
) -> Vec<TurnForecast> {
    let finest_ms = levels.first().map_or(1, |finest| finest.width_ms);
    let all = || levels.iter().zip(measured);
    let turn = |granularity: &Granularity| {
        let at = granularity.document.next(granularity.document_start(now));
        let due = all().filter(|(other, _)| {
            other.width_ms <= granularity.width_ms && other.document_start(at) == at
        });
        let (mut bytes, mut reserved, mut unreserved) = (0_u64, 0_u64, 0_u64);
        for (other, written) in due {
            let needed = turn_bytes(other, *written, finest_ms);
            bytes = bytes.saturating_add(needed);
            reserved = reserved.saturating_add(written.reserved);
            unreserved = unreserved.saturating_add(needed.saturating_sub(written.reserved));
        }
        let missing = unreserved.saturating_sub(free);
        TurnForecast { granularity: granularity.name.clone(), at, bytes, reserved, missing }
    };
    levels.iter().filter(|level| level.class().is_none()).map(turn).collect()
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
        let written = |last: Option<u64>| MeasuredDocuments {
            series,
            last: last.unwrap_or(0),
            is_young: last.is_none(),
            reserved: 0,
        };
        forecast(set.as_slice(), &last.map(written), free, NOW)
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
        assert_eq!(mib, [6, 27, 40, 60]);
        assert!(turns.iter().all(|turn| turn.missing == turn.bytes));
        // Measured bytes replace the estimate.
        let measured = of([Some(9 * MIB), None, None, None], 50_000, 0);
        assert_eq!(measured[0].bytes / MIB, 9);
        // The first period may only have samples of its end.
        let of_one = |last| {
            let minute = &GranularitySet::default().as_slice()[0].clone();
            let written = MeasuredDocuments { series: 50_000, last, is_young: true, reserved: 0 };
            turn_bytes(minute, written, 60_000) / MIB
        };
        assert_eq!([of_one(MIB), of_one(100 * MIB)], [6, 110]);
    }

    #[test]
    fn reserved_bytes_need_no_free_space() {
        let set = GranularitySet::default();
        let written = |reserved| MeasuredDocuments {
            series: 1000,
            last: 100 * MIB,
            is_young: false,
            reserved,
        };
        // The reserve of one granularity does not serve another.
        let measured = [written(120 * MIB), written(0), written(50 * MIB), written(0)];
        let turns = forecast(set.as_slice(), &measured, 100 * MIB, NOW);
        let mib = |bytes: u64| bytes.div_ceil(MIB);
        let missing: Vec<_> = turns.iter().map(|turn| mib(turn.missing)).collect();
        assert_eq!(missing, [0, 10, 70, 180]);
        let reserved: Vec<_> = turns.iter().map(|turn| mib(turn.reserved)).collect();
        assert_eq!(reserved, [120, 120, 170, 170]);
    }

    #[test]
    fn a_turn_includes_the_levels_of_rules_of_retention() {
        let set = GranularitySet::default();
        let of_rule = set.iter().skip(1).map(|level| level.of_class("debug"));
        let levels: Vec<_> = set.iter().cloned().chain(of_rule).collect();
        let written = |series: u64, mib: u64| MeasuredDocuments {
            series,
            last: mib * MIB,
            is_young: false,
            reserved: mib * MIB,
        };
        let of_settings = [10, 20, 40, 80].map(|mib| written(1000, mib));
        let of_rule = [100, 200, 400].map(|mib| written(5000, mib));
        let measured = [&of_settings[..], &of_rule].concat();
        let turns = forecast(&levels, &measured, 1 << 40, NOW);
        let mib: Vec<_> = turns.iter().map(|turn| turn.bytes / MIB).collect();
        assert_eq!(mib, [11, 143, 407, 935]);
        assert_eq!(turns[3].reserved, 850 * MIB);
        // A level without series writes nothing, whatever its last periods had.
        assert_eq!(turn_bytes(&levels[4], written(0, 100), 60_000), 0);
    }

    #[test]
    fn few_documents_stay_open_and_take_a_page_each() {
        let turns = of([Some(100), None, None, None], 100, 1 << 30);
        assert!((100 * OPEN_BYTES..120 * OPEN_BYTES).contains(&turns[0].bytes));
        assert_eq!(of([None; 4], 0, 0)[3].bytes, 0, "a store without series writes nothing");
    }
}
