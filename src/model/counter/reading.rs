//! One reading of a counter, and what was counted between two of them.

/// The zero at which a counter began counts as the reading before its first one, if it lies no
/// longer back than this, and no longer than the caller of `observe` allows. Prometheus, too, puts
/// a zero at a start only where its head still takes samples, about an hour back.
pub const START_COUNTS_MS: i64 = 3_600_000;

/// One reading of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// When it was read, Unix milliseconds.
    pub at: i64,
    /// What the counter said.
    pub value: f64,
    /// For how long it had counted by then, milliseconds; 0 when not known.
    pub age: i64,
}

impl Reading {
    /// A reading of a counter that began at `start`, Unix milliseconds, 0 when not known. Senders
    /// that do not know the start may say the time of the reading; that, and a later one, is none.
    pub fn new(at: i64, value: f64, start: i64) -> Self {
        let age = if start == 0 || start >= at { 0 } else { at.saturating_sub(start) };
        Self { at, value, age }
    }

    /// The reading with a start that does not count.
    pub(super) fn without_count(self) -> Self {
        let age = if self.age == 0 { 0 } else { self.age.max(START_COUNTS_MS + 1) };
        Self { age, ..self }
    }

    /// Whether the counter is known to have begun before a time that lies before the reading.
    pub(super) fn began_before(&self, at: i64) -> bool {
        self.age > self.at.saturating_sub(at)
    }

    /// How much was counted since the reading before in time, or since the counter began.
    pub(super) fn increase_since(&self, before: Option<&Self>) -> f64 {
        match before {
            Some(before) => self.increase_from(before),
            None if self.counts_whole() => self.value,
            None => 0.0,
        }
    }

    /// The same per second; `None` when there is nothing before.
    pub(super) fn rate_since(&self, before: Option<&Self>) -> Option<f64> {
        let passed_ms = match before {
            Some(before) => self.at.saturating_sub(before.at),
            None if self.counts_whole() => self.age,
            None => return None,
        };
        Some(per_second(self.increase_since(before), passed_ms))
    }

    /// A counter that began after the reading before was reset, and so was one that began at it, as
    /// where points follow each other without a gap; but a reading that has no start itself may be
    /// the one from which an unknown start is counted. Else a decrease tells of a reset; a wrap is
    /// never guessed.
    #[inline]
    pub(super) fn increase_from(&self, before: &Self) -> f64 {
        let passed = self.at.saturating_sub(before.at);
        let began = self.age != 0 && (self.age < passed || self.age == passed && before.age != 0);
        if began || self.value < before.value { self.value } else { self.value - before.value }
    }

    /// Whether this one counts of two at the same time: the larger value, then the later start, so
    /// that the order in which they come does not matter.
    pub(super) fn outranks(&self, other: &Self) -> bool {
        let start = |reading: &Self| if reading.age == 0 { i64::MIN } else { -reading.age };
        let by_value = self.value.total_cmp(&other.value);
        by_value.then_with(|| start(self).cmp(&start(other))).is_gt()
    }

    pub(super) fn counts_whole(&self) -> bool {
        (1..=START_COUNTS_MS).contains(&self.age)
    }
}

#[inline]
pub(super) fn per_second(increase: f64, passed_ms: i64) -> f64 {
    increase / (passed_ms as f64 / 1000.0)
}
