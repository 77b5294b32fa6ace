//! What came in over one interval, by series.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use granary_agent_kit::{Reading, Readings};
use granary_protocol::Kind;

use crate::line::{Line, Type};

/// Values of a timer that are kept to take quantiles of; beyond, every second one goes.
const VALUES_MAX: usize = 4096;
/// Members of a set that are told apart in an interval.
const MEMBERS_MAX: usize = 100_000;
const QUANTILES: [(f64, &str); 3] = [(0.5, "0.5"), (0.95, "0.95"), (0.99, "0.99")];

type Tags = Vec<(String, String)>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Aggregate {
    series_max: usize,
    counters: HashMap<(String, Tags), f64>,
    gauges: HashMap<(String, Tags), Gauge>,
    timers: HashMap<(String, Tags), Timer>,
    sets: HashMap<(String, Tags), BTreeSet<String>>,
    pub(crate) lines: u64,
    pub(crate) bad_lines: u64,
    pub(crate) dropped: u64,
}

#[derive(Debug, Default)]
struct Gauge {
    value: f64,
    /// Whether it was set in this interval.
    fresh: bool,
}

#[derive(Debug)]
struct Timer {
    /// Events, scaled up by the sample rate.
    count: f64,
    sum: f64,
    min: f64,
    max: f64,
    values: Vec<f64>,
    /// Every how many values one is kept.
    stride: usize,
    seen: usize,
}

impl Default for Timer {
    fn default() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { count: 0.0, sum: 0.0, min, max, values: Vec::new(), stride: 1, seen: 0 }
    }
}

impl Timer {
    /// False when the sums would be no numbers any more; then nothing is changed.
    fn add(&mut self, value: f64, rate: f64) -> bool {
        let (count, sum) = (self.count + 1.0 / rate, self.sum + value / rate);
        if !(count.is_finite() && sum.is_finite()) {
            return false;
        }
        (self.count, self.sum) = (count, sum);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if self.seen.is_multiple_of(self.stride) {
            self.values.push(value);
        }
        self.seen += 1;
        if self.values.len() >= VALUES_MAX {
            let mut index = 0;
            self.values.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
        true
    }
}

impl Aggregate {
    /// Nothing came in yet.
    pub(crate) fn new(series_max: usize) -> Self {
        Self { series_max, ..Self::default() }
    }

    /// Takes in a line; values that are no numbers count as bad lines.
    pub(crate) fn add(&mut self, line: &Line<'_>) {
        let tags = line.tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let key = (line.name.to_owned(), tags);
        if self.is_full(&key, line.kind) {
            self.dropped += 1;
            return;
        }
        for text in &line.values {
            if line.kind == Type::Set {
                let members = self.sets.entry(key.clone()).or_default();
                if members.len() < MEMBERS_MAX {
                    members.insert((*text).to_owned());
                }
                continue;
            }
            let Some(value) = text.parse::<f64>().ok().filter(|value| value.is_finite()) else {
                self.bad_lines += 1;
                continue;
            };
            if !self.add_number(&key, line, value) {
                self.bad_lines += 1;
            }
        }
    }

    /// False when a sum would be no number any more.
    fn add_number(&mut self, key: &(String, Tags), line: &Line<'_>, value: f64) -> bool {
        let set = |to: &mut f64, value: f64| {
            if value.is_finite() {
                *to = value;
            }
            value.is_finite()
        };
        match line.kind {
            Type::Counter => {
                let sum = self.counters.entry(key.clone()).or_default();
                let value = *sum + value / line.rate;
                set(sum, value)
            }
            Type::Gauge { relative } => {
                let gauge = self.gauges.entry(key.clone()).or_default();
                gauge.fresh = true;
                let value = if relative { gauge.value + value } else { value };
                set(&mut gauge.value, value)
            }
            Type::Timer => self.timers.entry(key.clone()).or_default().add(value, line.rate),
            Type::Set => true,
        }
    }

    fn is_full(&self, key: &(String, Tags), kind: Type) -> bool {
        let all = [self.counters.len(), self.gauges.len(), self.timers.len(), self.sets.len()];
        let known = match kind {
            Type::Counter => self.counters.contains_key(key),
            Type::Gauge { .. } => self.gauges.contains_key(key),
            Type::Timer => self.timers.contains_key(key),
            Type::Set => self.sets.contains_key(key),
        };
        !known && all.iter().sum::<usize>() >= self.series_max
    }

    /// Hands out the interval and begins the next one. Gauges keep their value for relative
    /// changes, and are handed out only when they were set.
    pub(crate) fn drain(&mut self, readings: &mut Readings) {
        for ((name, tags), value) in sorted(self.counters.drain()) {
            push(readings, name, tags, Kind::Delta, value);
        }
        let fresh = self.gauges.iter_mut().filter(|(_, gauge)| gauge.fresh);
        let fresh = fresh.map(|(key, gauge)| {
            gauge.fresh = false;
            (key.clone(), gauge.value)
        });
        for ((name, tags), value) in sorted(fresh) {
            push(readings, name, tags, Kind::Gauge, value);
        }
        for ((name, tags), timer) in sorted(self.timers.drain()) {
            push_timer(readings, &name, &tags, timer);
        }
        for ((name, tags), members) in sorted(self.sets.drain()) {
            push(readings, format!("{name}_unique"), tags, Kind::Gauge, members.len() as f64);
        }
    }
}

fn sorted<T>(all: impl Iterator<Item = ((String, Tags), T)>) -> Vec<((String, Tags), T)> {
    let mut all: Vec<_> = all.collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn push_timer(readings: &mut Readings, name: &str, tags: &Tags, mut timer: Timer) {
    let parts = [
        ("_count", Kind::Delta, timer.count),
        ("_sum", Kind::Delta, timer.sum),
        ("_min", Kind::Gauge, timer.min),
        ("_max", Kind::Gauge, timer.max),
    ];
    for (suffix, kind, value) in parts {
        push(readings, format!("{name}{suffix}"), tags.clone(), kind, value);
    }
    timer.values.sort_by(f64::total_cmp);
    let last = timer.values.len().saturating_sub(1);
    for (quantile, text) in QUANTILES {
        // The nearest rank.
        let rank = (timer.values.len() as f64 * quantile).ceil() as usize;
        if let Some(value) = timer.values.get(rank.saturating_sub(1).min(last)) {
            let mut tags = tags.clone();
            tags.push(("quantile".to_owned(), text.to_owned()));
            push(readings, name.to_owned(), tags, Kind::Gauge, *value);
        }
    }
}

fn push(readings: &mut Readings, metric: String, tags: Tags, kind: Kind, value: f64) {
    readings.push(Reading {
        metric: Cow::Owned(metric),
        tags: tags.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect(),
        kind,
        unit: Cow::Borrowed(""),
        value,
        start_ms: None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::parse;

    fn drained(aggregate: &mut Aggregate) -> Vec<String> {
        let mut readings = Readings::new(Vec::new());
        aggregate.drain(&mut readings);
        let text = |reading: &Reading| {
            let tags: Vec<_> = reading.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{}{{{}}} {} {}", reading.metric, tags.join(","), reading.kind, reading.value)
        };
        readings.as_slice().iter().map(text).collect()
    }

    fn add(aggregate: &mut Aggregate, lines: &[&str]) {
        for line in lines {
            aggregate.add(&parse(line).unwrap());
        }
    }

    #[test]
    fn an_interval_becomes_readings_and_the_next_begins_empty() {
        let mut aggregate = Aggregate::new(100);
        add(
            &mut aggregate,
            &[
                "hits:1|c|#page:a",
                "hits:2|c|@0.5|#page:a",
                "depth:7|g",
                "depth:-2|g",
                "users:bob|s",
                "users:eve|s",
                "users:bob|s",
                "wait:10:20:30|ms",
                "bad:x|c",
            ],
        );
        assert_eq!(
            drained(&mut aggregate),
            [
                "hits{page=a} delta 5",
                "depth{} gauge 5",
                "wait_count{} delta 3",
                "wait_sum{} delta 60",
                "wait_min{} gauge 10",
                "wait_max{} gauge 30",
                "wait{quantile=0.5} gauge 20",
                "wait{quantile=0.95} gauge 30",
                "wait{quantile=0.99} gauge 30",
                "users_unique{} gauge 2",
            ]
        );
        assert_eq!(aggregate.bad_lines, 1);
        assert_eq!(drained(&mut aggregate), Vec::<String>::new());
        // A relative change goes on from the value of the interval before.
        add(&mut aggregate, &["depth:+1|g"]);
        assert_eq!(drained(&mut aggregate), ["depth{} gauge 6"]);
    }

    #[test]
    fn sums_that_are_no_numbers_are_refused() {
        let mut aggregate = Aggregate::new(10);
        add(&mut aggregate, &["a:1|c", "a:1|c|@1e-320", "b:1e308:1e308|ms", "c:1e308|g"]);
        add(&mut aggregate, &["c:+1e308|g", "d:1e308:-1e308:-1e308:-1e308|c"]);
        assert_eq!(aggregate.bad_lines, 4);
        let expected = ["a{} delta 1", "d{} delta -1", "c{} gauge 1", "b_count{} delta 1"];
        for (line, expected) in drained(&mut aggregate).iter().zip(expected) {
            assert!(line.starts_with(expected), "{line}");
        }
    }

    #[test]
    fn series_and_values_are_bounded() {
        let mut aggregate = Aggregate::new(2);
        add(&mut aggregate, &["a:1|c", "b:1|c", "c:1|c", "a:1|c", "d:1|ms"]);
        assert_eq!((drained(&mut aggregate).len(), aggregate.dropped), (2, 2));
        let mut timer = Timer::default();
        assert!((0..100_000).all(|value| timer.add(f64::from(value), 1.0)));
        assert!(timer.values.len() < VALUES_MAX && timer.values.len() > VALUES_MAX / 4);
        assert_eq!((timer.count, timer.max), (100_000.0, 99_999.0));
    }
}
