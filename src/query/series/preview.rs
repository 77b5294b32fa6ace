//! What deleting or renaming series comes to: the answer, and a look at it before it is done.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::{
    model::SeriesKey,
    query::{QueryLimits, SeriesEntry},
    store::{ChangeRefusal, SeriesChange, Store},
};

/// The answer to a change of series.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeAnswer {
    /// Series that are changed.
    pub total: usize,
    /// Whether they would be changed only.
    pub dry_run: bool,
    /// The first of them as they were, in order of their ids; for a dry run only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<ChangedSeries>,
}

/// One series that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSeries {
    /// Which series, as it is now.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// What it would be called; nothing when it would be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<NewName>,
    /// The series that it would become a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<NewName>,
}

/// Metric and tags that a series would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewName {
    /// What is measured.
    pub metric: String,
    /// Where.
    pub tags: BTreeMap<String, String>,
}

impl NewName {
    fn new(key: &SeriesKey) -> Self {
        let tags = key.tags().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { metric: key.metric().to_owned(), tags: tags.collect() }
    }
}

/// Says what a change would do, and does nothing.
///
/// # Errors
/// When the change would be refused.
pub fn preview(
    store: &Store,
    change: &SeriesChange,
    limits: &QueryLimits,
) -> Result<ChangeAnswer, ChangeRefusal> {
    let updates = store.planned(change)?;
    let dictionary = store.dictionary();
    // The first series of a new name is renamed; the others are merged into that.
    let renamed: HashMap<_, _> =
        updates.iter().filter_map(|own| Some((own.id, own.key.as_ref()?))).collect();
    let shown = updates.iter().take(limits.lines_max).filter_map(|update| {
        let series = SeriesEntry::new(&dictionary.info(update.id)?);
        let renamed_to = update.key.as_ref().map(NewName::new);
        let whole =
            update.into.and_then(|id| renamed.get(&id).copied().or_else(|| dictionary.key(id)));
        Some(ChangedSeries { series, renamed_to, merged_into: whole.map(NewName::new) })
    });
    Ok(ChangeAnswer { total: updates.len(), dry_run: true, series: shown.collect() })
}
