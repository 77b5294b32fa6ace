//! A segment: groups in a flat file, one after the other, an index of them at its end, and a footer.
//! It is filled under another name, synced and renamed, and never changes after that.
//!
//! Must never know: which segments count.

use std::{io, sync::Arc};

use parking_lot::Mutex;
use redb::StorageBackend;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    Columns, Misfit, Scratch,
    bits::PADDING,
    group::{GroupHead, GroupWriter},
};
use crate::{
    model::{Cell, UnixMillis},
    store::{
        error::StoreError,
        file::{database::UNFINISHED, medium::Medium, watched::note_written},
    },
};

/// How a footer begins.
const MAGIC: &[u8; 8] = b"granseal";
/// The version of this layout.
const VERSION: u64 = 1;
/// Magic, version, partition's start, slot width, index's place, its entries, its checksum, and that
/// of the footer.
const FOOTER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 24;
/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Groups of a segment, at most: an index of 1.5 GB.
const ENTRIES_MAX: u64 = 1 << 26;

/// Where a group lies in time and among the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupId {
    /// From the partition's start to that of the first slot.
    pub(crate) seconds: u32,
    /// The row of its series.
    pub(crate) row: u32,
}

impl GroupId {
    /// As checksums know it.
    pub(crate) fn key(self) -> u64 {
        u64::from(self.seconds) << 32 | u64::from(self.row)
    }
}

/// A group in the index.
#[derive(Debug, Clone, Copy)]
struct Entry {
    id: GroupId,
    offset: u64,
    head: u32,
    slots: u32,
}

/// A segment that is being filled.
pub(crate) struct SegmentWriter {
    medium: Arc<dyn Medium>,
    name: String,
    file: Box<dyn StorageBackend>,
    start: UnixMillis,
    width_ms: i64,
    buffer: Vec<u8>,
    /// Bytes before the buffer.
    written: u64,
    entries: Vec<Entry>,
    scratch: Scratch,
    is_finished: bool,
}

fn fault<'a>(operation: &'static str, file: &'a str) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |cause| StoreError::Io { operation, file: file.to_owned(), cause }
}

impl SegmentWriter {
    /// Begins a segment of a partition.
    pub(crate) fn create(
        medium: &Arc<dyn Medium>,
        name: String,
        start: UnixMillis,
        width_ms: i64,
    ) -> Result<Self, StoreError> {
        let unfinished = format!("{name}{UNFINISHED}");
        medium.remove(&unfinished).map_err(fault("remove", &unfinished))?;
        let file = medium.create(&unfinished).map_err(fault("create", &unfinished))?;
        Ok(Self {
            medium: medium.clone(),
            name,
            file,
            start,
            width_ms,
            buffer: Vec::new(),
            written: 0,
            entries: Vec::new(),
            scratch: Scratch::default(),
            is_finished: false,
        })
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Adds a group, behind all those before it. False when it would not come back as it is: then
    /// it is left out.
    pub(crate) fn add(
        &mut self,
        id: GroupId,
        slots: usize,
        group: &mut GroupWriter,
    ) -> Result<bool, StoreError> {
        assert!(self.entries.last().is_none_or(|last| last.id < id), "groups ascend");
        let from = self.buffer.len();
        let head = group.finish(id.key(), slots, &mut self.buffer);
        let end = self.buffer.len();
        self.buffer.resize(end + PADDING, 0);
        let (bytes, width_ms) = (&self.buffer[from..], self.width_ms);
        if !group.comes_back(bytes, head, id.key(), slots, width_ms, &mut self.scratch) {
            self.buffer.truncate(from);
            return Ok(false);
        }
        self.buffer.truncate(end);
        let offset = self.written + from as u64;
        self.entries.push(Entry { id, offset, head: head as u32, slots: slots as u32 });
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.file.write(self.written, &self.buffer).map_err(fault("write", &self.name))?;
        self.written += self.buffer.len() as u64;
        note_written(self.buffer.len());
        self.buffer.clear();
        Ok(())
    }

    /// Ends it, durably, and opens it.
    pub(crate) fn finish(mut self) -> Result<Segment, StoreError> {
        let index_at = self.written + self.buffer.len() as u64;
        let from = self.buffer.len();
        for Entry { id, offset, head, slots } in &self.entries {
            self.buffer.extend(id.seconds.to_le_bytes());
            self.buffer.extend(id.row.to_le_bytes());
            self.buffer.extend(offset.to_le_bytes());
            self.buffer.extend(head.to_le_bytes());
            self.buffer.extend(slots.to_le_bytes());
        }
        let check = xxh3_64(&self.buffer[from..]);
        let footer = self.buffer.len();
        self.buffer.extend(MAGIC);
        let entries = self.entries.len() as u64;
        let fields = [VERSION, self.start.0 as u64, self.width_ms as u64, index_at, entries, check];
        self.buffer.extend(fields.into_iter().flat_map(u64::to_le_bytes));
        let check = xxh3_64(&self.buffer[footer..]);
        self.buffer.extend(check.to_le_bytes());
        self.flush()?;
        self.file.sync_data().map_err(fault("sync", &self.name))?;
        let unfinished = self.unfinished();
        self.medium.rename(&unfinished, &self.name).map_err(fault("rename", &unfinished))?;
        self.is_finished = true;
        Segment::open(&self.medium, self.name.clone(), self.start, self.width_ms)
    }

    fn unfinished(&self) -> String {
        format!("{}{UNFINISHED}", self.name)
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let file = self.unfinished();
        if let Err(cause) = self.medium.remove(&file) {
            tracing::warn!(file, %cause, "cannot remove a segment that was not finished");
        }
    }
}

/// A segment that is there.
#[derive(Debug)]
pub(crate) struct Segment {
    name: String,
    file: Box<dyn StorageBackend>,
    width_ms: i64,
    bytes: u64,
    entries: Vec<Entry>,
    /// Where the index begins, and the last group ends.
    index_at: u64,
    /// The group that was read last: series are asked for one after the other.
    recent: Mutex<Option<(usize, Arc<GroupHead>)>>,
}

impl Segment {
    /// Opens a segment of a partition.
    pub(crate) fn open(
        medium: &Arc<dyn Medium>,
        name: String,
        start: UnixMillis,
        width_ms: i64,
    ) -> Result<Self, StoreError> {
        let file = medium.open(&name).map_err(fault("open", &name))?;
        let corrupt =
            |problem: &str| StoreError::Corrupt { file: name.clone(), problem: problem.to_owned() };
        let bytes = file.len().map_err(fault("read", &name))?;
        let footer_at =
            bytes.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| corrupt("it is too short"))?;
        let mut footer = [0; FOOTER_BYTES];
        file.read(footer_at, &mut footer).map_err(fault("read", &name))?;
        let [magic, version, own_start, own_width, index_at, count, check, footer_check] =
            footer.as_chunks::<8>().0
        else {
            return Err(corrupt("it has no footer"));
        };
        let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        if magic != MAGIC || number(footer_check) != xxh3_64(&footer[..FOOTER_BYTES - 8]) {
            return Err(corrupt("its footer is not as it was written"));
        }
        if number(version) != VERSION {
            let problem =
                format!("it has version {} of segments: use a newer release", number(version));
            return Err(StoreError::Mismatch { file: name, problem });
        }
        let (index_at, count) = (number(index_at), number(count));
        let fits = number(own_start) as i64 == start.0
            && number(own_width) as i64 == width_ms
            && count <= ENTRIES_MAX
            && index_at.checked_add(count * ENTRY_BYTES as u64) == Some(footer_at);
        if !fits {
            return Err(corrupt("its footer is that of another segment"));
        }
        let mut index = vec![0; count as usize * ENTRY_BYTES];
        file.read(index_at, &mut index).map_err(fault("read", &name))?;
        if xxh3_64(&index) != number(check) {
            return Err(corrupt("its index is not as it was written"));
        }
        let entries = index.as_chunks::<ENTRY_BYTES>().0.iter().map(read_entry).collect();
        let recent = Mutex::default();
        Ok(Self { name, file, width_ms, bytes, entries, index_at, recent })
    }

    /// Path of the file below the data directory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The groups, ascending, each with its number of slots.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (GroupId, usize)> + '_ {
        self.entries.iter().map(|entry| (entry.id, entry.slots as usize))
    }

    /// Number of the group that has a row's slot that begins so many seconds after the
    /// partition, with its first slot's and how many it has.
    pub(crate) fn find(&self, seconds: u32, row: u32) -> Option<(usize, u32, usize)> {
        let behind = self.entries.partition_point(|entry| entry.id.seconds <= seconds);
        let start = self.entries[..behind].last()?.id.seconds;
        let id = GroupId { seconds: start, row };
        let found = self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        let slots = self.entries[found].slots as usize;
        let length_ms = slots as i64 * self.width_ms;
        let is_in = i64::from(seconds - start) * 1000 < length_ms;
        is_in.then_some((found, start, slots))
    }

    /// The head of a group.
    pub(crate) fn head(
        &self,
        group: usize,
        scratch: &mut Scratch,
    ) -> Result<Arc<GroupHead>, StoreError> {
        if let Some((own, head)) = &*self.recent.lock()
            && *own == group
        {
            return Ok(head.clone());
        }
        let entry = self.entries[group];
        let end = self.entries.get(group + 1).map_or(self.index_at, |next| next.offset);
        let length = entry.head as usize;
        if entry.offset.checked_add(length as u64).is_none_or(|behind| behind > end) {
            return Err(self.corrupt(Misfit(0), entry.id));
        }
        let bytes = self.read(entry.offset, length)?;
        let (key, span) = (entry.id.key(), (entry.slots as usize, self.width_ms));
        let head = GroupHead::read(&bytes, length, key, span, scratch);
        let head = Arc::new(head.map_err(|misfit| self.corrupt(misfit, entry.id))?);
        if entry.offset + (length + head.blocks_bytes()) as u64 != end {
            return Err(self.corrupt(Misfit(length), entry.id));
        }
        *self.recent.lock() = Some((group, head.clone()));
        Ok(head)
    }

    /// Hands out the cells of a series of a group: of a range of slots, those that are there.
    pub(crate) fn cells(
        &self,
        group: usize,
        lane: usize,
        slots: std::ops::Range<usize>,
        wanted: Columns,
        scratch: &mut Scratch,
        visit: impl FnMut(usize, Cell),
    ) -> Result<(), StoreError> {
        let head = self.head(group, scratch)?;
        let Some((at, length)) = head.block(lane) else { return Ok(()) };
        let entry = self.entries[group];
        let block = self.read(entry.offset + u64::from(entry.head) + at as u64, length)?;
        let outcome = head.cells(lane, &block, slots, wanted, scratch, visit);
        outcome.map_err(|misfit| self.corrupt(misfit, entry.id))
    }

    /// The bytes of a series' block, with its checksum.
    pub(crate) fn block(
        &self,
        group: usize,
        lane: usize,
        scratch: &mut Scratch,
    ) -> Result<Vec<u8>, StoreError> {
        let head = self.head(group, scratch)?;
        let Some((at, length)) = head.block(lane) else { return Ok(Vec::new()) };
        let entry = self.entries[group];
        let mut block = self.read(entry.offset + u64::from(entry.head) + at as u64, length)?;
        block.truncate(length);
        Ok(block)
    }

    /// Bytes of the file, padded.
    fn read(&self, at: u64, length: usize) -> Result<Vec<u8>, StoreError> {
        let mut bytes = vec![0; length + PADDING];
        self.file.read(at, &mut bytes[..length]).map_err(fault("read", &self.name))?;
        Ok(bytes)
    }

    fn corrupt(&self, misfit: Misfit, id: GroupId) -> StoreError {
        let problem = format!("group {} at {} s: {misfit}", id.row, id.seconds);
        StoreError::Corrupt { file: self.name.clone(), problem }
    }
}

fn read_entry(bytes: &[u8; ENTRY_BYTES]) -> Entry {
    let number = |at: usize| {
        let mut own = [0; 4];
        own.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(own)
    };
    let offset = u64::from(number(8)) | u64::from(number(12)) << 32;
    let id = GroupId { seconds: number(0), row: number(4) };
    Entry { id, offset, head: number(16), slots: number(20) }
}
