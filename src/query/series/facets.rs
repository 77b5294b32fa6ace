//! The tags of a metric's series, each value with the number of its series, as faceted search has them.
//!
//! The values of a tag that is filtered are counted as if it were not: else the only value left
//! would be the chosen one. Must never know: HTTP, cells.

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

/// Tags of an answer, at most: those that most series have.
const TAGS_MAX: usize = 200;
/// Values of a tag in an answer, at most.
const VALUES_MAX: usize = 50;
/// What a value that is counted takes besides its text, about.
const VALUE_BYTES: usize = 64;

/// What there is to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FacetsAnswer {
    /// Series that match.
    pub series: usize,
    /// How many tags they have.
    pub tags_total: usize,
    /// The tags by name; where there are too many, those that most series have.
    pub tags: Vec<TagFacet>,
    /// Why none matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A tag and its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagFacet {
    /// The tag's name.
    pub name: String,
    /// How many values it has.
    pub values_total: usize,
    /// Those that most series have, these first; equal ones by their text.
    pub values: Vec<ValueFacet>,
}

/// A value of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueFacet {
    /// The value.
    pub value: String,
    /// Series that have it, and all other tags that are asked for.
    pub series: usize,
}

/// Series by the values of one tag; senders choose the values.
type Values = HashMap<Box<str>, usize, RandomState>;

/// Series that were counted.
#[derive(Default)]
struct Count {
    /// Those that match.
    series: usize,
    tags: BTreeMap<Box<str>, Values>,
    /// Bytes of names and values that came since it was asked last.
    new_bytes: usize,
}

impl Count {
    /// Counts a series where it belongs: a series that lacks one filter's value alone counts for
    /// the values of that filter's tag.
    fn add(&mut self, key: &SeriesKey, filters: &[(String, String)]) {
        let is_met = |(name, value): &&(String, String)| key.tag(name) == Some(value);
        let mut missed = filters.iter().filter(|filter| !is_met(filter)).map(|(name, _)| name);
        match missed.next() {
            None => {
                self.series += 1;
                key.tags().for_each(|(name, value)| self.add_value(name, value));
            }
            Some(first) if missed.all(|name| name == first) => {
                if let Some(value) = key.tag(first) {
                    self.add_value(first, value);
                }
            }
            Some(_) => {}
        }
    }

    fn add_value(&mut self, name: &str, value: &str) {
        if !self.tags.contains_key(name) {
            self.tags.insert(name.into(), Values::default());
            self.new_bytes += name.len() + VALUE_BYTES;
        }
        let Some(values) = self.tags.get_mut(name) else { return };
        if let Some(count) = values.get_mut(value) {
            *count += 1;
        } else {
            values.insert(value.into(), 1);
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

/// Counts the series of a metric by their tags.
///
/// # Errors
/// When the budget is used up.
pub fn facets(
    store: &Store,
    budget: &Budget,
    selector: &Selector,
) -> Result<FacetsAnswer, QueryError> {
    let of_metric = Selector { metric: selector.metric.clone(), tags: Vec::new() };
    let ids = store.dictionary().select(&of_metric.matchers());
    budget.take(size_of_val(&*ids))?;
    let mut count = Count::default();
    for chunk in ids.chunks(CHUNK) {
        budget.check()?;
        let dictionary = store.dictionary();
        for key in chunk.iter().filter_map(|id| dictionary.key(*id)) {
            count.add(key, &selector.tags);
        }
        drop(dictionary);
        budget.take(std::mem::take(&mut count.new_bytes))?;
    }
    let tags_total = count.tags.len();
    let mut tags: Vec<_> = count.tags.into_iter().collect();
    if tags_total > TAGS_MAX {
        tags.sort_by_cached_key(|(_, values)| Reverse(values.values().sum::<usize>()));
        tags.truncate(TAGS_MAX);
        tags.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    }
    let tags = tags.into_iter().map(|(name, values)| TagFacet::new(name, values)).collect();
    let why = (count.series == 0).then(|| suggestion::note(store, selector)).flatten();
    Ok(FacetsAnswer { series: count.series, tags_total, tags, notes: why.into_iter().collect() })
}
