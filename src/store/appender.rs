//! The appender: the one writer of the journal, the dictionary and the catalog.
//!
//! It takes what is waiting as a group, makes the group durable in one transaction, and only then
//! applies it. When the transaction fails, nothing has changed.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

use super::{
    Store, StoreError,
    dictionary::SeriesInfo,
    record::{self, AcceptedBatch, BatchNumber},
};
use crate::model::{Kind, SequenceVerdict, SeriesId, SeriesKey, UnixMillis};

/// A series that a sender wants to send samples of.
pub type Definition = SeriesInfo;

/// What became of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionVerdict {
    /// The series has this id.
    Known(SeriesId),
    /// The series exists with another kind.
    KindConflict(Kind),
    /// The store has as many series as it may.
    LimitReached,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchVerdict {
    /// Durable and counted.
    Accepted,
    /// Accepted before; nothing was changed.
    Duplicate,
    /// Its number is too far behind the sender's latest; nothing was changed.
    StaleNumber,
}

/// What became of a group, in the order in which it was given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupVerdict {
    /// One for each definition.
    pub definitions: Vec<DefinitionVerdict>,
    /// One for each batch.
    pub batches: Vec<BatchVerdict>,
}

/// See the module. There is one for each store.
#[derive(Debug)]
pub struct Appender {
    store: Store,
    series_max: usize,
    record: Vec<u8>,
}

impl Appender {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, series_max: u32::MAX as usize, record: Vec::new() }
    }

    /// Limits the number of series of the store.
    pub fn set_series_max(&mut self, series_max: usize) {
        self.series_max = series_max.min(u32::MAX as usize);
    }

    /// Makes definitions and batches durable, then applies them. The series of the batches must
    /// have been returned by an earlier call.
    ///
    /// # Errors
    /// When the journal cannot be written; nothing has changed then.
    ///
    /// # Panics
    /// When a batch names a series that was never returned.
    pub fn commit(
        &mut self,
        definitions: &[Definition],
        batches: &[AcceptedBatch],
        now: UnixMillis,
    ) -> Result<GroupVerdict, StoreError> {
        let mut new_series = NewSeries::default();
        let definitions =
            definitions.iter().map(|info| self.define(info, &mut new_series)).collect();
        let batches_verdicts = self.check(batches);
        let accepted = || {
            let all = batches.iter().zip(&batches_verdicts);
            all.filter(|(_, verdict)| **verdict == BatchVerdict::Accepted).map(|(batch, _)| batch)
        };
        if accepted().next().is_some() || !new_series.rows.is_empty() {
            self.record.clear();
            record::encode(accepted(), &mut self.record);
            let inner = &*self.store.inner;
            let sequence = inner.catalog.read().applied() + 1;
            let series_count = inner.dictionary.read().len() as u32;
            inner.journal.append(sequence, &self.record, series_count, &new_series.rows)?;
            inner.journal_pending.fetch_add(self.record.len(), Ordering::Relaxed);
            let counters = &inner.counters;
            counters.commits.add(1);
            counters.journal_bytes.add(self.record.len() as u64);
            counters.samples.add(accepted().map(|batch| batch.values.len() as u64).sum());
            let mut catalog = inner.catalog.write();
            for info in &new_series.rows {
                catalog.add_series(info.kind);
            }
            catalog.apply(sequence, accepted(), now);
            inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
            drop(catalog);
            if !new_series.rows.is_empty() {
                let mut dictionary = inner.dictionary.write();
                for (id, info) in (series_count..).zip(new_series.rows) {
                    assert_eq!(dictionary.add(info), SeriesId(id), "ids count up");
                }
            }
        }
        Ok(GroupVerdict { definitions, batches: batches_verdicts })
    }

    fn define(&self, info: &Definition, new_series: &mut NewSeries) -> DefinitionVerdict {
        let dictionary = self.store.dictionary();
        let known = dictionary.find(&info.key).map(|(id, known)| (id, known.kind));
        let known = known.or_else(|| new_series.by_key.get(&info.key).copied());
        match known {
            Some((id, kind)) if kind == info.kind => DefinitionVerdict::Known(id),
            Some((_, kind)) => DefinitionVerdict::KindConflict(kind),
            None if dictionary.len() + new_series.rows.len() >= self.series_max => {
                DefinitionVerdict::LimitReached
            }
            None => {
                let id = SeriesId((dictionary.len() + new_series.rows.len()) as u32);
                new_series.by_key.insert(info.key.clone(), (id, info.kind));
                new_series.rows.push(info.clone());
                DefinitionVerdict::Known(id)
            }
        }
    }

    fn check(&self, batches: &[AcceptedBatch]) -> Vec<BatchVerdict> {
        let catalog = self.store.inner.catalog.read();
        let mut in_group: HashSet<&BatchNumber> = HashSet::new();
        batches
            .iter()
            .map(|batch| match &batch.number {
                None => BatchVerdict::Accepted,
                Some(number) => match catalog.check(number) {
                    SequenceVerdict::New if in_group.insert(number) => BatchVerdict::Accepted,
                    SequenceVerdict::New | SequenceVerdict::Duplicate => BatchVerdict::Duplicate,
                    SequenceVerdict::TooOld => BatchVerdict::StaleNumber,
                },
            })
            .collect()
    }
}

#[derive(Default)]
struct NewSeries {
    /// In the order of their ids, which follow the dictionary's last.
    rows: Vec<SeriesInfo>,
    by_key: HashMap<SeriesKey, (SeriesId, Kind)>,
}
