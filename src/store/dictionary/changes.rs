//! Changes of series that are known: deleting, renaming and merging them.
//!
//! A change is planned or refused as a whole. Ids stay: a renamed series keeps its history, and the
//! id of a deleted series is never reused.
//!
//! Must never know: how a change becomes durable.

use std::{
    collections::{HashMap, HashSet},
    ops::Deref,
    sync::Arc,
};

use super::{Dictionary, Matcher, ProjectDictionary};
use crate::model::{Kind, SeriesId, SeriesKey, SeriesKeyError, SeriesLimits};

/// A change of the series that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesChange {
    /// The conditions that the series must meet; at least one.
    pub matchers: Vec<Matcher>,
    /// The action on these series.
    pub action: ChangeAction,
}

/// The action of a [`SeriesChange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeAction {
    /// The series are deleted; later samples with the same key create new series.
    Delete,
    /// The series get another metric or other tags.
    Rename(Renaming),
    /// The series are renamed, and all series with the same name then become one series.
    Merge(Renaming),
}

/// The parts of a key that change; all others stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renaming {
    /// The new metric.
    pub metric: Option<String>,
    /// New values of tags, by name; an empty value removes the tag.
    pub tags: Vec<(String, String)>,
    /// The limits of keys.
    pub limits: SeriesLimits,
}

/// The reason why a change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// The change has no condition, so it would concern every series.
    #[error("no series are named: give a metric or at least one tag")]
    NoCondition,
    /// The renaming changes nothing.
    #[error("nothing is to be set: name a new metric or new values of tags")]
    NothingSet,
    /// The new name is not valid.
    #[error("{from} cannot be renamed: {cause}")]
    BadKey {
        /// The first series whose new name is not valid.
        from: SeriesKey,
        /// The fault of the new key.
        cause: SeriesKeyError,
    },
    /// New names are taken.
    #[error(
        "{count} of the new names are taken, first {to}, for {from}: merge the series (granary \
         series merge), delete or rename the series with that name, or choose another name; \
         nothing was changed"
    )]
    Conflict {
        /// The first series whose new name is taken.
        from: SeriesKey,
        /// The taken name.
        to: SeriesKey,
        /// The number of series whose new name is taken.
        count: usize,
    },
    /// The kinds or units of two series differ.
    #[error(
        "{from} is a {from_kind} in {from_unit:?}, and {to} a {to_kind} in {to_unit:?}: series of \
         different kinds or units cannot be merged; nothing was changed"
    )]
    Unlike {
        /// The first series that cannot be merged.
        from: SeriesKey,
        /// The kind of the first series.
        from_kind: Kind,
        /// The unit of the first series.
        from_unit: Arc<str>,
        /// The name that the first series would get.
        to: SeriesKey,
        /// The kind of the series of this name.
        to_kind: Kind,
        /// The unit of the series of this name.
        to_unit: Arc<str>,
    },
    /// A series of the change was deleted after the change had found it.
    #[error("a series was deleted at the same time; nothing was changed: repeat the request")]
    Deleted,
    /// The readings of two counters overlap in time.
    #[error(
        "the readings of the counters {from} and {to} overlap in time, and would count twice: \
         merge counters that follow each other in time, in that order or all at once; nothing was \
         changed"
    )]
    Interleaved {
        /// The counter that was read first.
        from: SeriesKey,
        /// The other counter.
        to: SeriesKey,
    },
    /// A series would have too many parts.
    #[error("{to} would consist of more than {PARTS_MAX} series; nothing was changed")]
    TooManyParts {
        /// The name of the series.
        to: SeriesKey,
    },
}

/// The maximum number of series that one series may consist of: a query reads each of them.
pub const PARTS_MAX: usize = 64;

/// The change of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesUpdate {
    /// The series.
    pub id: SeriesId,
    /// The new key; `None`: the series is deleted.
    pub key: Option<SeriesKey>,
    /// The series that this one becomes a part of. A series with neither `key` nor `into` is
    /// deleted.
    pub into: Option<SeriesId>,
}

impl SeriesUpdate {
    /// Deletes a series.
    pub fn delete(id: SeriesId) -> Self {
        Self { id, key: None, into: None }
    }

    /// Changes the key of a series.
    pub fn rename(id: SeriesId, key: SeriesKey) -> Self {
        Self { id, key: Some(key), into: None }
    }

    /// Makes a series a part of another one.
    pub fn merge(id: SeriesId, into: SeriesId) -> Self {
        Self { id, key: None, into: Some(into) }
    }

    /// Returns the bytes of the row of the update; FORMAT.md describes them.
    pub(crate) fn row(&self) -> &[u8] {
        self.key.as_ref().map_or(&[], SeriesKey::as_bytes)
    }

    /// Reads a row; `None` when it is damaged.
    pub(crate) fn from_row(id: SeriesId, row: &[u8]) -> Option<Self> {
        if row.is_empty() {
            return Some(Self::delete(id));
        }
        Some(Self::rename(id, SeriesKey::from_bytes(row)?))
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

impl<D: Deref<Target = Dictionary>> ProjectDictionary<'_, D> {
    /// Returns the updates of a change by ascending id, without unchanged series.
    ///
    /// # Errors
    /// When the change is refused.
    pub fn plan(&self, change: &SeriesChange) -> Result<Vec<SeriesUpdate>, ChangeRefusal> {
        if change.matchers.is_empty() {
            return Err(ChangeRefusal::NoCondition);
        }
        let found = self.select(&change.matchers).into_iter();
        match &change.action {
            ChangeAction::Delete => Ok(found.map(SeriesUpdate::delete).collect()),
            ChangeAction::Rename(renaming) => self.plan_renaming(found, renaming),
            ChangeAction::Merge(renaming) => self.plan_merging(found, renaming),
        }
    }

    /// Returns the series whose keys change, with their new keys.
    fn new_keys(
        &self,
        found: impl Iterator<Item = SeriesId>,
        renaming: &Renaming,
    ) -> Result<Vec<(SeriesId, SeriesKey)>, ChangeRefusal> {
        if renaming.metric.is_none() && renaming.tags.is_empty() {
            return Err(ChangeRefusal::NothingSet);
        }
        let mut all = Vec::new();
        for id in found {
            let Some(from) = self.key(id) else { continue };
            let to = renaming
                .apply(from)
                .map_err(|cause| ChangeRefusal::BadKey { from: from.clone(), cause })?;
            if to != *from {
                all.push((id, to));
            }
        }
        Ok(all)
    }

    /// Plans merges: for each new name, the series that already has the name keeps it; without such
    /// a series, the first matching one is renamed. All others become parts of this series.
    fn plan_merging(
        &self,
        found: impl Iterator<Item = SeriesId>,
        renaming: &Renaming,
    ) -> Result<Vec<SeriesUpdate>, ChangeRefusal> {
        let mut updates = Vec::new();
        // For each new name: the series that gets it, and the number of series of which that series
        // will consist.
        let mut targets: HashMap<SeriesKey, (SeriesId, usize)> = HashMap::new();
        let size = |id| 1 + self.parts(id).len();
        for (id, to) in self.new_keys(found, renaming)? {
            let known = self.find(&to).map(|id| (id, size(id)));
            match targets.get(&to).copied().or(known) {
                None => {
                    targets.insert(to.clone(), (id, size(id)));
                    updates.push(SeriesUpdate::rename(id, to));
                }
                Some((target, parts)) => {
                    self.check_likeness(id, target, &to)?;
                    let parts = parts + size(id);
                    if parts > PARTS_MAX {
                        return Err(ChangeRefusal::TooManyParts { to });
                    }
                    targets.insert(to, (target, parts));
                    updates.push(SeriesUpdate::merge(id, target));
                }
            }
        }
        Ok(updates)
    }

    fn check_likeness(
        &self,
        id: SeriesId,
        target: SeriesId,
        to: &SeriesKey,
    ) -> Result<(), ChangeRefusal> {
        let (Some(from), Some(into)) = (self.info(id), self.info(target)) else { return Ok(()) };
        if from.kind == into.kind && from.unit == into.unit {
            return Ok(());
        }
        Err(ChangeRefusal::Unlike {
            from: from.key,
            from_kind: from.kind,
            from_unit: from.unit,
            to: to.clone(),
            to_kind: into.kind,
            to_unit: into.unit,
        })
    }

    fn plan_renaming(
        &self,
        found: impl Iterator<Item = SeriesId>,
        renaming: &Renaming,
    ) -> Result<Vec<SeriesUpdate>, ChangeRefusal> {
        let mut updates = Vec::new();
        let mut targets = HashSet::new();
        let mut first: Option<(SeriesKey, SeriesKey)> = None;
        let mut count = 0;
        for (id, to) in self.new_keys(found, renaming)? {
            let Some(from) = self.key(id) else { continue };
            // A series that already has the new name keeps it: this change would not rename it.
            if self.find(&to).is_some() || !targets.insert(to.clone()) {
                count += 1;
                first.get_or_insert_with(|| (from.clone(), to.clone()));
            }
            updates.push(SeriesUpdate::rename(id, to));
        }
        match first {
            Some((from, to)) => Err(ChangeRefusal::Conflict { from, to, count }),
            None => Ok(updates),
        }
    }
}

/// Fuzz entry point: decodes bytes as a row of changes.
pub(crate) fn fuzz_rows(bytes: &[u8]) {
    if let Some(update) = SeriesUpdate::from_row(SeriesId(0), bytes) {
        assert_eq!(update.row(), bytes);
    }
}
