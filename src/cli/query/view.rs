//! What of a chart is shown, as a plot or as a table: names, times, numbers, and which slots.

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
    /// What all series have in common.
    pub(super) title: String,
    /// What tells each from the others.
    pub(super) labels: Vec<String>,
    /// The slots from the first to the last that holds something.
    pub(super) rows: Range<usize>,
    pub(super) times: Times,
}

impl<'a> View<'a> {
    pub(super) fn new(answer: &'a ChartAnswer) -> Self {
        let (title, labels) = names(&answer.series);
        let slots = answer.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
        let is_filled = |row: &usize| {
            answer.series.iter().any(|own| own.points.get(*row).is_some_and(|(_, v)| v.is_some()))
        };
        let first = (0..slots).find(is_filled);
        let rows = first.map_or(0..0, |first| {
            first..(first..slots).rfind(is_filled).map_or(first, |last| last + 1)
        });
        let starts = answer.series.first().map_or(&[][..], |series| &series.points[..]);
        let times = Times::new(answer.time_zone.as_deref(), starts.iter().map(|(at, _)| *at));
        Self { answer, title, labels, rows, times }
    }

    /// Start of a slot.
    pub(super) fn start(&self, row: usize) -> i64 {
        let points = self.answer.series.iter().filter_map(|series| series.points.get(row));
        points.map(|(at, _)| *at).next().unwrap_or_default()
    }

    /// Whether a slot will change yet.
    pub(super) fn is_open(&self, row: usize) -> bool {
        self.answer.incomplete_from.is_some_and(|from| from <= self.start(row))
    }

    /// What is not shown, and what a reader should know.
    pub(super) fn remarks(&self) -> Vec<String> {
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
            lines.push(format!("no samples from {from} to {to}: ask for another --range"));
        } else {
            if self.rows.clone().any(|row| self.is_open(row)) {
                lines.push("* is not over yet".to_owned());
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

/// How times are written: in their zone, as short as they can be told apart.
pub(super) struct Times {
    zone: TimeZone,
    pub(super) zone_name: String,
    format: &'static str,
    /// Without the date, where it is always the same.
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

    /// With the date.
    pub(super) fn text(&self, at: i64) -> String {
        self.write(at, self.format)
    }

    /// As below an axis.
    pub(super) fn tick(&self, at: i64) -> String {
        self.write(at, self.clock.unwrap_or(self.format))
    }
}

/// What all have in common, and what each has of its own.
fn names(all: &[ChartSeries]) -> (String, Vec<String>) {
    let Some(first) = all.first() else { return (String::new(), Vec::new()) };
    let is_common = |read: fn(&ChartSeries) -> &str| all.iter().all(|own| read(own) == read(first));
    let metric = is_common(|own| &own.series.metric);
    let display = is_common(|own| &own.display);
    let unit = all.iter().all(|own| unit_of(own) == unit_of(first));
    let is_own_tag = |name: &str, value: &str| {
        all.iter().any(|own| own.series.tags.get(name).map(String::as_str) != Some(value))
    };
    let parts = |own: &ChartSeries, is_title: bool| {
        let SeriesEntry { metric: own_metric, tags, .. } = &own.series;
        let tags: BTreeMap<_, _> = tags
            .iter()
            .filter(|(name, value)| is_own_tag(name, value) != is_title)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let own_metric = if metric == is_title { own_metric.as_str() } else { "" };
        let mut parts = Vec::new();
        if is_title || !own_metric.is_empty() {
            parts.push(name_of(own_metric, &tags));
        } else {
            parts.extend(tags.iter().map(|(name, value)| screen::text(&format!("{name}={value}"))));
        }
        parts.push(if display == is_title { own.display.clone() } else { String::new() });
        parts.push(if unit == is_title { unit_of(own) } else { String::new() });
        parts.push(own.merged.map_or_else(String::new, |count| format!("of {count} series")));
        parts.retain(|part| !part.is_empty());
        parts
    };
    let title = parts(first, true).join(", ");
    let label = |own| {
        let label = parts(own, false).join(",");
        if label.is_empty() { "value".to_owned() } else { label }
    };
    if all.len() == 1 {
        let display = if first.display.is_empty() { "value" } else { &first.display };
        return (title, vec![display.to_owned()]);
    }
    (title, all.iter().map(label).collect())
}

/// The unit of the number that is shown; empty when there is none.
fn unit_of(series: &ChartSeries) -> String {
    let SeriesEntry { unit, kind, .. } = &series.series;
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
    fn times_are_as_short_as_they_can_be_told_apart() {
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
