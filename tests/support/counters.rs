//! Counters in a naive model, which keeps all readings of a counter and compares each reading with
//! the reading before it in time. The model ignores which readings the store keeps, and uses only
//! the store's guarantees: see [`NaiveCounter::is_guaranteed`].

use std::collections::BTreeMap;

/// A first reading counts in full when its counter started within this time before the reading, and
/// after a time derived from the sender's rounds.
const START_COUNTS_MS: i64 = 3_600_000;
/// Up to this many readings, a counter is corrected in whatever order they arrive.
const READINGS_IN_ANY_ORDER: usize = 8;
/// Up to this many readings of histograms, growth is corrected in whatever order they arrive.
const HISTOGRAM_READINGS: usize = 4;
/// A reading is corrected while fewer than this many newer readings exist.
const CORRECTED_READINGS: usize = 3;

/// All readings of one counter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NaiveCounter {
    /// Value and start of each reading, by its time. When several readings have the same time, the
    /// map contains the reading with the largest value.
    readings: BTreeMap<i64, (f64, Option<i64>)>,
    /// Rates per second between readings that were neighbours when either of them arrived, by the
    /// time of the later reading.
    rates: Vec<(i64, f64)>,
    /// The growth at readings that are final, by their time: they arrived before the sender's clock
    /// was set back, or contradict other readings.
    final_increases: BTreeMap<i64, f64>,
    /// The time of the reading after which the clock was set back: earlier readings do not count.
    set_back_to: Option<i64>,
    /// True if the first reading counts in full when its counter started shortly before it.
    first_may_count: bool,
}

impl NaiveCounter {
    /// Returns true if the store guarantees that the growth at this time equals the growth of
    /// readings in order.
    pub(crate) fn is_guaranteed(&self, at: i64) -> bool {
        let newer = self.readings.range(at + 1..).count();
        let is_repeated = usize::from(self.readings.contains_key(&at));
        self.readings.len() <= READINGS_IN_ANY_ORDER || newer + is_repeated < CORRECTED_READINGS
    }

    /// Returns true if the store guarantees the growth of histograms at this time: it remembers
    /// fewer of their readings, and of two readings at a time the one that arrived first.
    pub(crate) fn is_guaranteed_for_histograms(&self, at: i64) -> bool {
        let newer = self.readings.range(at + 1..).count();
        let is_first = newer == self.readings.len();
        let is_repeated = self.readings.contains_key(&at);
        let is_remembered = self.readings.len() <= HISTOGRAM_READINGS || newer < CORRECTED_READINGS;
        !is_repeated && (is_first || is_remembered)
    }

    /// Returns the time of the latest reading.
    pub(crate) fn latest_time(&self) -> Option<i64> {
        self.readings.keys().next_back().copied()
    }

    /// Adds a reading; a start of 0 is unknown. A first reading counts in full when the counter
    /// started at `counts_from` or later.
    pub(crate) fn add_reading(&mut self, at: i64, value: f64, start: i64, counts_from: i64) {
        // A start at the reading or after it has no meaning.
        let start = Some(start).filter(|start| *start != 0 && *start < at);
        if let Some((newest, (latest, Some(began)))) = self.readings.last_key_value()
            && at < *newest
            && *began < at
            && *latest < value
        {
            return self.set_back(at, value, value - latest, start);
        }
        let next = self.readings.range(at + 1..).next();
        let is_contradicted =
            next.is_some_and(|(_, (next, began))| *next < value && began.is_some_and(|b| b < at));
        if is_contradicted || self.set_back_to.is_some_and(|first| at <= first) {
            self.final_increases.entry(at).or_default();
            return;
        }
        if self.readings.get(&at).is_some_and(|old| (value, start) <= *old) {
            return;
        }
        self.first_may_count = match self.readings.first_key_value() {
            None => start >= Some(counts_from),
            Some((first_at, _)) if *first_at < at => self.first_may_count,
            Some((first_at, (_, began))) => {
                let began_between = |began| began < at && first_at - began <= START_COUNTS_MS;
                self.first_may_count && began.is_some_and(began_between)
            }
        };
        self.readings.insert(at, (value, start));
        self.rates.extend(self.rate(at).map(|rate| (at, rate)));
        if let Some((after, _)) = self.readings.range(at + 1..).next() {
            self.rates.extend(self.rate(*after).map(|rate| (*after, rate)));
        }
    }

    /// Returns the growth at each reading, by its time.
    pub(crate) fn increases(&self) -> BTreeMap<i64, f64> {
        let mut all = self.final_increases.clone();
        for at in self.readings.keys() {
            *all.entry(*at).or_default() += self.increase(*at);
        }
        all
    }

    /// Returns the time and value of each reading, and the value from which it grew; nothing when
    /// the sender's clock was set back, after which counts and histograms continue differently.
    pub(crate) fn growths(&self) -> impl Iterator<Item = (i64, f64, f64)> {
        let was_set_back = self.set_back_to.is_some();
        self.readings.keys().filter(move |_| !was_set_back).map(|at| {
            let (value, since) = self.growth(*at);
            (*at, value, since)
        })
    }

    /// Makes all readings so far final, because the sender's clock was set back; the counter
    /// continues at the new reading.
    fn set_back(&mut self, at: i64, value: f64, grown: f64, start: Option<i64>) {
        self.final_increases = self.increases();
        *self.final_increases.entry(at).or_default() += grown;
        self.readings = BTreeMap::from([(at, (value, start))]);
        self.first_may_count = false;
        self.set_back_to = Some(at);
    }

    /// Returns the rates by the time of their later reading, including rates over gaps that were
    /// filled later.
    pub(crate) fn rates(&self) -> &[(i64, f64)] {
        &self.rates
    }

    fn increase(&self, at: i64) -> f64 {
        let (value, since) = self.growth(at);
        value - since
    }

    /// Returns the value at a time and the value from which it grew: its own one if the reading
    /// does not count, and 0 after a reset.
    fn growth(&self, at: i64) -> (f64, f64) {
        let (value, start) = self.readings[&at];
        let Some((before_at, (before, before_start))) = self.readings.range(..at).next_back()
        else {
            return (value, if self.counts_from(at).is_some() { 0.0 } else { value });
        };
        let began = start.is_some_and(|start| {
            start > *before_at || start == *before_at && before_start.is_some()
        });
        (value, if began || value < *before { 0.0 } else { *before })
    }

    /// Returns the start from which the first reading, at this time, counts in full, if it does.
    fn counts_from(&self, at: i64) -> Option<i64> {
        let start = self.readings[&at].1.filter(|start| at - start <= START_COUNTS_MS);
        start.filter(|_| self.first_may_count)
    }

    fn rate(&self, at: i64) -> Option<f64> {
        let since = match self.readings.range(..at).next_back() {
            Some((before, _)) => *before,
            None => self.counts_from(at)?,
        };
        Some(self.increase(at) / ((at - since) as f64 / 1000.0))
    }
}
