//! The samples from which a daemon computes the histograms of a slot again.
//!
//! A slot has its first and its last histogram, and a total. The total of a counter also has the
//! increases before resets within the slot, and the sum of levels has the samples between the two:
//! one or more samples between the first and the last one stand for these. Must never know: the
//! daemon, the form of the samples.

use crate::model::{Histogram, HistogramReadings, Kind, ResetHint, UnixMillis};

/// The maximum number of samples between the first and the last one of a slot of levels. Beyond it,
/// the samples have the same mean, but are fewer.
const BETWEEN_MAX: i64 = 62;
/// The relative difference of two numbers that is attributed to rounding.
const TOLERANCE: f64 = 1e-9;

/// The histograms of a slot; times are Unix milliseconds.
#[derive(Debug, Clone)]
pub(super) struct SlotHistograms<'a> {
    pub(super) n: u32,
    pub(super) first_at: i64,
    pub(super) last_at: i64,
    pub(super) first: &'a Histogram,
    pub(super) last: &'a Histogram,
    pub(super) total: &'a Histogram,
}

/// A sample that is a histogram.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HistogramSample {
    pub(super) at: i64,
    /// The start of the counter, 0 if unknown.
    pub(super) start: i64,
    pub(super) histogram: Histogram,
}

/// The samples of one series, slot by slot.
#[derive(Debug, Default)]
pub(super) struct SeriesSamples {
    /// The readings of a counter that were returned so far.
    readings: HistogramReadings,
}

impl SeriesSamples {
    /// Returns the samples of the next slot, ascending. The second result is false when they give
    /// the slot another total.
    pub(super) fn of_slot(
        &mut self,
        kind: Kind,
        slot: &SlotHistograms<'_>,
    ) -> (Vec<HistogramSample>, bool) {
        match kind.of_counts() {
            Kind::Counter => self.of_counter(slot),
            Kind::Delta => of_deltas(slot),
            Kind::Gauge | Kind::Histogram | Kind::GaugeHistogram | Kind::DeltaHistogram => {
                of_levels(slot, (i64::from(slot.n) - 2).max(0))
            }
        }
    }

    fn of_counter(&mut self, slot: &SlotHistograms<'_>) -> (Vec<HistogramSample>, bool) {
        let is_first = self.readings.in_order().is_empty();
        let plain = plain_samples(slot);
        // A start just before the first reading: the counter was reset since the previous slot.
        let mut restarted = plain.clone();
        restarted[0].start = restarted[0].at - 1;
        let mut candidates = vec![plain.clone(), restarted.clone()];
        candidates.extend(self.with_reading_between(slot, &plain[0]));
        candidates.extend(self.with_reading_between(slot, &restarted[0]));
        for samples in candidates {
            let (readings, total) = self.observed(&samples);
            if is_same(&total, slot.total) {
                self.readings = readings;
                return (samples, true);
            }
        }
        self.readings = self.observed(&plain).0;
        // The growth up to the first reading belongs to readings that are not exported.
        (plain, is_first)
    }

    /// Returns samples of a slot for each reason why its total is not the difference of its last
    /// and its first reading: a reset just before the last reading; a reset before, after which
    /// the counter grew; readings with fewer bounds between the two.
    fn with_reading_between(
        &self,
        slot: &SlotHistograms<'_>,
        first: &HistogramSample,
    ) -> Vec<Vec<HistogramSample>> {
        if slot.n < 2 || slot.last_at - slot.first_at < 2 {
            return Vec::new();
        }
        let at = slot.first_at + (slot.last_at - slot.first_at) / 2;
        let restarted = |at, histogram| HistogramSample { at, start: at - 1, histogram };
        let last = restarted(slot.last_at, slot.last.clone());
        let mut candidates = vec![vec![first.clone(), last.clone()]];
        let (_, of_first) = self.observed(std::slice::from_ref(first));
        if let Some(grown) = difference(slot.total, &[&of_first, slot.last]) {
            candidates.push(vec![first.clone(), restarted(at, grown), last.clone()]);
        }
        if slot.last.is_custom() && slot.total.is_custom() {
            let mut coarser = slot.last.clone();
            coarser.reconcile(&mut slot.total.clone());
            let between = HistogramSample { at, start: 0, histogram: coarser };
            candidates.push(vec![first.clone(), between, HistogramSample { start: 0, ..last }]);
        }
        candidates
    }

    /// Returns the readings after further samples, and the growth that a daemon computes for these.
    fn observed(&self, samples: &[HistogramSample]) -> (HistogramReadings, Histogram) {
        let mut readings = self.readings.clone();
        let mut total: Option<Histogram> = None;
        for HistogramSample { at, start, histogram } in samples {
            let increase = readings.observe(UnixMillis(*at), *start, histogram).increase;
            match &mut total {
                Some(total) => total.merge(&increase),
                None => total = Some(increase),
            }
        }
        (readings, total.unwrap_or_default())
    }
}

/// Returns the first and the last histogram of a slot, or the only one.
fn plain_samples(slot: &SlotHistograms<'_>) -> Vec<HistogramSample> {
    let sample =
        |at, histogram: &Histogram| HistogramSample { at, start: 0, histogram: histogram.clone() };
    let last = sample(slot.last_at, slot.last);
    if slot.n < 2 || slot.first_at >= slot.last_at {
        return vec![last];
    }
    vec![sample(slot.first_at, slot.first), last]
}

/// Returns the samples of a slot of deltas. Without a time between the first and the last one, a
/// sample has the whole total, because a sum matters more than the samples at its ends.
fn of_deltas(slot: &SlotHistograms<'_>) -> (Vec<HistogramSample>, bool) {
    let span = slot.last_at - slot.first_at;
    let has_room = slot.n < 2 || span > 1 || slot.n == 2 && span == 1;
    if has_room {
        return of_levels(slot, 1);
    }
    let histogram = slot.total.clone();
    (vec![HistogramSample { at: slot.last_at, start: 0, histogram }], false)
}

/// Returns the samples of a slot of levels or deltas, `between` of which were neither the first nor
/// the last one; these become equal.
fn of_levels(slot: &SlotHistograms<'_>, between: i64) -> (Vec<HistogramSample>, bool) {
    let mut samples = plain_samples(slot);
    if slot.n < 3 || samples.len() < 2 {
        let is_exact = samples.len() == slot.n as usize;
        return (samples, is_exact);
    }
    let Some(mut middle) = difference(slot.total, &[slot.first, slot.last]) else {
        return (samples, false);
    };
    middle.divide(between.max(1) as f64);
    let span = slot.last_at - slot.first_at;
    let count = between.min(BETWEEN_MAX).min(span - 1).max(0);
    let at = |index: i64| slot.first_at + span * (index + 1) / (count + 1);
    let samples_between = (0..count).map(|index| HistogramSample {
        at: at(index),
        start: 0,
        histogram: middle.clone(),
    });
    samples.splice(1..1, samples_between);
    (samples, count == between)
}

/// Returns a histogram without its parts; `None` when it does not contain them.
fn difference(total: &Histogram, parts: &[&Histogram]) -> Option<Histogram> {
    let mut rest = total.clone();
    for part in parts {
        // The result of a subtraction of a gauge is a gauge.
        rest.subtract(part).ok()?;
    }
    let rounding = TOLERANCE * total.count;
    for side in [&mut rest.positive, &mut rest.negative] {
        side.retain(|bucket| bucket.count.abs() > rounding);
    }
    for count in [&mut rest.count, &mut rest.zero_count] {
        if count.abs() <= rounding {
            *count = 0.0;
        }
    }
    let buckets = rest.positive.iter().chain(&rest.negative).map(|bucket| bucket.count);
    let is_contained = buckets.chain([rest.count, rest.zero_count]).all(|count| count >= 0.0);
    if total.hint != ResetHint::Gauge {
        rest.hint = ResetHint::Unknown;
    }
    is_contained.then_some(rest)
}

/// Returns true when two histograms have the same form, and the same counts but for rounding.
fn is_same(one: &Histogram, other: &Histogram) -> bool {
    let form = |histogram: &Histogram| (histogram.schema, histogram.zero_threshold.to_bits());
    let numbers = |histogram: &Histogram| {
        let buckets = histogram.positive.iter().chain(&histogram.negative);
        let counts: Vec<_> = buckets.map(|bucket| (bucket.index, bucket.count)).collect();
        [(0, histogram.count), (0, histogram.zero_count), (0, histogram.sum)]
            .into_iter()
            .chain(counts)
            .collect::<Vec<_>>()
    };
    let is_near = |one: f64, other: f64| {
        one == other
            || one.is_nan() && other.is_nan()
            || one.is_finite()
                && other.is_finite()
                && (one - other).abs() <= TOLERANCE * one.abs().max(other.abs())
    };
    let (one_numbers, other_numbers) = (numbers(one), numbers(other));
    form(one) == form(other)
        && one.custom_bounds == other.custom_bounds
        && one.positive.len() == other.positive.len()
        && one_numbers.len() == other_numbers.len()
        && one_numbers.iter().zip(&other_numbers).all(|((index, count), (other_index, other))| {
            index == other_index && is_near(*count, *other)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{
        HistogramCell,
        histogram::{Bucket, CUSTOM_BOUNDS},
    };

    /// Growth of a counter between two readings, in other schemas or bounds, with resets.
    #[derive(Debug, Clone)]
    struct Step {
        grown: [u8; 3],
        schema: i8,
        has_other_bounds: bool,
        is_reset: bool,
    }

    fn step() -> impl Strategy<Value = Step> {
        let schema = prop_oneof![4 => Just(2_i8), 1 => 0..=3_i8];
        let other = prop_oneof![4 => Just(false), 1 => Just(true)];
        let reset = prop_oneof![4 => Just(false), 1 => Just(true)];
        let steps = (any::<[u8; 3]>(), schema, other, reset);
        steps.prop_map(|(grown, schema, has_other_bounds, is_reset)| Step {
            grown,
            schema,
            has_other_bounds,
            is_reset,
        })
    }

    /// Returns the readings of a counter.
    fn readings(steps: &[Step], is_custom: bool) -> Vec<Histogram> {
        let mut counts = [0_u32; 3];
        let reading = |step: &Step| {
            for (count, grown) in counts.iter_mut().zip(step.grown) {
                *count = if step.is_reset { 0 } else { *count } + u32::from(grown);
            }
            let mut own = Histogram::empty(step.schema);
            if is_custom {
                let bounds = if step.has_other_bounds { [1.0, 4.0] } else { [1.0, 2.0] };
                own = Histogram { custom_bounds: bounds.into(), ..Histogram::empty(CUSTOM_BOUNDS) };
            }
            let bucket = |(index, count): (i32, u32)| Bucket { index, count: count.into() };
            own.positive = (0..).zip(counts).map(bucket).collect();
            own.count = counts.iter().map(|count| f64::from(*count)).sum();
            own.sum = own.count * 3.0;
            own.normalize();
            own
        };
        steps.iter().map(reading).collect()
    }

    /// Returns the cells that a daemon computes from samples; a slot has a thousand milliseconds.
    fn cells(samples: &[HistogramSample]) -> Vec<HistogramCell> {
        let mut known = HistogramReadings::default();
        let mut cells: Vec<(i64, HistogramCell)> = Vec::new();
        for HistogramSample { at, start, histogram } in samples {
            let total = known.observe(UnixMillis(*at), *start, histogram).increase;
            let cell = HistogramCell::single((at % 1000) as u32, histogram.clone(), total);
            match cells.last_mut() {
                Some((slot, known)) if *slot == at / 1000 => known.merge(&cell),
                _ => cells.push((at / 1000, cell)),
            }
        }
        cells.into_iter().map(|(_, cell)| cell).collect()
    }

    proptest! {
        #[test]
        fn the_samples_of_a_counter_give_back_its_slots(
            steps in prop::collection::vec(step(), 1..40),
            is_custom in any::<bool>(),
            per_slot in 1..7_i64,
        ) {
            let at = |index: i64| (index / per_slot) * 1000 + 10 + index % per_slot * 150;
            let samples = (0..).zip(readings(&steps, is_custom));
            let samples: Vec<_> = samples
                .map(|(index, histogram)| HistogramSample { at: at(index), start: 0, histogram })
                .collect();
            let original = cells(&samples);
            let mut series = SeriesSamples::default();
            let mut returned = Vec::new();
            for (slot, cell) in (0..).zip(&original) {
                let HistogramCell { n, first_at, last_at, first, last, total } = cell;
                let (first_at, last_at) = (slot * 1000 + i64::from(*first_at), slot * 1000 + i64::from(*last_at));
                let histograms = SlotHistograms { n: *n, first_at, last_at, first, last, total };
                let (samples, is_exact) = series.of_slot(Kind::Histogram, &histograms);
                prop_assert!(is_exact && samples.len() <= 3, "{histograms:?}");
                returned.extend(samples);
            }
            let found = cells(&returned);
            prop_assert_eq!(found.len(), original.len());
            for (found, cell) in found.iter().zip(&original) {
                prop_assert!(is_same(&found.total, &cell.total), "{:?} {:?}", found, cell);
                prop_assert_eq!((&found.first, &found.last), (&cell.first, &cell.last));
                prop_assert_eq!((found.first_at, found.last_at), (cell.first_at, cell.last_at));
            }
        }
    }

    #[test]
    fn levels_keep_their_sum_and_number_and_deltas_their_sum() {
        let level = |count: f64| {
            let mut histogram = Histogram { hint: ResetHint::Gauge, ..Histogram::empty(0) };
            histogram.positive = vec![Bucket { index: 1, count }];
            (histogram.count, histogram.sum) = (count, count * 2.0);
            histogram
        };
        let (first, last, total) = (level(1.0), level(5.0), level(18.0));
        let slot = |n| SlotHistograms {
            n,
            first_at: 1000,
            last_at: 1900,
            first: &first,
            last: &last,
            total: &total,
        };
        let counts = |kind, n| {
            let (samples, is_exact) = SeriesSamples::default().of_slot(kind, &slot(n));
            let times_and_counts = samples.iter().map(|one| (one.at, one.histogram.count));
            (times_and_counts.collect::<Vec<_>>(), is_exact)
        };
        let middle = [(1000, 1.0), (1300, 6.0), (1600, 6.0), (1900, 5.0)];
        assert_eq!(counts(Kind::GaugeHistogram, 4), (middle.to_vec(), true));
        let sum = [(1000, 1.0), (1450, 12.0), (1900, 5.0)];
        assert_eq!(counts(Kind::DeltaHistogram, 4), (sum.to_vec(), true));
        // Deltas at one time have no time for a sample between them.
        let at_once = SlotHistograms { first_at: 1900, ..slot(3) };
        let (samples, is_exact) = SeriesSamples::default().of_slot(Kind::DeltaHistogram, &at_once);
        let at_and_counts: Vec<_> =
            samples.iter().map(|one| (one.at, one.histogram.count)).collect();
        assert_eq!((at_and_counts, is_exact), (vec![(1900, 18.0)], false));
        let (many, is_exact) = counts(Kind::GaugeHistogram, 500);
        assert_eq!((many.len(), is_exact), (64, false));
        assert!(many.is_sorted());
        // A total that does not contain the first and the last histogram has no samples between.
        assert_eq!(counts(Kind::GaugeHistogram, 2).0.len(), 2);
    }
}
