//! Sizes and counts of the store.
//!
//! Must never know: what is done about it.

use std::sync::{Arc, atomic::Ordering};

use super::{Store, counters::Counters};
use crate::{
    model::{GranularityIndex, PartitionId, UnixMillis},
    store::{
        catalog::senders::SenderInfo,
        documents::{Documents, PartitionInfo},
        file::holes::Holes,
    },
};

impl Store {
    /// The number of the last journal record that queries see.
    pub fn last_record(&self) -> u64 {
        self.inner.catalog.read().applied()
    }

    /// The counters of the store's work.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Bytes of cells in memory.
    pub fn catalog_bytes(&self) -> usize {
        self.inner.catalog_bytes.load(Ordering::Relaxed)
    }

    /// The parts that take memory, and about how many bytes each takes.
    pub fn memory(&self) -> [(&'static str, usize); 7] {
        let inner = &*self.inner;
        let (names, index) = inner.dictionary.read().bytes();
        let [states, idle, times] = inner.catalog.read().state_bytes();
        [
            ("dictionary", names),
            ("index", index),
            ("states", states),
            ("idle", idle),
            ("times_seen", times),
            ("cells", self.catalog_bytes()),
            ("cache", inner.head.cache().bytes() + inner.documents.cache().bytes()),
        ]
    }

    /// Sets the bytes that queries may keep: a quarter for the heads of tiles, the rest for
    /// rows of the head.
    pub fn set_cache_bytes_max(&self, bytes_max: usize) {
        let sealed = bytes_max / 4;
        self.inner.documents.cache().set_bytes_max(sealed);
        self.inner.head.cache().set_bytes_max(bytes_max - sealed);
    }

    /// Counters that are put aside because they had no sample for long.
    pub fn idle_series(&self) -> usize {
        self.inner.catalog.read().idle_series()
    }

    /// Senders that number their batches.
    pub fn sender_count(&self) -> usize {
        self.inner.catalog.read().senders().len()
    }

    /// The time of the last accepted batch of a sender; `None` when there is no such sender.
    pub fn sender_heard(&self, sender: &str) -> Option<UnixMillis> {
        self.inner.catalog.read().senders().heard(sender)
    }

    /// The latest epoch of a sender, and its highest number.
    pub fn sender_latest(&self, sender: &str) -> Option<(i64, u64)> {
        self.inner.catalog.read().senders().latest(sender)
    }

    /// All senders by name.
    pub fn senders(&self) -> Vec<SenderInfo> {
        let catalog = self.inner.catalog.read();
        let all = catalog.senders().iter().map(|(sender, window)| (sender.clone(), window.clone()));
        let mut all: Vec<_> = all.collect();
        drop(catalog);
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let dictionary = self.dictionary();
        let info = |(sender, window): (Arc<str>, _)| {
            let series = dictionary.count_of_sender(&sender);
            SenderInfo { name: sender, window, series }
        };
        all.into_iter().map(info).collect()
    }

    /// All partitions with their sizes.
    pub fn partitions(&self) -> Vec<PartitionInfo> {
        self.inner.documents.partitions()
    }

    /// The number of documents of a partition, shells among them; `None` when it is not known, or
    /// cannot be read now.
    pub fn documents_of(&self, id: PartitionId) -> Option<u64> {
        self.inner.documents.count(id).ok().flatten()
    }

    /// Returns whether a partition has sealed documents and no others, as far as it can be read
    /// now.
    pub fn is_sealed(&self, id: PartitionId) -> bool {
        self.inner.documents.is_sealed(id).unwrap_or(false)
    }

    /// Bytes of journal records, before they were packed, that wait for a checkpoint, and about how
    /// many records they are.
    pub fn journal_waiting(&self) -> (usize, u64) {
        let before = self.inner.journal.checkpointed_through().unwrap_or(0);
        let records = self.last_record().saturating_sub(before);
        (self.inner.journal_pending.load(Ordering::Relaxed), records)
    }

    /// The number of objects, and their bytes; 0 when they cannot be read.
    pub fn objects_size(&self) -> (u64, u64) {
        self.inner.objects.size().unwrap_or_default()
    }

    /// Bytes that the objects take on the medium.
    pub fn objects_bytes(&self) -> u64 {
        self.inner.objects.allocated_bytes()
    }

    /// Files that were set aside because they are damaged, and marks of missing ones.
    pub fn damaged_partitions(&self) -> Vec<String> {
        self.inner.register.damaged()
    }

    /// Rows of the journal's tables that were found damaged at the start: the first of them, with
    /// what comes of each, and how many.
    pub fn damaged_journal_rows(&self) -> (Vec<String>, u64) {
        self.inner.journal.damaged_rows()
    }

    /// Documents and rows of the head that were found damaged since the start.
    pub fn damaged_documents(&self) -> u64 {
        self.inner.documents.damaged_documents() + self.inner.head.damaged_rows()
    }

    /// Damaged places, and the stretches of time in which earlier runs wrote in place of such ones:
    /// these stay until their partitions are dropped.
    pub fn damaged_in_all(&self) -> u64 {
        let (documents, head) = (&self.inner.documents, &self.inner.head);
        self.damaged_documents() + documents.holes_from_before() + head.holes_from_before()
    }

    /// The times of a granularity that lack samples because damaged documents and rows of the head
    /// were replaced.
    pub(crate) fn remembered_holes(&self, index: GranularityIndex) -> Holes {
        let mut holes = self.inner.documents.remembered_holes(index);
        holes.add_all(&self.inner.head.remembered_holes(index));
        holes
    }

    /// Bytes that the head takes on the medium.
    pub fn head_bytes(&self) -> u64 {
        self.inner.head.bytes()
    }

    /// Bytes that the journal takes on the medium.
    pub fn journal_bytes(&self) -> u64 {
        self.inner.journal.bytes()
    }

    /// Bytes that all files take on the medium.
    pub fn file_bytes(&self) -> u64 {
        let partitions: u64 = self.partitions().iter().map(|partition| partition.bytes).sum();
        partitions + self.head_bytes() + self.journal_bytes() + self.objects_bytes()
    }

    /// Returns whether a checkpoint was begun and not finished.
    pub fn is_checkpoint_cut_short(&self) -> bool {
        self.inner.checkpointing.try_lock().is_some()
            && self.inner.catalog.read().frozen().is_some()
    }
}
