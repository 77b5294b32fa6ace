//! The reserved file for a partition's next segment, whose blocks are allocated in advance.
//!
//! The file has the name of the segment from the beginning, because on a full disk a folder may
//! have no block for another name. It counts as a segment only when the partition names it. The
//! segment is written to the start of the file, and the file is truncated when the segment is
//! complete. On file systems that never overwrite data, such as btrfs, a write may need space
//! nevertheless. Must never know: how much space is needed, and when.

use std::{io, sync::Arc};

use parking_lot::Mutex;

use crate::store::file::medium::Medium;

/// The number of the reserved file, if there is one. Locked while the file is created.
pub(crate) type Room = Arc<Mutex<Option<u32>>>;

/// A reserved file that a segment uses. If the segment is not completed, the file is reserved
/// again.
#[derive(Debug)]
pub(crate) struct TakenRoom {
    room: Room,
    number: u32,
    is_used: bool,
}

impl TakenRoom {
    /// Takes the reserved file if there is one.
    pub(crate) fn take(room: &Room) -> Option<Self> {
        let number = room.lock().take()?;
        Some(Self { room: room.clone(), number, is_used: false })
    }

    /// Returns the number of the segment.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Records that the file is a complete segment now, or that it does not exist.
    pub(crate) fn note_used(&mut self) {
        self.is_used = true;
    }
}

impl Drop for TakenRoom {
    fn drop(&mut self) {
        if !self.is_used {
            // The space stays reserved for the next attempt; otherwise another program could use
            // it.
            self.room.lock().get_or_insert(self.number);
        }
    }
}

/// Allocates bytes for a file, which is created if it is missing. Returns the length of the file,
/// at most twice the bytes. After a failure, the file has its previous size.
pub(crate) fn fit(medium: &Arc<dyn Medium>, name: &str, bytes: u64) -> io::Result<u64> {
    let is_new = !medium.exists(name)?;
    let file = if is_new { medium.create(name)? } else { medium.open(name)? };
    let before = file.len()?;
    let is_enough = (bytes..=bytes.saturating_mul(2)).contains(&before);
    let length = if is_enough { before } else { bytes };
    // An earlier allocation of an existing file may have been interrupted.
    let allocated = file.set_len(length).and_then(|()| medium.allocate(name, 0, u64::MAX));
    let settle = || if is_new { file.sync_data().and(medium.settle(name)) } else { Ok(()) };
    if let Err(cause) = allocated.and_then(|()| settle()) {
        if is_new {
            medium.remove(name)?;
        } else {
            file.set_len(before.min(length))?;
        }
        return Err(cause);
    }
    Ok(length)
}

/// Returns true when a file contains only zeros, like an unused reserved file.
pub(crate) fn is_blank(medium: &Arc<dyn Medium>, name: &str) -> io::Result<bool> {
    const BYTES: u64 = 1 << 20;
    let file = match medium.open(name) {
        Err(cause) if cause.kind() == io::ErrorKind::InvalidData => return Ok(true),
        opened => opened?,
    };
    let (length, mut at) = (file.len()?, 0);
    let mut buffer = vec![0; length.min(BYTES) as usize];
    while at < length {
        buffer.truncate((length - at).min(BYTES) as usize);
        file.read(at, &mut buffer)?;
        if buffer.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += buffer.len() as u64;
    }
    Ok(true)
}
