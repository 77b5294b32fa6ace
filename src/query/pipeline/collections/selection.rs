//! Selection of the series that a pipeline can see, and their names as fields of documents.
//!
//! Must never know: stages, how documents are built.

use std::ops::Range;

use crate::{
    model::{METRIC_TAG, SeriesId, SeriesInfo, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits, Selector,
        pipeline::{
            predicate::Test,
            pushdown::{Conditions, NeededNames},
            value::{Fields, Value},
        },
        series::selector::CHUNK,
    },
    store::Store,
};

/// Fields of documents that are not tags.
const RESERVED_FIELDS: [&str; 15] = [
    "_id",
    "counts",
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

/// A request to read a collection.
pub(in crate::pipeline) struct CollectionRequest<'a> {
    pub(in crate::pipeline) collection: Option<&'a str>,
    pub(in crate::pipeline) selector: &'a Selector,
    pub(in crate::pipeline) range: Option<&'a Range<UnixMillis>>,
    pub(in crate::pipeline) needed: &'a NeededNames,
    pub(in crate::pipeline) conditions: &'a Conditions,
    /// True to include the empty slots of preallocated documents.
    pub(in crate::pipeline) shells: bool,
}

/// Returns the intersection of two ranges.
pub(super) fn overlap(a: &Range<UnixMillis>, b: &Range<UnixMillis>) -> Range<UnixMillis> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// The conditions of the first stages on series.
struct SeriesConditions<'a> {
    selector: Selector,
    /// Tests of tags, and of the metric when it is a field.
    tests: Vec<(&'a str, &'a Test)>,
    has_metric_field: bool,
}

impl<'a> SeriesConditions<'a> {
    /// Returns the conditions; `None` when no series can pass.
    fn of(
        store: &Store,
        budget: &Budget,
        request: &'a CollectionRequest<'a>,
        has_metric_field: bool,
    ) -> Result<Option<Self>, QueryError> {
        let mut conditions =
            Self { selector: request.selector.clone(), tests: Vec::new(), has_metric_field };
        for (name, test) in &request.conditions.tests {
            if conditions.is_metric(name) {
                if let (None, Some(metric)) = (&conditions.selector.metric, test.only_text()) {
                    conditions.selector.metric = Some(metric.to_owned());
                }
                conditions.tests.push((name, test));
                continue;
            }
            let is_field = RESERVED_FIELDS.contains(&name.as_str());
            if is_field || (!has_metric_field && is_metric_field(store, budget, name)?) {
                continue;
            }
            if test.is_narrow() {
                let mut texts = passing_values(store, budget, name, test)?;
                match (texts.pop(), texts.is_empty()) {
                    (None, _) => return Ok(None),
                    (Some(text), true) => conditions.selector.tags.push((name.clone(), text)),
                    (Some(_), false) => conditions.tests.push((name, test)),
                }
            } else {
                conditions.tests.push((name, test));
            }
        }
        Ok(Some(conditions))
    }

    fn is_metric(&self, name: &str) -> bool {
        self.has_metric_field && name == "metric"
    }

    fn matches(&self, info: &SeriesInfo) -> bool {
        self.tests.iter().all(|(name, test)| {
            let metric = self.is_metric(name).then(|| info.key.metric());
            test.holds_for_text(metric.or_else(|| info.key.tag(name)))
        })
    }
}

/// Returns true when a field contains the sums of a metric.
fn is_metric_field(store: &Store, budget: &Budget, name: &str) -> Result<bool, QueryError> {
    let is_requested = |metric: &str| {
        metric.len() == name.len()
            && metric.bytes().zip(name.bytes()).all(|(a, b)| a == b || (a == b'.' && b == b'_'))
    };
    let mut found = false;
    for_each_value(store, budget, METRIC_TAG, |metric| found |= is_requested(metric))?;
    Ok(found)
}

/// Describes a tag that is compared with a number although none of its values is a number.
pub(in crate::pipeline) fn note_of_text_values(
    store: &Store,
    budget: &Budget,
    conditions: &Conditions,
) -> Result<Option<String>, QueryError> {
    for (name, _) in conditions.tests.iter().filter(|(_, test)| test.wants_number()) {
        let (mut has_number, mut text) = (false, None);
        for_each_value(store, budget, name, |value| {
            has_number |= Value::text(value).to_number().is_some();
            text.get_or_insert_with(|| value.to_owned());
        })?;
        if let (false, Some(text)) = (has_number, text) {
            return Ok(Some(format!(
                "{name} is compared with a number, but none of its values is a number, for example \
                 {text:?}"
            )));
        }
    }
    Ok(None)
}

/// Returns the values of a tag that pass a test.
fn passing_values(
    store: &Store,
    budget: &Budget,
    tag: &str,
    test: &Test,
) -> Result<Vec<String>, QueryError> {
    if let Some(text) = test.only_text() {
        return Ok(vec![text.to_owned()]);
    }
    let mut texts = Vec::new();
    for_each_value(store, budget, tag, |value| {
        if test.holds_for_text(Some(value)) {
            texts.push(value.to_owned());
        }
    })?;
    Ok(texts)
}

fn for_each_value(
    store: &Store,
    budget: &Budget,
    tag: &str,
    mut visit: impl FnMut(&str),
) -> Result<(), QueryError> {
    let mut after = None;
    loop {
        budget.check()?;
        after = store.dictionary().visit_values(tag, after.as_deref(), CHUNK, &mut visit);
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Returns the series whose fields a pipeline can see.
pub(super) fn select(
    store: &Store,
    budget: &Budget,
    request: &CollectionRequest<'_>,
    limits: &QueryLimits,
    has_metric_field: bool,
) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
    let Some(mut conditions) = SeriesConditions::of(store, budget, request, has_metric_field)?
    else {
        return Ok(Vec::new());
    };
    let mut selector = std::mem::take(&mut conditions.selector);
    let matches = |info: &SeriesInfo| conditions.matches(info);
    // The total count includes samples of all metrics.
    let needs_all_metrics = has_metric_field || request.needed.needs("num_samples");
    let is_needed = |info: &SeriesInfo| {
        needs_all_metrics || request.needed.needs(&field_name(info.key.metric()))
    };
    let names = request.needed.names().filter(|_| !needs_all_metrics);
    let (Some(names), None, []) = (names, &selector.metric, &selector.tags[..]) else {
        let found = selector
            .select_where(store, budget, limits, |info| matches(info) && is_needed(info))?;
        // A pipeline that names no metric reads documents of any metric.
        let reads_any_metric = found.is_empty() && !has_metric_field;
        return if reads_any_metric {
            selector.select_where(store, budget, limits, matches)
        } else {
            Ok(found)
        };
    };
    let mut found = Vec::new();
    for name in names {
        selector.metric = Some(name.to_owned());
        found.extend(selector.select_where(store, budget, limits, matches)?);
        if found.len() > limits.series_max {
            return Err(QueryError::TooMuch(format!(
                "more than {} series match: add tags to the first $match or raise \
                 limits.query_points_max",
                limits.series_max
            )));
        }
    }
    if found.is_empty() {
        selector.metric = None;
        return selector.select_where(store, budget, limits, matches);
    }
    Ok(found)
}

/// Returns the field name of a metric. Dots are replaced, because they separate the steps of a
/// path.
pub(super) fn field_name(metric: &str) -> String {
    metric.replace('.', "_")
}

/// Returns tags as fields, without tags whose names are reserved.
pub(super) fn tag_fields<'a>(tags: impl Iterator<Item = (&'a str, &'a str)>) -> Fields {
    let pairs = tags.filter(|(name, _)| !RESERVED_FIELDS.contains(name));
    pairs.map(|(name, value)| (name.into(), Value::text(value))).collect()
}
