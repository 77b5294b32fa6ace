//! Faceted search: the tags of a metric's series, and the number of series for each tag value.
//!
//! The values of a filtered tag are counted without that filter; otherwise only the selected value
//! would remain. Must never know: HTTP, cells.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use crate::{
    model::SeriesKey,
    query::{Budget, QueryError, Selector, series::selector::CHUNK, series::suggestion},
    store::Store,
};

/// Maximum number of tags in an answer. Tags with the most series take precedence.
const TAGS_MAX: usize = 200;
/// Maximum number of values per tag in an answer.
const VALUES_MAX: usize = 50;
/// Approximate memory of a counted value, without its text.
const VALUE_BYTES: usize = 64;

/// The tags of the selected series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FacetsAnswer {
    /// Number of matching series.
    pub series: usize,
    /// Number of tags, including tags that are left out.
    pub tags_total: usize,
    /// The tags by name. When there are too many, tags with the most series take precedence.
    pub tags: Vec<TagFacet>,
    /// The reason why no series matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A tag and its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagFacet {
    /// The name of the tag.
    pub name: String,
    /// Number of values, including values that are left out.
    pub values_total: usize,
    /// The values with the most series, in descending order of series, then by text.
    pub values: Vec<ValueFacet>,
}

/// A value of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueFacet {
    /// The value.
    pub value: String,
    /// Number of series that have this value and match all filters of other tags.
    pub series: usize,
}

/// The number of series per value of a tag. Senders choose the values.
type Values = HashMap<Box<str>, usize, RandomState>;

/// Running counts, which shards send to each other.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FacetCounts {
    /// Number of series that match all filters.
    series: usize,
    tags: BTreeMap<Box<str>, Values>,
    /// Bytes of names and values that are not charged to the budget yet.
    #[serde(skip)]
    new_bytes: usize,
}

impl FacetCounts {
    /// Counts a series. A series that only fails the filters of one tag is counted among the
    /// values of that tag.
    fn add(&mut self, key: &SeriesKey, filters: &[(String, String)]) {
        let is_met = |(name, value): &&(String, String)| key.tag(name) == Some(value);
        let mut missed = filters.iter().filter(|filter| !is_met(filter)).map(|(name, _)| name);
        match missed.next() {
            None => {
                self.series += 1;
                key.tags().for_each(|(name, value)| self.add_value(name, value, 1));
            }
            Some(first) if missed.all(|name| name == first) => {
                if let Some(value) = key.tag(first) {
                    self.add_value(first, value, 1);
                }
            }
            Some(_) => {}
        }
    }

    fn add_value(&mut self, name: &str, value: &str, series: usize) {
        if !self.tags.contains_key(name) {
            self.tags.insert(name.into(), Values::default());
            self.new_bytes += name.len() + VALUE_BYTES;
        }
        let Some(values) = self.tags.get_mut(name) else { return };
        if let Some(count) = values.get_mut(value) {
            *count += series;
        } else {
            values.insert(value.into(), series);
            self.new_bytes += value.len() + VALUE_BYTES;
        }
    }
}

impl TagFacet {
    fn new(name: Box<str>, values: Values) -> Self {
        let values_total = values.len();
        let mut ordered: Vec<_> =
            values.into_iter().map(|(value, count)| (Reverse(count), value)).collect();
        if ordered.len() > VALUES_MAX {
            ordered.select_nth_unstable(VALUES_MAX);
            ordered.truncate(VALUES_MAX);
        }
        ordered.sort_unstable();
        let values = ordered
            .into_iter()
            .map(|(Reverse(series), value)| ValueFacet { value: value.into(), series });
        Self { name: name.into(), values_total, values: values.collect() }
    }
}

impl FacetCounts {
    /// Counts the series of a store.
    ///
    /// # Errors
    /// When the budget is used up.
    pub fn of_store(
        store: &Store,
        budget: &Budget,
        selector: &Selector,
    ) -> Result<Self, QueryError> {
        let of_metric = Selector { metric: selector.metric.clone(), tags: Vec::new() };
        let ids = store.dictionary().select(&of_metric.matchers());
        budget.reserve(size_of_val(&*ids))?;
        let mut count = Self::default();
        for chunk in ids.chunks(CHUNK) {
            budget.check()?;
            let dictionary = store.dictionary();
            for key in chunk.iter().filter_map(|id| dictionary.key(*id)) {
                count.add(key, &selector.tags);
            }
            drop(dictionary);
            budget.reserve(std::mem::take(&mut count.new_bytes))?;
        }
        Ok(count)
    }

    /// Adds the counts of all shards. Returns the facets; `store` suggests other names when no
    /// series matches.
    ///
    /// # Errors
    /// When the budget is used up.
    pub fn join(
        counts: Vec<Self>,
        (store, budget): (&Store, &Budget),
        selector: &Selector,
    ) -> Result<FacetsAnswer, QueryError> {
        let mut counts = counts.into_iter();
        let mut whole = counts.next().unwrap_or_default();
        for shard in counts {
            budget.check()?;
            whole.series += shard.series;
            for (name, values) in shard.tags {
                #[expect(clippy::iter_over_hash_type, reason = "the order of sums is irrelevant")]
                for (value, series) in values {
                    whole.add_value(&name, &value, series);
                }
            }
            budget.reserve(std::mem::take(&mut whole.new_bytes))?;
        }
        Ok(whole.into_answer(store, selector))
    }

    fn into_answer(self, store: &Store, selector: &Selector) -> FacetsAnswer {
        let tags_total = self.tags.len();
        let mut tags: Vec<_> = self.tags.into_iter().collect();
        if tags_total > TAGS_MAX {
            tags.sort_by_cached_key(|(_, values)| Reverse(values.values().sum::<usize>()));
            tags.truncate(TAGS_MAX);
            tags.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        let tags = tags.into_iter().map(|(name, values)| TagFacet::new(name, values)).collect();
        let note = (self.series == 0).then(|| suggestion::note(store, selector)).flatten();
        FacetsAnswer { series: self.series, tags_total, tags, notes: note.into_iter().collect() }
    }
}

/// Counts the series of a metric by tag value.
///
/// # Errors
/// When the budget is used up.
pub fn facets(
    store: &Store,
    budget: &Budget,
    selector: &Selector,
) -> Result<FacetsAnswer, QueryError> {
    Ok(FacetCounts::of_store(store, budget, selector)?.into_answer(store, selector))
}
