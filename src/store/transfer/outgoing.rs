//! The sender's side: a consistent copy whose segments are linked, and its archive.
//!
//! The archive is read from the copy, so the store is in full use while a slow node receives it,
//! and retention can remove files. Must never know: where the bytes go.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
    sync::{Arc, OnceLock},
};

use tempfile::TempDir;
use xxhash_rust::xxh3::Xxh3;

use super::{
    Announcement, BEGIN, END, Ending, FILES_MAX, TransferError, check_space, transfer_folder, unfit,
};
use crate::{
    model::Moment,
    store::{
        error::StoreError,
        file::{
            durable::create_folders,
            folder::Folder,
            medium::Medium,
            names::{HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE},
            version::FORMAT_VERSION,
        },
        handle::Store,
        journal::Journal,
        snapshot::{Segments, fault},
    },
};

/// The start of the name of an outgoing copy's folder.
pub(super) const OUTGOING: &str = "outgoing-";

/// Returns the start of the names of this process's outgoing copies.
pub(super) fn outgoing_name() -> String {
    // The ID of a process is the same after each restart of a container.
    static PROCESS: OnceLock<u64> = OnceLock::new();
    format!("{OUTGOING}{:016x}-", PROCESS.get_or_init(|| fastrand::u64(..)))
}

/// A consistent copy of a replica for another node. Its files are removed when it is dropped.
#[derive(Debug)]
pub struct OutgoingCopy {
    folder: TempDir,
    announced: Announcement,
    /// The files by name, with their lengths.
    files: Vec<(String, u64)>,
}

impl Store {
    /// Copies a consistent state of a replica for another node, below its data directory. Segments
    /// are linked, so only open documents need space. The work ends when `stops` returns true.
    ///
    /// # Errors
    /// When the store is no replica or is damaged, the disk has no room, or a file cannot be
    /// copied.
    pub fn prepare_copy(
        &self,
        data_dir: &Path,
        now: impl Into<Moment>,
        stops: &dyn Fn() -> bool,
    ) -> Result<OutgoingCopy, TransferError> {
        if self.inner.journal.changes_through()?.is_none() {
            return Err(unfit("an embedded store is no member of a cluster: it has no copy"));
        }
        self.refuse_damaged()?;
        check_space(data_dir, self.changing_bytes())?;
        let above = transfer_folder(data_dir);
        create_folders(&above).map_err(fault("create", &above))?;
        let folder = tempfile::Builder::new().prefix(&outgoing_name()).tempdir_in(&above);
        let folder = folder.map_err(fault("create a folder in", &above))?;
        let copy = folder.path().join("store");
        self.copy_files(&copy, now.into(), (Segments::Linked, stops), &mut |_| {})?;
        // Damage that was found meanwhile is part of the copy.
        self.refuse_damaged()?;
        let through = {
            let medium: Arc<dyn Medium> = Arc::new(Folder::at(&copy));
            Journal::open(&medium)?.checkpointed_through()?
        };
        let mut files = Vec::new();
        list(&copy, "", &mut files)?;
        if files.len() as u64 > FILES_MAX {
            return Err(unfit(format!("a copy has at most {FILES_MAX} files")));
        }
        let bytes = files.iter().map(|(_, bytes)| bytes).sum();
        let format = FORMAT_VERSION;
        let announced = Announcement { format, through, files: files.len() as u64, bytes };
        Ok(OutgoingCopy { folder, announced, files })
    }

    fn refuse_damaged(&self) -> Result<(), TransferError> {
        match self.damaged_partitions().len() as u64 + self.damaged_in_all() {
            0 => Ok(()),
            _ => Err(unfit("this replica is damaged: copy another one")),
        }
    }

    /// Returns the bytes of the files that a copy cannot link.
    fn changing_bytes(&self) -> u64 {
        let inner = &self.inner;
        let mut bytes = 0;
        for name in [HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE] {
            bytes += inner.medium.allocated_bytes(name).unwrap_or(0);
        }
        for partition in inner.documents.files() {
            // Retention may have removed it.
            bytes += inner.medium.allocated_bytes(partition.file_path()).unwrap_or(0);
        }
        bytes
    }
}

impl OutgoingCopy {
    /// Returns the record after which the copy follows the log.
    pub fn through(&self) -> u64 {
        self.announced.through
    }

    /// Returns the bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.announced.bytes
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// When the receiver is gone, or a file cannot be read.
    pub fn write_to(&self, to: impl Write) -> io::Result<()> {
        let mut archive = tar::Builder::new(to);
        let mut checksum = Xxh3::new();
        append_note(&mut archive, BEGIN, &self.announced)?;
        for (name, bytes) in &self.files {
            hash_name(&mut checksum, name, *bytes);
            let file = File::open(self.folder.path().join("store").join(name))?.take(*bytes);
            let mut content = Hashed { file, checksum: &mut checksum, left: *bytes };
            archive.append(&header(name, *bytes)?, &mut content)?;
            if content.left > 0 {
                return Err(io::Error::other(format!("{name} is shorter than before")));
            }
        }
        let checksum = format!("{:032x}", checksum.digest128());
        append_note(&mut archive, END, &Ending { checksum })?;
        archive.into_inner()?.flush()
    }
}

/// Adds the name and the length of a file to the checksum of a copy; its content follows.
pub(super) fn hash_name(checksum: &mut Xxh3, name: &str, bytes: u64) {
    checksum.update(name.as_bytes());
    checksum.update(&[0]);
    checksum.update(&bytes.to_le_bytes());
}

/// A file whose content is part of a checksum.
struct Hashed<'a> {
    file: io::Take<File>,
    checksum: &'a mut Xxh3,
    left: u64,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.checksum.update(&buffer[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}

fn append_note(
    archive: &mut tar::Builder<impl Write>,
    name: &str,
    note: &impl serde::Serialize,
) -> io::Result<()> {
    let text = serde_json::to_vec(note)?;
    archive.append(&header(name, text.len() as u64)?, &text[..])
}

fn header(name: &str, bytes: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_cksum();
    Ok(header)
}

/// Lists the files below a folder in order, with their lengths.
fn list(root: &Path, below: &str, files: &mut Vec<(String, u64)>) -> Result<(), StoreError> {
    let folder = root.join(below);
    let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(fault("list", &folder))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        let found = entry.metadata().map_err(fault("read the length of", &entry.path()))?;
        if found.is_dir() {
            list(root, &name, files)?;
        } else {
            files.push((name, found.len()));
        }
    }
    Ok(())
}
