//! The documents that a pipeline begins with, read from the store one by one.
//!
//! Must never know: stages. A collection named after a granularity holds its slots as rows; every
//! other name stands for the months, one document a tag set: days > hours > minutes, with a field
//! for each metric.

mod months;
mod rows;

use std::ops::Range;

use super::{
    budget::Quota,
    flow::Documents,
    value::{Fields, Value},
    wanted::{Wanted, Words},
};
use crate::{
    model::{Granularity, GranularityIndex, METRIC_TAG, SeriesId, SeriesInfo, UnixMillis},
    query::{Budget, QueryError, QueryLimits, Selector, levels::PARTS_MS},
    store::{Matcher, Store},
};
use months::{Months, months};
use rows::Rows;

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

/// What is to be read.
pub(super) struct SourceRequest<'a> {
    pub(super) collection: Option<&'a str>,
    pub(super) selector: &'a Selector,
    pub(super) range: Option<&'a Range<UnixMillis>>,
    pub(super) words: &'a Words,
    pub(super) wanted: &'a Wanted,
}

/// What a pipeline reads.
pub(super) enum Source {
    Months(Months),
    Rows(Rows),
}

impl Source {
    /// Decides what is read and begins.
    ///
    /// # Errors
    /// When it is too much, the budget is used up, or the store cannot be read.
    pub(super) fn open(
        store: &Store,
        budget: &Budget,
        request: &SourceRequest<'_>,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let granularities = store.granularities();
        let all = store.all_granularities();
        let named = request.collection.and_then(|name| all.iter().position(|own| own.name == name));
        let (oldest, latest) = kept(&granularities[granularities.coarsest()], now);
        let asked = request.range.cloned().unwrap_or(oldest..latest);
        let Some(index) = named.map(GranularityIndex) else {
            return Ok(Self::Months(months(store, budget, request, &asked, limits, now)?));
        };
        let granularity = store.granularity(index);
        let found = select(store, budget, request, limits, true)?;
        let range = overlap(&asked, &request.wanted.dates);
        let range = overlap(&range, &(kept(granularity, now).0..UnixMillis::MAX));
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        let view = store.view(index, range, &ids)?;
        Ok(Self::Rows(Rows { view, granularity: granularity.clone(), found }))
    }

    /// The documents, in order of series and time.
    pub(super) fn documents<'a>(&'a self, quota: &'a Quota<'a>) -> Documents<'a> {
        match self {
            Self::Months(months) => months.documents(quota),
            Self::Rows(rows) => rows.documents(quota),
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
    budget: &Budget,
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
        let found =
            selector.select_where(store, budget, limits, |info| fits(info) && is_seen(info))?;
        // A pipeline that names no metric counts documents of any.
        let counts_any = found.is_empty() && !has_metric_field;
        return if counts_any {
            selector.select_where(store, budget, limits, fits)
        } else {
            Ok(found)
        };
    };
    let mut found = Vec::new();
    for name in names {
        selector.metric = Some(name.to_owned());
        found.extend(selector.select_where(store, budget, limits, fits)?);
        if found.len() > limits.series_max {
            return Err(QueryError::TooMuch(format!(
                "more than {} series match: name tags in the first $match or raise \
                 limits.query_series_max",
                limits.series_max
            )));
        }
    }
    if found.is_empty() {
        selector.metric = None;
        return selector.select_where(store, budget, limits, fits);
    }
    Ok(found)
}

/// A metric's name as the name of a field: dots would be steps of a path.
fn field_name(metric: &str) -> String {
    metric.replace('.', "_")
}

fn tag_fields<'a>(tags: impl Iterator<Item = (&'a str, &'a str)>) -> Fields {
    let own = tags.filter(|(name, _)| !OWN_FIELDS.contains(name));
    own.map(|(name, value)| (name.into(), Value::text(value))).collect()
}
