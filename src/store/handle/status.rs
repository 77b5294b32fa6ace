//! Sizes and counts of the store.
//!
//! Must never know: the reaction to sizes and counts.

use std::sync::{Arc, atomic::Ordering};

use super::{Store, counters::Counters};
use crate::{
    model::{GranularityIndex, PartitionId, SenderWindow, UnixMillis},
    store::{
        catalog::senders::SenderInfo,
        documents::{Documents, PartitionInfo},
        file::holes::Holes,
    },
};

impl Store {
    /// Returns the number of the last journal record that queries see.
    pub fn last_record(&self) -> u64 {
        self.inner.catalog.read().applied()
    }

    /// Returns the counters of the store's work.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Returns the bytes of cells in memory.
    pub fn catalog_bytes(&self) -> usize {
        self.inner.catalog_bytes.load(Ordering::Relaxed)
    }

    /// Returns the parts of the store in memory, each with its approximate size in bytes.
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

    /// Sets the bytes that queries may cache: a quarter for sealed documents, the rest for rows
    /// and cells of the head.
    pub fn set_cache_bytes_max(&self, bytes_max: usize) {
        let sealed = bytes_max / 4;
        self.inner.documents.cache().set_bytes_max(sealed);
        self.inner.head.cache().set_bytes_max(bytes_max - sealed);
    }

    /// Returns the number of counters that are stored compactly, because they are idle.
    pub fn idle_series(&self) -> usize {
        self.inner.catalog.read().idle_series()
    }

    /// Returns the number of senders of all projects that number their batches.
    pub fn sender_count(&self) -> usize {
        self.inner.catalog.read().senders().len()
    }

    /// Returns the number of these senders in the project that has most.
    pub fn sender_count_max(&self) -> usize {
        self.inner.catalog.read().senders().count_max()
    }

    /// Returns the time of the last accepted batch of a sender; `None` for an unknown sender.
    pub fn sender_heard(&self, sender: &str) -> Option<UnixMillis> {
        self.inner.catalog.read().senders().heard(&self.project.stored_name(sender))
    }

    /// Returns the latest epoch of a sender, and the highest number of that epoch.
    pub fn sender_latest(&self, sender: &str) -> Option<(i64, u64)> {
        self.inner.catalog.read().senders().latest(&self.project.stored_name(sender))
    }

    /// Returns all senders of the project by name.
    pub fn senders(&self) -> Vec<SenderInfo> {
        let catalog = self.inner.catalog.read();
        let own = |(sender, window): (&Arc<str>, &SenderWindow)| {
            let name = self.project.own_name(sender)?;
            let name = if self.project.is_default() { sender.clone() } else { name.into() };
            Some((name, window.clone()))
        };
        let mut all: Vec<_> = catalog.senders().iter().filter_map(own).collect();
        drop(catalog);
        all.sort_unstable_by(|sender, other| sender.0.cmp(&other.0));
        let dictionary = self.dictionary();
        let info = |(sender, window): (Arc<str>, _)| {
            let series = dictionary.count_of_sender(&sender);
            SenderInfo { name: sender, window, series }
        };
        all.into_iter().map(info).collect()
    }

    /// Returns all partitions with their sizes.
    pub fn partitions(&self) -> Vec<PartitionInfo> {
        self.inner.documents.partitions()
    }

    /// Returns the number of documents of a partition without its shells; `None` when it is
    /// unknown, or cannot be read now.
    pub fn documents_of(&self, id: PartitionId) -> Option<u64> {
        self.inner.documents.count(id).ok().flatten()
    }

    /// Returns true when all documents of a partition are sealed; false when it cannot be read now.
    pub fn is_sealed(&self, id: PartitionId) -> bool {
        self.inner.documents.is_sealed(id).unwrap_or(false)
    }

    /// Returns the bytes, before compression, and the approximate number of the journal records
    /// that wait for a checkpoint.
    pub fn journal_waiting(&self) -> (usize, u64) {
        let before = self.inner.journal.checkpointed_through().unwrap_or(0);
        let records = self.last_record().saturating_sub(before);
        (self.inner.journal_pending.load(Ordering::Relaxed), records)
    }

    /// Returns the largest number of objects of any kind other than keys, and the largest size of
    /// any kind in bytes; 0 when they cannot be read.
    pub fn objects_size(&self) -> (u64, u64) {
        self.inner.objects.size().unwrap_or_default()
    }

    /// Returns the bytes of the objects' file on the medium.
    pub fn objects_bytes(&self) -> u64 {
        self.inner.objects.allocated_bytes()
    }

    /// Returns the damaged files that were set aside, and the markers of missing files.
    pub fn damaged_partitions(&self) -> Vec<String> {
        self.inner.register.damaged()
    }

    /// Returns the rows of the journal's tables that the start found damaged: the first of them,
    /// each with its consequence, and the number of all.
    pub fn damaged_journal_rows(&self) -> (Vec<String>, u64) {
        self.inner.journal.damaged_rows()
    }

    /// Returns the number of documents and rows of the head that were found damaged since the
    /// start.
    pub fn damaged_documents(&self) -> u64 {
        self.inner.documents.damaged_documents() + self.inner.head.damaged_rows()
    }

    /// Returns the number of damaged documents and rows, plus the number of holes that earlier runs
    /// stored in place of damaged data; a hole counts until its partition is dropped.
    pub fn damaged_in_all(&self) -> u64 {
        let (documents, head) = (&self.inner.documents, &self.inner.head);
        self.damaged_documents() + documents.holes_from_before() + head.holes_from_before()
    }

    /// Returns the times of a granularity that lack samples because damaged documents or rows of
    /// the head were replaced.
    pub(crate) fn remembered_holes(&self, index: GranularityIndex) -> Holes {
        let mut holes = self.inner.documents.remembered_holes(index);
        holes.add_all(&self.inner.head.remembered_holes(index));
        holes
    }

    /// Returns the bytes of the head on the medium.
    pub fn head_bytes(&self) -> u64 {
        self.inner.head.bytes()
    }

    /// Returns the bytes of the journal on the medium.
    pub fn journal_bytes(&self) -> u64 {
        self.inner.journal.bytes()
    }

    /// Returns the bytes of all files on the medium.
    pub fn file_bytes(&self) -> u64 {
        let partitions: u64 = self.partitions().iter().map(|partition| partition.bytes).sum();
        partitions
            + self.head_bytes()
            + self.journal_bytes()
            + self.objects_bytes()
            + self.audit_bytes()
    }

    /// Returns true when a checkpoint was interrupted.
    pub fn is_checkpoint_cut_short(&self) -> bool {
        self.inner.checkpointing.try_lock().is_some()
            && self.inner.catalog.read().frozen().is_some()
    }
}
