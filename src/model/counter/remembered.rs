//! The remembered readings of a counter: the first reading, the latest readings, and the readings
//! around gaps.
//!
//! Readings are ordered by time. When there are too many, one reading between the first and the
//! latest readings is forgotten: the oldest reading whose neighbours are at the regular interval.
//! The next reading is marked as following a forgotten reading. A late reading finds its neighbours
//! only where no reading was forgotten. Readings around gaps are forgotten last, beginning with the
//! gap that is smallest in proportion to the time since it began.

use std::ops::Range;

use super::{
    Correction, UnixMillis,
    reading::{Reading, per_second},
    times::{READINGS_MAX, Times},
};

/// The number of latest readings that are never forgotten.
pub const LATEST_KEPT: usize = 3;
/// The last position, in order of time, whose reading may be forgotten.
const FORGOTTEN_LAST: usize = READINGS_MAX - LATEST_KEPT;

/// A remembered reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RememberedReading {
    /// The reading.
    pub reading: Reading,
    /// True when readings between this one and the previous remembered one were forgotten.
    pub after_forgotten: bool,
}

/// The contribution of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Contribution {
    pub(super) increase: f64,
    pub(super) rate: Option<f64>,
    pub(super) correction: Option<Correction>,
}

/// The remembered readings of one counter. Indexes from `base` on are a ring: in the common case,
/// the next reading at the regular interval overwrites the oldest reading of the ring.
#[derive(Debug, Clone)]
pub struct RememberedReadings {
    at: Times,
    value: [f64; READINGS_MAX],
    /// The ages as in [`Reading`], without marks; `u32::MAX` for longer ages.
    age: [u32; READINGS_MAX],
    /// The estimated interval between readings, `u32::MAX` if unknown. It falls at once and rises
    /// slowly, so that a gap hardly changes it.
    step_ms: u32,
    count: u8,
    /// The first index of the ring; 0 until all indexes are used.
    base: u8,
    /// The index of the latest reading.
    head: u8,
    /// One bit per index; see [`RememberedReading::after_forgotten`].
    after_forgotten: u8,
    /// True when the first reading, at index 0, has the mark of [`Reading::without_count`]. The
    /// marks of other readings have no effect.
    is_first_without_count: bool,
}

const _: () = assert!(READINGS_MAX == u8::BITS as usize && size_of::<RememberedReadings>() <= 160);

impl RememberedReadings {
    /// Returns the state of a counter with one reading.
    pub(super) fn first(reading: Reading) -> Self {
        let mut first = Self {
            at: Times::default(),
            value: [0.0; READINGS_MAX],
            age: [0; READINGS_MAX],
            step_ms: u32::MAX,
            count: 1,
            base: 0,
            head: 0,
            after_forgotten: 0,
            is_first_without_count: reading.is_without_count(),
        };
        first.set(0, reading);
        first
    }

    /// Restores stored readings; `None` if they are inconsistent.
    pub fn restore(readings: &[RememberedReading], step_ms: u32, base: u8) -> Option<Self> {
        let in_order =
            readings.is_sorted_by(|previous, next| previous.reading.at < next.reading.at);
        let is_storable = |reading: &Reading| reading.age >= 0 && Times::can_store(reading.at);
        let are_storable = readings.iter().all(|remembered| is_storable(&remembered.reading));
        let first = readings.first()?;
        // While there is space for more readings, no reading is chosen to be forgotten.
        let base_max = if readings.len() == READINGS_MAX { FORGOTTEN_LAST } else { 0 };
        let base_fits = usize::from(base) <= base_max;
        if !(in_order && are_storable && base_fits && readings.len() <= READINGS_MAX) {
            return None;
        }
        let mut restored = Self::first(first.reading);
        restored.replace_all(readings);
        (restored.step_ms, restored.base) = (step_ms, base);
        Some(restored)
    }

    /// Iterates over the readings, ascending by time.
    pub fn in_order(&self) -> impl Iterator<Item = RememberedReading> + '_ {
        let (base, head, count) =
            (usize::from(self.base), usize::from(self.head), usize::from(self.count));
        let indexes = (0..base).chain(head + 1..count).chain(base..count.min(head + 1));
        indexes.map(|index| RememberedReading {
            reading: self.reading(index),
            after_forgotten: self.after_forgotten >> index & 1 == 1,
        })
    }

    /// Returns the estimated interval between readings, in milliseconds; `u32::MAX` if unknown.
    pub fn step_ms(&self) -> u32 {
        self.step_ms
    }

    /// Returns the position, in order of time, of the reading that is forgotten next; 0 while none
    /// is chosen.
    pub fn base(&self) -> u8 {
        self.base
    }

    /// Adds a reading after all others and returns its increase and rate; `None` when the reading
    /// is not the latest or a gap must be forgotten for it.
    #[inline]
    pub(super) fn append(&mut self, new: &Reading) -> Option<(f64, f64)> {
        let head = usize::from(self.head) % READINGS_MAX;
        let index = self.index_to_append(head, new.at)?;
        let before = self.reading(head);
        let increase = new.increase_from(&before);
        let passed = new.at.saturating_sub(before.at);
        self.update_step(passed);
        self.set(index, *new);
        self.head = index as u8;
        Some((increase, per_second(increase, passed)))
    }

    /// Returns the index for a reading after all others, if no gap must be forgotten for it.
    #[inline]
    fn index_to_append(&mut self, head: usize, at: i64) -> Option<usize> {
        let count = usize::from(self.count);
        if at <= self.at.get(head) {
            return None;
        }
        if count < READINGS_MAX {
            self.count += 1;
            return Some(count);
        }
        if self.base == 0 {
            if self.is_gap(self.at.get(0), self.at.get(1)) {
                return None;
            }
            self.base = 1;
        }
        let oldest = self.next_in_ring(head);
        let next = self.next_in_ring(oldest);
        if self.is_gap(self.at.get(oldest), self.at.get(next)) {
            return None;
        }
        self.after_forgotten = self.after_forgotten & !(1 << oldest) | 1 << next;
        Some(oldest)
    }

    #[inline]
    fn next_in_ring(&self, index: usize) -> usize {
        let next = if index + 1 == READINGS_MAX { usize::from(self.base) } else { index + 1 };
        next % READINGS_MAX
    }

    /// Adds a reading between others, or a reading for which a gap must be forgotten.
    #[cold]
    pub(super) fn insert(&mut self, mut new: Reading) -> Contribution {
        let mut readings = Vec::with_capacity(READINGS_MAX + 1);
        readings.extend(self.in_order());
        if let Some(latest) = readings.last().map(|remembered| remembered.reading)
            && latest.began_before(new.at)
            && new.at < latest.at
            && new.value > latest.value
        {
            return self.continue_from(&latest, new);
        }
        let index = readings.partition_point(|remembered| remembered.reading.at < new.at);
        if index == 0
            && let Some(RememberedReading { reading: first, .. }) = readings.first()
            && !(first.counts_whole() && first.began_before(new.at))
        {
            new = new.without_count();
        }
        let at_index = readings.get(index).map(|remembered| remembered.reading);
        let replaced = at_index.filter(|old| old.at == new.at);
        let behind = index + usize::from(replaced.is_some());
        // The growth next to forgotten readings is already counted.
        let follows_forgotten =
            |index: usize| readings.get(index).is_some_and(|remembered| remembered.after_forgotten);
        if follows_forgotten(index)
            || follows_forgotten(behind)
            || replaced.is_some_and(|old| !new.outranks(&old))
        {
            return Contribution::default();
        }
        let is_contradicted =
            |after: &Reading| after.began_before(new.at) && after.value < new.value;
        if readings.get(behind).is_some_and(|remembered| is_contradicted(&remembered.reading)) {
            return Contribution::default();
        }
        let before = index.checked_sub(1).map(|before| readings[before].reading);
        let (before, replaced) = (before.as_ref(), replaced.as_ref());
        let replaced_increase = replaced.map_or(0.0, |old| old.increase_since(before));
        let correction =
            readings.get(behind).map(|RememberedReading { reading: after, .. }| Correction {
                at: UnixMillis(after.at),
                increase: after.increase_from(&new) - after.increase_since(replaced.or(before)),
                rate: after.rate_since(Some(&new)),
            });
        let contribution = Contribution {
            increase: new.increase_since(before) - replaced_increase,
            rate: new.rate_since(before),
            correction,
        };
        if let (Some(before), None) = (before, correction) {
            self.update_step(new.at.saturating_sub(before.at));
        }
        let remembered = RememberedReading { reading: new, after_forgotten: false };
        if replaced.is_some() {
            readings[index] = remembered;
        } else {
            readings.insert(index, remembered);
        }
        if readings.len() > READINGS_MAX {
            let index = self.least_valuable(&readings);
            readings.remove(index);
            readings[index].after_forgotten = true;
        }
        self.replace_all(&readings);
        contribution
    }

    /// Continues from the latest reading although the new one has an earlier time, because the
    /// sender's clock was set back. From now on, readings before the new one add nothing: it is
    /// unknown whether the clock was set back before or after them.
    fn continue_from(&mut self, latest: &Reading, new: Reading) -> Contribution {
        let remembered = RememberedReading { reading: new.without_count(), after_forgotten: true };
        self.replace_all(&[remembered]);
        Contribution { increase: new.value - latest.value, ..Contribution::default() }
    }

    /// Notes that the readings in a time range were erased. Readings that arrive later in the range
    /// or next to it add no growth, because the remembered readings no longer show which growth is
    /// still counted.
    pub(super) fn note_erased(&mut self, range: &Range<i64>) {
        let mut readings: Vec<_> = self.in_order().collect();
        let from = readings.partition_point(|remembered| remembered.reading.at < range.start);
        let to = readings.partition_point(|remembered| remembered.reading.at < range.end);
        if from == to {
            return;
        }
        let next = (to + 1).min(readings.len());
        for remembered in &mut readings[from..next] {
            remembered.after_forgotten = true;
        }
        self.replace_all(&readings);
    }

    #[inline]
    fn update_step(&mut self, passed_ms: i64) {
        let passed = u32::try_from(passed_ms).unwrap_or(u32::MAX);
        self.step_ms = passed.min(self.step_ms.saturating_add(self.step_ms / 4 + 1));
    }

    #[inline]
    fn is_gap(&self, from: i64, to: i64) -> bool {
        to.saturating_sub(from) > i64::from(self.step_ms) + i64::from(self.step_ms / 2)
    }

    /// Returns the position of the reading that is forgotten first.
    fn least_valuable(&self, readings: &[RememberedReading]) -> usize {
        let newest = readings.last().map_or(0, |remembered| remembered.reading.at);
        // The gap's length in proportion to the time since it began.
        let weight = |index: usize| {
            let (from, to) = (readings[index - 1].reading.at, readings[index].reading.at);
            if readings[index].after_forgotten || !self.is_gap(from, to) {
                return 0.0;
            }
            to.saturating_sub(from) as f64 / newest.saturating_sub(from) as f64
        };
        let mut least = (1, f64::INFINITY);
        let mut before = weight(1);
        for index in 1..=FORGOTTEN_LAST {
            let after = weight(index + 1);
            let loss = before.max(after);
            if loss < least.1 {
                least = (index, loss);
            }
            before = after;
        }
        least.0
    }

    /// Replaces all readings; `readings` is ordered by time.
    fn replace_all(&mut self, readings: &[RememberedReading]) {
        self.after_forgotten = 0;
        self.is_first_without_count =
            readings.first().is_some_and(|remembered| remembered.reading.is_without_count());
        for (index, remembered) in readings.iter().enumerate() {
            self.set(index, remembered.reading);
            self.after_forgotten |= u8::from(remembered.after_forgotten) << index;
        }
        self.count = readings.len() as u8;
        self.head = self.count.saturating_sub(1);
        self.base =
            if readings.len() == READINGS_MAX { self.least_valuable(readings) as u8 } else { 0 };
    }

    #[inline]
    fn set(&mut self, index: usize, reading: Reading) {
        self.at.set(index, reading.at);
        self.value[index] = reading.value;
        self.age[index] = u32::try_from(reading.real_age()).unwrap_or(u32::MAX);
    }

    #[inline]
    fn reading(&self, index: usize) -> Reading {
        let age = match self.age[index] {
            // A start before any reading that matters.
            u32::MAX => i64::MAX,
            age => i64::from(age),
        };
        let reading = Reading { at: self.at.get(index), value: self.value[index], age };
        if index == 0 && self.is_first_without_count { reading.without_count() } else { reading }
    }
}

impl PartialEq for RememberedReadings {
    fn eq(&self, other: &Self) -> bool {
        (self.step_ms, self.base) == (other.step_ms, other.base)
            && self.in_order().eq(other.in_order())
    }
}
