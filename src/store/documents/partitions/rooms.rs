//! Reserved space for the next segment of each granularity.
//!
//! Must never know: how much space is needed, and when.

use std::{io, sync::Arc};

use super::Partitions;
use crate::{
    model::{GranularityIndex, UnixMillis},
    store::{documents::partition::Partition, error::StoreError},
};

/// The space that the next documents of a granularity need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentSpace {
    /// The size of the documents in bytes.
    pub bytes: u64,
    /// True when the documents become a segment; fewer documents become rows of the partition's
    /// file.
    pub is_segment: bool,
}

/// The bytes that are allocated after the end of a partition's file, for the commit that registers
/// a new segment.
const COMMIT_BYTES: u64 = 64 << 10;

impl Partitions {
    /// Reserves space for the documents of the period that contains `at`, and creates their
    /// partition. The reserved file of another partition of the granularity is moved to this
    /// partition, or is removed. Returns the reserved bytes, at most twice the requested bytes.
    pub(crate) fn reserve(
        &self,
        index: GranularityIndex,
        at: UnixMillis,
        DocumentSpace { bytes, is_segment }: DocumentSpace,
    ) -> Result<u64, StoreError> {
        let all = || self.overlapping(index, i64::MIN..i64::MAX).into_iter();
        if bytes == 0 {
            all().try_for_each(|partition| release(&partition))?;
            return Ok(0);
        }
        let partition = self.get_or_create(index, at)?;
        let of_rows = if is_segment { 0 } else { bytes };
        partition.file.allocate(of_rows + COMMIT_BYTES, u64::MAX)?;
        if !is_segment {
            all().try_for_each(|partition| release(&partition))?;
            return Ok(bytes);
        }
        for other in all().filter(|other| !Arc::ptr_eq(other, &partition)) {
            let moved = partition.segments.move_room(&other.segments);
            moved.map_err(fault("move the reserved space of", &other))?;
            release(&other)?;
        }
        partition.segments.reserve(bytes).map_err(fault("reserve space for", &partition))
    }

    /// Returns the bytes that are reserved for the segment of the period that contains `at`.
    pub(crate) fn reserved(&self, index: GranularityIndex, at: UnixMillis) -> u64 {
        self.holding(index, at).map_or(0, |partition| partition.segments.reserved())
    }

    /// Removes the reserved files of granularities from `first` on.
    pub(crate) fn release_rooms(&self, first: GranularityIndex) -> Result<(), StoreError> {
        let retired = |partition: &&Arc<Partition>| partition.id().granularity >= first;
        self.all().iter().filter(retired).try_for_each(release)
    }
}

fn release(partition: &Arc<Partition>) -> Result<(), StoreError> {
    partition.segments.release_room().map_err(fault("release the reserved space of", partition))
}

fn fault<'p>(
    operation: &'static str,
    partition: &'p Partition,
) -> impl FnOnce(io::Error) -> StoreError + 'p {
    move |cause| StoreError::Io { operation, file: partition.file_path().to_owned(), cause }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

    use super::*;
    use crate::{
        model::GranularitySet,
        setup::NOW,
        store::{
            faulty::{Call, ENOSPC, Effect, Fault, FaultyMedium},
            file::medium::Medium,
            journal::{Journal, register::Register},
        },
    };

    const MINUTE: GranularityIndex = GranularityIndex::FINEST;
    const HOUR: GranularityIndex = GranularityIndex(2);
    const SIX_HOURS_MS: i64 = 6 * 3_600_000;

    fn open(faulty: &FaultyMedium) -> Partitions {
        let medium: Arc<dyn Medium> = Arc::new(faulty.clone());
        let journal = Arc::new(Journal::open(&medium).unwrap());
        let register = Arc::new(Register::open(medium.clone(), journal).unwrap());
        let set = GranularitySet::default();
        Partitions::open(medium, set.iter().cloned().collect(), register).unwrap()
    }

    fn segment(bytes: u64) -> DocumentSpace {
        DocumentSpace { bytes, is_segment: true }
    }

    /// Returns the names and sizes of the files with this suffix below the folder of partitions.
    fn files(medium: &FaultyMedium, end: &str) -> Vec<(String, u64)> {
        let names = medium.files().into_iter().filter(|name| name.ends_with(end));
        let bytes = |name: String| {
            let bytes = medium.allocated_bytes(&name).unwrap();
            (name.trim_start_matches("partitions/").to_owned(), bytes)
        };
        names.map(bytes).collect()
    }

    fn file(name: &str, bytes: u64) -> (String, u64) {
        (name.to_owned(), bytes)
    }

    #[test]
    fn each_granularity_has_one_reserved_file_with_the_name_of_its_next_segment() {
        let faulty = FaultyMedium::new(7);
        let partitions = open(&faulty);
        let later = NOW.plus(SIX_HOURS_MS);
        let keep = |index, at, bytes| partitions.reserve(index, at, segment(bytes)).unwrap();
        let reserved = || files(&faulty, ".sealed");
        assert_eq!(keep(MINUTE, NOW, 100), 100);
        assert_eq!(keep(HOUR, NOW, 70), 70);
        assert_eq!(keep(MINUTE, NOW, 60), 100, "up to twice the bytes are kept");
        let of_hour = file("1h/2026-11-16.1.sealed", 70);
        assert_eq!(reserved(), [of_hour.clone(), file("1m/2026-11-21T1200.1.sealed", 100)]);
        assert_eq!(keep(MINUTE, later, 300), 300, "the file moves to the next partition");
        let moved = file("1m/2026-11-21T1800.1.sealed", 300);
        assert_eq!(reserved(), [of_hour, moved.clone()]);
        let at_now = [partitions.reserved(MINUTE, NOW), partitions.reserved(MINUTE, later)];
        assert_eq!(at_now, [0, 300]);
        // A level for which no more space is reserved.
        partitions.release_rooms(HOUR).unwrap();
        assert_eq!(reserved(), [moved]);
        // Fewer documents become rows.
        let rows = DocumentSpace { bytes: 50, is_segment: false };
        assert_eq!(partitions.reserve(MINUTE, later, rows).unwrap(), 50);
        assert_eq!(reserved(), []);
    }

    #[test]
    fn the_segment_of_the_turn_has_the_reserved_file_and_no_other_name() {
        let faulty = FaultyMedium::new(7);
        let partitions = open(&faulty);
        partitions.reserve(MINUTE, NOW, segment(5000)).unwrap();
        let of = |partitions: &Partitions| partitions.holding(MINUTE, NOW).unwrap();
        let partition = of(&partitions);
        // Segments of late cells and of folds do not use the reserved file.
        let (other, writer) = partition.segments.begin(false).unwrap();
        drop(writer);
        assert_eq!(partition.segments.reserved(), 5000);
        let (number, writer) = partition.segments.begin(true).unwrap();
        assert_eq!((number, other, partition.segments.reserved()), (1, 2, 0));
        assert_eq!(files(&faulty, ".new"), []);
        // A failed attempt leaves the space for the next attempt, even after a restart.
        drop(writer);
        assert_eq!(partition.segments.reserved(), 5000);
        drop((partition, partitions));
        let partitions = open(&faulty);
        let partition = of(&partitions);
        assert_eq!(partition.segments.reserved(), 5000);
        let (number, writer) = partition.segments.begin(true).unwrap();
        let segment = writer.finish().unwrap();
        assert_eq!((number, segment.name()), (1, "partitions/1m/2026-11-21T1200.1.sealed"));
        let [(_, bytes)] = &files(&faulty, ".sealed")[..] else { unreachable!() };
        assert!(*bytes < 5000, "it was cut to {bytes} bytes");
        // The complete segment is not registered, so the next start removes it.
        drop((segment, partition, partitions));
        open(&faulty);
        assert_eq!(files(&faulty, ".sealed"), []);
    }

    #[test]
    fn a_full_disk_leaves_what_was_reserved_before() {
        let faulty = FaultyMedium::new(7);
        let partitions = open(&faulty);
        partitions.get_or_create(MINUTE, NOW).unwrap();
        // The first allocation is for the partition's file.
        let fails = |bytes| {
            let effect = Effect::Error(ENOSPC);
            faulty.arm(Fault { call: Call::Allocate, after: 1, times: 1, effect });
            partitions.reserve(MINUTE, NOW, segment(bytes)).unwrap_err();
        };
        fails(100);
        assert_eq!(files(&faulty, ".sealed"), []);
        partitions.reserve(MINUTE, NOW, segment(100)).unwrap();
        fails(500);
        assert_eq!(partitions.reserved(MINUTE, NOW), 100);
    }

    #[test]
    fn a_damaged_partition_is_set_aside_without_its_reserved_file() {
        let faulty = FaultyMedium::new(7);
        let partitions = open(&faulty);
        partitions.reserve(MINUTE, NOW, segment(100)).unwrap();
        let partition = partitions.holding(MINUTE, NOW).unwrap();
        let problem = "a test says so".to_owned();
        let fault = StoreError::Corrupt { file: partition.file_path().to_owned(), problem };
        assert!(partitions.replace_if_damaged(&partition, &fault).unwrap());
        assert_eq!(files(&faulty, ".sealed"), []);
        assert!(faulty.files().contains(&"damaged/1m-2026-11-21T1200.redb".to_owned()));
    }
}
