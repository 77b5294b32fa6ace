//! The readings of sources in one round.

use std::{borrow::Cow, collections::BTreeMap, error::Error, fmt::Display, sync::Arc};

use granary_histogram::Histogram;
use granary_protocol::{Kind, is_stale_marker};

use crate::{Series, WatchedHost};

/// The reason why a source, or a part of it, has no readings in this round.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// A source of readings.
pub trait Source {
    /// Returns the name in logs, such as `cpu`.
    fn name(&self) -> &'static str;

    /// Adds the readings of this round; `now_ms` is their time, in Unix milliseconds.
    ///
    /// # Errors
    /// The source failed as a whole. Readings that it added before are kept, the failure is logged,
    /// and the other sources continue. [`Readings::problem`] reports a part that failed.
    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError>;

    /// Samples a single round, for `--print`. A source that usually measures in the background
    /// measures during this call.
    ///
    /// # Errors
    /// The errors of [`Source::sample`].
    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.sample(now_ms, readings)
    }

    /// Returns the name in logs of the sampled object, because several sources may share a name.
    fn object(&self) -> String {
        self.name().to_owned()
    }

    /// Returns the boot time of the host, in Unix milliseconds, if this source knows it.
    fn booted_ms(&self) -> Option<i64> {
        None
    }

    /// Prepares the stop of the agent. Returns true when the source has data since the last round;
    /// one more round then saves it.
    fn stop(&mut self) -> bool {
        false
    }
}

/// One measured value and its series.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The name of the metric.
    pub metric: Cow<'static, str>,
    /// The tags, sorted by name.
    pub tags: Vec<(Cow<'static, str>, String)>,
    /// The kind of the values.
    pub kind: Kind,
    /// The unit of the value, or an empty text.
    pub unit: Cow<'static, str>,
    /// The value.
    pub value: f64,
    /// The start time of a counter, in Unix milliseconds.
    pub start_ms: Option<i64>,
}

/// A value of a described series.
#[derive(Debug, Clone)]
pub struct KnownReading {
    /// The series.
    pub series: Arc<Series>,
    /// The value.
    pub value: f64,
    /// The time of the measurement, in Unix milliseconds.
    pub time_ms: i64,
    /// The start time of a counter, in Unix milliseconds.
    pub start_ms: Option<i64>,
    /// The histogram of a series of histograms; the value is then its number of observations.
    pub histogram: Option<Box<Histogram>>,
}

/// The readings of one round, and its problems.
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
    /// Creates an empty round; the `common` tags are added to each reading.
    pub fn new(common: Vec<(String, String)>) -> Self {
        Self { common, ..Self::default() }
    }

    /// Adds a gauge.
    pub fn gauge(
        &mut self,
        metric: impl Into<Cow<'static, str>>,
        unit: &'static str,
        tags: &[(&'static str, &str)],
        value: f64,
    ) {
        self.add(metric.into(), unit, tags, (Kind::Gauge, value, None));
    }

    /// Adds a counter, with its start time if known.
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

    /// Adds a delta: the number of events since the previous sample.
    pub fn delta(
        &mut self,
        metric: impl Into<Cow<'static, str>>,
        unit: &'static str,
        tags: &[(&'static str, &str)],
        value: f64,
    ) {
        self.add(metric.into(), unit, tags, (Kind::Delta, value, None));
    }

    /// Adds a reading and the common tags that it lacks.
    pub fn push(&mut self, mut reading: Reading) {
        if !reading.value.is_finite() {
            self.not_finite += 1;
            return;
        }
        for (key, value) in &self.common {
            if !reading.tags.iter().any(|(known, _)| known == key) {
                reading.tags.push((Cow::Owned(key.clone()), value.clone()));
            }
        }
        reading.tags.sort_unstable();
        self.list.push(reading);
    }

    /// Adds a value of a described series, with its own time. Gauges accept any number; the stale
    /// marker ends a series of any kind.
    pub fn push_known(&mut self, reading: KnownReading) {
        let KnownReading { value, ref series, .. } = reading;
        if value.is_finite() || is_stale_marker(value) || series.kind() == Kind::Gauge {
            self.known.push(reading);
        } else {
            self.not_finite += 1;
        }
    }

    /// Reports a part that failed, such as one file system. The log shows the start and the end of
    /// a problem.
    pub fn problem(&mut self, object: impl Into<String>, cause: impl Display) {
        self.problems.insert(object.into(), cause.to_string());
    }

    /// Reports a monitored host, so that the agent pings on its behalf.
    pub fn watched(&mut self, host: WatchedHost) {
        self.watched.push(host);
    }

    /// Adds readings that were collected separately; the common tags are added to them.
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

    /// Adds readings that were collected separately, with an earlier time than this round's.
    pub(crate) fn append_at(&mut self, mut other: Self, time_ms: i64) {
        for reading in std::mem::take(&mut other.list) {
            let Reading { metric, tags, kind, unit, value, start_ms } = reading;
            let tags = tags.into_iter().map(|(key, value)| (key.into_owned(), value)).collect();
            let series = Series::new(metric, tags, kind, unit);
            let series = Arc::new(series);
            self.push_known(KnownReading { series, value, time_ms, start_ms, histogram: None });
        }
        self.append(other);
    }

    /// Returns the readings.
    pub fn as_slice(&self) -> &[Reading] {
        &self.list
    }

    /// Returns the readings of described series.
    pub fn known(&self) -> &[KnownReading] {
        &self.known
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.list.len() + self.known.len()
    }

    /// Returns true when the round has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the common tags.
    pub(crate) fn common(&self) -> &[(String, String)] {
        &self.common
    }

    /// Returns the problems: object and cause.
    pub fn problems(&self) -> &BTreeMap<String, String> {
        &self.problems
    }

    /// Returns the number of values that were skipped because they are NaN or infinite.
    pub fn not_finite(&self) -> u64 {
        self.not_finite
    }

    /// Takes the hosts that were reported.
    pub(crate) fn take_watched(&mut self) -> Vec<WatchedHost> {
        std::mem::take(&mut self.watched)
    }

    /// Clears the round; the common tags stay.
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
    fn common_tags_are_added_but_do_not_replace_tags_of_a_reading() {
        let mut readings =
            Readings::new(vec![("env".into(), "prod".into()), ("dc".into(), "a".into())]);
        readings.gauge("load", "", &[("host", "web1"), ("dc", "b")], 1.0);
        let tags: Vec<_> =
            readings.as_slice()[0].tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(tags, ["dc=b", "env=prod", "host=web1"]);
    }

    #[test]
    fn readings_collected_separately_keep_their_common_tags_and_time() {
        let mut separate = Readings::new(vec![("script".into(), "s".into())]);
        let series = Arc::new(Series::new("a", Vec::new(), Kind::Gauge, ""));
        let (value, time_ms) = (1.0, 5);
        let (start_ms, histogram) = (None, None);
        separate.push_known(KnownReading { series, value, time_ms, start_ms, histogram });
        separate.gauge("b", "", &[], 2.0);
        let mut readings = Readings::default();
        readings.append_at(separate, 7);
        let known =
            readings.known().iter().map(|reading| (reading.series.metric(), reading.time_ms));
        assert_eq!(known.collect::<Vec<_>>(), [("b", 7), ("a", 5)]);
        let has_tag = |reading: &KnownReading| reading.series.tags().eq([("script", "s")]);
        assert!(readings.known().iter().all(has_tag));
    }

    #[test]
    fn values_that_are_not_finite_are_counted_and_skipped() {
        let mut readings = Readings::default();
        readings.gauge("ratio", "", &[], f64::NAN);
        readings.counter("total", "", &[], f64::INFINITY, None);
        readings.delta("events", "", &[], 3.0);
        assert_eq!((readings.as_slice().len(), readings.not_finite()), (1, 2));
        readings.clear();
        assert_eq!((readings.as_slice().len(), readings.not_finite()), (0, 0));
    }
}
