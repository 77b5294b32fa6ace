//! The writer of a segment. It writes to the partition's reserved file, or to a file with a
//! temporary name, which is renamed after the sync.
//!
//! Must never know: how segments are used.

use std::sync::Arc;

use redb::StorageBackend;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    bits::PADDING,
    buffers::Buffers,
    file::{Entry, HISTOGRAMS_VERSION, MAGIC, Segment, TileId, VERSION, fault},
    room::TakenRoom,
    tile::{HISTOGRAMS, TileWriter},
};
use crate::{
    model::UnixMillis,
    store::{
        error::StoreError,
        file::{database::UNFINISHED, medium::Medium, watched::note_written},
    },
};

/// The number of bytes to write at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// A segment that is being filled.
pub(crate) struct SegmentWriter {
    medium: Arc<dyn Medium>,
    name: String,
    file: Box<dyn StorageBackend>,
    start: UnixMillis,
    width_ms: i64,
    buffer: Vec<u8>,
    /// The number of bytes already written to the file.
    written: u64,
    entries: Vec<Entry>,
    buffers: Buffers,
    /// The reserved file, if the segment is written there.
    room: Option<TakenRoom>,
    is_finished: bool,
}

impl SegmentWriter {
    /// Begins a segment of a partition, in the reserved file of this name if there is one.
    pub(crate) fn create(
        medium: &Arc<dyn Medium>,
        name: String,
        (start, width_ms): (UnixMillis, i64),
        room: Option<TakenRoom>,
    ) -> Result<Self, StoreError> {
        let file = if room.is_some() {
            medium.open(&name).map_err(fault("open", &name))?
        } else {
            let unfinished = format!("{name}{UNFINISHED}");
            medium.remove(&unfinished).map_err(fault("remove", &unfinished))?;
            medium.create(&unfinished).map_err(fault("create", &unfinished))?
        };
        Ok(Self {
            medium: medium.clone(),
            name,
            file,
            start,
            width_ms,
            buffer: Vec::new(),
            written: 0,
            entries: Vec::new(),
            buffers: Buffers::default(),
            room,
            is_finished: false,
        })
    }

    /// Returns the size so far in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends a tile. Returns false, and leaves the tile out, when decoding would not restore it
    /// exactly.
    pub(crate) fn add(
        &mut self,
        id: TileId,
        slots: usize,
        tile: &mut TileWriter,
    ) -> Result<bool, StoreError> {
        assert!(self.entries.last().is_none_or(|last| last.id < id), "tiles ascend");
        let from = self.buffer.len();
        let head = tile.finish(id.key(), slots, &mut self.buffer);
        let end = self.buffer.len();
        self.buffer.resize(end + PADDING, 0);
        let (bytes, width_ms) = (&self.buffer[from..], self.width_ms);
        let is_exact = if id.row & HISTOGRAMS == 0 {
            tile.reads_back(bytes, head, id.key(), slots, width_ms, &mut self.buffers)
        } else {
            // The blocks were read back when they were added.
            tile.head_reads_back(bytes, head, id.key(), (slots, width_ms), &mut self.buffers)
        };
        self.buffer.truncate(if is_exact { end } else { from });
        if !is_exact {
            return Ok(false);
        }
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

    /// Finishes the segment durably, and opens it.
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
        let has_histograms = self.entries.iter().any(|entry| entry.id.row & HISTOGRAMS != 0);
        let version = if has_histograms { HISTOGRAMS_VERSION } else { VERSION };
        let fields = [version, self.start.0 as u64, self.width_ms as u64, index_at, entries, check];
        self.buffer.extend(fields.into_iter().flat_map(u64::to_le_bytes));
        let check = xxh3_64(&self.buffer[footer..]);
        self.buffer.extend(check.to_le_bytes());
        self.flush()?;
        if self.room.is_some() {
            self.file.set_len(self.written).map_err(fault("cut", &self.name))?;
        }
        self.file.sync_data().map_err(fault("sync", &self.name))?;
        if let Some(room) = &mut self.room {
            room.note_used();
        } else {
            let unfinished = self.unfinished();
            self.medium.rename(&unfinished, &self.name).map_err(fault("rename", &unfinished))?;
        }
        self.is_finished = true;
        Segment::open(&self.medium, self.name.clone(), self.start, self.width_ms)
    }

    fn unfinished(&self) -> String {
        format!("{}{UNFINISHED}", self.name)
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if self.is_finished || self.room.is_some() {
            return;
        }
        let file = self.unfinished();
        if let Err(cause) = self.medium.remove(&file) {
            tracing::warn!(file, %cause, "cannot remove an unfinished segment");
        }
    }
}
