//! Which series are meant.

use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Kind, METRIC_TAG, SeriesId, SeriesInfo, SeriesKey},
    query::{Budget, QueryError, QueryLimits, series::suggestion},
    store::{Matcher, Store},
};

/// Series or values looked at in one hold of the dictionary's lock: new ones wait meanwhile.
pub(crate) const CHUNK: usize = 512;
/// What an entry takes besides its texts, about.
const ENTRY_BYTES: usize = 768;

/// A metric, if one is named, and the tags that its series must have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// The metric's name; any when `None`.
    pub metric: Option<String>,
    /// Tag values that must match.
    pub tags: Vec<(String, String)>,
}

/// A series in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesEntry {
    /// What is measured.
    pub metric: String,
    /// Where.
    pub tags: BTreeMap<String, String>,
    /// How values are to be read.
    pub kind: Kind,
    /// Unit of the values; empty when there is none.
    pub unit: String,
}

/// The answer to a search for series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesAnswer {
    /// Series that match.
    pub total: usize,
    /// The first of them, in order of metric and tags.
    pub series: Vec<SeriesEntry>,
    /// Why none matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Some of the series that match.
#[derive(Debug)]
pub(crate) struct SeriesPage {
    /// All that match.
    pub(crate) total: usize,
    /// Those up to the one that was named, in order.
    pub(crate) before: usize,
    /// The last one made known.
    pub(crate) upto: Option<u32>,
    /// Those of the page, in order.
    pub(crate) series: Vec<(SeriesId, SeriesInfo)>,
}

impl SeriesEntry {
    /// Bytes that the entry of a series takes, about.
    pub(crate) fn bytes_of(info: &SeriesInfo) -> usize {
        ENTRY_BYTES + text_bytes(info)
    }

    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let tags = self.tags.iter().map(|(name, value)| name.len() + value.len());
        ENTRY_BYTES + self.metric.len() + tags.sum::<usize>()
    }

    /// An entry for a series.
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

fn text_bytes(info: &SeriesInfo) -> usize {
    let tags = info.key.tags().map(|(name, value)| name.len() + value.len());
    info.key.metric().len() + tags.sum::<usize>()
}

impl Selector {
    /// The same as the dictionary takes it.
    pub fn matchers(&self) -> Vec<Matcher> {
        let metric = self.metric.iter().map(|metric| (METRIC_TAG, metric));
        let tags = self.tags.iter().map(|(tag, value)| (tag.as_str(), value));
        metric
            .chain(tags)
            .map(|(tag, value)| Matcher { tag: tag.to_owned(), value: value.clone() })
            .collect()
    }

    /// The first `count` series that match, in order of metric and tags, of those that lie behind the
    /// series `after` and were not made known after the series `upto`. `visit` sees all that match.
    /// `None` when `after` is none of them.
    ///
    /// # Errors
    /// When the budget is used up.
    pub(crate) fn page(
        &self,
        store: &Store,
        budget: &Budget,
        (after, upto): (Option<u32>, Option<u32>),
        count: usize,
        mut visit: impl FnMut(&SeriesInfo),
    ) -> Result<Option<SeriesPage>, QueryError> {
        let mut ids = store.dictionary().select(&self.matchers());
        ids.retain(|id| upto.is_none_or(|upto| id.0 <= upto));
        let after = match after.map(SeriesId) {
            None => None,
            Some(id) if ids.binary_search(&id).is_ok() => {
                let key = store.dictionary().key(id).cloned();
                let Some(key) = key else { return Ok(None) };
                Some(key)
            }
            Some(_) => return Ok(None),
        };
        let (mut total, mut before) = (0, 0);
        // The first ones so far, the last of them on top.
        let mut first: BinaryHeap<(SeriesKey, SeriesId)> = BinaryHeap::new();
        for chunk in ids.chunks(CHUNK) {
            budget.check()?;
            let dictionary = store.dictionary();
            let known = chunk.iter().filter_map(|id| Some((*id, dictionary.info(*id)?)));
            for (id, info) in known {
                total += 1;
                visit(&info);
                if after.as_ref().is_some_and(|after| info.key <= *after) {
                    before += 1;
                } else if first.len() < count {
                    first.push((info.key, id));
                } else if let Some(mut last) = first.peek_mut()
                    && info.key < last.0
                {
                    *last = (info.key, id);
                }
            }
        }
        let first = first.into_sorted_vec();
        let mut series = Vec::with_capacity(first.len());
        for chunk in first.chunks(CHUNK) {
            let dictionary = store.dictionary();
            series.extend(chunk.iter().filter_map(|(_, id)| Some((*id, dictionary.info(*id)?))));
        }
        take(budget, &series)?;
        let upto = upto.or(ids.last().map(|id| id.0));
        Ok(Some(SeriesPage { total, before, upto, series }))
    }

    /// The same, refused when they are more than an answer may hold, or, when they become fewer
    /// lines, than may be read.
    pub(crate) fn select_within(
        &self,
        store: &Store,
        budget: &Budget,
        limits: &QueryLimits,
        merges: bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        self.select_up_to(store, budget, series_max(limits, merges), |_| true)
    }

    /// Those of them that `keep` keeps.
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
            let before = found.len();
            let dictionary = store.dictionary();
            let known = chunk.iter().filter_map(|id| Some((*id, dictionary.info(*id)?)));
            for (id, info) in known.filter(|(_, info)| keep(info)) {
                count += 1;
                if count <= max {
                    found.push((id, info));
                }
            }
            drop(dictionary);
            take(budget, &found[before..])?;
        }
        check_count(count, (max, remedy))?;
        found.sort_by(|a, b| a.1.key.cmp(&b.1.key));
        Ok(found)
    }
}

/// The number of series that may match, and the remedy against more. Series that are merged or ranked are read
/// and not all shown.
pub(crate) fn series_max(limits: &QueryLimits, merges: bool) -> (usize, &'static str) {
    if merges {
        return (limits.series_max, "raise limits.query_series_max");
    }
    (limits.lines_max, "merge or rank them")
}

/// Refuses more series than may match.
pub(crate) fn check_count(count: usize, (max, remedy): (usize, &str)) -> Result<(), QueryError> {
    if count <= max {
        return Ok(());
    }
    Err(QueryError::TooMuch(format!(
        "{count} series match, more than {max}: name more tags or {remedy}"
    )))
}

/// Takes the memory of series that are found.
fn take(budget: &Budget, found: &[(SeriesId, SeriesInfo)]) -> Result<(), QueryError> {
    let texts: usize = found.iter().map(|(_, info)| text_bytes(info)).sum();
    Ok(budget.take(texts + size_of_val(found))?)
}

/// Lists the series that match.
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
    let (total, found) = page.map_or((0, Vec::new()), |page| (page.total, page.series));
    budget.take(found.iter().map(|(_, info)| SeriesEntry::bytes_of(info)).sum())?;
    let series = found.iter().map(|(_, info)| SeriesEntry::new(info)).collect();
    let why = (total == 0).then(|| suggestion::note(store, selector)).flatten();
    Ok(SeriesAnswer { total, series, notes: why.into_iter().collect() })
}
