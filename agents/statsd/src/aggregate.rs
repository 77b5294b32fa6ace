//! The aggregation of one interval by series, within a memory budget.
//!
//! A series is charged for all memory until its readings are in the spool: its entry, the readings,
//! their definitions and their encoding. Lines beyond the budget are dropped and counted.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, hash_map::RandomState},
    hash::BuildHasher,
};

use granary_agent_kit::{KnownReading, Reading, Readings, Series};
use granary_histogram::Histogram;
use granary_protocol::Kind;

use crate::{
    budget::Budget,
    line::{Line, Type},
    timer::{Distribution, Timer, VALUES_MIN},
};

/// The memory of a reading until it is spooled, without its name and tags.
const READING_BYTES: usize = 768;
/// The memory of a tag, without its text.
const TAG_BYTES: usize = 256;
/// The number of copies of a reading's name and tags in memory.
const KEY_COPIES: usize = 6;
/// The memory of a set's member: a hash in a table that grows by doubling.
const MEMBER_BYTES: usize = 32;
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];
/// The number of readings of a timer without quantiles: count, sum, min and max.
const TIMER_SUM_READINGS: usize = 4;
/// The separator after names and values; no line contains it.
const SEPARATOR: char = '\n';

/// The limits of an interval.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of series.
    pub series_max: usize,
    /// The maximum memory of series and readings, in bytes.
    pub memory_max: usize,
    /// True when timers become quantiles of the interval instead of a native histogram.
    pub has_quantiles: bool,
}

/// Counters since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceiverCounts {
    pub(crate) lines: u64,
    pub(crate) bad_lines: u64,
    /// Lines that were dropped because of the limits.
    pub(crate) dropped: u64,
    /// Idle gauges that were removed to make room.
    pub(crate) forgotten_gauges: u64,
}

/// The aggregation of one interval.
#[derive(Debug)]
pub(crate) struct Aggregate {
    series_max: usize,
    has_quantiles: bool,
    budget: Budget,
    /// Entries by type, name and tags.
    series: HashMap<Box<str>, State>,
    /// The buffer for the key of a line.
    key: String,
    /// The hasher of set members.
    hasher: RandomState,
    pub(crate) counts: ReceiverCounts,
}

#[derive(Debug)]
enum State {
    Counter(f64),
    Gauge {
        value: f64,
        /// True when the gauge was set in this interval.
        is_fresh: bool,
    },
    Timer(Box<Timer>),
    /// The hashes of the members.
    Set(HashSet<u64>),
}

/// The outcome of adding a value.
enum AddOutcome {
    Added,
    /// The value, or a sum, is not finite.
    NotFinite,
    Full,
}

impl Aggregate {
    /// Creates an empty aggregation.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            series_max: limits.series_max,
            has_quantiles: limits.has_quantiles,
            budget: Budget::new(limits.memory_max),
            series: HashMap::new(),
            key: String::new(),
            hasher: RandomState::new(),
            counts: ReceiverCounts::default(),
        }
    }

    /// Adds a line; values that are not numbers count as bad lines.
    pub(crate) fn add(&mut self, line: &Line<'_>) {
        write_key(&mut self.key, line);
        let mut is_full = false;
        for text in &line.values {
            match self.add_value(line, text) {
                AddOutcome::Added => {}
                AddOutcome::NotFinite => self.counts.bad_lines += 1,
                AddOutcome::Full => is_full = true,
            }
        }
        self.counts.dropped += u64::from(is_full);
    }

    /// Adds a value to the series of `self.key`; a new series is created.
    fn add_value(&mut self, line: &Line<'_>, text: &str) -> AddOutcome {
        let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
        let value = match number {
            Some(value) => value,
            None if line.kind == Type::Set => 0.0,
            None => return AddOutcome::NotFinite,
        };
        if !self.series.contains_key(self.key.as_str()) {
            if self.series.len() >= self.series_max || !self.budget.charge(series_bytes(&self.key))
            {
                return AddOutcome::Full;
            }
            let state = State::new(line.kind, self.has_quantiles);
            self.series.insert(self.key.as_str().into(), state);
        }
        let Some(state) = self.series.get_mut(self.key.as_str()) else { return AddOutcome::Full };
        let is_finite = match state {
            State::Counter(sum) => set_if_finite(sum, *sum + value / line.rate),
            State::Gauge { value: level, is_fresh } => {
                *is_fresh = true;
                let is_relative = line.kind == Type::Gauge { is_relative: true };
                set_if_finite(level, if is_relative { *level + value } else { value })
            }
            State::Timer(timer) => timer.add(value, line.rate, &mut self.budget),
            State::Set(members) => {
                let member = self.hasher.hash_one(text);
                if !members.contains(&member) {
                    if !self.budget.charge(MEMBER_BYTES) {
                        return AddOutcome::Full;
                    }
                    members.insert(member);
                }
                true
            }
        };
        if is_finite { AddOutcome::Added } else { AddOutcome::NotFinite }
    }

    /// Emits the interval and starts the next interval. Gauges keep their values for relative
    /// changes, but are emitted only when they were set. Idle gauges are removed when gauges take
    /// more than half of the budget.
    pub(crate) fn drain(&mut self, now_ms: i64, readings: &mut Readings) {
        let finished = self.series.extract_if(|_, state| !matches!(state, State::Gauge { .. }));
        let mut finished: Vec<_> = finished.collect();
        let gauge_bytes = self.series.keys().map(|key| series_bytes(key)).sum();
        self.budget.reset_to(gauge_bytes);
        if self.budget.is_scarce() || self.series.len() > self.series_max / 2 {
            let before = self.series.len();
            self.series.retain(|_, state| matches!(state, State::Gauge { is_fresh: true, .. }));
            self.counts.forgotten_gauges += (before - self.series.len()) as u64;
            self.budget.reset_to(self.series.keys().map(|key| series_bytes(key)).sum());
        }
        let fresh_gauges = self.series.iter_mut().filter_map(|(key, state)| match state {
            State::Gauge { value, is_fresh } if *is_fresh => {
                *is_fresh = false;
                Some((key.clone(), State::Gauge { value: *value, is_fresh: true }))
            }
            State::Gauge { .. } | State::Counter(_) | State::Timer(_) | State::Set(_) => None,
        });
        finished.extend(fresh_gauges);
        finished.sort_by(|left, right| left.0.cmp(&right.0));
        for (key, state) in finished {
            push_state(readings, &key, state, now_ms);
        }
    }
}

impl State {
    fn new(kind: Type, has_quantiles: bool) -> Self {
        match kind {
            Type::Counter => Self::Counter(0.0),
            Type::Gauge { .. } => Self::Gauge { value: 0.0, is_fresh: false },
            Type::Timer => Self::Timer(Box::new(Timer::new(has_quantiles))),
            Type::Set => Self::Set(HashSet::new()),
        }
    }
}

/// Sets a number. Returns false, and changes nothing, when the value is not finite.
fn set_if_finite(target: &mut f64, value: f64) -> bool {
    if value.is_finite() {
        *target = value;
    }
    value.is_finite()
}

fn write_key(key: &mut String, line: &Line<'_>) {
    key.clear();
    key.push(type_letter(line.kind));
    key.push_str(line.name);
    for (name, value) in &line.tags {
        for part in [name, value] {
            key.push(SEPARATOR);
            key.push_str(part);
        }
    }
}

fn type_letter(kind: Type) -> char {
    match kind {
        Type::Counter => 'c',
        Type::Gauge { .. } => 'g',
        Type::Timer => 'm',
        Type::Set => 's',
    }
}

/// Returns the memory of a series with this key until its readings are spooled.
fn series_bytes(key: &str) -> usize {
    let is_timer = key.starts_with(type_letter(Type::Timer));
    let tags = key.matches(SEPARATOR).count() / 2;
    let (readings, sample) = if is_timer {
        let distribution = size_of::<Timer>() + VALUES_MIN * size_of::<f64>();
        (TIMER_SUM_READINGS + QUANTILES.len(), distribution)
    } else {
        (1, 0)
    };
    readings * (READING_BYTES + tags * TAG_BYTES + KEY_COPIES * key.len()) + sample
}

fn push_state(readings: &mut Readings, key: &str, state: State, now_ms: i64) {
    let mut parts = key.split(SEPARATOR);
    let name = parts.next().and_then(|first| first.get(1..)).unwrap_or_default();
    let mut tags = Vec::new();
    while let (Some(tag), Some(value)) = (parts.next(), parts.next()) {
        tags.push((tag, value));
    }
    match state {
        State::Counter(sum) => push(readings, name.to_owned(), &tags, Kind::Delta, sum),
        State::Gauge { value, .. } => push(readings, name.to_owned(), &tags, Kind::Gauge, value),
        State::Timer(timer) => push_timer(readings, name, &tags, *timer, now_ms),
        State::Set(members) => {
            push(readings, format!("{name}_unique"), &tags, Kind::Gauge, members.len() as f64);
        }
    }
}

fn push_timer(
    readings: &mut Readings,
    name: &str,
    tags: &[(&str, &str)],
    timer: Timer,
    now_ms: i64,
) {
    let parts: [_; TIMER_SUM_READINGS] = [
        ("_count", Kind::Delta, timer.count),
        ("_sum", Kind::Delta, timer.sum),
        ("_min", Kind::Gauge, timer.min),
        ("_max", Kind::Gauge, timer.max),
    ];
    for (suffix, kind, value) in parts {
        push(readings, format!("{name}{suffix}"), tags, kind, value);
    }
    match timer.distribution {
        Distribution::Histogram { histogram, .. } => {
            push_histogram(readings, name, tags, histogram, now_ms);
        }
        Distribution::Values(mut values) => {
            for (quantile, value) in QUANTILES.into_iter().zip(values.quantiles(QUANTILES)) {
                let text = quantile.to_string();
                let mut tags = tags.to_vec();
                tags.push(("quantile", &text));
                if let Some(value) = value {
                    push(readings, name.to_owned(), &tags, Kind::Gauge, value);
                }
            }
        }
    }
}

fn push_histogram(
    readings: &mut Readings,
    name: &str,
    tags: &[(&str, &str)],
    histogram: Histogram,
    time_ms: i64,
) {
    let pairs = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    // A counter or gauge can have the name itself.
    let metric = format!("{name}_distribution");
    let series = Series::new(&metric, pairs.collect(), Kind::DeltaHistogram, "");
    readings.push_known(KnownReading {
        series: series.into(),
        value: histogram.count,
        time_ms,
        start_ms: None,
        histogram: Some(Box::new(histogram)),
    });
}

fn push(readings: &mut Readings, metric: String, tags: &[(&str, &str)], kind: Kind, value: f64) {
    let owned_pair =
        |(name, value): &(&str, &str)| (Cow::Owned((*name).to_owned()), (*value).to_owned());
    readings.push(Reading {
        metric: Cow::Owned(metric),
        tags: tags.iter().map(owned_pair).collect(),
        kind,
        unit: Cow::Borrowed(""),
        value,
        start_ms: None,
    });
}

#[cfg(test)]
mod tests;
