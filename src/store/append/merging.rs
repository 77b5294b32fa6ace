//! Merging series into one: documents stay as they are, and whoever reads the one series reads all
//! of them ([`crate::store::View`]), slot by slot merged.
//!
//! The series with the newest sample keeps the name: its state is what the next reading follows.
//! Counters follow each other in time, and their increase in between is counted. Must never know:
//! which series are merged, and why.

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
    /// The dictionary's plan, which does not know yet which series go on; ids ascending.
    pub(super) shown: Vec<SeriesUpdate>,
    /// The updates of series, ids ascending.
    pub(super) updates: Vec<SeriesUpdate>,
    /// The last reading of each counter, as a late reading of the one that follows it in time.
    pub(super) bridge: AcceptedBatch,
}

/// The readings at the ends of a counter that becomes a part of another one.
struct Read {
    first_at: i64,
    last: Reading,
    /// The series that it belongs to before the change.
    of: SeriesId,
    id: SeriesId,
}

impl Store {
    /// The effect of a change, series by series.
    ///
    /// # Errors
    /// When it would be refused.
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
                let named = updates.remove(&target).and_then(|own| own.key);
                let key = named.or_else(|| self.dictionary().key(target).cloned());
                updates.extend(key.map(|key| (newest, SeriesUpdate::rename(newest, key))));
            }
            let others = all.iter().copied().filter(|id| *id != newest);
            updates.extend(others.map(|id| (id, SeriesUpdate::merge(id, newest))));
            self.add_bridges(&all, &mut bridge)?;
        }
        Ok(Plan { shown, updates: updates.into_values().collect(), bridge })
    }

    /// The series with the newest sample; of equal ones the first.
    fn newest(&self, all: &[SeriesId]) -> SeriesId {
        let last = self.last_samples(all);
        let last = last.iter().map(|own| own.map_or(UnixMillis::EARLIEST, |own| own.at));
        let newest = all.iter().zip(last).rev().max_by_key(|(_, at)| *at);
        newest.map_or(all[0], |(id, _)| *id)
    }

    /// Counters must follow each other: what one grew by while another was read would count twice.
    fn add_bridges(
        &self,
        all: &[SeriesId],
        bridge: &mut AcceptedBatch,
    ) -> Result<(), ChangeRefusal> {
        let read = self.counters_read(all);
        let (mut left, mut end) = (Vec::new(), i64::MIN);
        for pair in read.windows(2) {
            let [before, after] = pair else { continue };
            end = end.max(before.last.at);
            if before.of == after.of {
                continue;
            }
            left.push(before.of);
            if end > after.first_at || left.contains(&after.of) {
                let dictionary = self.dictionary();
                let (from, to) = (dictionary.key(before.of), dictionary.key(after.of));
                return Err(match (from, to) {
                    (Some(from), Some(to)) => {
                        ChangeRefusal::Interleaved { from: from.clone(), to: to.clone() }
                    }
                    _ => ChangeRefusal::NothingSet,
                });
            }
            bridge.series.push(after.id);
            bridge.times.push(before.last.at);
            bridge.values.push(before.last.value);
        }
        Ok(())
    }

    /// Some counters, with their present parts, by the time of their first readings.
    fn counters_read(&self, all: &[SeriesId]) -> Vec<Read> {
        let dictionary = self.dictionary();
        let parts = |id: &SeriesId| dictionary.parts(*id).iter().map(|part| (*id, *part)).collect();
        let ids: Vec<_> = all
            .iter()
            .flat_map(|id| [vec![(*id, *id)], parts(id)].concat())
            .filter(|(_, id)| dictionary.kind(*id) == Some(Kind::Counter))
            .collect();
        drop(dictionary);
        let mut catalog = self.inner.catalog.write();
        let mut read: Vec<_> = ids
            .into_iter()
            .filter_map(|(of, id)| {
                let (first, last) = catalog.states_mut().ends(id)?;
                Some(Read { first_at: first.at, last, of, id })
            })
            .collect();
        read.sort_by_key(|own| (own.first_at, own.last.at));
        read
    }
}
