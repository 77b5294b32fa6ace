//! Changes of series that are known: deleting, renaming and merging them.
//!
//! A change is planned on the dictionary as a whole, or refused as a whole. Ids stay: a renamed
//! series keeps its history, and the id of a deleted one is never given again.
//!
//! Must never know: how a change becomes durable.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{Dictionary, Matcher};
use crate::model::{Kind, SeriesId, SeriesKey, SeriesKeyError, SeriesLimits};

/// A change of the series that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesChange {
    /// Conditions on the series; at least one.
    pub matchers: Vec<Matcher>,
    /// The action on these series.
    pub action: ChangeAction,
}

/// See [`SeriesChange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeAction {
    /// The series are deleted; samples of the same key begin new series.
    Delete,
    /// The series get another metric or other tags.
    Rename(Renaming),
    /// A renaming in which series that get one name, or an existing name, become one series.
    Merge(Renaming),
}

/// The parts of a key that change; all others stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renaming {
    /// The new metric.
    pub metric: Option<String>,
    /// New values of tags, by name; an empty one takes the tag away.
    pub tags: Vec<(String, String)>,
    /// The limits of keys.
    pub limits: SeriesLimits,
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// The change has no condition, so it would concern every series.
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
        /// The fault of the new key.
        cause: SeriesKeyError,
    },
    /// New names are taken.
    #[error(
        "{count} of the new names are taken, first {to}, for {from}: merge the series (granary series \
         merge), delete or rename what has the name, or choose another; nothing was changed"
    )]
    Conflict {
        /// The first series whose new name is taken.
        from: SeriesKey,
        /// The taken name.
        to: SeriesKey,
        /// Series whose new name is taken.
        count: usize,
    },
    /// Two series cannot be one.
    #[error(
        "{from} is a {from_kind} in {from_unit:?}, and {to} a {to_kind} in {to_unit:?}: series of \
         different kinds or units cannot be merged; nothing was changed"
    )]
    Unlike {
        /// The first such series.
        from: SeriesKey,
        /// The kind of the first.
        from_kind: Kind,
        /// The unit of the first.
        from_unit: Arc<str>,
        /// The name that it would get.
        to: SeriesKey,
        /// The kind of the series of this name.
        to_kind: Kind,
        /// The unit of the series of this name.
        to_unit: Arc<str>,
    },
    /// Counters that do not follow each other.
    #[error(
        "the counters {from} and {to} have readings in between each other's, which would count twice: \
         merge counters that follow each other in time, in that order or all at once; nothing was \
         changed"
    )]
    Interleaved {
        /// The one that was read first.
        from: SeriesKey,
        /// The other one.
        to: SeriesKey,
    },
    /// A series would have too many parts.
    #[error("{to} would be made of more than {PARTS_MAX} series; nothing was changed")]
    TooManyParts {
        /// The name of that series.
        to: SeriesKey,
    },
}

/// Series that one series may be made of: a query reads each of them.
pub const PARTS_MAX: usize = 64;

/// The change of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesUpdate {
    /// The series.
    pub id: SeriesId,
    /// The new key; `None`: the series is deleted.
    pub key: Option<SeriesKey>,
    /// The series that it is a part of from now on; `None` beside no key: it is deleted.
    pub into: Option<SeriesId>,
}

impl SeriesUpdate {
    /// Deletes a series.
    pub fn delete(id: SeriesId) -> Self {
        Self { id, key: None, into: None }
    }

    /// Gives a series another key.
    pub fn rename(id: SeriesId, key: SeriesKey) -> Self {
        Self { id, key: Some(key), into: None }
    }

    /// Makes a series a part of another one.
    pub fn merge(id: SeriesId, into: SeriesId) -> Self {
        Self { id, key: None, into: Some(into) }
    }

    /// The bytes of its row; FORMAT.md describes them.
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

impl Dictionary {
    /// Returns the updates of a change, ids ascending, without series that stay as they are.
    ///
    /// # Errors
    /// When it is refused.
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

    /// The new keys of series that get another one.
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

    /// The first series of each new name has it, unless there is one of that name; the others
    /// become parts of that one.
    fn plan_merging(
        &self,
        found: impl Iterator<Item = SeriesId>,
        renaming: &Renaming,
    ) -> Result<Vec<SeriesUpdate>, ChangeRefusal> {
        let mut updates = Vec::new();
        // By name, how many series it is made of then, too.
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
            // A series that has the name already keeps it: what is set is the same for all.
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
