//! Which series are meant.

use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::{QueryError, QueryLimits, missing};
use crate::{
    model::{Kind, METRIC_TAG, SeriesId, SeriesInfo, SeriesKey},
    store::{Matcher, Store},
};

/// Series looked at in one hold of the dictionary's lock: new ones wait meanwhile.
const CHUNK: usize = 512;

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
pub(super) struct SeriesPage {
    /// All that match.
    pub(super) total: usize,
    /// Those up to the one that was named, in order.
    pub(super) before: usize,
    /// The last one made known.
    pub(super) upto: Option<u32>,
    /// Those of the page, in order.
    pub(super) series: Vec<(SeriesId, SeriesInfo)>,
}

impl SeriesEntry {
    pub(super) fn new(info: &SeriesInfo) -> Self {
        let tags = info.key.tags();
        Self {
            metric: info.key.metric().to_owned(),
            tags: tags.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            kind: info.kind,
            unit: info.unit.to_string(),
        }
    }
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
    pub(super) fn page(
        &self,
        store: &Store,
        (after, upto): (Option<u32>, Option<u32>),
        count: usize,
        mut visit: impl FnMut(&SeriesInfo),
    ) -> Option<SeriesPage> {
        let mut ids = store.dictionary().select(&self.matchers());
        ids.retain(|id| upto.is_none_or(|upto| id.0 <= upto));
        let after = match after.map(SeriesId) {
            None => None,
            Some(id) if ids.binary_search(&id).is_ok() => {
                Some(store.dictionary().info(id)?.key.clone())
            }
            Some(_) => return None,
        };
        let (mut total, mut before) = (0, 0);
        // The first ones so far, the last of them on top.
        let mut first: BinaryHeap<(SeriesKey, SeriesId)> = BinaryHeap::new();
        for chunk in ids.chunks(CHUNK) {
            let dictionary = store.dictionary();
            let known = chunk.iter().filter_map(|id| Some((*id, dictionary.info(*id)?)));
            for (id, info) in known {
                total += 1;
                visit(info);
                if after.as_ref().is_some_and(|after| info.key <= *after) {
                    before += 1;
                } else if first.len() < count {
                    first.push((info.key.clone(), id));
                } else if let Some(mut last) = first.peek_mut()
                    && info.key < last.0
                {
                    *last = (info.key.clone(), id);
                }
            }
        }
        let dictionary = store.dictionary();
        let first = first.into_sorted_vec().into_iter();
        let series = first.filter_map(|(_, id)| Some((id, dictionary.info(id)?.clone()))).collect();
        Some(SeriesPage { total, before, upto: upto.or(ids.last().map(|id| id.0)), series })
    }

    /// The same, refused when they are more than an answer may hold, or, when they become fewer
    /// lines, than may be read.
    pub(super) fn select_within(
        &self,
        store: &Store,
        limits: &QueryLimits,
        merges: bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        if merges {
            let max = (limits.read_series_max, "promql.series_max");
            return self.select_up_to(store, max, |_| true);
        }
        self.select_where(store, limits, |_| true)
    }

    /// Those of them that `keep` keeps.
    pub(super) fn select_where(
        &self,
        store: &Store,
        limits: &QueryLimits,
        keep: impl Fn(&SeriesInfo) -> bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        self.select_up_to(store, (limits.series_max, "limits.query_series_max"), keep)
    }

    fn select_up_to(
        &self,
        store: &Store,
        (max, setting): (usize, &str),
        keep: impl Fn(&SeriesInfo) -> bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        let ids = store.dictionary().select(&self.matchers());
        let (mut found, mut count) = (Vec::new(), 0);
        for chunk in ids.chunks(CHUNK) {
            let dictionary = store.dictionary();
            let known = chunk.iter().filter_map(|id| Some((*id, dictionary.info(*id)?)));
            for (id, info) in known.filter(|(_, info)| keep(info)) {
                count += 1;
                if count <= max {
                    found.push((id, info.clone()));
                }
            }
        }
        if count > max {
            return Err(QueryError::TooMuch(format!(
                "{count} series match, more than {max}: name more tags or raise {setting}"
            )));
        }
        found.sort_by(|a, b| a.1.key.cmp(&b.1.key));
        Ok(found)
    }
}

/// Lists the series that match.
pub fn series(store: &Store, selector: &Selector, limits: &QueryLimits) -> SeriesAnswer {
    let page = selector.page(store, (None, None), limits.series_max, |_| {});
    let (total, found) = page.map_or((0, Vec::new()), |page| (page.total, page.series));
    let series = found.iter().map(|(_, info)| SeriesEntry::new(info)).collect();
    let why = (total == 0).then(|| missing::note(store, selector)).flatten();
    SeriesAnswer { total, series, notes: why.into_iter().collect() }
}
