//! The readings that are remembered of a counter: the first, the latest, and those around gaps.
//!
//! Readings are ordered by time. When there are too many, the oldest reading between the first and
//! the latest whose neighbours are at the regular interval is forgotten, and the next reading is
//! marked as following a forgotten one. A late reading finds its neighbours only where no reading
//! was forgotten. Readings around gaps are forgotten last, beginning with the gap that is smallest
//! in proportion to the time since it began.

use super::{
    Correction, UnixMillis,
    reading::{Reading, per_second},
    times::{READINGS_MAX, Times},
};

/// The number of latest readings that are never forgotten.
pub const LATEST_KEPT: usize = 3;
/// The last place, in order of time, whose reading may be forgotten.
const FORGOTTEN_LAST: usize = READINGS_MAX - LATEST_KEPT;

/// A remembered reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Kept {
    /// The reading.
    pub reading: Reading,
    /// True when readings between this one and the previous remembered one were forgotten.
    pub after_forgotten: bool,
}

/// The contribution of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Taken {
    pub(super) increase: f64,
    pub(super) rate: Option<f64>,
    pub(super) correction: Option<Correction>,
}

/// The remembered readings of one counter. Places from `base` on are a ring: in the common case,
/// the next reading at the regular interval overwrites the oldest reading of the ring.
#[derive(Debug, Clone)]
pub struct Remembered {
    at: Times,
    value: [f64; READINGS_MAX],
    /// The ages as in [`Reading`]; `u32::MAX` for longer ones.
    age: [u32; READINGS_MAX],
    /// The estimated interval between readings, `u32::MAX` if unknown. It falls at once and rises
    /// slowly, so that a gap hardly changes it.
    step_ms: u32,
    count: u8,
    /// The first place of the ring; 0 while all places are free to be filled in order.
    base: u8,
    /// The place of the latest reading.
    head: u8,
    /// One bit per place, see [`Kept::after_forgotten`].
    after_forgotten: u8,
}

const _: () = assert!(READINGS_MAX == u8::BITS as usize && size_of::<Remembered>() <= 160);

impl Remembered {
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
        };
        first.set(0, reading);
        first
    }

    /// Restores stored readings; `None` if they are inconsistent.
    pub fn restore(readings: &[Kept], step_ms: u32, base: u8) -> Option<Self> {
        let in_order = readings.is_sorted_by(|kept, next| kept.reading.at < next.reading.at);
        let is_storable = |reading: &Reading| reading.age >= 0 && Times::can_store(reading.at);
        let are_storable = readings.iter().all(|kept| is_storable(&kept.reading));
        let first = readings.first()?;
        // While there is space for more readings, no reading is chosen to be forgotten.
        let base_max = if readings.len() == READINGS_MAX { FORGOTTEN_LAST } else { 0 };
        let base_fits = usize::from(base) <= base_max;
        if !(in_order && are_storable && base_fits && readings.len() <= READINGS_MAX) {
            return None;
        }
        let mut restored = Self::first(first.reading);
        restored.put(readings);
        (restored.step_ms, restored.base) = (step_ms, base);
        Some(restored)
    }

    /// Iterates over the readings, ascending by time.
    pub fn in_order(&self) -> impl Iterator<Item = Kept> + '_ {
        let (base, head, count) =
            (usize::from(self.base), usize::from(self.head), usize::from(self.count));
        let places = (0..base).chain(head + 1..count).chain(base..count.min(head + 1));
        places.map(|place| Kept {
            reading: self.reading(place),
            after_forgotten: self.after_forgotten >> place & 1 == 1,
        })
    }

    /// Returns the estimated interval between readings, in milliseconds; `u32::MAX` if unknown.
    pub fn step_ms(&self) -> u32 {
        self.step_ms
    }

    /// Returns the place, in order of time, of the reading that is forgotten next; 0 while none is
    /// chosen.
    pub fn base(&self) -> u8 {
        self.base
    }

    /// Adds a reading after all others and returns its increase and rate; `None` when the reading
    /// is not the latest or a gap must be forgotten for it.
    #[inline]
    pub(super) fn take_behind(&mut self, new: &Reading) -> Option<(f64, f64)> {
        let head = usize::from(self.head) % READINGS_MAX;
        let place = self.place_behind(head, new.at)?;
        let before = self.reading(head);
        let increase = new.increase_from(&before);
        let passed = new.at.saturating_sub(before.at);
        self.update_step(passed);
        self.set(place, *new);
        self.head = place as u8;
        Some((increase, per_second(increase, passed)))
    }

    /// Returns the place for a reading after all others, if no gap must be forgotten for it.
    #[inline]
    fn place_behind(&mut self, head: usize, at: i64) -> Option<usize> {
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
    fn next_in_ring(&self, place: usize) -> usize {
        let next = if place + 1 == READINGS_MAX { usize::from(self.base) } else { place + 1 };
        next % READINGS_MAX
    }

    /// Adds a reading between others, or a reading for which a gap must be forgotten.
    #[cold]
    pub(super) fn take_between(&mut self, mut new: Reading) -> Taken {
        let mut readings = Vec::with_capacity(READINGS_MAX + 1);
        readings.extend(self.in_order());
        if let Some(latest) = readings.last().map(|kept| kept.reading)
            && latest.began_before(new.at)
            && new.at < latest.at
            && new.value > latest.value
        {
            return self.continue_from(&latest, new);
        }
        let place = readings.partition_point(|kept| kept.reading.at < new.at);
        if place == 0
            && let Some(Kept { reading: first, .. }) = readings.first()
            && !(first.counts_whole() && first.began_before(new.at))
        {
            new = new.without_count();
        }
        let at_place = readings.get(place).map(|kept| kept.reading);
        let replaced = at_place.filter(|old| old.at == new.at);
        let behind = place + usize::from(replaced.is_some());
        // Next to forgotten readings, the growth is already counted.
        let follows_forgotten =
            |place: usize| readings.get(place).is_some_and(|kept| kept.after_forgotten);
        if follows_forgotten(place)
            || follows_forgotten(behind)
            || replaced.is_some_and(|old| !new.outranks(&old))
        {
            return Taken::default();
        }
        let is_contradicted =
            |after: &Reading| after.began_before(new.at) && after.value < new.value;
        if readings.get(behind).is_some_and(|kept| is_contradicted(&kept.reading)) {
            return Taken::default();
        }
        let before = place.checked_sub(1).map(|before| readings[before].reading);
        let (before, replaced) = (before.as_ref(), replaced.as_ref());
        let replaced_increase = replaced.map_or(0.0, |old| old.increase_since(before));
        let correction = readings.get(behind).map(|Kept { reading: after, .. }| Correction {
            at: UnixMillis(after.at),
            increase: after.increase_from(&new) - after.increase_since(replaced.or(before)),
            rate: after.rate_since(Some(&new)),
        });
        let taken = Taken {
            increase: new.increase_since(before) - replaced_increase,
            rate: new.rate_since(before),
            correction,
        };
        if let (Some(before), None) = (before, correction) {
            self.update_step(new.at.saturating_sub(before.at));
        }
        let kept = Kept { reading: new, after_forgotten: false };
        if replaced.is_some() {
            readings[place] = kept;
        } else {
            readings.insert(place, kept);
        }
        if readings.len() > READINGS_MAX {
            let place = self.least(&readings);
            readings.remove(place);
            readings[place].after_forgotten = true;
        }
        self.put(&readings);
        taken
    }

    /// Continues from the latest reading although the new one has an earlier time, because the
    /// sender's clock was set back. From now on, readings before the new one add nothing: it is
    /// unknown whether the clock was set back before or after them.
    fn continue_from(&mut self, latest: &Reading, new: Reading) -> Taken {
        let kept = Kept { reading: new.without_count(), after_forgotten: true };
        self.put(&[kept]);
        Taken { increase: new.value - latest.value, ..Taken::default() }
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

    /// Returns the place of the reading that is forgotten first.
    fn least(&self, readings: &[Kept]) -> usize {
        let newest = readings.last().map_or(0, |kept| kept.reading.at);
        // The gap's length in proportion to the time since it began.
        let weight = |place: usize| {
            let (from, to) = (readings[place - 1].reading.at, readings[place].reading.at);
            if readings[place].after_forgotten || !self.is_gap(from, to) {
                return 0.0;
            }
            to.saturating_sub(from) as f64 / newest.saturating_sub(from) as f64
        };
        let mut least = (1, f64::INFINITY);
        let mut before = weight(1);
        for place in 1..=FORGOTTEN_LAST {
            let after = weight(place + 1);
            let loss = before.max(after);
            if loss < least.1 {
                least = (place, loss);
            }
            before = after;
        }
        least.0
    }

    /// Replaces all readings; `readings` is ordered by time.
    fn put(&mut self, readings: &[Kept]) {
        self.after_forgotten = 0;
        for (place, kept) in readings.iter().enumerate() {
            self.set(place, kept.reading);
            self.after_forgotten |= u8::from(kept.after_forgotten) << place;
        }
        self.count = readings.len() as u8;
        self.head = self.count.saturating_sub(1);
        self.base = if readings.len() == READINGS_MAX { self.least(readings) as u8 } else { 0 };
    }

    #[inline]
    fn set(&mut self, place: usize, reading: Reading) {
        self.at.set(place, reading.at);
        self.value[place] = reading.value;
        self.age[place] = u32::try_from(reading.age).unwrap_or(u32::MAX);
    }

    #[inline]
    fn reading(&self, place: usize) -> Reading {
        let age = match self.age[place] {
            // A start before any reading that matters.
            u32::MAX => i64::MAX,
            age => i64::from(age),
        };
        Reading { at: self.at.get(place), value: self.value[place], age }
    }
}

impl PartialEq for Remembered {
    fn eq(&self, other: &Self) -> bool {
        (self.step_ms, self.base) == (other.step_ms, other.base)
            && self.in_order().eq(other.in_order())
    }
}
