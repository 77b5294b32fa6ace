//! Readings of counters, and the increase between two of them.

/// The maximum age of a counter at its first reading for which its start counts as a reading of
/// zero; the caller of `observe` may allow less. Prometheus has a similar limit: it inserts a zero
/// at a start only where its head still accepts samples, about an hour back.
pub const START_COUNTS_MS: i64 = 3_600_000;

/// A reading of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// The time of the reading, Unix milliseconds.
    pub at: i64,
    /// The value of the counter.
    pub value: f64,
    /// The age of the counter at the reading, in milliseconds; 0 if unknown.
    pub age: i64,
}

impl Reading {
    /// Returns a reading of a counter that began at `start`, Unix milliseconds, 0 if unknown. A
    /// start at or after the reading counts as unknown: some senders use the time of the reading
    /// when they do not know the start.
    pub fn new(at: i64, value: f64, start: i64) -> Self {
        let age = if start == 0 || start >= at { 0 } else { at.saturating_sub(start) };
        Self { at, value, age }
    }

    /// Returns the reading with a start that is too old for the reading to count whole.
    pub(crate) fn without_count(self) -> Self {
        let age = if self.age == 0 { 0 } else { self.age.max(START_COUNTS_MS + 1) };
        Self { age, ..self }
    }

    /// Returns true when the counter began before the time `at`, which lies before the reading.
    pub(crate) fn began_before(&self, at: i64) -> bool {
        self.age > self.at.saturating_sub(at)
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
        let passed = self.at.saturating_sub(before.at);
        self.age != 0 && (self.age < passed || self.age == passed && before.age != 0)
    }

    /// Returns true when this reading counts instead of another one at the same time: the larger
    /// value wins, then the later start, so that the order of arrival does not matter.
    pub(super) fn outranks(&self, other: &Self) -> bool {
        let start = |reading: &Self| if reading.age == 0 { i64::MIN } else { -reading.age };
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
