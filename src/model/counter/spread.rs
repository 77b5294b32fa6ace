//! Distribution of a counter's growth over the slots of a gap between two readings.
//!
//! A reading adds the growth since the previous reading to the slot that contains its time, and
//! nothing else is stored. After a gap, the first slot with a reading therefore contains the growth
//! of several slots. Queries for rates distribute this growth: virtual readings at the counter's
//! interval fill the gap, or one per slot if readings are no more frequent than slots. The growth
//! of a slot is its sum plus [`Gap::carried`] at its end, less [`Gap::carried`] at its start; a
//! slot that contains the whole gap keeps its sum, bit for bit.
//!
//! Readings in the gap may have been deleted with their growth. The slot after the gap then
//! contains less than the growth over the gap, and nothing is distributed.
//!
//! Must never know: cells, axes, the storage of readings.

use super::Reading;

/// The longest gap whose growth is distributed; growth over a longer gap stays in the slot of the
/// reading that ends the gap. Queries search this far for the neighbours of a range.
pub const GAP_MAX_MS: i64 = 31 * 86_400_000;

/// A gap between two neighbouring readings of one counter, without a reset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    from: i64,
    to: i64,
    increase: f64,
    /// The number of virtual readings by which the growth is divided, including the reading that
    /// ends the gap.
    parts: i64,
    /// The width of slots, if each slot of the gap contains one virtual reading.
    slots_ms: Option<i64>,
}

/// The relative rounding error of sums of increases.
const ROUNDING: f64 = 1e-9;

/// Returns the largest growth that a slot can contain from before its first reading: the part of
/// its sum that its readings do not explain.
pub fn growth_to_first(sum: f64, first: f64, last: f64) -> f64 {
    // After a reset, the slot contains at least its last value.
    let within = if last < first { last.max(0.0) } else { last - first };
    sum - within
}

/// Returns true when a slot contains less than the growth over the gap before it, because readings
/// in the gap were deleted with their growth, or the growth counts in another slot.
pub fn lacks_growth(growth: f64, sum: f64, first: f64, last: f64) -> bool {
    growth_to_first(sum, first, last) < growth - ROUNDING * (growth.abs() + sum.abs())
}

/// Returns the mean time between the readings of one slot; infinite if unknown.
pub fn spacing_ms(n: u32, first_at: i64, last_at: i64) -> f64 {
    let passed = last_at.saturating_sub(first_at);
    if n > 1 && passed > 0 { passed as f64 / f64::from(n - 1) } else { f64::INFINITY }
}

impl Gap {
    /// Returns the gap between the last reading of one slot and the first reading of a later one.
    ///
    /// `counted` is the sum of the slot of `after`, the maximum that can be moved out of it, and
    /// `after_last` is the value of its last reading; `spacing_ms` is the smaller [`spacing_ms`] of
    /// the two slots; `width_ms` is the width of the finest slots in the store, whatever is
    /// queried, so that all resolutions agree.
    ///
    /// Returns `None` when nothing is distributed: the value fell, the slot of `after` lacks growth
    /// of the gap, or the readings are at most one and a half spacings or one slot apart, or
    /// further apart than [`GAP_MAX_MS`].
    #[inline]
    pub fn between(
        before: &Reading,
        after: &Reading,
        (counted, after_last): (f64, f64),
        spacing_ms: f64,
        width_ms: i64,
    ) -> Option<Self> {
        let passed = after.at.saturating_sub(before.at);
        if passed <= width_ms || passed > GAP_MAX_MS || width_ms <= 0 {
            return None;
        }
        let spacing = spacing_ms.clamp(1.0, width_ms as f64);
        let increase = after.value - before.value;
        if passed as f64 <= 1.5 * spacing || increase < 0.0 || !increase.is_finite() {
            return None;
        }
        if lacks_growth(increase, counted, after.value, after_last) {
            return None;
        }
        let increase = increase.min(counted.max(0.0));
        let slots_ms = (spacing_ms >= width_ms as f64).then_some(width_ms);
        let parts = slots_ms.map_or((passed as f64 / spacing).round() as i64, |width| {
            after.at.div_euclid(width) - before.at.div_euclid(width)
        });
        Some(Self { from: before.at, to: after.at, increase, parts: parts.max(1), slots_ms })
    }

    /// Returns the growth before an edge between slots that is stored in a slot after the edge. The
    /// result is zero unless the gap crosses the edge, never falls from one edge of a gap to the
    /// next, and is a whole number if the growth of the gap is.
    pub fn carried(&self, edge: i64) -> f64 {
        if edge <= self.from || edge > self.to {
            return 0.0;
        }
        let virtual_readings = if let Some(width) = self.slots_ms {
            edge.div_euclid(width) - self.from.div_euclid(width) - 1
        } else {
            // Virtual readings strictly before the edge; a reading at an edge belongs to the next
            // slot.
            let [passed, parts, length] =
                [edge - self.from, self.parts, self.to - self.from].map(i128::from);
            ((passed * parts + length - 1) / length - 1) as i64
        };
        let (part, parts) = (virtual_readings.clamp(0, self.parts) as f64, self.parts as f64);
        let scaled = self.increase * parts;
        let carried = if scaled.is_finite() {
            self.increase * part / parts
        } else {
            self.increase / parts * part
        };
        if self.increase.fract() == 0.0 { carried.floor() } else { carried }
    }

    /// Returns true when the gap covers the slot between two edges, so that no reading is in it.
    pub fn covers(&self, start: i64, end: i64) -> bool {
        self.from < start && end <= self.to
    }

    /// Returns the times of the readings at the ends of the gap.
    pub fn times(&self) -> (i64, i64) {
        (self.from, self.to)
    }

    /// Returns the growth per second over the gap.
    pub fn rate(&self) -> f64 {
        super::reading::per_second(self.increase, self.to - self.from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1000;
    const SLOT: i64 = 60 * SECOND;

    fn reading(at: i64, value: f64) -> Reading {
        Reading::new(at, value, 0)
    }

    fn gap(from: i64, to: i64, increase: f64, spacing: f64) -> Option<Gap> {
        let (before, after) = (reading(from, 7.0), reading(to, 7.0 + increase));
        Gap::between(&before, &after, (f64::MAX, after.value), spacing, SLOT)
    }

    /// Returns the growth in each slot, from the slot of the first reading to that of the last.
    fn shares(gap: &Gap, width: i64) -> Vec<f64> {
        let (first, last) = (gap.from.div_euclid(width), gap.to.div_euclid(width));
        let share = |slot: i64| {
            let stored = if slot == last { gap.increase } else { 0.0 };
            stored + gap.carried((slot + 1) * width) - gap.carried(slot * width)
        };
        (first..=last).map(share).collect()
    }

    #[test]
    fn every_slot_of_a_gap_holds_the_growth_of_its_own_time() {
        // A reading every 5 s up to 0:55, and from 5:05 on.
        let spread = gap(55 * SECOND, 305 * SECOND, 250.0, 5e3).unwrap();
        assert_eq!(shares(&spread, SLOT), [0.0, 60.0, 60.0, 60.0, 60.0, 10.0]);
        // A reading a minute; one is missing.
        let missed = gap(30 * SECOND, 150 * SECOND, 120.0, f64::INFINITY).unwrap();
        assert_eq!(shares(&missed, SLOT), [0.0, 60.0, 60.0]);
    }

    #[test]
    fn slots_finer_than_readings_share_evenly_wherever_readings_fall() {
        for (from, to) in [(500, 10_500), (999, 10_999), (0, 10_000), (3, 10_999)] {
            let (before, after) = (reading(from, 0.0), reading(to, 30.0));
            let spread =
                Gap::between(&before, &after, (30.0, 30.0), f64::INFINITY, SECOND).unwrap();
            let mut expected = vec![3.0; 11];
            expected[0] = 0.0;
            assert_eq!(shares(&spread, SECOND), expected, "{from} to {to}");
        }
    }

    #[test]
    fn growth_is_not_moved_over_short_gaps_very_long_gaps_and_resets() {
        assert_eq!(gap(0, SLOT, 60.0, 5e3), None, "a gap of one slot");
        assert_eq!(gap(0, 90 * SECOND, 60.0, 6e4), None, "one and a half spacings");
        assert_eq!(gap(0, GAP_MAX_MS + 1, 60.0, 5e3), None);
        assert_eq!(gap(0, 5 * SLOT, -1.0, 5e3), None, "a reset");
        assert_eq!(gap(0, 5 * SLOT, f64::NAN, 5e3), None);
        assert!(gap(0, GAP_MAX_MS, f64::MAX / 2.0, 1.0).unwrap().carried(SLOT).is_finite());
    }

    #[test]
    fn nothing_is_moved_when_growth_of_the_gap_was_deleted() {
        let (before, after) = (reading(0, 10.0), reading(5 * SLOT, 110.0));
        let between = |counted: f64, last: f64| {
            Gap::between(&before, &after, (counted, last), 6e4, SLOT).map(|gap| gap.increase)
        };
        assert_eq!(between(100.0, 110.0), Some(100.0));
        assert_eq!(between(99.0, 110.0), None);
        // Further readings in the slot grew by 30; then the counter was reset, and grew to 20.
        assert_eq!(between(130.0, 140.0), Some(100.0));
        assert_eq!(between(129.0, 140.0), None);
        assert_eq!(between(150.0, 20.0), Some(100.0));
        assert_eq!(between(119.0, 20.0), None);
        // Rounding of sums deletes nothing.
        assert_eq!(between(100.0 - 1e-12, 110.0), Some(100.0 - 1e-12));
    }

    /// Returns the growth of virtual readings before an edge, by counting them one by one.
    fn naive(gap: &Gap, edge: i64) -> f64 {
        let (from, passed) = (i128::from(gap.from), i128::from(gap.to - gap.from));
        let parts = i128::from(gap.parts);
        let before = (1..=parts)
            .filter(|part| from * parts + passed * part < i128::from(edge) * parts)
            .count();
        let grown = gap.increase * before as f64 / gap.parts as f64;
        if gap.increase.fract() == 0.0 { grown.floor() } else { grown }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_shares_of_all_slots_add_up_to_the_growth_at_every_width(
            from in -400_000..400_000_i64,
            passed in 60_001..4_000_000_i64,
            increase in prop_oneof![(0..5000_u32).prop_map(f64::from), 0.0..1e6],
            spacing in prop_oneof![Just(f64::INFINITY), 900.0..200_000.0],
        ) {
            let Some(spread) = gap(from, from + passed, increase, spacing) else {
                prop_assert!(passed as f64 <= 1.5 * spacing.min(6e4));
                return Ok(());
            };
            let is_whole = increase.fract() == 0.0;
            let fine = shares(&spread, SLOT);
            prop_assert!(fine.iter().all(|share| *share >= 0.0), "{:?}", fine);
            prop_assert!(!is_whole || fine.iter().all(|share| share.fract() == 0.0));
            let close = |a: f64, b: f64| if is_whole { a == b } else { (a - b).abs() <= 1e-9 * b };
            prop_assert!(close(fine.iter().sum(), spread.increase));
            for times in [5, 60] {
                let coarse = shares(&spread, times * SLOT);
                let first = spread.from.div_euclid(SLOT);
                for (slot, share) in (spread.from.div_euclid(times * SLOT)..).zip(coarse) {
                    let parts = (slot * times..(slot + 1) * times).map(|part| {
                        let index = usize::try_from(part - first).ok();
                        index.and_then(|index| fine.get(index)).copied().unwrap_or(0.0)
                    });
                    let sum: f64 = parts.sum();
                    prop_assert!((sum - share).abs() <= 1e-6, "{} beside {}", sum, share);
                }
            }
        }

        #[test]
        fn virtual_readings_match_the_naive_model(
            from in -400_000..400_000_i64,
            passed in 60_001..900_000_i64,
            increase in 0..5000_u32,
            spacing in 900.0..59_999.0,
            edges in prop::collection::vec(-100_000..1_000_000_i64, 20),
        ) {
            let Some(spread) = gap(from, from + passed, f64::from(increase), spacing) else {
                return Ok(());
            };
            for edge in edges.into_iter().map(|edge| from + edge) {
                let inside = from < edge && edge <= from + passed;
                let expected = if inside { naive(&spread, edge) } else { 0.0 };
                prop_assert_eq!(spread.carried(edge), expected, "{}", edge);
            }
        }
    }
}
