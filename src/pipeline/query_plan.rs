//! Which granularity answers which part of a range.

use std::ops::Range;

use crate::model::{GranularitySet, UnixMillis};

/// A part of a range, and the granularity that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the granularity.
    pub level: usize,
    /// The part, whole slots of this granularity.
    pub range: Range<UnixMillis>,
}

/// The finest granularity whose slots over the range are not more than `points`; the coarsest
/// when none is.
pub fn level_for_points(
    granularities: &GranularitySet,
    range: &Range<UnixMillis>,
    points: usize,
) -> usize {
    let span = range.end.0.saturating_sub(range.start.0);
    let fits = |width_ms: i64| span / width_ms <= points as i64;
    let levels = granularities.levels();
    levels.iter().position(|level| fits(level.width_ms)).unwrap_or(levels.len() - 1)
}

/// Cuts a range, oldest part first: `level` answers as far back as it is kept, and each coarser
/// granularity goes on where the finer one ends.
pub fn segments(
    granularities: &GranularitySet,
    level: usize,
    range: Range<UnixMillis>,
    now: UnixMillis,
) -> Vec<Segment> {
    let mut out = Vec::new();
    let mut end = range.end;
    for (index, granularity) in granularities.levels().iter().enumerate().skip(level) {
        let kept_from = granularity.partition_start(granularity.retention.before(now).plus(1));
        // A coarser slot must not hold samples that the finer segment shows too.
        let from = match granularities.levels().get(index + 1) {
            Some(coarser) => {
                let floor = coarser.slot_start(kept_from);
                if floor < kept_from { floor.plus(coarser.width_ms) } else { floor }
            }
            None => kept_from,
        };
        let start = range.start.max(from);
        if start < end {
            out.push(Segment { level: index, range: start..end });
            end = start;
        }
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn segments_join_without_gap_or_overlap_from_coarse_to_fine(
            now in 1_700_000_000_000..1_900_000_000_000_i64,
            back in 0..170_000_000_000_i64,
            span in 1..170_000_000_000_i64,
            level in 0..4_usize,
        ) {
            let set = GranularitySet::default();
            let now = UnixMillis(now);
            let range = now.minus(back + span)..now.minus(back);
            let cut = segments(&set, level, range.clone(), now);
            for pair in cut.windows(2) {
                prop_assert_eq!(pair[0].range.end, pair[1].range.start);
                prop_assert!(pair[0].level > pair[1].level);
                // The border is a border of slots of the coarser granularity.
                let coarser = &set.levels()[pair[0].level];
                prop_assert_eq!(coarser.slot_start(pair[0].range.end), pair[0].range.end);
            }
            for segment in &cut {
                prop_assert!(set.levels()[segment.level].keeps(segment.range.start, now));
                prop_assert!(segment.level >= level);
            }
            if let Some(last) = cut.last() {
                prop_assert_eq!(last.range.end, range.end);
            }
        }
    }

    #[test]
    fn points_choose_the_granularity() {
        let set = GranularitySet::default();
        let level = |hours: i64| {
            let range = UnixMillis(0)..UnixMillis(hours * 3_600_000);
            level_for_points(&set, &range, 1500)
        };
        assert_eq!(
            [level(1), level(24), level(48), level(24 * 30), level(24 * 365)],
            [0, 0, 1, 2, 3]
        );
    }
}
