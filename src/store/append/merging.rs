//! Merging series into one. The documents of the merged series stay as they are:
//! [`crate::store::View`] reads them all and merges them slot by slot.
//!
//! The series with the newest sample keeps its id, because the next reading is compared with its
//! counter state. Counters must not overlap in time; the increase from the last reading of a
//! counter to the first reading of the next one is counted. Must never know: why series are merged.

use std::collections::BTreeMap;

use crate::{
    model::{AcceptedBatch, Kind, SeriesId, UnixMillis, counter::Reading},
    store::{
        Store,
        dictionary::changes::{ChangeRefusal, SeriesChange, SeriesUpdate},
    },
};

/// The plan of a change.
#[derive(Debug)]
pub(super) struct Plan {
    /// The requested change, for display; ids ascending. It does not decide which series keeps its
    /// id.
    pub(super) shown: Vec<SeriesUpdate>,
    /// The updates of series, ids ascending.
    pub(super) updates: Vec<SeriesUpdate>,
    /// The last reading of each counter, as a late reading of the counter that follows in time, so
    /// that the increase between both counters is counted.
    pub(super) bridge: AcceptedBatch,
}

/// The readings at the ends of a counter that becomes a part of another one.
struct CounterEnds {
    first_at: i64,
    last: Reading,
    /// The series that the counter belongs to before the change.
    of: SeriesId,
    id: SeriesId,
}

impl Store {
    /// Returns the effect of a change on each series.
    ///
    /// # Errors
    /// When the change would be refused.
    pub fn planned(&self, change: &SeriesChange) -> Result<Vec<SeriesUpdate>, ChangeRefusal> {
        Ok(self.plan(change)?.shown)
    }

    pub(super) fn plan(&self, change: &SeriesChange) -> Result<Plan, ChangeRefusal> {
        let shown = self.dictionary().plan(change)?;
        let mut wholes: BTreeMap<SeriesId, Vec<SeriesId>> = BTreeMap::new();
        for (id, target) in shown.iter().filter_map(|update| Some((update.id, update.into?))) {
            wholes.entry(target).or_insert_with(|| vec![target]).push(id);
        }
        let mut updates: BTreeMap<_, _> =
            shown.iter().map(|update| (update.id, update.clone())).collect();
        let mut bridge = AcceptedBatch::default();
        for (target, all) in wholes {
            let newest = self.newest(&all);
            if newest != target {
                let named = updates.remove(&target).and_then(|update| update.key);
                let key = named.or_else(|| self.dictionary().key(target).cloned());
                updates.extend(key.map(|key| (newest, SeriesUpdate::rename(newest, key))));
            }
            let others = all.iter().copied().filter(|id| *id != newest);
            updates.extend(others.map(|id| (id, SeriesUpdate::merge(id, newest))));
            self.add_bridges(&all, &mut bridge)?;
        }
        Ok(Plan { shown, updates: updates.into_values().collect(), bridge })
    }

    /// The first series with the newest sample.
    fn newest(&self, all: &[SeriesId]) -> SeriesId {
        let last = self.last_samples(all);
        let last = last.iter().map(|last| last.map_or(UnixMillis::EARLIEST, |last| last.at));
        let newest = all.iter().zip(last).rev().max_by_key(|(_, at)| *at);
        newest.map_or(all[0], |(id, _)| *id)
    }

    /// Adds the bridging readings of counters. Refuses counters that overlap in time, because
    /// growth during the overlap would count twice.
    fn add_bridges(
        &self,
        all: &[SeriesId],
        bridge: &mut AcceptedBatch,
    ) -> Result<(), ChangeRefusal> {
        let counters = self.counter_ends(all);
        let (mut finished, mut end) = (Vec::new(), i64::MIN);
        for pair in counters.windows(2) {
            let [before, after] = pair else { continue };
            end = end.max(before.last.at);
            if before.of == after.of {
                continue;
            }
            finished.push(before.of);
            if end > after.first_at || finished.contains(&after.of) {
                let dictionary = self.dictionary();
                let (from, to) = (dictionary.key(before.of), dictionary.key(after.of));
                return Err(match (from, to) {
                    (Some(from), Some(to)) => {
                        ChangeRefusal::Interleaved { from: from.clone(), to: to.clone() }
                    }
                    _ => ChangeRefusal::Deleted,
                });
            }
            bridge.series.push(after.id);
            bridge.times.push(before.last.at);
            bridge.values.push(before.last.value);
        }
        Ok(())
    }

    /// Returns the ends of all counters among the series and their parts, sorted by their first
    /// readings.
    fn counter_ends(&self, all: &[SeriesId]) -> Vec<CounterEnds> {
        let dictionary = self.dictionary();
        let parts = |id: &SeriesId| dictionary.parts(*id).iter().map(|part| (*id, *part)).collect();
        let ids: Vec<_> = all
            .iter()
            .flat_map(|id| [vec![(*id, *id)], parts(id)].concat())
            .filter(|(_, id)| dictionary.kind(*id) == Some(Kind::Counter))
            .collect();
        drop(dictionary);
        // Idle counters are unpacked for their ends, which needs the write lock.
        let mut catalog = self.inner.catalog.write();
        let mut counters: Vec<_> = ids
            .into_iter()
            .filter_map(|(of, id)| {
                let (first, last) = catalog.states_mut().ends(id)?;
                Some(CounterEnds { first_at: first.at, last, of, id })
            })
            .collect();
        counters.sort_by_key(|counter| (counter.first_at, counter.last.at));
        counters
    }
}
