//! The documents of collections: read from the store, and written in commands of limited size.
//!
//! Must never know: which documents changed, and when to retry.

use std::collections::BTreeSet;

use bson::RawDocumentBuf;

use super::{
    Fault,
    backlog::{Backlog, CollectionGroup},
    expiry,
};
use crate::{
    model::{Moment, SeriesId, SeriesInfo, UnixMillis},
    publish::{Connection, Described, PublishFault, document},
    store::{ChangedSeries, Columns, PartitionInfo, Store},
    telemetry::PublishMetrics,
};

/// The number of series that are read at once.
const SERIES_AT_ONCE: usize = 256;
/// The maximum number of documents of a command.
const DOCUMENTS_MAX: usize = 1000;
/// The size in bytes from which a command is sent.
const BYTES_MAX: usize = 4 << 20;

/// The store and the connection of one project.
pub(super) struct Sender<'a> {
    pub(super) store: &'a Store,
    pub(super) connection: &'a Connection,
    pub(super) database: &'a str,
    pub(super) metrics: &'a PublishMetrics,
}

/// Documents of a collection that are not sent yet.
#[derive(Default)]
struct Batch {
    documents: Vec<(String, RawDocumentBuf)>,
    bytes: usize,
}

impl Sender<'_> {
    /// Writes the documents of a collection that wait, and then its mark.
    pub(super) fn send(&self, backlog: &mut Backlog, collection: &str) -> Result<(), Fault> {
        let Some(group) = backlog.get_mut(collection) else { return Ok(()) };
        let mut superseded = 0;
        while let Some((start, (end, series))) = group.changed.first_key_value() {
            match self.send_span(group, (*start, *end), series) {
                Ok(newer) => superseded += newer,
                Err(Fault::Gone) => {
                    backlog.leave(collection);
                    return Ok(());
                }
                Err(fault) => return Err(fault),
            }
            group.changed.pop_first();
        }
        if superseded > 0 {
            tracing::warn!(
                database = self.database,
                collection,
                superseded,
                "MongoDB has newer documents, perhaps of a store before it was restored from a \
                 snapshot; drop the collection and its mark, and it is published again"
            );
        }
        self.connection.set_mark(self.database, collection, &group.mark)?;
        backlog.complete(collection);
        Ok(())
    }

    /// Writes the documents of one span. Returns the number of documents that are superseded,
    /// because the collection contains newer ones.
    fn send_span(
        &self,
        group: &CollectionGroup,
        span: (UnixMillis, UnixMillis),
        series: &ChangedSeries,
    ) -> Result<u64, Fault> {
        let ids = match series {
            ChangedSeries::All => self.store.dictionary().select(&[]),
            ChangedSeries::Some(set) => self.whole_series(set.iter()),
        };
        // A document without samples replaces one whose samples were erased; only changed series
        // can have such documents.
        let with_empty = matches!(series, ChangedSeries::Some(_));
        let (mut batch, mut superseded) = (Batch::default(), 0);
        for ids in ids.chunks(SERIES_AT_ONCE) {
            self.connection.check_running()?;
            let view = self.store.view(group.granularity, span.0..span.1, ids)?;
            let known = self.known(ids);
            let (mut slots, mut cells) = (Vec::new(), Vec::new());
            for (id, info) in &known {
                view.slots_into(*id, Columns::ALL, &mut slots)?;
                if slots.is_empty() && !with_empty {
                    continue;
                }
                cells.clear();
                cells.extend(slots.iter().map(|slot| (slot.start, slot.cell)));
                batch.add(group, self.store, span, info, &cells)?;
                if batch.is_full() {
                    superseded += self.write(group, std::mem::take(&mut batch))?;
                }
            }
        }
        superseded += self.write(group, batch)?;
        if !with_empty && group.replaced > 0 {
            // The documents that were not written just now have no samples since the last erasure.
            self.check_stored(group)?;
            let (database, collection) = (self.database, &group.collection);
            self.connection.delete_older(database, collection, span.0, group.replaced)?;
        }
        Ok(superseded)
    }

    /// Returns the series to which these belong as parts, or else the series themselves, ascending.
    fn whole_series(&self, ids: impl Iterator<Item = SeriesId>) -> Vec<SeriesId> {
        let dictionary = self.store.dictionary();
        let whole = |id: SeriesId| dictionary.whole_of(id).unwrap_or(id);
        let all: BTreeSet<_> = ids.map(whole).collect();
        all.into_iter().collect()
    }

    /// Returns the definitions of the project's series.
    fn known(&self, ids: &[SeriesId]) -> Vec<(SeriesId, SeriesInfo)> {
        let dictionary = self.store.dictionary();
        ids.iter().filter_map(|id| Some((*id, dictionary.info(*id)?))).collect()
    }

    fn write(&self, group: &CollectionGroup, batch: Batch) -> Result<u64, Fault> {
        if batch.documents.is_empty() {
            return Ok(0);
        }
        self.check_stored(group)?;
        let (database, collection) = (self.database, &group.collection);
        let written =
            self.connection.replace(database, collection, group.through, batch.documents)?;
        self.metrics.documents.inc_by(written.documents);
        self.metrics.bytes.inc_by(written.bytes);
        self.metrics.superseded.inc_by(written.superseded);
        Ok(written.superseded)
    }

    /// Checks that the partitions of a group are still in the store. A read from a dropped
    /// partition returns documents without samples, which must not replace the published ones.
    fn check_stored(&self, group: &CollectionGroup) -> Result<(), Fault> {
        let width = |level| self.store.granularity(level).width_ms;
        let is_of_group = |partition: &PartitionInfo| {
            let id = &partition.id;
            id.start == group.start && width(id.granularity) == width(group.granularity)
        };
        let is_stored = self.store.partitions().iter().any(is_of_group);
        if is_stored { Ok(()) } else { Err(Fault::Gone) }
    }

    /// Drops the collections of partitions that have expired. Returns their number.
    pub(super) fn drop_expired(
        &self,
        backlog: &mut Backlog,
        now: Moment,
    ) -> Result<u64, PublishFault> {
        let names = self.connection.collections(self.database)?;
        let mut dropped = 0;
        for collection in expiry::expired(self.store, &names, now) {
            self.connection.drop_collection(self.database, &collection)?;
            backlog.forget(&collection);
            tracing::info!(database = self.database, collection, "dropped an expired collection");
            dropped += 1;
        }
        Ok(dropped)
    }
}

impl Batch {
    fn add(
        &mut self,
        group: &CollectionGroup,
        store: &Store,
        (start, end): (UnixMillis, UnixMillis),
        info: &SeriesInfo,
        cells: &[(UnixMillis, crate::model::Cell)],
    ) -> Result<(), PublishFault> {
        let granularity = store.granularity(group.granularity);
        let (through, replaced) = (group.through, group.replaced);
        let of = Described { info, granularity, start, end, through, replaced };
        let (id, document) = document(group.form, &of, cells)?;
        self.bytes += document.as_bytes().len();
        self.documents.push((id, document));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.documents.len() >= DOCUMENTS_MAX || self.bytes >= BYTES_MAX
    }
}
