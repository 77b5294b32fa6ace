//! Records: the changes of a store's state, in order.
//!
//! A record contains every decision that depends on settings, limits, the clock or random numbers.
//! Its effect depends on the state and on the record alone, so stores that apply the same records
//! in the same order have equal states. The log of an embedded store has records that contain only
//! batches, and its tables have the other changes; the log of a replicated store has all of them.
//! FORMAT.md describes the bytes.
//!
//! Must never know: when a record is written or removed.

pub(crate) mod batches;
mod fields;
pub(crate) mod founding;
pub(crate) mod rows;
mod sections;

use std::{borrow::Borrow, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

use super::erasure_row::Erasure;
use crate::{
    model::{AcceptedBatch, SeriesId, SeriesInfo, Span, UnixMillis},
    store::dictionary::changes::SeriesUpdate,
};
use founding::Founding;
use rows::{HostRows, RowChange};

/// One change of the state. Its parts apply in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record<B = AcceptedBatch> {
    /// The time of the commit. It decides which granularities keep a sample, even in a replay.
    pub(crate) now: UnixMillis,
    /// The id of the first new series; 0 when there is none.
    pub(crate) first_series: u32,
    pub(crate) new_series: Vec<SeriesInfo>,
    /// Batches with samples, and batches that remove their senders.
    pub(crate) batches: Vec<B>,
    /// Changes of known series, ids ascending.
    pub(crate) updates: Vec<SeriesUpdate>,
    /// Series whose states are removed, because they have no samples left; ascending.
    pub(crate) forgotten: Vec<SeriesId>,
    pub(crate) erasure: Option<Arc<Erasure>>,
    /// New retentions by the names of levels.
    pub(crate) retentions: Vec<(String, Span)>,
    /// The levels of a new replica, in the first record of a shared log.
    pub(crate) founding: Option<Arc<Founding>>,
    /// New rows of objects.
    pub(crate) objects: Vec<RowChange>,
    /// New rows of hosts.
    pub(crate) hosts: Option<Arc<HostRows>>,
}

impl<B> Record<B> {
    /// Returns a record that changes nothing.
    pub(crate) fn at(now: UnixMillis) -> Self {
        Self {
            now,
            first_series: 0,
            new_series: Vec::new(),
            batches: Vec::new(),
            updates: Vec::new(),
            forgotten: Vec::new(),
            erasure: None,
            retentions: Vec::new(),
            founding: None,
            objects: Vec::new(),
            hosts: None,
        }
    }

    /// Returns true when all cells of earlier records must be in files before the record applies.
    pub(crate) fn is_barrier(&self) -> bool {
        self.erasure.is_some() || !self.retentions.is_empty()
    }

    /// Returns true when the record changes the journal's tables.
    pub(crate) fn changes_tables(&self) -> bool {
        self.is_barrier() || !self.new_series.is_empty() || !self.updates.is_empty()
    }

    /// Returns true when the record changes the file of objects.
    pub(crate) fn changes_objects(&self) -> bool {
        !self.objects.is_empty() || self.hosts.is_some()
    }

    /// Returns true when the record contains more than batches.
    fn has_sections(&self) -> bool {
        self.changes_tables()
            || self.changes_objects()
            || !self.forgotten.is_empty()
            || self.founding.is_some()
    }
}

impl Record<&AcceptedBatch> {
    /// Returns a record that changes nothing, to which no batches are added.
    pub(crate) fn of_changes(now: UnixMillis) -> Self {
        Self::at(now)
    }
}

impl<B: Borrow<AcceptedBatch>> Record<B> {
    /// Returns the batches.
    pub(crate) fn batches(&self) -> impl Iterator<Item = &AcceptedBatch> + Clone {
        self.batches.iter().map(Borrow::borrow)
    }

    /// Returns the number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.batches().map(|batch| batch.values.len() as u64).sum()
    }

    /// Returns the bytes of the record.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.has_sections() {
            sections::encode(self, &mut out);
        } else {
            batches::encode(self.now, self.batches(), &mut out);
        }
        out
    }
}

impl Record {
    /// Reads a record; `None` when it is damaged.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? {
            &batches::RECORD_VERSION | &batches::HISTOGRAMS_VERSION => batches::decode(bytes),
            _ => sections::decode(bytes),
        }
    }
}

/// Fuzz entry point: decodes bytes as a record, and again with a valid checksum appended.
pub(crate) fn fuzz(bytes: &[u8]) {
    let whole = [bytes, &xxh3_64(bytes).to_le_bytes()].concat();
    for record in [bytes, &whole].into_iter().filter_map(Record::from_bytes) {
        let first = record.to_bytes();
        let read = Record::from_bytes(&first).map(|read| read.to_bytes());
        assert_eq!(read, Some(first));
    }
}
