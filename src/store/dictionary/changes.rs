//! Changes of series that are known: deleting and renaming them.
//!
//! A change is planned on the dictionary as a whole, or refused as a whole. Ids stay: a renamed
//! series keeps its history, and the id of a deleted one is never given again.
//!
//! Must never know: how a change becomes durable.

use std::collections::HashSet;

use super::{Dictionary, Matcher};
use crate::model::{SeriesId, SeriesKey, SeriesKeyError, SeriesLimits};

/// What is to become of the series that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesChange {
    /// Which series; at least one condition.
    pub matchers: Vec<Matcher>,
    /// What becomes of them.
    pub action: ChangeAction,
}

/// See [`SeriesChange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeAction {
    /// They are there no more; samples of the same key begin new series.
    Delete,
    /// They go on under another metric or with other tags.
    Rename(Renaming),
}

/// The parts of a key that change; all others stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renaming {
    /// The new metric.
    pub metric: Option<String>,
    /// New values of tags, by name; an empty one takes the tag away.
    pub tags: Vec<(String, String)>,
    /// What keys may be.
    pub limits: SeriesLimits,
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// It would concern every series.
    #[error("no series are named: give a metric or at least one tag")]
    NoCondition,
    /// A renaming that changes nothing.
    #[error("nothing is to be set: name a new metric or new values of tags")]
    NothingSet,
    /// The new name is none.
    #[error("{from} cannot be renamed: {cause}")]
    BadKey {
        /// The first such series.
        from: SeriesKey,
        /// What is wrong.
        cause: SeriesKeyError,
    },
    /// New names are taken.
    #[error(
        "{count} of the new names are taken, first {to}, for {from}: delete or rename what has \
         the name, or choose another; nothing was changed"
    )]
    Conflict {
        /// The first series whose new name is taken.
        from: SeriesKey,
        /// That name.
        to: SeriesKey,
        /// Series whose new name is taken.
        count: usize,
    },
}

/// What becomes of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesUpdate {
    /// Which series.
    pub id: SeriesId,
    /// Its new key; `None`: it is deleted.
    pub key: Option<SeriesKey>,
}

impl SeriesUpdate {
    /// The bytes of its row; FORMAT.md describes them.
    pub(crate) fn row(&self) -> &[u8] {
        self.key.as_ref().map_or(&[], SeriesKey::as_bytes)
    }

    /// Reads a row; `None` when it is damaged.
    pub(crate) fn from_row(id: SeriesId, row: &[u8]) -> Option<Self> {
        if row.is_empty() {
            return Some(Self { id, key: None });
        }
        Some(Self { id, key: Some(SeriesKey::from_bytes(row)?) })
    }
}

impl Renaming {
    fn apply(&self, key: &SeriesKey) -> Result<SeriesKey, SeriesKeyError> {
        let metric = self.metric.as_deref().unwrap_or(key.metric());
        let is_set = |name: &str| self.tags.iter().any(|(set, _)| set == name);
        let kept = key.tags().filter(|(name, _)| !is_set(name));
        let set = self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        SeriesKey::new(metric, kept.chain(set), &self.limits)
    }
}

impl Dictionary {
    /// What a change comes to, ids ascending; series that it leaves as they are do not count.
    ///
    /// # Errors
    /// When it is refused.
    pub fn plan(&self, change: &SeriesChange) -> Result<Vec<SeriesUpdate>, ChangeRefusal> {
        if change.matchers.is_empty() {
            return Err(ChangeRefusal::NoCondition);
        }
        let found = self.select(&change.matchers).into_iter();
        match &change.action {
            ChangeAction::Delete => Ok(found.map(|id| SeriesUpdate { id, key: None }).collect()),
            ChangeAction::Rename(renaming) => self.plan_renaming(found, renaming),
        }
    }

    fn plan_renaming(
        &self,
        found: impl Iterator<Item = SeriesId>,
        renaming: &Renaming,
    ) -> Result<Vec<SeriesUpdate>, ChangeRefusal> {
        if renaming.metric.is_none() && renaming.tags.is_empty() {
            return Err(ChangeRefusal::NothingSet);
        }
        let mut updates = Vec::new();
        let mut targets = HashSet::new();
        let mut first: Option<(SeriesKey, SeriesKey)> = None;
        let mut count = 0;
        for id in found {
            let Some(from) = self.key(id) else { continue };
            let to = renaming
                .apply(from)
                .map_err(|cause| ChangeRefusal::BadKey { from: from.clone(), cause })?;
            if to == *from {
                continue;
            }
            // A series that has the name already keeps it: what is set is the same for all.
            if self.find(&to).is_some() || !targets.insert(to.clone()) {
                count += 1;
                first.get_or_insert_with(|| (from.clone(), to.clone()));
            }
            updates.push(SeriesUpdate { id, key: Some(to) });
        }
        match first {
            Some((from, to)) => Err(ChangeRefusal::Conflict { from, to, count }),
            None => Ok(updates),
        }
    }
}

/// For fuzzing: reads bytes as a row of changes.
pub(crate) fn fuzz_rows(bytes: &[u8]) {
    if let Some(update) = SeriesUpdate::from_row(SeriesId(0), bytes) {
        assert_eq!(update.row(), bytes);
    }
}
