//! Which series a pipeline can see, and what their names are as fields of a document.
//!
//! Must never know: stages, how documents are built.

use std::ops::Range;

use crate::{
    model::{METRIC_TAG, SeriesId, SeriesInfo, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits, Selector,
        pipeline::{
            pushdown::{Wanted, Words},
            value::{Fields, Value},
        },
    },
    store::{Matcher, Store},
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

/// What is to be read.
pub(in crate::query::pipeline) struct CollectionRequest<'a> {
    pub(in crate::query::pipeline) collection: Option<&'a str>,
    pub(in crate::query::pipeline) selector: &'a Selector,
    pub(in crate::query::pipeline) range: Option<&'a Range<UnixMillis>>,
    pub(in crate::query::pipeline) words: &'a Words,
    pub(in crate::query::pipeline) wanted: &'a Wanted,
}

/// What both ranges have in common.
pub(super) fn overlap(a: &Range<UnixMillis>, b: &Range<UnixMillis>) -> Range<UnixMillis> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// The series whose fields a pipeline can see.
pub(super) fn select(
    store: &Store,
    budget: &Budget,
    request: &CollectionRequest<'_>,
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
pub(super) fn field_name(metric: &str) -> String {
    metric.replace('.', "_")
}

/// The fields of tags.
pub(super) fn tag_fields<'a>(tags: impl Iterator<Item = (&'a str, &'a str)>) -> Fields {
    let own = tags.filter(|(name, _)| !OWN_FIELDS.contains(name));
    own.map(|(name, value)| (name.into(), Value::text(value))).collect()
}
