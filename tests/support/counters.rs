//! What was counted, by a naive model: all readings of a counter are kept, and each is compared
//! with the one before it in time. Knows nothing of what the store remembers, but what the store
//! promises: see [`NaiveCounter::is_promised`].

use std::collections::BTreeMap;

/// A first reading counts whole when the counter began no longer before it than this, and since a
/// time that the sender's rounds give.
const START_COUNTS_MS: i64 = 3_600_000;
/// So many readings are put right in any order.
const ANY_ORDER: usize = 8;
/// A reading is put right while fewer than so many are newer.
const LATEST: usize = 3;

/// All readings of one counter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NaiveCounter {
    /// Value and start by time; of several readings at one time that of the larger value.
    readings: BTreeMap<i64, (f64, Option<i64>)>,
    /// Rates per second between readings that were neighbours when one of them came, by the time
    /// of the later one.
    rates: Vec<(i64, f64)>,
    /// What readings from before the sender's clock was set back added, by their time.
    settled: BTreeMap<i64, f64>,
    /// The time of the reading after which the clock was set back: nothing before it counts.
    set_back_to: Option<i64>,
}

impl NaiveCounter {
    /// Whether a reading at this time is one for which the store promises that every increase is
    /// as if all readings had come in order.
    pub(crate) fn is_promised(&self, at: i64) -> bool {
        let newer = self.readings.range(at + 1..).count();
        let known = usize::from(self.readings.contains_key(&at));
        self.readings.len() <= ANY_ORDER || newer + known < LATEST
    }

    /// Time of the latest reading.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.readings.keys().next_back().copied()
    }

    /// Takes in a reading; a start of 0 is not known. As a first one it counts whole when the
    /// counter began at `counts_from` or later.
    pub(crate) fn read(&mut self, at: i64, value: f64, start: i64, counts_from: i64) {
        // A counter that begins with its reading, or after it, says nothing.
        let mut start = Some(start).filter(|start| *start != 0 && *start < at);
        let never = at - START_COUNTS_MS - 1;
        if let Some((newest, (latest, Some(began)))) = self.readings.last_key_value()
            && at < *newest
            && *began < at
            && *latest < value
        {
            return self.set_back(at, value, value - latest, start.map(|start| start.min(never)));
        }
        let next = self.readings.range(at + 1..).next();
        let is_contradicted =
            next.is_some_and(|(_, (next, began))| *next < value && began.is_some_and(|b| b < at));
        if is_contradicted || self.set_back_to.is_some_and(|first| at <= first) {
            self.settled.entry(at).or_default();
            return;
        }
        let counts = match self.readings.first_key_value() {
            None => start >= Some(counts_from),
            Some((first_at, _)) if *first_at < at => true,
            Some((first_at, (_, began))) => {
                began.is_some_and(|began| began < at && first_at - began <= START_COUNTS_MS)
            }
        };
        if !counts {
            start = start.map(|start| start.min(never));
        }
        if self.readings.get(&at).is_some_and(|old| (value, start) <= *old) {
            return;
        }
        self.readings.insert(at, (value, start));
        self.rates.extend(self.rate(at).map(|rate| (at, rate)));
        if let Some((after, _)) = self.readings.range(at + 1..).next() {
            self.rates.extend(self.rate(*after).map(|rate| (*after, rate)));
        }
    }

    /// What each reading adds, by its time.
    pub(crate) fn increases(&self) -> BTreeMap<i64, f64> {
        let mut all = self.settled.clone();
        for at in self.readings.keys() {
            *all.entry(*at).or_default() += self.increase(*at);
        }
        all
    }

    /// The sender's clock was set back: what was read is settled, and the counter goes on.
    fn set_back(&mut self, at: i64, value: f64, grown: f64, start: Option<i64>) {
        self.settled = self.increases();
        *self.settled.entry(at).or_default() += grown;
        self.readings = BTreeMap::from([(at, (value, start))]);
        self.set_back_to = Some(at);
    }

    /// Rates by the time of the later reading, those over gaps that were filled later included.
    pub(crate) fn rates(&self) -> &[(i64, f64)] {
        &self.rates
    }

    fn increase(&self, at: i64) -> f64 {
        let (value, start) = self.readings[&at];
        let Some((before_at, (before, before_start))) = self.readings.range(..at).next_back()
        else {
            let counts = start.is_some_and(|start| at - start <= START_COUNTS_MS);
            return if counts { value } else { 0.0 };
        };
        let began = start.is_some_and(|start| {
            start > *before_at || start == *before_at && before_start.is_some()
        });
        if began || value < *before { value } else { value - before }
    }

    fn rate(&self, at: i64) -> Option<f64> {
        let since = match self.readings.range(..at).next_back() {
            Some((before, _)) => *before,
            None => self.readings[&at].1.filter(|start| at - start <= START_COUNTS_MS)?,
        };
        Some(self.increase(at) / ((at - since) as f64 / 1000.0))
    }
}
