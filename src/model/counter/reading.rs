//! Readings of counters, and the increase between two of them.

/// The maximum age of a counter at its first reading for which its start counts as a reading of
/// zero; the caller of `observe` may allow less. Prometheus has a similar limit: it inserts a zero
/// at a start only where its head still accepts samples, about an hour back.
pub const START_COUNTS_MS: i64 = 3_600_000;

/// The distance by which a start is moved into the past when its reading does not count whole,
/// although the counter began at most [`START_COUNTS_MS`] before the reading: 557 years. The real
/// start still tells a reset from a clock that was set back.
const NOT_COUNTED_MS: i64 = 1 << 44;

/// A reading of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// The time of the reading, Unix milliseconds.
    pub at: i64,
    /// The value of the counter.
    pub value: f64,
    /// The age of the counter at the reading, in milliseconds; 0 if unknown. `NOT_COUNTED_MS` is
    /// added to an age of at most [`START_COUNTS_MS`] if the reading does not count whole.
    pub age: i64,
}

/// Returns the start that a counter's reading at `at` has when the reading does not count whole.
pub fn start_without_count(at: i64, start: i64) -> i64 {
    at.saturating_sub(Reading::new(at, 0.0, start).without_count().age)
}

impl Reading {
    /// Returns a reading of a counter that began at `start`, Unix milliseconds, 0 if unknown. A
    /// start at or after the reading counts as unknown: some senders use the time of the reading
    /// when they do not know the start.
    pub fn new(at: i64, value: f64, start: i64) -> Self {
        let age = if start == 0 || start >= at { 0 } else { at.saturating_sub(start) };
        Self { at, value, age }
    }

    /// Returns the reading with a mark, so that it does not count whole; its start stays known.
    pub(crate) fn without_count(self) -> Self {
        let mark = if self.counts_whole() { NOT_COUNTED_MS } else { 0 };
        Self { age: self.age + mark, ..self }
    }

    /// Returns true when the reading has the mark of `without_count`.
    #[inline]
    pub(super) fn is_without_count(&self) -> bool {
        (1..=START_COUNTS_MS).contains(&self.age.saturating_sub(NOT_COUNTED_MS))
    }

    /// Returns the age of the counter without the mark of `without_count`.
    #[inline]
    pub(super) fn real_age(&self) -> i64 {
        if self.is_without_count() { self.age - NOT_COUNTED_MS } else { self.age }
    }

    /// Returns true when the counter began before the time `at`, which lies before the reading.
    pub(crate) fn began_before(&self, at: i64) -> bool {
        self.real_age() > self.at.saturating_sub(at)
    }

    /// Returns the growth since the previous reading in time, or since the counter began.
    pub(super) fn increase_since(&self, before: Option<&Self>) -> f64 {
        match before {
            Some(before) => self.increase_from(before),
            None if self.counts_whole() => self.value,
            None => 0.0,
        }
    }

    /// Returns the growth per second; `None` without a previous reading or start.
    pub(super) fn rate_since(&self, before: Option<&Self>) -> Option<f64> {
        let passed_ms = match before {
            Some(before) => self.at.saturating_sub(before.at),
            None if self.counts_whole() => self.age,
            None => return None,
        };
        Some(per_second(self.increase_since(before), passed_ms))
    }

    /// Returns the growth since a previous reading. A counter that began after or at the previous
    /// reading was reset: some senders begin at the end of the previous period. A start at a
    /// previous reading without a start is not a reset, because senders that do not know the start
    /// use the time of their first reading. Without starts, a decrease is a reset; a wrap is never
    /// assumed.
    #[inline]
    pub(super) fn increase_from(&self, before: &Self) -> f64 {
        let restarted = self.restarted_since(before);
        if restarted || self.value < before.value { self.value } else { self.value - before.value }
    }

    /// Returns true when the start shows that the counter was reset since a previous reading.
    #[inline]
    pub(crate) fn restarted_since(&self, before: &Self) -> bool {
        let (age, passed) = (self.real_age(), self.at.saturating_sub(before.at));
        age != 0 && (age < passed || age == passed && before.age != 0)
    }

    /// Returns true when this reading counts instead of another one at the same time: the larger
    /// value wins, then the later start, so that the order of arrival does not matter.
    pub(super) fn outranks(&self, other: &Self) -> bool {
        let start = |reading: &Self| if reading.age == 0 { i64::MIN } else { -reading.real_age() };
        let by_value = self.value.total_cmp(&other.value);
        by_value.then_with(|| start(self).cmp(&start(other))).is_gt()
    }

    /// Returns true when the whole value counts if this is the counter's first reading.
    pub(crate) fn counts_whole(&self) -> bool {
        (1..=START_COUNTS_MS).contains(&self.age)
    }
}

#[inline]
pub(super) fn per_second(increase: f64, passed_ms: i64) -> f64 {
    increase / (passed_ms as f64 / 1000.0)
}
