//! Selection of series by metric and tags.

use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Kind, METRIC_TAG, SeriesId, SeriesInfo, SeriesKey},
    query::{
        Budget, QueryError, QueryLimits,
        series::token::{SeriesToken, hash_of},
    },
    store::{Matcher, Store},
};

/// Number of series or values processed while the dictionary is locked. Registration of new series
/// waits for the lock.
pub(crate) const CHUNK: usize = 512;
/// Approximate memory of an entry, without its texts.
const ENTRY_BYTES: usize = 768;

/// An optional metric, and tag values that a series must have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Selector {
    /// The metric's name; `None` selects any metric.
    pub metric: Option<String>,
    /// Required tag values.
    pub tags: Vec<(String, String)>,
}

/// A series in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesEntry {
    /// The metric's name.
    pub metric: String,
    /// The tags.
    pub tags: BTreeMap<String, String>,
    /// The kind of the values.
    pub kind: Kind,
    /// The unit of the values; empty when there is none.
    pub unit: String,
}

/// The series that precedes a page.
#[derive(Debug, Clone, Copy)]
pub(crate) enum After<'a> {
    /// A matching series of the store.
    Token(&'a SeriesToken),
    /// Any series.
    Key(&'a SeriesKey),
}

/// A page of the matching series.
#[derive(Debug)]
pub(crate) struct SeriesPage {
    /// Number of matching series on all pages.
    pub(crate) total: usize,
    /// Number of matching series before this page.
    pub(crate) before: usize,
    /// The newest series that is included in the pages.
    pub(crate) upto: Option<SeriesToken>,
    /// The series of the page, in order.
    pub(crate) series: Vec<(SeriesId, SeriesInfo)>,
}

impl SeriesEntry {
    /// Returns the approximate memory of the entry of a series.
    pub(crate) fn bytes_of(info: &SeriesInfo) -> usize {
        ENTRY_BYTES + text_bytes(info)
    }

    /// Returns the approximate memory of the entry.
    pub(crate) fn bytes(&self) -> usize {
        let tags = self.tags.iter().map(|(name, value)| name.len() + value.len());
        ENTRY_BYTES + self.metric.len() + tags.sum::<usize>()
    }

    /// Creates an entry for a series.
    pub fn new(info: &SeriesInfo) -> Self {
        let tags = info.key.tags();
        Self {
            metric: info.key.metric().to_owned(),
            tags: tags.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            kind: info.kind,
            unit: info.unit.to_string(),
        }
    }
}

/// Returns the series of a token, if it is one of `ids`.
fn find_token(
    store: &Store,
    budget: &Budget,
    ids: &[SeriesId],
    token: &SeriesToken,
) -> Result<Option<(SeriesId, SeriesKey)>, QueryError> {
    let hash = token.hash();
    for chunk in ids.chunks(CHUNK) {
        budget.check()?;
        let dictionary = store.dictionary();
        let mut known = chunk.iter().filter_map(|id| Some((*id, dictionary.key(*id)?)));
        if let Some((id, key)) = known.find(|(_, key)| Some(hash_of(key)) == hash) {
            return Ok(Some((id, key.clone())));
        }
    }
    Ok(None)
}

/// Returns the error of a parameter whose token stands for no matching series.
pub(crate) fn unknown_token(name: &str) -> QueryError {
    QueryError::Invalid(format!(
        "{name} is not a matching series, or the series was deleted: begin again without {name}"
    ))
}

fn text_bytes(info: &SeriesInfo) -> usize {
    let tags = info.key.tags().map(|(name, value)| name.len() + value.len());
    info.key.metric().len() + tags.sum::<usize>()
}

impl Selector {
    /// Converts the selector to the dictionary's matchers.
    pub fn matchers(&self) -> Vec<Matcher> {
        let metric = self.metric.iter().map(|metric| (METRIC_TAG, metric));
        let tags = self.tags.iter().map(|(tag, value)| (tag.as_str(), value));
        metric
            .chain(tags)
            .map(|(tag, value)| Matcher { tag: tag.to_owned(), value: value.clone() })
            .collect()
    }

    /// Returns the first `count` matching series after the series `after`, in order of metric and
    /// tags. Series newer than `upto` are left out. `visit` is called with every matching series.
    ///
    /// # Errors
    /// When `after` or `upto` does not match, or the budget is used up.
    pub(crate) fn page(
        &self,
        store: &Store,
        budget: &Budget,
        (after, upto): (Option<After<'_>>, Option<&SeriesToken>),
        count: usize,
        mut visit: impl FnMut(&SeriesInfo),
    ) -> Result<SeriesPage, QueryError> {
        let mut ids = store.dictionary().select(&self.matchers());
        if upto.is_some_and(SeriesToken::is_nothing) {
            ids.clear();
        }
        let find = |name, token| {
            find_token(store, budget, &ids, token)?.ok_or_else(|| unknown_token(name))
        };
        let last = upto.filter(|upto| !upto.is_nothing());
        let last = last.map(|token| find("upto", token)).transpose()?;
        let after = match after {
            None => None,
            Some(After::Token(token)) => Some(find("after", token)?.1),
            Some(After::Key(key)) => Some(key.clone()),
        };
        ids.retain(|id| last.as_ref().is_none_or(|(last, _)| id <= last));
        let (mut total, mut before) = (0, 0);
        // The series of the page, a heap with the last of them on top.
        let mut page: BinaryHeap<(SeriesKey, SeriesId)> = BinaryHeap::new();
        for chunk in ids.chunks(CHUNK) {
            budget.check()?;
            let dictionary = store.dictionary();
            let known = chunk.iter().filter_map(|id| Some((*id, dictionary.info(*id)?)));
            for (id, info) in known {
                total += 1;
                visit(&info);
                if after.as_ref().is_some_and(|after| info.key <= *after) {
                    before += 1;
                } else if page.len() < count {
                    page.push((info.key, id));
                } else if let Some(mut last) = page.peek_mut()
                    && info.key < last.0
                {
                    *last = (info.key, id);
                }
            }
        }
        let page = page.into_sorted_vec();
        let mut series = Vec::with_capacity(page.len());
        for chunk in page.chunks(CHUNK) {
            let dictionary = store.dictionary();
            series.extend(chunk.iter().filter_map(|(_, id)| Some((*id, dictionary.info(*id)?))));
        }
        charge(budget, &series)?;
        let last = last.map(|(_, key)| key).or_else(|| {
            let dictionary = store.dictionary();
            ids.iter().rev().find_map(|id| dictionary.key(*id).cloned())
        });
        Ok(SeriesPage { total, before, upto: last.as_ref().map(SeriesToken::new), series })
    }

    /// Returns the key of the matching series that a token stands for.
    ///
    /// # Errors
    /// When the budget is used up.
    pub(crate) fn key_of(
        &self,
        store: &Store,
        budget: &Budget,
        token: &SeriesToken,
    ) -> Result<Option<SeriesKey>, QueryError> {
        let ids = store.dictionary().select(&self.matchers());
        Ok(find_token(store, budget, &ids, token)?.map(|(_, key)| key))
    }

    /// Returns the matching series in order of their keys. The limit is `lines_max`, or
    /// `series_max` when series are merged into fewer lines.
    pub(crate) fn select_within(
        &self,
        store: &Store,
        budget: &Budget,
        limits: &QueryLimits,
        merges: bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        self.select_up_to(store, budget, series_max(limits, merges), |_| true)
    }

    /// Returns the matching series for which `keep` returns true, in order of their keys.
    pub(crate) fn select_where(
        &self,
        store: &Store,
        budget: &Budget,
        limits: &QueryLimits,
        keep: impl Fn(&SeriesInfo) -> bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        self.select_up_to(store, budget, series_max(limits, false), keep)
    }

    fn select_up_to(
        &self,
        store: &Store,
        budget: &Budget,
        (max, remedy): (usize, &str),
        keep: impl Fn(&SeriesInfo) -> bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        let ids = store.dictionary().select(&self.matchers());
        let (mut found, mut count) = (Vec::new(), 0);
        for chunk in ids.chunks(CHUNK) {
            budget.check()?;
            let found_before = found.len();
            let dictionary = store.dictionary();
            let known = chunk.iter().filter_map(|id| Some((*id, dictionary.info(*id)?)));
            for (id, info) in known.filter(|(_, info)| keep(info)) {
                count += 1;
                if count <= max {
                    found.push((id, info));
                }
            }
            drop(dictionary);
            charge(budget, &found[found_before..])?;
        }
        check_count(count, (max, remedy))?;
        found.sort_by(|a, b| a.1.key.cmp(&b.1.key));
        Ok(found)
    }
}

/// Returns the maximum number of matching series, and the remedy when more match. The limit is
/// higher when series are merged or ranked, because not every series is then shown.
pub(crate) fn series_max(limits: &QueryLimits, merges: bool) -> (usize, &'static str) {
    if merges {
        return (limits.series_max, "raise limits.query_points_max");
    }
    (limits.lines_max, "merge or rank them")
}

/// Rejects a query that matches too many series.
pub(crate) fn check_count(count: usize, (max, remedy): (usize, &str)) -> Result<(), QueryError> {
    if count <= max {
        return Ok(());
    }
    Err(QueryError::TooMuch(format!("{count} series match, more than {max}: add tags or {remedy}")))
}

/// Charges the memory of series to the budget.
fn charge(budget: &Budget, found: &[(SeriesId, SeriesInfo)]) -> Result<(), QueryError> {
    let texts: usize = found.iter().map(|(_, info)| text_bytes(info)).sum();
    Ok(budget.reserve(texts + size_of_val(found))?)
}
