//! Changes of the kind of a series: a new series gets the key, and the old series becomes a part of
//! the new one, as when series are merged. Queries read both as one ([`crate::store::View`]).
//!
//! Must never know: protocols, the conversion of cells.

use std::collections::{HashMap, hash_map::Entry};

use foldhash::fast::RandomState;

use super::Appender;
use crate::{
    model::{Kind, SeriesId, SeriesInfo, UnixMillis},
    store::{
        dictionary::changes::{PARTS_MAX, SeriesUpdate},
        error::StoreError,
        handle::Store,
        journal::record::Record,
        limits::StoreLimits,
    },
};

/// The maximum number of changes of a series within [`ALLOWANCE_MS`]; beyond it, a series keeps its
/// kind.
const CHANGES_MAX: u32 = 4;
const ALLOWANCE_MS: i64 = 3_600_000;
/// The time without a sample after which any sender may change the kind of a series, and not only
/// the sender that defined it: two senders that disagree must not take turns.
const SILENT_MS: i64 = 300_000;
/// The number of remembered series from which changes older than [`ALLOWANCE_MS`] are removed.
const REMEMBERED: usize = 1024;
/// The maximum number of series of a command that are logged by name.
const LOGGED_MAX: usize = 10;

/// The number of recent changes by series, and the time of the first of them.
#[derive(Debug, Default)]
pub(super) struct KindChanges(HashMap<SeriesId, (u32, UnixMillis), RandomState>);

impl KindChanges {
    /// Returns the number of recent changes of a series, and the time of the first of them.
    fn of(&self, id: SeriesId, now: UnixMillis) -> (u32, UnixMillis) {
        let changes = self.0.get(&id).copied();
        // When the clock was set back, the count restarts.
        let recent = |since: UnixMillis| (0..ALLOWANCE_MS).contains(&now.0.saturating_sub(since.0));
        changes.filter(|(_, since)| recent(*since)).unwrap_or((0, now))
    }

    fn note(&mut self, old: SeriesId, new: SeriesId, now: UnixMillis) {
        let (count, since) = self.of(old, now);
        self.0.remove(&old);
        if self.0.len() >= REMEMBERED && self.0.len().is_power_of_two() {
            self.0.retain(|_, (_, since)| now.0.saturating_sub(since.0) < ALLOWANCE_MS);
        }
        self.0.insert(new, (count + 1, since));
    }
}

/// The changes that a command makes.
#[derive(Default)]
struct PlannedChanges {
    new: Vec<SeriesInfo>,
    /// The series that each new one replaces, and its kind.
    before: Vec<(SeriesId, Kind)>,
    by_series: HashMap<SeriesId, Result<SeriesId, ()>, RandomState>,
}

impl Appender {
    /// Changes the kinds of known series to the kinds of the definitions, durably. Returns the id
    /// of each series that has the wanted kind now, or `None` for a series that keeps its kind: it
    /// changed too often, another sender still sends it, the units differ, or there is no room for
    /// another part or id.
    ///
    /// # Errors
    /// When the journal cannot be written; no kind changed then.
    pub fn change_kinds(
        &mut self,
        definitions: &[SeriesInfo],
        now: UnixMillis,
    ) -> Result<Vec<Option<SeriesId>>, StoreError> {
        let mut planned = PlannedChanges::default();
        let outcome = definitions.iter().map(|info| self.plan_kind(info, now, &mut planned));
        let outcome: Vec<_> = outcome.collect();
        let PlannedChanges { new, before, .. } = planned;
        self.note_refused(definitions, &outcome);
        if new.is_empty() {
            return Ok(outcome);
        }
        let first_series = self.store.all_series().id_count() as u32;
        let ids = (first_series..).map(SeriesId);
        let pairs = before.iter().zip(ids.clone());
        let mut updates: Vec<_> =
            pairs.map(|((old, _), new)| SeriesUpdate::merge(*old, new)).collect();
        updates.sort_unstable_by_key(|update| update.id);
        let (new_series, changed) = (new.clone(), updates.len() as u64);
        let at = self.time_of_record(now);
        self.write(Record { first_series, new_series, updates, ..Record::of_changes(at) }, None)?;
        log(&new, &before);
        for ((old, _), id) in before.iter().zip(ids) {
            self.kind_changes.note(*old, id, now);
        }
        self.store.inner.counters.kinds_changed.add(changed);
        Ok(outcome)
    }

    /// Counts and logs the definitions whose series keep another kind.
    fn note_refused(&self, definitions: &[SeriesInfo], outcome: &[Option<SeriesId>]) {
        let all = definitions.iter().zip(outcome);
        let refused: Vec<_> = all.filter(|(_, id)| id.is_none()).map(|(info, _)| info).collect();
        for info in refused.iter().take(LOGGED_MAX) {
            let (series, kind) = (&info.key, info.kind.as_str());
            tracing::warn!(
                %series,
                rejected_kind = kind,
                "a series keeps its kind: it changed too often, another sender still sends it with \
                 its kind, or the units differ"
            );
        }
        if let more @ 1.. = refused.len().saturating_sub(LOGGED_MAX) {
            tracing::warn!(series = more, "more series keep their kinds");
        }
        self.store.inner.counters.kinds_refused.add(refused.len() as u64);
    }

    /// Plans the change of a series; returns the series that will have the kind of the definition.
    fn plan_kind(
        &self,
        info: &SeriesInfo,
        now: UnixMillis,
        planned: &mut PlannedChanges,
    ) -> Option<SeriesId> {
        let dictionary = self.store.all_series();
        let id = dictionary.find_of_sender(&info.sender, &info.key)?;
        let known = dictionary.info(id)?;
        if known.kind == info.kind {
            return Some(id);
        }
        let first = dictionary.id_count();
        let next = first + planned.new.len();
        let has_room =
            dictionary.parts(id).len() + 1 < PARTS_MAX && next < StoreLimits::default().series_max;
        drop(dictionary);
        let has_unit = |info: &SeriesInfo| !info.unit.is_empty();
        let is_other_unit = has_unit(info) && has_unit(&known) && known.unit != info.unit;
        let may_change = has_room
            && !is_other_unit
            && self.kind_changes.of(id, now).0 < CHANGES_MAX
            && (known.sender == info.sender || is_silent(&self.store, id, now));
        let new = may_change.then_some(SeriesId(next as u32)).ok_or(());
        match planned.by_series.entry(id) {
            // This command already changes the series, perhaps to a third kind.
            Entry::Occupied(change) => {
                let has_kind = |id: &SeriesId| planned.new[id.0 as usize - first].kind == info.kind;
                (*change.get()).ok().filter(has_kind)
            }
            Entry::Vacant(vacant) => {
                vacant.insert(new);
                let new = new.ok()?;
                let unit = if has_unit(info) { info.unit.clone() } else { known.unit };
                planned.new.push(SeriesInfo { unit, ..info.clone() });
                planned.before.push((id, known.kind));
                Some(new)
            }
        }
    }
}

/// Returns whether a series has no sample newer than [`SILENT_MS`].
fn is_silent(store: &Store, id: SeriesId, now: UnixMillis) -> bool {
    let last = store.last_samples(&[id]);
    last.iter().flatten().all(|last| last.at < now.minus(SILENT_MS))
}

fn log(new: &[SeriesInfo], before: &[(SeriesId, Kind)]) {
    for (info, (_, from)) in new.iter().zip(before).take(LOGGED_MAX) {
        let (series, from, to) = (&info.key, from.as_str(), info.kind.as_str());
        tracing::info!(%series, from, to, "the kind of a series changed; queries join both kinds");
    }
    if let more @ 1.. = new.len().saturating_sub(LOGGED_MAX) {
        tracing::info!(series = more, "the kinds of more series changed");
    }
}
