//! Open documents: BSON of constant length, one redb file a partition. Only this room knows their
//! bytes.
//!
//! Must never know: where cells come from.

pub(crate) mod layout;
pub(crate) mod layouts;
pub(crate) mod partition;
mod partitions;
mod reader;
mod view;
mod writer;

use std::{ops::Range, sync::Arc};

use super::{
    CellSource, DocumentVisitor, Documents, DocumentsView, Merged, PartitionInfo, mark::Mark,
    place::Place,
};
use crate::{
    model::{Granularity, GranularityIndex, PartitionId, SeriesId, UnixMillis},
    store::{
        error::StoreError,
        file::{medium::Medium, names::partition_file},
        journal::register::Register,
    },
};
use partition::Partition;
use partitions::Partitions;
use view::OpenView;

/// The open documents of a store.
#[derive(Debug)]
pub(crate) struct OpenDocuments(Arc<Partitions>);

impl OpenDocuments {
    /// Opens every partition of the medium.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        granularities: Vec<Granularity>,
        register: Arc<Register>,
    ) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(Partitions::open(medium, granularities, register)?)))
    }

    /// The partitions' files, to be copied.
    pub(crate) fn files(&self) -> Vec<Arc<Partition>> {
        self.0.all()
    }
}

impl Documents for OpenDocuments {
    fn granularities(&self) -> &[Granularity] {
        self.0.granularities()
    }

    fn place(&self, granularity: GranularityIndex, at: UnixMillis) -> Place {
        self.0.place(granularity, at)
    }

    fn places(&self, granularity: GranularityIndex, range: Range<i64>) -> Vec<Place> {
        let found = self.0.overlapping(granularity, range).into_iter();
        found.map(|partition| partition.place.clone()).collect()
    }

    fn name(&self, place: &Place) -> String {
        partition_file(self.0.granularity(place.id.granularity), place.range())
    }

    fn mark(&self, place: &Place) -> Result<Mark, StoreError> {
        let Some(partition) = self.0.get(place.id) else { return Ok(Mark::NONE) };
        match partition.read() {
            Ok(reader) => Ok(reader.mark),
            Err(fault) if self.0.replace_if_damaged(&partition, &fault)? => Ok(Mark::NONE),
            Err(fault) => Err(fault),
        }
    }

    fn last_record(&self) -> Result<Option<(u64, String)>, StoreError> {
        let mut last = None;
        for partition in self.0.all() {
            let mark = self.mark(&partition.place)?;
            last = last.max(Some((mark.through, partition.file_path().to_owned())));
        }
        Ok(last)
    }

    fn view(
        &self,
        granularity: GranularityIndex,
        range: Range<i64>,
    ) -> Result<Box<dyn DocumentsView>, StoreError> {
        Ok(Box::new(OpenView::new(self.0.clone(), granularity, range)?))
    }

    fn merge(
        &self,
        place: &Place,
        mark: Mark,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError> {
        let partition = self.0.get_or_create(place.id.granularity, place.id.start)?;
        if partition.place != *place {
            let problem = "it was made otherwise meanwhile; the next checkpoint goes by it";
            let file = partition.file_path().to_owned();
            return Err(StoreError::Mismatch { file, problem: problem.to_owned() });
        }
        let merged = partition.write(Some(mark), |writer| {
            cells(writer)?;
            Ok(writer.merged)
        });
        self.0.or_replace(&partition, merged)
    }

    fn add_shells(
        &self,
        granularity: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let add = |partition: &Partition| {
            partition
                .write(None, |writer| writer.add_shells(partition.place.document_start(at), series))
        };
        let partition = self.0.get_or_create(granularity, at)?;
        match add(&partition) {
            Err(fault) if self.0.replace_if_damaged(&partition, &fault)? => {
                add(&*self.0.get_or_create(granularity, at)?)
            }
            outcome => outcome,
        }
    }

    fn drop_partition(&self, id: PartitionId) -> Result<bool, StoreError> {
        self.0.remove(id)
    }

    fn partitions(&self) -> Vec<PartitionInfo> {
        self.0.infos()
    }

    fn count(&self, id: PartitionId) -> Result<Option<u64>, StoreError> {
        let Some(partition) = self.0.get(id) else { return Ok(None) };
        self.0.or_replace(&partition, partition.read().and_then(|reader| reader.count())).map(Some)
    }

    fn holes(&self, granularity: GranularityIndex) -> Vec<Range<UnixMillis>> {
        self.0.holes(granularity)
    }

    fn damaged_documents(&self) -> u64 {
        self.0.all().into_iter().map(|partition| partition.damage.count()).sum()
    }

    fn check(
        &self,
        id: PartitionId,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<Option<Mark>, StoreError> {
        let Some(partition) = self.0.get(id) else { return Ok(None) };
        let reader = partition.read()?;
        reader.check(visit)?;
        Ok(Some(reader.mark))
    }
}
