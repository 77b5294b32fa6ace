//! The audit: records of changes and refusals, as JSON lines in files that only grow.
//!
//! Records are appended to the newest file until it is full. When there are too many files, the
//! oldest file is removed. A line that a crash cut at the end is removed before the next record is
//! written; readers skip damaged lines. Must never know: what a record means, who reads it.

mod line;
#[cfg(test)]
mod tests;

use std::{io, ops::ControlFlow, sync::Arc};

use parking_lot::Mutex;
use redb::StorageBackend;

use super::{error::StoreError, file::medium::Medium};
use crate::model::{AuditRecord, with_noun};

/// The folder of the files.
pub(crate) const AUDIT_FOLDER: &str = "audit";
/// The extension of a file; its name is the number of its first record.
const FILE_END: &str = ".jsonl";
/// The size above which no further record is appended to a file.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The maximum number of files: 64 MiB in all.
const FILES_MAX: usize = 16;

/// The audit of a store.
#[derive(Debug)]
pub(crate) struct AuditLog {
    medium: Arc<dyn Medium>,
    state: Mutex<State>,
    /// Held by a reader, so that the content of only one file at a time is in memory.
    reading: Mutex<()>,
}

#[derive(Debug)]
struct State {
    /// The names of the files, oldest first.
    files: Vec<String>,
    /// The newest file while records are written to it.
    newest: Option<Box<dyn StorageBackend>>,
    /// The bytes of all complete lines of the newest file.
    bytes: u64,
    /// The number of the next record.
    next_seq: u64,
}

impl AuditLog {
    /// Opens the audit, and finds the number of the next record. Nothing is written.
    pub(crate) fn open(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let mut files = medium.list(AUDIT_FOLDER).map_err(fault("list", AUDIT_FOLDER))?;
        files.retain(|name| first_seq(name).is_some());
        let (mut bytes, mut next_seq) = (0, files.last().and_then(|name| first_seq(name)));
        if let Some(newest) = files.last() {
            let content = read_file(&*medium, newest)?;
            // Only the last whole line matters here; readers skip earlier damage.
            let lines = content.split_inclusive(|byte| *byte == b'\n');
            let mut end = 0;
            for found in lines {
                end += found.len() as u64;
                if let Some(record) = found.strip_suffix(b"\n").and_then(line::read) {
                    (bytes, next_seq) = (end, Some(record.seq + 1));
                }
            }
        }
        let next_seq = next_seq.unwrap_or(1);
        let state = State { files, newest: None, bytes, next_seq };
        Ok(Self { medium, state: Mutex::new(state), reading: Mutex::default() })
    }

    /// Appends records, durably, and numbers them. After a failure, none of them counts.
    pub(crate) fn append(&self, mut records: Vec<AuditRecord>) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let mut lines = Vec::new();
        for (record, seq) in records.iter_mut().zip(state.next_seq..) {
            record.seq = seq;
            line::append(record, &mut lines);
        }
        let written = self.write(&mut state, &lines);
        match written {
            Ok(()) => {
                state.bytes += lines.len() as u64;
                state.next_seq += records.len() as u64;
            }
            // The next attempt reopens the file and removes the incomplete lines.
            Err(_) => state.newest = None,
        }
        written
    }

    fn write(&self, state: &mut State, lines: &[u8]) -> Result<(), StoreError> {
        let is_full = state.bytes > 0 && state.bytes + lines.len() as u64 > FILE_BYTES_MAX;
        if is_full || state.files.is_empty() {
            self.begin_file(state)?;
        }
        let Some(name) = state.files.last() else { return Ok(()) };
        let path = path_of(name);
        if state.newest.is_none() {
            let file = match self.medium.open(&path) {
                // After a failed write, the file may lack even its first record.
                Err(cause) if cause.kind() == io::ErrorKind::InvalidData && state.bytes == 0 => {
                    self.medium.remove(&path).map_err(fault("remove", &path))?;
                    self.medium.create(&path).map_err(fault("create", &path))?
                }
                opened => opened.map_err(fault("open", &path))?,
            };
            file.set_len(state.bytes).map_err(fault("cut", &path))?;
            self.medium.settle(&path).map_err(fault("sync", &path))?;
            state.newest = Some(file);
        }
        let Some(file) = &state.newest else { return Ok(()) };
        let end = state.bytes + lines.len() as u64;
        let written = file
            .set_len(end)
            .and_then(|()| file.write(state.bytes, lines))
            .and_then(|()| file.sync_data());
        written.map_err(fault("write", &path))
    }

    /// Begins the next file, and removes the oldest one beyond the limit.
    fn begin_file(&self, state: &mut State) -> Result<(), StoreError> {
        let name = format!("{:020}{FILE_END}", state.next_seq);
        let path = path_of(&name);
        // An existing file with this name contains no record: its first record would have this
        // number.
        self.medium.remove(&path).map_err(fault("remove", &path))?;
        let file = self.medium.create(&path).map_err(fault("create", &path))?;
        state.files.retain(|other| *other != name);
        state.files.push(name);
        (state.newest, state.bytes) = (Some(file), 0);
        self.medium.settle(&path).map_err(fault("sync", &path))?;
        while state.files.len() > FILES_MAX {
            let oldest = path_of(&state.files[0]);
            self.medium.remove(&oldest).map_err(fault("remove", &oldest))?;
            state.files.remove(0);
        }
        Ok(())
    }

    /// Visits the records whose number is below `before`, from the newest to the oldest, until the
    /// visitor ends it. Returns the number of damaged lines.
    pub(crate) fn visit_backwards(
        &self,
        before: u64,
        visit: &mut dyn FnMut(AuditRecord) -> ControlFlow<()>,
    ) -> Result<u64, StoreError> {
        let _one_reader = self.reading.lock();
        let (mut files, newest) = {
            let state = self.state.lock();
            (state.files.clone(), self.read_newest(&state)?)
        };
        files.pop();
        let (mut damaged, mut newest) = (0, Some(newest));
        loop {
            let content = match (newest.take(), files.pop()) {
                (Some(content), name) => {
                    files.extend(name);
                    content
                }
                (None, None) => return Ok(damaged),
                (None, Some(name)) if first_seq(&name).is_none_or(|first| first >= before) => {
                    continue;
                }
                (None, Some(name)) => match read_file(&*self.medium, &name) {
                    // The file was removed in the meantime, because it was the oldest.
                    Err(StoreError::Io { cause, .. })
                        if cause.kind() == io::ErrorKind::NotFound =>
                    {
                        return Ok(damaged);
                    }
                    read => read?,
                },
            };
            for found in content.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let Some(record) = line::read(found) else {
                    damaged += 1;
                    continue;
                };
                if record.seq < before && visit(record).is_break() {
                    return Ok(damaged);
                }
            }
        }
    }

    /// Returns the complete lines of the newest file, through the handle that writes to it: a
    /// second handle cannot open the file at the same time.
    fn read_newest(&self, state: &State) -> Result<Vec<u8>, StoreError> {
        let Some(name) = state.files.last() else { return Ok(Vec::new()) };
        let mut content = match &state.newest {
            Some(file) => read_content(&**file, &path_of(name))?,
            None => read_file(&*self.medium, name)?,
        };
        content.truncate(usize::try_from(state.bytes).unwrap_or(usize::MAX));
        Ok(content)
    }

    /// Checks every line; `fault` receives a message with the number of damaged lines.
    pub(crate) fn check(&self, fault: &mut dyn FnMut(String)) -> Result<(), StoreError> {
        let damaged = self.visit_backwards(u64::MAX, &mut |_| ControlFlow::Continue(()))?;
        if damaged > 0 {
            fault(format!("{} damaged", with_noun(damaged, "line")));
        }
        Ok(())
    }

    /// Returns the names of all files below the data directory.
    pub(crate) fn file_names(&self) -> Vec<String> {
        self.state.lock().files.iter().map(|name| path_of(name)).collect()
    }

    /// Runs a function for each file while no file can be written or removed.
    pub(crate) fn copy_each(
        &self,
        mut copy: impl FnMut(&str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let state = self.state.lock();
        state.files.iter().try_for_each(|name| copy(&path_of(name)))
    }

    /// Returns the bytes of all files on the medium.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let bytes = |name: String| self.medium.allocated_bytes(&name).unwrap_or(0);
        self.file_names().into_iter().map(bytes).sum()
    }
}

fn path_of(name: &str) -> String {
    format!("{AUDIT_FOLDER}/{name}")
}

/// Returns the number of the first record of a file; `None` for other files.
fn first_seq(name: &str) -> Option<u64> {
    name.strip_suffix(FILE_END)?.parse().ok()
}

/// Reads a file. An empty file, whose creation was interrupted, reads as no bytes.
fn read_file(medium: &dyn Medium, name: &str) -> Result<Vec<u8>, StoreError> {
    let path = path_of(name);
    let file = match medium.open(&path) {
        Err(cause) if cause.kind() == io::ErrorKind::InvalidData => return Ok(Vec::new()),
        opened => opened.map_err(fault("open", &path))?,
    };
    read_content(&*file, &path)
}

fn read_content(file: &dyn StorageBackend, path: &str) -> Result<Vec<u8>, StoreError> {
    let length = file.len().map_err(fault("read", path))?;
    // A file exceeds its limit by at most one record of a few KiB.
    let length = usize::try_from(length.min(2 * FILE_BYTES_MAX)).unwrap_or(0);
    let mut content = vec![0; length];
    file.read(0, &mut content).map_err(fault("read", path))?;
    Ok(content)
}

fn fault(operation: &'static str, file: &str) -> impl FnOnce(io::Error) -> StoreError {
    let file = file.to_owned();
    move |cause| StoreError::Io { operation, file, cause }
}
