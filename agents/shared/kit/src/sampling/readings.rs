//! What a source measured in one round.

use std::{borrow::Cow, collections::BTreeMap, error::Error, fmt::Display, sync::Arc};

use granary_protocol::{Kind, is_stale_marker};

use crate::{Series, WatchedHost};

/// Why a source, or a part of it, has no readings this round.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// Something that can be sampled.
pub trait Source {
    /// A word for logs, such as `cpu`.
    fn name(&self) -> &'static str;

    /// Adds this round's readings, all taken to be measured at `now_ms` (Unix milliseconds).
    ///
    /// # Errors
    /// When the source failed as a whole. What was added before stays; the failure is logged and
    /// the other sources go on. For a failing part, [`Readings::problem`] says which.
    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError>;

    /// One round by itself, for `--print`: what is otherwise measured in the background is measured
    /// now.
    ///
    /// # Errors
    /// As [`Source::sample`].
    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.sample(now_ms, readings)
    }

    /// What is sampled, for the log where several sources have one name.
    fn place(&self) -> String {
        self.name().to_owned()
    }

    /// When the host was booted, in Unix milliseconds, if this source knows.
    fn booted_ms(&self) -> Option<i64> {
        None
    }

    /// The agent was told to stop. True when something came in since the last round that would be
    /// lost: then there is one more round.
    fn stop(&mut self) -> bool {
        false
    }
}

/// One measured value and its series.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// What is measured.
    pub metric: Cow<'static, str>,
    /// Where, sorted by key.
    pub tags: Vec<(Cow<'static, str>, String)>,
    /// How values are to be read.
    pub kind: Kind,
    /// Unit of the value; empty when there is none.
    pub unit: Cow<'static, str>,
    /// The value.
    pub value: f64,
    /// Since when a counter counts, in Unix milliseconds.
    pub start_ms: Option<i64>,
}

/// A value of a series that was described before.
#[derive(Debug, Clone)]
pub struct KnownReading {
    /// The series.
    pub series: Arc<Series>,
    /// The value.
    pub value: f64,
    /// When it was measured, in Unix milliseconds.
    pub time_ms: i64,
    /// Since when a counter counts, in Unix milliseconds.
    pub start_ms: Option<i64>,
}

/// The readings of one round, and what could not be read.
#[derive(Debug, Default)]
pub struct Readings {
    common: Vec<(String, String)>,
    list: Vec<Reading>,
    known: Vec<KnownReading>,
    problems: BTreeMap<String, String>,
    watched: Vec<WatchedHost>,
    not_finite: u64,
}

impl Readings {
    /// No readings yet; `common` tags are added to each.
    pub fn new(common: Vec<(String, String)>) -> Self {
        Self { common, ..Self::default() }
    }

    /// Adds a level.
    pub fn gauge(
        &mut self,
        metric: impl Into<Cow<'static, str>>,
        unit: &'static str,
        tags: &[(&'static str, &str)],
        value: f64,
    ) {
        self.add(metric.into(), unit, tags, (Kind::Gauge, value, None));
    }

    /// Adds a running total, with the time since when it counts where that is known.
    pub fn counter(
        &mut self,
        metric: impl Into<Cow<'static, str>>,
        unit: &'static str,
        tags: &[(&'static str, &str)],
        value: f64,
        start_ms: Option<i64>,
    ) {
        self.add(metric.into(), unit, tags, (Kind::Counter, value, start_ms));
    }

    /// Adds a number of events since the sample before.
    pub fn delta(
        &mut self,
        metric: impl Into<Cow<'static, str>>,
        unit: &'static str,
        tags: &[(&'static str, &str)],
        value: f64,
    ) {
        self.add(metric.into(), unit, tags, (Kind::Delta, value, None));
    }

    /// Adds a reading whose parts are computed; common tags are added where it lacks them.
    pub fn push(&mut self, mut reading: Reading) {
        if !reading.value.is_finite() {
            self.not_finite += 1;
            return;
        }
        for (key, value) in &self.common {
            if !reading.tags.iter().any(|(own, _)| own == key) {
                reading.tags.push((Cow::Owned(key.clone()), value.clone()));
            }
        }
        reading.tags.sort_unstable();
        self.list.push(reading);
    }

    /// Adds a value of a series that was described before, with a time of its own. A gauge may be
    /// anything, and the stale marker says of any series that it has ended.
    pub fn push_known(&mut self, reading: KnownReading) {
        let KnownReading { value, ref series, .. } = reading;
        if value.is_finite() || is_stale_marker(value) || series.kind() == Kind::Gauge {
            self.known.push(reading);
        } else {
            self.not_finite += 1;
        }
    }

    /// Notes that a part, such as one file system, could not be read. It is logged when it
    /// begins and when it ends, not each round.
    pub fn problem(&mut self, place: impl Into<String>, cause: impl Display) {
        self.problems.insert(place.into(), cause.to_string());
    }

    /// Notes that a host other than the agent's own answered: the agent pings for it.
    pub fn watched(&mut self, host: WatchedHost) {
        self.watched.push(host);
    }

    /// Adds what was read apart from these readings, which have the common tags.
    pub fn append(&mut self, other: Self) {
        other.list.into_iter().for_each(|reading| self.push(reading));
        for mut reading in other.known {
            if !other.common.is_empty() {
                reading.series = Arc::new(reading.series.with(&other.common));
            }
            self.push_known(reading);
        }
        self.problems.extend(other.problems);
        self.watched.extend(other.watched);
        self.not_finite += other.not_finite;
    }

    /// Adds what was read apart from these readings, at a time before this round's.
    pub(crate) fn append_at(&mut self, mut other: Self, time_ms: i64) {
        for own in std::mem::take(&mut other.list) {
            let Reading { metric, tags, kind, unit, value, start_ms } = own;
            let tags = tags.into_iter().map(|(key, value)| (key.into_owned(), value)).collect();
            let series = Series::new(metric, tags, kind, unit);
            self.push_known(KnownReading { series: series.into(), value, time_ms, start_ms });
        }
        self.append(other);
    }

    /// What was read.
    pub fn as_slice(&self) -> &[Reading] {
        &self.list
    }

    /// What was read of series that were described before.
    pub fn known(&self) -> &[KnownReading] {
        &self.known
    }

    /// How many values were read.
    pub fn len(&self) -> usize {
        self.list.len() + self.known.len()
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tags that each reading has.
    pub(crate) fn common(&self) -> &[(String, String)] {
        &self.common
    }

    /// What could not be read: place and cause.
    pub fn problems(&self) -> &BTreeMap<String, String> {
        &self.problems
    }

    /// How many values were left out because they are NaN or infinite.
    pub fn not_finite(&self) -> u64 {
        self.not_finite
    }

    /// The hosts that answered.
    pub(crate) fn take_watched(&mut self) -> Vec<WatchedHost> {
        std::mem::take(&mut self.watched)
    }

    /// Forgets the round, keeps the common tags.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.known.clear();
        self.problems.clear();
        self.watched.clear();
        self.not_finite = 0;
    }

    fn add(
        &mut self,
        metric: Cow<'static, str>,
        unit: &'static str,
        tags: &[(&'static str, &str)],
        (kind, value, start_ms): (Kind, f64, Option<i64>),
    ) {
        let tags =
            tags.iter().map(|(key, value)| (Cow::Borrowed(*key), (*value).to_owned())).collect();
        self.push(Reading { metric, tags, kind, unit: Cow::Borrowed(unit), value, start_ms });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_tags_are_added_but_do_not_replace_own_ones() {
        let mut readings =
            Readings::new(vec![("env".into(), "prod".into()), ("dc".into(), "a".into())]);
        readings.gauge("load", "", &[("host", "web1"), ("dc", "b")], 1.0);
        let tags: Vec<_> =
            readings.as_slice()[0].tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(tags, ["dc=b", "env=prod", "host=web1"]);
    }

    #[test]
    fn what_was_read_apart_keeps_its_common_tags_and_its_time() {
        let mut apart = Readings::new(vec![("script".into(), "s".into())]);
        let series = Arc::new(Series::new("a", Vec::new(), Kind::Gauge, ""));
        apart.push_known(KnownReading { series, value: 1.0, time_ms: 5, start_ms: None });
        apart.gauge("b", "", &[], 2.0);
        let mut readings = Readings::default();
        readings.append_at(apart, 7);
        let known = readings.known().iter().map(|own| (own.series.metric(), own.time_ms));
        assert_eq!(known.collect::<Vec<_>>(), [("b", 7), ("a", 5)]);
        let has_tag = |own: &KnownReading| own.series.tags().eq([("script", "s")]);
        assert!(readings.known().iter().all(has_tag));
    }

    #[test]
    fn values_that_are_no_numbers_are_counted_and_left_out() {
        let mut readings = Readings::default();
        readings.gauge("ratio", "", &[], f64::NAN);
        readings.counter("total", "", &[], f64::INFINITY, None);
        readings.delta("events", "", &[], 3.0);
        assert_eq!((readings.as_slice().len(), readings.not_finite()), (1, 2));
        readings.clear();
        assert_eq!((readings.as_slice().len(), readings.not_finite()), (0, 0));
    }
}
