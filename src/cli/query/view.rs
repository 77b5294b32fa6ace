//! The displayed part of a chart: names, times and slots, for a plot or a table.

use std::{collections::BTreeMap, ops::Range};

use jiff::tz::TimeZone;

use crate::{
    cli::{screen, table::name_of},
    model::{Kind, UnixMillis},
    query::{ChartAnswer, ChartSeries, SeriesEntry, time_zone},
};

/// A chart as a terminal shows it.
pub(super) struct View<'a> {
    pub(super) answer: &'a ChartAnswer,
    /// The common part of all names.
    pub(super) title: String,
    /// The distinct part of each name.
    pub(super) labels: Vec<String>,
    /// The slots from the first to the last non-empty slot.
    pub(super) rows: Range<usize>,
    pub(super) times: Times,
}

impl<'a> View<'a> {
    pub(super) fn new(answer: &'a ChartAnswer) -> Self {
        let (title, labels) = names(&answer.series);
        let slots = answer.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
        let is_filled = |row: &usize| {
            answer
                .series
                .iter()
                .any(|series| series.points.get(*row).is_some_and(|(_, v)| v.is_some()))
        };
        let first = (0..slots).find(is_filled);
        let rows = first.map_or(0..0, |first| {
            first..(first..slots).rfind(is_filled).map_or(first, |last| last + 1)
        });
        let starts = answer.series.first().map_or(&[][..], |series| &series.points[..]);
        let times = Times::new(answer.time_zone.as_deref(), starts.iter().map(|(at, _)| *at));
        Self { answer, title, labels, rows, times }
    }

    /// Returns the start of a slot.
    pub(super) fn start(&self, row: usize) -> i64 {
        let points = self.answer.series.iter().filter_map(|series| series.points.get(row));
        points.map(|(at, _)| *at).next().unwrap_or_default()
    }

    /// Returns true when a slot is not complete yet.
    pub(super) fn is_open(&self, row: usize) -> bool {
        self.answer.incomplete_from.is_some_and(|from| from <= self.start(row))
    }

    /// Returns notes about empty slots, and the daemon's notes.
    pub(super) fn notes(&self) -> Vec<String> {
        let Some(series) = self.answer.series.first() else {
            let mut lines = self.answer.notes.clone();
            if lines.is_empty() {
                lines.push("no series matches".to_owned());
            }
            return lines;
        };
        let slots = series.points.len();
        let slots_of = |count: usize| match count {
            1 => "1 empty slot".to_owned(),
            _ => format!("{count} empty slots"),
        };
        let verb = |count: usize| if count == 1 { "is" } else { "are" };
        let mut lines = Vec::new();
        if self.rows.is_empty() {
            let (from, to) = (self.times.text(self.answer.start), self.times.text(self.answer.end));
            lines.push(format!("no samples from {from} to {to}: set another --range"));
        } else {
            if self.rows.clone().any(|row| self.is_open(row)) {
                lines.push("* not complete yet".to_owned());
            }
            let (before, after) = (self.rows.start, slots - self.rows.end);
            if before > 0 {
                let first = self.times.text(self.start(self.rows.start));
                lines.push(format!(
                    "{} before {first} {} not shown",
                    slots_of(before),
                    verb(before)
                ));
            }
            if after > 0 {
                let last = self.times.text(self.start(self.rows.end - 1));
                lines.push(format!("{} after {last} {} not shown", slots_of(after), verb(after)));
            }
        }
        lines.extend(self.answer.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

/// The format of times: in their zone, and as short as possible while distinct.
pub(super) struct Times {
    zone: TimeZone,
    pub(super) zone_name: String,
    format: &'static str,
    /// The format without the date, when all times have the same date.
    clock: Option<&'static str>,
}

impl Times {
    pub(super) fn new(zone: Option<&str>, starts: impl Iterator<Item = i64> + Clone) -> Self {
        let zone_name = zone.unwrap_or("UTC").to_owned();
        let zone = time_zone(&zone_name).unwrap_or(TimeZone::UTC);
        let local = starts.map(|at| UnixMillis(at).timestamp().to_zoned(zone.clone()));
        let every = |test: fn(&jiff::Zoned) -> bool| local.clone().all(|at| test(&at));
        let is_minute = |at: &jiff::Zoned| at.second() == 0 && at.subsec_nanosecond() == 0;
        let (first, last) = (local.clone().next(), local.clone().last());
        let same = |test: fn(&jiff::Zoned, &jiff::Zoned) -> bool| {
            first.as_ref().zip(last.as_ref()).is_none_or(|(first, last)| test(first, last))
        };
        let is_short = every(is_minute);
        let format = if every(|at| at.time() == jiff::civil::Time::midnight()) {
            "%Y-%m-%d"
        } else {
            match (same(|a, b| a.offset() == b.offset()), is_short) {
                (true, true) => "%Y-%m-%d %H:%M",
                (true, false) => "%Y-%m-%d %H:%M:%S",
                (false, true) => "%Y-%m-%d %H:%M%:z",
                (false, false) => "%Y-%m-%d %H:%M:%S%:z",
            }
        };
        let clock = if is_short { "%H:%M" } else { "%H:%M:%S" };
        let clock = same(|a, b| a.date() == b.date()).then_some(clock);
        Self { zone, zone_name, format, clock }
    }

    fn write(&self, at: i64, format: &str) -> String {
        UnixMillis(at).timestamp().to_zoned(self.zone.clone()).strftime(format).to_string()
    }

    /// Formats a time with its date.
    pub(super) fn text(&self, at: i64) -> String {
        self.write(at, self.format)
    }

    /// Formats a time for an axis.
    pub(super) fn tick(&self, at: i64) -> String {
        self.write(at, self.clock.unwrap_or(self.format))
    }
}

/// Returns the common part of all names, and the distinct part of each.
fn names(all: &[ChartSeries]) -> (String, Vec<String>) {
    let Some(first) = all.first() else { return (String::new(), Vec::new()) };
    let is_common =
        |read: fn(&ChartSeries) -> &str| all.iter().all(|series| read(series) == read(first));
    let metric = is_common(|series| &series.series.metric);
    let display = is_common(|series| &series.display);
    let unit = all.iter().all(|series| unit_of(series) == unit_of(first));
    let is_distinct = |name: &str, value: &str| {
        all.iter().any(|series| series.series.tags.get(name).map(String::as_str) != Some(value))
    };
    let parts = |series: &ChartSeries, is_title: bool| {
        let SeriesEntry { metric: name, tags, .. } = &series.series;
        let tags: BTreeMap<_, _> = tags
            .iter()
            .filter(|(name, value)| is_distinct(name, value) != is_title)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let metric_name = if metric == is_title { name.as_str() } else { "" };
        let mut parts = Vec::new();
        if is_title || !metric_name.is_empty() {
            parts.push(name_of(metric_name, &tags));
        } else {
            parts.extend(tags.iter().map(|(name, value)| screen::text(&format!("{name}={value}"))));
        }
        parts.push(if display == is_title { series.display.clone() } else { String::new() });
        parts.push(if unit == is_title { unit_of(series) } else { String::new() });
        parts.push(series.merged.map_or_else(String::new, |count| format!("of {count} series")));
        parts.retain(|part| !part.is_empty());
        parts
    };
    let title = parts(first, true).join(", ");
    let label = |series| {
        let label = parts(series, false).join(",");
        if label.is_empty() { "value".to_owned() } else { label }
    };
    if all.len() == 1 {
        let display = if first.display.is_empty() { "value" } else { &first.display };
        return (title, vec![display.to_owned()]);
    }
    (title, all.iter().map(label).collect())
}

/// Returns the unit of the displayed value, which may be empty.
fn unit_of(series: &ChartSeries) -> String {
    let SeriesEntry { unit, kind, .. } = &series.series;
    // All numbers of histograms but percentiles count observations.
    if kind.is_histogram() && !series.display.starts_with('p') {
        return String::new();
    }
    let is_rate = match &*series.display {
        "avg_per_sec" | "sum_per_sec" => true,
        "min" | "max" => *kind == Kind::Counter,
        "count" => return String::new(),
        _ => false,
    };
    let per = if is_rate && !unit.is_empty() { "/s" } else { "" };
    screen::text(unit) + per
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_short_as_possible() {
        const HOUR: i64 = 3_600_000;
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let check = |zone: Option<&str>, starts: [i64; 2], text: &str, tick: &str| {
            let times = Times::new(zone, starts.into_iter());
            assert_eq!((&*times.text(starts[0]), &*times.tick(starts[0])), (text, tick));
        };
        let noon = at("2026-11-21T12:00:00Z");
        check(None, [noon, noon + HOUR], "2026-11-21 12:00", "12:00");
        check(Some("Asia/Kolkata"), [noon, noon + HOUR], "2026-11-21 17:30", "17:30");
        check(None, [noon + 10_000, noon], "2026-11-21 12:00:10", "12:00:10");
        check(None, [noon, noon + 24 * HOUR], "2026-11-21 12:00", "2026-11-21 12:00");
        check(None, [noon - 12 * HOUR, noon + 12 * HOUR], "2026-11-21", "2026-11-21");
        let changed = at("2026-10-25T00:00:00Z");
        let written = "2026-10-25 02:00+02:00";
        check(Some("Europe/Berlin"), [changed, changed + HOUR], written, "02:00");
    }
}
