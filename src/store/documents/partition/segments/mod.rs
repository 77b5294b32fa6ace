//! The segments of a partition: the files that its redb file names, opened.
//!
//! A segment whose name is not in the partition's file does not count; the next start removes it.
//! Must never know: what is in segments.

pub(crate) mod parts;

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::{
    model::UnixMillis,
    store::{
        documents::{
            grid::PartitionGrid,
            segment::{
                file::Segment,
                room::{self, Room, TakenRoom},
                writer::SegmentWriter,
            },
        },
        error::StoreError,
        file::{
            medium::Medium,
            names::{segment_file, segment_number},
        },
    },
};

/// The entry of a segment in the partition: its number, and the range of its documents in seconds
/// from the partition's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) number: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Named {
    /// Returns the entry of a row in the table of segments.
    pub(crate) fn of(number: u32, span: u64) -> Self {
        Self { number, from: (span >> 32) as u32, to: span as u32 }
    }

    /// Returns the value of the segment's row in the table of segments.
    pub(crate) fn span(self) -> u64 {
        u64::from(self.from) << 32 | u64::from(self.to)
    }
}

/// The counter of segment numbers. A thread may still fold or write a removed partition, so this
/// partition shares the counter with its replacement. They never create files with the same name.
pub(crate) type Numbers = Arc<AtomicU32>;

/// The open segments of a partition.
#[derive(Debug)]
pub(crate) struct Segments {
    medium: Arc<dyn Medium>,
    /// The partition's file.
    partition: String,
    start: UnixMillis,
    width_ms: i64,
    /// The open segments by number, including segments that are not yet or no longer named.
    open: RwLock<BTreeMap<u32, Arc<Segment>>>,
    numbers: Numbers,
    /// The named segments that are missing or damaged.
    lost: Mutex<BTreeMap<u32, Named>>,
    room: Room,
}

impl Segments {
    pub(crate) fn new(
        medium: &Arc<dyn Medium>,
        partition: &str,
        grid: &PartitionGrid,
        numbers: Numbers,
    ) -> Self {
        Self {
            medium: medium.clone(),
            partition: partition.to_owned(),
            start: grid.id.start,
            width_ms: grid.width_ms,
            open: RwLock::default(),
            numbers,
            lost: Mutex::default(),
            room: Room::default(),
        }
    }

    /// Opens the named segments, and removes all other segments of the partition: their creation or
    /// removal was interrupted. A file that is not a complete segment is reserved space.
    pub(crate) fn open_named(&self, named: &[Named]) -> Result<(), StoreError> {
        for entry in named {
            match Segment::open(&self.medium, self.file(entry.number), self.start, self.width_ms) {
                Ok(segment) => self.put(entry.number, Arc::new(segment)),
                Err(fault) if is_loss(&fault) => {
                    let (file, cause) = (self.file(entry.number), fault.with_causes());
                    tracing::error!(
                        file,
                        cause,
                        "a segment is damaged or missing: its samples are missing at its \
                         granularity; restore it from a snapshot"
                    );
                    self.lost.lock().insert(entry.number, *entry);
                }
                Err(fault) => return Err(fault),
            }
        }
        let mut last = named.iter().map(|entry| entry.number).max().unwrap_or(0);
        for number in self.numbers_on_medium()? {
            last = last.max(number);
            if named.iter().any(|entry| entry.number == number) {
                continue;
            }
            let unused =
                if self.is_room(number) { self.room.lock().replace(number) } else { Some(number) };
            if let Some(number) = unused {
                self.remove(number)?;
            }
        }
        self.numbers.fetch_max(last.saturating_add(1), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the numbers of the partition's segments that are on the medium.
    fn numbers_on_medium(&self) -> Result<Vec<u32>, StoreError> {
        let (folder, partition) = self.partition.rsplit_once('/').unwrap_or(("", &self.partition));
        let fault = |cause| StoreError::Io { operation: "list", file: folder.to_owned(), cause };
        let names = self.medium.list(folder).map_err(fault)?;
        Ok(names.iter().filter_map(|name| segment_number(partition, name)).collect())
    }

    fn file(&self, number: u32) -> String {
        segment_file(&self.partition, number)
    }

    /// Returns true when the file of a number has allocated blocks, but is not a complete segment.
    fn is_room(&self, number: u32) -> bool {
        let file = self.file(number);
        self.medium.allocated_bytes(&file).is_ok_and(|bytes| bytes > 0)
            && Segment::open(&self.medium, file, self.start, self.width_ms).is_err()
    }

    /// Reserves bytes for the next segment; returns the reserved bytes.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<u64> {
        let mut room = self.room.lock();
        let number = room.unwrap_or_else(|| self.numbers.fetch_add(1, Ordering::Relaxed));
        let reserved = room::fit(&self.medium, &self.file(number), bytes)?;
        *room = Some(number);
        Ok(reserved)
    }

    /// Moves the reserved file of another partition to this partition, unless this partition has
    /// one.
    pub(crate) fn move_room(&self, other: &Self) -> io::Result<()> {
        let mut room = self.room.lock();
        if room.is_none()
            && let Some(mut moved) = TakenRoom::take(&other.room)
        {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            self.medium.rename(&other.file(moved.number()), &self.file(number))?;
            moved.note_used();
            *room = Some(number);
        }
        Ok(())
    }

    /// Removes the reserved file.
    pub(crate) fn release_room(&self) -> io::Result<()> {
        let mut room = self.room.lock();
        if let Some(number) = *room {
            self.medium.remove(&self.file(number))?;
            *room = None;
        }
        Ok(())
    }

    /// Returns the reserved bytes.
    pub(crate) fn reserved(&self) -> u64 {
        let bytes = |number| self.medium.allocated_bytes(&self.file(number)).unwrap_or(0);
        self.room.lock().map_or(0, bytes)
    }

    /// Begins a segment, in the reserved file if `takes_reserved`; returns its number and its
    /// writer.
    pub(crate) fn begin(&self, takes_reserved: bool) -> Result<(u32, SegmentWriter), StoreError> {
        let mut taken = if takes_reserved { TakenRoom::take(&self.room) } else { None };
        let next = || self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut number = taken.as_ref().map_or_else(next, TakenRoom::number);
        if let Some(room) = &mut taken {
            let file = self.file(number);
            let fault = |cause| StoreError::Io { operation: "find", file: file.clone(), cause };
            if !self.medium.exists(&file).map_err(fault)? {
                room.note_used();
                (taken, number) = (None, next());
            }
        }
        let (file, grid) = (self.file(number), (self.start, self.width_ms));
        let writer = SegmentWriter::create(&self.medium, file, grid, taken)?;
        Ok((number, writer))
    }

    /// Adds an open segment that will be named.
    pub(crate) fn put(&self, number: u32, segment: Arc<Segment>) {
        self.open.write().insert(number, segment);
    }

    /// Returns the open segments; none of them is removed while the guard is held.
    pub(crate) fn open(&self) -> OpenSegments<'_> {
        OpenSegments { all: self, open: self.open.read() }
    }

    /// Removes a segment that is not named, or no longer named. Current readers can finish.
    pub(crate) fn remove(&self, number: u32) -> Result<(), StoreError> {
        self.open.write().remove(&number);
        self.lost.lock().remove(&number);
        self.remove_file(number)
    }

    fn remove_file(&self, number: u32) -> Result<(), StoreError> {
        let file = self.file(number);
        let fault = |cause| StoreError::Io { operation: "remove", file: file.clone(), cause };
        self.medium.remove(&file).map_err(fault)
    }

    /// Removes the files of all segments of a removed partition. Current readers can finish.
    pub(crate) fn remove_files(&self) -> Result<(), StoreError> {
        self.numbers_on_medium()?.into_iter().try_for_each(|number| self.remove_file(number))
    }

    /// Returns the time spans of lost segments.
    pub(crate) fn lost(&self) -> Vec<Range<UnixMillis>> {
        let at = |seconds: u32| self.start.plus(i64::from(seconds) * 1000);
        self.lost.lock().values().map(|entry| at(entry.from)..at(entry.to)).collect()
    }

    /// Returns whether any segment is lost.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.lock().is_empty()
    }

    /// Returns the counter of segment numbers.
    pub(crate) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Returns the files that are open.
    pub(crate) fn files(&self) -> Vec<Arc<Segment>> {
        self.open.read().values().cloned().collect()
    }
}

/// A guard of the open segments of a partition, which prevents their removal.
pub(crate) struct OpenSegments<'a> {
    all: &'a Segments,
    open: RwLockReadGuard<'a, BTreeMap<u32, Arc<Segment>>>,
}

impl OpenSegments<'_> {
    /// Returns the segments that are named in a transaction, except lost segments. A read
    /// transaction must have begun while the guard was held.
    pub(crate) fn get(&self, named: &[Named]) -> Result<Vec<Arc<Segment>>, StoreError> {
        let lost = self.all.lost.lock();
        let intact = named.iter().filter(|entry| !lost.contains_key(&entry.number));
        let found = intact.map(|entry| self.open.get(&entry.number).cloned());
        found.collect::<Option<_>>().ok_or_else(|| {
            let problem = "it names a segment that was removed".to_owned();
            StoreError::Mismatch { file: self.all.partition.clone(), problem }
        })
    }
}

/// Returns whether a fault shows that a segment is missing or damaged.
fn is_loss(fault: &StoreError) -> bool {
    let is_missing = matches!(
        fault,
        StoreError::Io { cause, .. } if matches!(
            cause.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
        )
    );
    is_missing || fault.is_damage()
}
