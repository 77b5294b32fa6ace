//! Lists of label names, label values, metrics and series.
//!
//! Must never know: HTTP, cells. The dictionary is locked for one chunk of a list at a time.

use serde::{Deserialize, Serialize};

use crate::{
    model::{Kind, METRIC_TAG, SeriesId, SeriesInfo, UnixMillis},
    query::{
        Budget, ExpressionLimits, QueryError, QueryLimits, Selector, SeriesEntry,
        series::{selector::CHUNK, suggestion},
    },
    store::Store,
};

/// A metric with the metadata of its first series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMetric {
    /// The name of the metric.
    pub name: String,
    /// The kind of the first series.
    pub kind: Kind,
    /// The unit of the first series; empty when it has none.
    pub unit: String,
}

/// The answer to a search for series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesAnswer {
    /// Number of matching series.
    pub total: usize,
    /// The first matching series, in order of metric and tags.
    pub series: Vec<SeriesEntry>,
    /// The reason why no series matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl SeriesAnswer {
    /// Joins the lists of all shards. A series in the lists of several shards is listed once.
    pub fn join(answers: Vec<Self>, limits: &QueryLimits) -> Self {
        let mut total = answers.iter().map(|answer| answer.total).sum();
        let (mut series, mut notes) = (Vec::new(), Vec::new());
        for answer in answers {
            series.extend(answer.series);
            notes.extend(answer.notes);
        }
        series.sort_by(|one: &SeriesEntry, other| {
            (&one.metric, &one.tags).cmp(&(&other.metric, &other.tags))
        });
        let listed = series.len();
        series.dedup_by(|next, kept| (&next.metric, &next.tags) == (&kept.metric, &kept.tags));
        total -= listed - series.len();
        series.truncate(limits.lines_max);
        notes.truncate(usize::from(total == 0));
        Self { total, series, notes }
    }
}

/// Lists the matching series.
///
/// # Errors
/// When the budget is used up.
pub fn series(
    store: &Store,
    budget: &Budget,
    selector: &Selector,
    limits: &QueryLimits,
) -> Result<SeriesAnswer, QueryError> {
    let page = selector.page(store, budget, (None, None), limits.lines_max, |_| {})?;
    let (total, found) = (page.total, page.series);
    budget.reserve(found.iter().map(|(_, info)| SeriesEntry::bytes_of(info)).sum())?;
    let series = found.iter().map(|(_, info)| SeriesEntry::new(info)).collect();
    let note = (total == 0).then(|| suggestion::note(store, selector)).flatten();
    Ok(SeriesAnswer { total, series, notes: note.into_iter().collect() })
}

/// Lists the names of all labels in order, including `__name__`. With `since`, only labels of
/// series that have samples since then are listed.
///
/// # Errors
/// When the query times out, or its memory is used up.
pub fn list_label_names(
    store: &Store,
    since: Option<UnixMillis>,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<String>, QueryError> {
    let mut names = Vec::new();
    for name in store.dictionary().tag_names() {
        let mut is_live = since.is_none();
        if !is_live {
            visit_values(store, &name, since, limits, |_| {
                is_live = true;
                false
            })?;
        }
        if is_live {
            names.push(name.into());
        }
    }
    Ok(names)
}

/// Lists the values of a label in order. With `since`, only values of series that have samples
/// since then are listed.
///
/// # Errors
/// When the query times out, or its memory is used up.
pub fn list_label_values(
    store: &Store,
    name: &str,
    since: Option<UnixMillis>,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<String>, QueryError> {
    let mut all: Vec<String> = Vec::new();
    visit_values(store, name, since, limits, |value| {
        all.push(value.into());
        true
    })?;
    Ok(all)
}

/// Calls `visit` with the values of a label in order, until `visit` returns false.
fn visit_values(
    store: &Store,
    name: &str,
    since: Option<UnixMillis>,
    limits: &ExpressionLimits<'_>,
    mut visit: impl FnMut(Box<str>) -> bool,
) -> Result<(), QueryError> {
    let mut after: Option<Box<str>> = None;
    loop {
        check_time(limits)?;
        let next = store.dictionary().values_after(name, after.as_deref(), CHUNK);
        let Some(last) = next.last().cloned() else { return Ok(()) };
        limits.reserve(next.iter().map(|value| value.len() + size_of::<String>()).sum())?;
        after = Some(last);
        for value in next {
            let is_live = since.is_none_or(|since| {
                let ids = store.dictionary().with_tag(name, &value).to_vec();
                store.have_samples_since(&ids, since)
            });
            if is_live && !visit(value) {
                return Ok(());
            }
        }
    }
}

/// Removes the series without samples since a time, when a time is given.
///
/// # Errors
/// When the query times out.
pub fn with_samples_since(
    store: &Store,
    found: Vec<(SeriesId, SeriesInfo)>,
    since: Option<UnixMillis>,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
    let Some(since) = since else { return Ok(found) };
    let mut remaining = Vec::with_capacity(found.len());
    for part in found.chunks(CHUNK) {
        check_time(limits)?;
        let ids: Vec<_> = part.iter().map(|(id, _)| *id).collect();
        let last = store.last_samples(&ids);
        let live =
            part.iter().zip(last).filter(|(_, last)| last.is_some_and(|sample| sample.at >= since));
        remaining.extend(live.map(|(series, _)| series.clone()));
    }
    Ok(remaining)
}

/// Lists the metrics in order, or only the metric `wanted`.
///
/// # Errors
/// When the query times out, or its memory is used up.
pub fn list_metrics(
    store: &Store,
    wanted: Option<&str>,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<ListedMetric>, QueryError> {
    let names = match wanted {
        Some(name) => vec![name.to_owned()],
        None => list_label_values(store, METRIC_TAG, None, limits)?,
    };
    let mut all = Vec::with_capacity(names.len());
    for chunk in names.chunks(CHUNK) {
        check_time(limits)?;
        let dictionary = store.dictionary();
        for name in chunk {
            let first = dictionary.with_tag(METRIC_TAG, name).first();
            let info = first.and_then(|id| dictionary.info(*id));
            all.extend(info.map(|info| ListedMetric {
                name: name.clone(),
                kind: info.kind,
                unit: info.unit.to_string(),
            }));
        }
    }
    Ok(all)
}

/// Returns an error when a list exceeds the query's time limit.
pub(crate) fn check_time(limits: &ExpressionLimits<'_>) -> Result<(), QueryError> {
    if limits.budget.check().is_err() {
        let message =
            "query timed out while listing names: list fewer names, or raise limits.query_timeout";
        return Err(QueryError::Timeout(message.to_owned()));
    }
    Ok(())
}
