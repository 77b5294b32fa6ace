//! The log: the records of the journal, in flat files that are appended to and removed as a whole.
//!
//! An append writes a frame over durable zeros, and syncs the file. A failed append may be on the
//! disk nevertheless, so zeros replace it before anything else is written. The journal's tables
//! contain the number of the last file before the file has a record. Must never know: the meaning
//! of records.

pub(super) mod copy;
mod frame;
pub(crate) mod read;
pub(crate) mod spare;

use std::{io, sync::Arc};

use redb::StorageBackend;

use self::frame::{FileHeader, HEADER_BYTES};
use crate::store::{
    error::StoreError,
    file::{database::UNFINISHED, medium::Medium},
};

/// The folder of the files.
pub(crate) const FOLDER: &str = "journal";
const FILE_END: &str = ".log";
/// The default size from which the log continues in a new file.
pub(super) const FILE_BYTES: u64 = 4 << 20;
/// The number of zeros to write at a time.
const ROOM_BYTES: u64 = 256 << 10;
/// The log: the files of records.
#[derive(Debug)]
pub(super) struct Log {
    medium: Arc<dyn Medium>,
    /// The number of the first record of each file, ascending; the last file is appended to.
    files: Vec<u64>,
    /// The last file, if it is open.
    open: Option<OpenFile>,
    salt: u64,
    /// The offset of the next frame.
    at: u64,
    /// The end of the durable zeros after the last frame.
    room_end: u64,
    /// True when a failed append may have replaced some of these zeros.
    is_unsure: bool,
    /// True when the next record must begin another file.
    is_turning: bool,
    /// The next file of the log, once it exists, with the end of its zeros.
    made: Option<(FileHeader, OpenFile, u64)>,
    frame: Vec<u8>,
    file_bytes: u64,
    /// True when files in the reserve become files of the log.
    has_spares: bool,
}

type OpenFile = Box<dyn StorageBackend>;

/// Returns the path of a file below the data directory.
fn name_of(first: u64) -> String {
    format!("{FOLDER}/{first}{FILE_END}")
}

/// Returns the paths of the log's files below the data directory.
pub(crate) fn names(medium: &Arc<dyn Medium>) -> Result<Vec<String>, StoreError> {
    Ok(numbers(medium)?.into_iter().map(name_of).collect())
}

fn numbers(medium: &Arc<dyn Medium>) -> Result<Vec<u64>, StoreError> {
    let names = medium.list(FOLDER).map_err(fault("list", FOLDER))?;
    // A file whose number is spelled in another way does not belong to the log.
    let is_name_of = |name: &str, number: u64| *name == format!("{number}{FILE_END}");
    let number = |name: &String| {
        let number = name.strip_suffix(FILE_END)?.parse().ok()?;
        is_name_of(name, number).then_some(number)
    };
    let mut numbers: Vec<_> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl Log {
    /// Opens the files up to the last one that the journal knows, and finds their end.
    pub(super) fn open(medium: Arc<dyn Medium>, last: Option<u64>) -> Result<Self, StoreError> {
        let (files, unknown): (Vec<_>, _) =
            numbers(&medium)?.into_iter().partition(|first| Some(*first) <= last);
        for name in medium.list(FOLDER).map_err(fault("list", FOLDER))? {
            if name.ends_with(UNFINISHED) {
                let name = format!("{FOLDER}/{name}");
                medium.remove(&name).map_err(fault("remove", &name))?;
            }
        }
        if let Some(last) = last
            && files.last() != Some(&last)
        {
            let problem = "it is missing, and it may contain acknowledged records: restore the \
                           file, or create a new data directory from a snapshot with \
                           `granary restore`";
            return Err(StoreError::Mismatch { file: name_of(last), problem: problem.to_owned() });
        }
        let (open, made, frame) = Default::default();
        let (is_unsure, is_turning, has_spares) = (false, false, false);
        let [salt, at, room_end] = [0; 3];
        let file_bytes = FILE_BYTES;
        let mut this = Self {
            medium,
            files,
            open,
            salt,
            at,
            room_end,
            is_unsure,
            is_turning,
            made,
            frame,
            file_bytes,
            has_spares,
        };
        this.remove_unused(&unknown)?;
        if let Some(last) = last {
            this.find_end(last)?;
        }
        Ok(this)
    }

    /// Appends a record durably. Before the first record of a new file is appended, `note` stores
    /// its number durably.
    pub(super) fn append(
        &mut self,
        number: u64,
        record: &[u8],
        note: impl FnOnce(u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if self.is_turning || self.files.is_empty() || self.at >= self.file_bytes {
            self.turn(number, note)?;
        }
        self.settle()?;
        frame::encode(self.salt, number, record, &mut self.frame);
        let end = self.at + self.frame.len() as u64;
        let durable = end + HEADER_BYTES as u64;
        if durable > self.room_end {
            self.fill(self.room_end, durable.next_multiple_of(ROOM_BYTES))?;
        }
        self.is_unsure = true;
        let (at, frame) = (self.at, std::mem::take(&mut self.frame));
        let written = self.with_file("append to", |file| {
            file.write(at, &frame)?;
            file.sync_data()
        });
        self.frame = frame;
        written?;
        (self.at, self.is_unsure) = (end, false);
        Ok(())
    }

    /// Removes a failed append from the disk.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        if self.is_unsure {
            // The system's cache of the file may differ from the disk.
            self.open = None;
            self.fill(self.at, self.room_end)?;
            self.is_unsure = false;
        }
        Ok(())
    }

    /// Writes zeros durably.
    fn fill(&mut self, from: u64, to: u64) -> Result<(), StoreError> {
        let filled = self.with_file("preallocate space in", |file| {
            write_zeros(&**file, from, to)?;
            file.sync_data()
        });
        match filled {
            Ok(()) => self.room_end = to,
            // The reopened file has the content of the disk.
            Err(_) => self.open = None,
        }
        filled
    }

    /// Sets the size from which the log continues in a new file.
    pub(super) fn set_file_bytes(&mut self, bytes: u64) {
        self.file_bytes = bytes.min(FILE_BYTES);
    }

    fn with_file(
        &mut self,
        operation: &'static str,
        run: impl FnOnce(&OpenFile) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let name = name_of(self.files.last().copied().unwrap_or_default());
        let file = match self.open.take() {
            Some(file) => file,
            None => self.medium.open(&name).map_err(fault("open", &name))?,
        };
        let outcome = run(&file).map_err(fault(operation, &name));
        self.open = Some(file);
        outcome
    }

    /// Begins a new file.
    fn turn(
        &mut self,
        first: u64,
        note: impl FnOnce(u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        // From here on, the journal may contain the number of the new file, and records of the
        // previous file with this or a higher number do not count.
        self.is_turning = true;
        if self.made.is_none() {
            self.made = Some(self.make(first).map_err(fault("create", &name_of(first)))?);
        }
        note(first)?;
        let Some((header, file, room_end)) = self.made.take() else { return Ok(()) };
        self.files.push(first);
        (self.open, self.salt) = (Some(file), header.salt);
        (self.at, self.room_end) = (HEADER_BYTES as u64, room_end);
        (self.is_unsure, self.is_turning) = (false, false);
        Ok(())
    }

    fn make(&self, first: u64) -> io::Result<(FileHeader, OpenFile, u64)> {
        let (name, new) = (name_of(first), format!("{}{UNFINISHED}", name_of(first)));
        self.medium.remove(&new)?;
        let is_spare = self.has_spares && spare::take(&self.medium, &new)?;
        let file = if is_spare { self.medium.open(&new)? } else { self.medium.create(&new)? };
        let header = FileHeader { first, salt: fastrand::u64(..) };
        file.write(0, &header.to_bytes())?;
        let room_end = if is_spare { file.len()? } else { ROOM_BYTES };
        if !is_spare {
            write_zeros(&*file, HEADER_BYTES as u64, ROOM_BYTES)?;
        }
        file.sync_data()?;
        self.medium.rename(&new, &name)?;
        Ok((header, file, room_end))
    }

    /// Returns the files whose records are all up to `through`, except the last file.
    pub(super) fn covered(&self, through: u64) -> Vec<u64> {
        let ends = self.files.windows(2).filter(|pair| pair[1] <= through.saturating_add(1));
        ends.map(|pair| pair[0]).collect()
    }

    /// Uses spare files from now on; returns their size.
    pub(super) fn use_spares(&mut self) -> u64 {
        self.has_spares = true;
        self.file_bytes + ROOM_BYTES
    }

    /// Returns true when covered files become spare files.
    pub(super) fn has_spares(&self) -> bool {
        self.has_spares
    }

    /// Removes a file from the list.
    pub(super) fn forget(&mut self, first: u64) {
        self.files.retain(|name| *name != first);
    }

    /// Returns the size of the files in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |first: &u64| self.medium.allocated_bytes(&name_of(*first)).unwrap_or(0);
        self.files.iter().map(bytes).sum()
    }
}

/// Prepares spare files of `bytes`.
pub(super) fn prepare_spares(medium: &Arc<dyn Medium>, bytes: u64) -> Result<(), StoreError> {
    spare::prepare(medium, bytes).map_err(fault("prepare a spare file of", FOLDER))
}

/// Makes a file that is not needed a spare file; returns false when there are `count_max` of them.
pub(super) fn recycle(
    medium: &Arc<dyn Medium>,
    first: u64,
    count_max: usize,
) -> Result<bool, StoreError> {
    spare::recycle(medium, first, count_max).map_err(fault("recycle", &name_of(first)))
}

/// Deletes a file that is not needed.
pub(super) fn remove(medium: &Arc<dyn Medium>, first: u64) -> Result<(), StoreError> {
    medium.remove(&name_of(first)).map_err(fault("remove", &name_of(first)))
}

fn write_zeros(file: &dyn StorageBackend, from: u64, to: u64) -> io::Result<()> {
    // Each buffer is written by one call.
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut at = from;
    while at < to {
        let count = (to - at).min(ZEROS.len() as u64);
        file.write(at, &ZEROS[..count as usize])?;
        at += count;
    }
    Ok(())
}

fn corrupt(first: u64) -> impl FnOnce(String) -> StoreError {
    move |problem| StoreError::Corrupt { file: name_of(first), problem }
}

fn fault<'a>(operation: &'static str, file: &'a str) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |cause| StoreError::Io { operation, file: file.to_owned(), cause }
}
