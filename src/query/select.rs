//! Which series are meant.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{QueryError, QueryLimits, missing};
use crate::{
    model::{Kind, SeriesId},
    store::{Dictionary, METRIC_TAG, Matcher, SeriesInfo, Store},
};

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

    /// The series that match, in order of metric and tags, with what is known of them.
    pub(super) fn select(&self, store: &Store) -> Vec<(SeriesId, SeriesInfo)> {
        let dictionary = store.dictionary();
        let ids = dictionary.select(&self.matchers());
        with_infos(&dictionary, ids)
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
        let dictionary = store.dictionary();
        let mut ids = dictionary.select(&self.matchers());
        ids.retain(|id| dictionary.info(*id).is_some_and(&keep));
        if ids.len() > max {
            return Err(QueryError::TooMuch(format!(
                "{} series match, more than {max}: name more tags or raise {setting}",
                ids.len(),
            )));
        }
        Ok(with_infos(&dictionary, ids))
    }
}

fn with_infos(dictionary: &Dictionary, ids: Vec<SeriesId>) -> Vec<(SeriesId, SeriesInfo)> {
    let known = ids.into_iter().filter_map(|id| Some((id, dictionary.info(id)?.clone())));
    let mut found: Vec<_> = known.collect();
    found.sort_by(|a, b| a.1.key.cmp(&b.1.key));
    found
}

/// Lists the series that match.
pub fn series(store: &Store, selector: &Selector, limits: &QueryLimits) -> SeriesAnswer {
    let found = selector.select(store);
    let shown = found.iter().take(limits.series_max);
    let series = shown.map(|(_, info)| SeriesEntry::new(info)).collect();
    let why = found.is_empty().then(|| missing::note(store, selector)).flatten();
    SeriesAnswer { total: found.len(), series, notes: why.into_iter().collect() }
}
