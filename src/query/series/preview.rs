//! The answer to deleting or renaming series, and its preview.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::{
    model::SeriesKey,
    query::{QueryLimits, SeriesEntry},
    store::{ChangeRefusal, SeriesChange, Store},
};

/// The result of a change of series.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeAnswer {
    /// Number of changed series.
    pub total: usize,
    /// True when the change is only previewed.
    pub dry_run: bool,
    /// The first changed series before the change, in order of their IDs; only in a preview.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<ChangedSeries>,
}

/// A series before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSeries {
    /// The series before the change.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// The new name; `None` when the series would be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<NewName>,
    /// The series that this series would be merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<NewName>,
}

/// The metric and tags of a renamed series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewName {
    /// The metric's name.
    pub metric: String,
    /// The tags.
    pub tags: BTreeMap<String, String>,
}

impl NewName {
    fn new(key: &SeriesKey) -> Self {
        let tags = key.tags().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { metric: key.metric().to_owned(), tags: tags.collect() }
    }
}

/// Describes the effect of a change without applying it.
///
/// # Errors
/// When the change would be rejected.
pub fn preview(
    store: &Store,
    change: &SeriesChange,
    limits: &QueryLimits,
) -> Result<ChangeAnswer, ChangeRefusal> {
    let updates = store.planned(change)?;
    let dictionary = store.dictionary();
    // The first series with a new name is renamed; the other series are merged into the first.
    let renamed: HashMap<_, _> =
        updates.iter().filter_map(|update| Some((update.id, update.key.as_ref()?))).collect();
    let changed_series = updates.iter().take(limits.lines_max).filter_map(|update| {
        let series = SeriesEntry::new(&dictionary.info(update.id)?);
        let renamed_to = update.key.as_ref().map(NewName::new);
        let target_key =
            update.into.and_then(|id| renamed.get(&id).copied().or_else(|| dictionary.key(id)));
        Some(ChangedSeries { series, renamed_to, merged_into: target_key.map(NewName::new) })
    });
    Ok(ChangeAnswer { total: updates.len(), dry_run: true, series: changed_series.collect() })
}
