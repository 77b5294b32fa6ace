//! The documents that a pipeline begins with, read from the store one by one.
//!
//! Must never know: stages. A collection named after a granularity holds its slots as rows; every
//! other name stands for the months, one document a tag set: days > hours > minutes, with a field
//! for each metric.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{
    flow::Documents,
    value::{Fields, Value},
    wanted::{Wanted, Words},
};
use crate::{
    model::{Granularity, SeriesId, UnixMillis},
    query::{
        Display, QueryError, QueryLimits, Selector,
        documents::check_count,
        levels::{Ladder, OpenLadder, PARTS_MS, Parts},
    },
    store::{METRIC_TAG, Matcher, SeriesInfo, Slot, Store, View},
};

/// Fields of the documents that are no tags.
const OWN_FIELDS: [&str; 14] = [
    "_id",
    "date",
    "days",
    "num_samples",
    "metric",
    "kind",
    "unit",
    "n",
    "sum",
    "min",
    "max",
    "first",
    "last",
    "value",
];
/// Names of the lists of a month's levels.
const LISTS: [&str; 3] = ["days", "hours", "minutes"];

/// What is to be read.
pub(super) struct SourceRequest<'a> {
    pub(super) collection: Option<&'a str>,
    pub(super) selector: &'a Selector,
    pub(super) range: Option<&'a Range<UnixMillis>>,
    pub(super) words: &'a Words,
    pub(super) wanted: Wanted,
}

/// See the module.
pub(super) enum Source {
    Months(Months),
    Rows(Rows),
}

/// The field name of a metric, and its series.
type Metric = (Arc<str>, SeriesId);

/// Months of tag sets, each a document.
pub(super) struct Months {
    open: OpenLadder,
    /// Tags, and the metrics that have them.
    sets: Vec<(Fields, Vec<Metric>)>,
    /// Which days are in the documents; their own sums are of the whole month.
    days: Range<i64>,
    with_counts: bool,
}

/// Slots of series, each a document.
pub(super) struct Rows {
    view: View,
    granularity: Granularity,
    found: Vec<(SeriesId, SeriesInfo)>,
}

impl Source {
    /// Decides what is read and begins.
    ///
    /// # Errors
    /// When it is too much, or the store cannot be read.
    pub(super) fn open(
        store: &Store,
        request: &SourceRequest<'_>,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let granularities = store.granularities();
        let named = request.collection.and_then(|name| granularities.named(name));
        let (oldest, latest) = kept(&granularities.levels()[granularities.count() - 1], now);
        let asked = request.range.cloned().unwrap_or(oldest..latest);
        let Some((level, granularity)) = named else {
            return Ok(Self::Months(months(store, request, &asked, limits, now)?));
        };
        let found = select(store, request, limits, true)?;
        let range = overlap(&asked, &request.wanted.dates);
        let range = overlap(&range, &(kept(granularity, now).0..UnixMillis::MAX));
        check_count((range.end.0 - range.start.0) / granularity.width_ms, found.len(), limits)?;
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        let view = store.view(level, range, &ids)?;
        Ok(Self::Rows(Rows { view, granularity: granularity.clone(), found }))
    }

    /// The documents, in order of series and time.
    pub(super) fn documents(&self) -> Documents<'_> {
        match self {
            Self::Months(months) => months.documents(),
            Self::Rows(rows) => rows.documents(),
        }
    }
}

/// From when on a granularity is kept, and the latest time that samples can have by now.
fn kept(granularity: &Granularity, now: UnixMillis) -> (UnixMillis, UnixMillis) {
    let from = granularity.partition_start(granularity.retention.before(now).plus(1));
    (from, now.plus(PARTS_MS[0]))
}

fn overlap(a: &Range<UnixMillis>, b: &Range<UnixMillis>) -> Range<UnixMillis> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// The series whose fields a pipeline can see.
fn select(
    store: &Store,
    request: &SourceRequest<'_>,
    limits: &QueryLimits,
    has_metric_field: bool,
) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
    let mut selector = request.selector.clone();
    let mut among = Vec::new();
    for (name, texts) in &request.wanted.texts {
        if has_metric_field && name == "metric" {
            if let (None, [metric]) = (&selector.metric, &texts[..]) {
                selector.metric = Some(metric.clone());
            }
            continue;
        }
        let is_metric = || {
            let matcher = Matcher { tag: METRIC_TAG.to_owned(), value: name.clone() };
            !store.dictionary().select(&[matcher]).is_empty()
        };
        if OWN_FIELDS.contains(&name.as_str()) || (!has_metric_field && is_metric()) {
            continue;
        }
        match &texts[..] {
            [text] => selector.tags.push((name.clone(), text.clone())),
            _ => among.push((name, texts)),
        }
    }
    let fits = |info: &SeriesInfo| {
        among.iter().all(|(name, texts)| {
            info.key.tag(name).is_some_and(|tag| texts.iter().any(|text| text == tag))
        })
    };
    let is_seen =
        |info: &SeriesInfo| has_metric_field || request.words.wants(&field_name(info.key.metric()));
    let names = request.words.names().filter(|_| !has_metric_field);
    let (Some(names), None, []) = (names, &selector.metric, &selector.tags[..]) else {
        return selector.select_where(store, limits, |info| fits(info) && is_seen(info));
    };
    let mut found = Vec::new();
    for name in names {
        selector.metric = Some(name.to_owned());
        found.extend(selector.select_where(store, limits, fits)?);
        if found.len() > limits.series_max {
            return Err(QueryError::TooMuch(format!(
                "more than {} series match: name tags in the first $match or raise \
                 limits.query_series_max",
                limits.series_max
            )));
        }
    }
    Ok(found)
}

/// A metric's name as the name of a field: dots would be steps of a path.
fn field_name(metric: &str) -> String {
    metric.replace('.', "_")
}

fn months(
    store: &Store,
    request: &SourceRequest<'_>,
    asked: &Range<UnixMillis>,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<Months, QueryError> {
    let found = select(store, request, limits, false)?;
    // A month is seen when its own date is wanted and it has days that are.
    let day = |at: UnixMillis, up: i64| {
        (at.0.saturating_add(up)).div_euclid(PARTS_MS[0]).saturating_mul(PARTS_MS[0])
    };
    let days = overlap(asked, &request.wanted.days);
    let days = day(days.start, 0)..day(days.end, PARTS_MS[0] - 1);
    let month_start = crate::model::Span::Months(1).start_of(UnixMillis(days.start));
    let seen = overlap(&(month_start..UnixMillis(days.end)), &request.wanted.dates);
    let depth = LISTS.iter().rposition(|list| request.words.wants(list)).map_or(1, |last| last + 1);
    check_count((seen.end.0 - seen.start.0) / PARTS_MS[0], found.len(), limits)?;
    let fine = UnixMillis(days.start)..UnixMillis(days.end);
    let ladder = Ladder::new(store.granularities(), &seen, &fine, depth, now);
    check_count(ladder.parts(), found.len(), limits)?;
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    let open = ladder.open(store, &ids)?;
    let mut sets: BTreeMap<Vec<(&str, &str)>, Vec<Metric>> = BTreeMap::new();
    for (id, info) in &found {
        let metric = field_name(info.key.metric()).into();
        sets.entry(info.key.tags().collect()).or_default().push((metric, *id));
    }
    let sets = sets.into_iter().map(|(tags, series)| (tag_fields(tags.into_iter()), series));
    let sets = if seen.is_empty() { Vec::new() } else { sets.collect() };
    Ok(Months { open, sets, days, with_counts: request.words.wants("num_samples") })
}

fn tag_fields<'a>(tags: impl Iterator<Item = (&'a str, &'a str)>) -> Fields {
    let own = tags.filter(|(name, _)| !OWN_FIELDS.contains(name));
    own.map(|(name, value)| (name.into(), Value::text(value))).collect()
}

impl Months {
    fn documents(&self) -> Documents<'_> {
        Box::new(self.sets.iter().flat_map(move |(tags, series)| -> Documents<'_> {
            let read = |(name, id): &Metric| Ok((name.clone(), self.open.read(*id)?));
            let levels: Result<Vec<_>, QueryError> = series.iter().map(read).collect();
            match levels {
                Ok(levels) => {
                    let months = self.open.ladder.months.iter();
                    Box::new(months.filter_map(move |month| self.month(tags, *month, &levels)))
                }
                Err(cause) => Box::new(std::iter::once(Err(cause))),
            }
        }))
    }

    /// The document of a month; `None` when nothing fell into it.
    fn month(
        &self,
        tags: &Fields,
        month: UnixMillis,
        levels: &[(Arc<str>, Vec<Parts>)],
    ) -> Option<Result<Fields, QueryError>> {
        let range = month.0..self.open.ladder.month_end(month).0;
        let names: Vec<_> = tags
            .iter()
            .filter_map(|(name, tag)| Some(format!("{name}={}", tag.as_text()?)))
            .collect();
        let mut out = Fields::default();
        out.set("_id".into(), Value::text(&format!("{month} {}", names.join(","))));
        out.set("date".into(), Value::Date(month));
        for (name, tag) in tags.iter() {
            out.set(name.clone(), tag.clone());
        }
        let mut counts = Fields::default();
        for (name, parts) in levels {
            let Some(days) = parts.first() else { continue };
            let cells = || days.starts(range.clone()).filter_map(|at| days.cell(at));
            let n: u64 = cells().map(|cell| u64::from(cell.n)).sum();
            if n > 0 {
                out.set(name.clone(), Value::Float(cells().map(|cell| cell.sum).sum()));
                counts.set(name.clone(), Value::Int(n as i64));
            }
        }
        if counts.len() == 0 {
            return None;
        }
        if self.with_counts {
            out.set("num_samples".into(), Value::Fields(counts));
        }
        let shown = range.start.max(self.days.start)..range.end.min(self.days.end);
        let days = self.list(levels, 0, shown).unwrap_or_default();
        out.set(LISTS[0].into(), Value::List(days));
        Some(Ok(out))
    }

    /// The parts of one level over a range; `None` where the level is not kept.
    fn list(
        &self,
        levels: &[(Arc<str>, Vec<Parts>)],
        depth: usize,
        range: Range<i64>,
    ) -> Option<Vec<Value>> {
        let (_, parts) = levels.first()?;
        let starts = parts.get(depth)?.starts(range);
        let part = |at: i64| {
            let mut out = Fields::default();
            out.set("date".into(), Value::Date(UnixMillis(at)));
            let mut counts = Fields::default();
            for (name, parts) in levels {
                let cell = parts.get(depth).and_then(|parts| parts.cell(at));
                // What is empty has no field: it is neither zero nor counted in an average.
                if let Some(cell) = cell.filter(|cell| cell.n > 0) {
                    out.set(name.clone(), Value::Float(cell.sum));
                    counts.set(name.clone(), Value::Int(i64::from(cell.n)));
                }
            }
            if self.with_counts {
                out.set("num_samples".into(), Value::Fields(counts));
            }
            let below = self.list(levels, depth + 1, at..at + PARTS_MS[depth]);
            if let (Some(below), Some(list)) = (below, LISTS.get(depth + 1)) {
                out.set((*list).into(), Value::List(below));
            }
            Value::Fields(out)
        };
        let found: Vec<_> = starts.map(part).collect();
        (!found.is_empty()).then_some(found)
    }
}

impl Rows {
    fn documents(&self) -> Documents<'_> {
        Box::new(self.found.iter().flat_map(move |(id, info)| -> Documents<'_> {
            let tags = tag_fields(info.key.tags());
            match self.view.slots(*id) {
                Ok(slots) => {
                    Box::new(slots.into_iter().map(move |slot| Ok(self.row(info, &tags, &slot))))
                }
                Err(cause) => Box::new(std::iter::once(Err(cause.into()))),
            }
        }))
    }

    fn row(&self, info: &SeriesInfo, tags: &Fields, slot: &Slot) -> Fields {
        let cell = &slot.cell;
        let width = self.granularity.width_ms;
        let number =
            |display: Display| display.of_cell(cell, width).map_or(Value::Null, Value::Float);
        let mut out = Fields::default();
        out.set("date".into(), Value::Date(slot.start));
        out.set("metric".into(), Value::text(info.key.metric()));
        for (name, tag) in tags.iter() {
            out.set(name.clone(), tag.clone());
        }
        out.set("kind".into(), Value::text(info.kind.as_str()));
        out.set("unit".into(), Value::text(&info.unit));
        out.set("n".into(), Value::Int(i64::from(cell.n)));
        for (name, display) in [
            ("sum", Display::Total),
            ("min", Display::Min),
            ("max", Display::Max),
            ("first", Display::First),
            ("last", Display::Last),
            ("value", Display::of_kind(info.kind)),
        ] {
            out.set(name.into(), number(display));
        }
        out
    }
}
