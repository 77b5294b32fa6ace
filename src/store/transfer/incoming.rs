//! The receiver's side: an archive becomes files beside those of this node, and replaces them when
//! all of them are checked and durable.
//!
//! Must never know: where the bytes come from.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    ops::ControlFlow,
    path::Path,
    sync::Arc,
};

use xxhash_rust::xxh3::Xxh3;

use super::{
    Announcement, BEGIN, CHUNK_BYTES, CopyLimits, END, Ending, FILES_MAX, NOTE_BYTES_MAX,
    ReceivedCopy, STORE_ENTRIES, TransferError, check_space,
    outgoing::hash_name,
    replacing::{PARTIAL, RECEIVED, finish_transfer},
    transfer_folder, unfit,
};
use crate::store::{
    file::{
        durable::{create_file, create_folders},
        folder::Folder,
        medium::Medium,
        version::FORMAT_VERSION,
    },
    journal::Journal,
    snapshot::{fault, sync, sync_folders},
};

/// The function that learns the received bytes, and ends the transfer.
type Progress<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// Receives a copy of a replica, and replaces the store in the data directory by it. The store must
/// be closed, and the directory locked. `progress` learns the received bytes of files.
///
/// # Errors
/// The store is unchanged when the copy is incomplete, damaged, too old or too large, when the disk
/// has no room, and when `progress` ends the transfer.
pub fn receive_copy(
    data_dir: &Path,
    from: &mut dyn Read,
    limits: CopyLimits,
    progress: &mut Progress<'_>,
) -> Result<ReceivedCopy, TransferError> {
    finish_transfer(data_dir)?;
    let above = transfer_folder(data_dir);
    let partial = above.join(PARTIAL);
    create_folders(&partial).map_err(fault("create", &partial))?;
    let received = receive_files(&partial, from, limits, progress).and_then(|received| {
        check_journal(&partial, received.through)?;
        sync_folders(&partial)?;
        let complete = above.join(RECEIVED);
        fs::rename(&partial, &complete).map_err(fault("rename", &partial))?;
        sync(&above)?;
        Ok(received)
    });
    match received {
        Ok(_) => finish_transfer(data_dir)?,
        Err(_) => {
            if let Err(cause) = fs::remove_dir_all(&partial) {
                let folder = partial.display().to_string();
                tracing::warn!(folder, %cause, "cannot remove an incomplete copy");
            }
        }
    }
    received
}

fn receive_files(
    folder: &Path,
    from: &mut dyn Read,
    limits: CopyLimits,
    progress: &mut Progress<'_>,
) -> Result<ReceivedCopy, TransferError> {
    let mut archive = tar::Archive::new(from);
    // Raw entries are those of the archive, without links or names of any length.
    let mut entries = archive.entries().map_err(TransferError::Broken)?.raw(true);
    let mut next = || match entries.next() {
        Some(entry) => entry.map_err(TransferError::Broken),
        None => Err(TransferError::Broken(io::ErrorKind::UnexpectedEof.into())),
    };
    let announced: Announcement = read_note(&mut next()?, BEGIN)?;
    check_announcement(&announced, limits)?;
    check_space(folder, announced.bytes)?;
    let Announcement { through, files, bytes, .. } = announced;
    let (mut checksum, mut left) = (Xxh3::new(), bytes);
    for _ in 0..files {
        let mut entry = next()?;
        let (name, length) = described(&entry)?;
        check_name(&name)?;
        left =
            left.checked_sub(length).ok_or_else(|| unfit("the copy is larger than announced"))?;
        hash_name(&mut checksum, &name, length);
        let path = folder.join(&name);
        let parent = path.parent().unwrap_or(folder);
        create_folders(parent).map_err(fault("create", parent))?;
        let mut file = create_file(&path).map_err(fault("create", &path))?;
        let mut taken = |chunk: &[u8]| {
            checksum.update(chunk);
            progress(chunk.len() as u64)
        };
        let copied = copy_content(&mut entry, (&mut file, &path), &mut taken)?;
        if copied != length {
            return Err(TransferError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        file.sync_all().map_err(fault("sync", &path))?;
    }
    let ending: Ending = read_note(&mut next()?, END)?;
    if left > 0 || ending.checksum != format!("{:032x}", checksum.digest128()) {
        return Err(unfit("the received files do not match the checksum of the copy"));
    }
    Ok(ReceivedCopy { through, files, bytes })
}

fn check_announcement(announced: &Announcement, limits: CopyLimits) -> Result<(), TransferError> {
    let Announcement { format, through, files, bytes } = *announced;
    if format != FORMAT_VERSION {
        return Err(unfit(format!(
            "the copy has format {format}, this release has format {FORMAT_VERSION}: run the same \
             release on both nodes"
        )));
    }
    if through < limits.least_through {
        let least = limits.least_through;
        return Err(unfit(format!(
            "the copy ends with record {through}, but the log was cut up to record {least}"
        )));
    }
    if files > FILES_MAX || bytes > limits.bytes_max {
        return Err(unfit(format!(
            "the copy has {files} files with {bytes} bytes; at most {FILES_MAX} files with {} \
             bytes are accepted",
            limits.bytes_max
        )));
    }
    Ok(())
}

/// Copies the content of an entry. Returns its length in bytes.
fn copy_content(
    from: &mut impl Read,
    (file, path): (&mut File, &Path),
    taken: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<u64, TransferError> {
    let (mut buffer, mut length) = (vec![0; CHUNK_BYTES], 0);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(length),
            Ok(count) => count,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(TransferError::Broken(cause)),
        };
        file.write_all(&buffer[..count]).map_err(fault("write", path))?;
        length += count as u64;
        if taken(&buffer[..count]).is_break() {
            return Err(TransferError::Ended);
        }
    }
}

/// Returns the name and the length of an entry, which must be a file.
fn described<R: Read>(entry: &tar::Entry<'_, R>) -> Result<(String, u64), TransferError> {
    let header = entry.header();
    if header.entry_type() != tar::EntryType::Regular {
        return Err(unfit("the copy has an entry that is no file"));
    }
    let length = header.size().map_err(TransferError::Broken)?;
    let name = String::from_utf8(header.path_bytes().into_owned());
    Ok((name.map_err(|_| unfit("the copy has a file whose name is no text"))?, length))
}

/// Accepts the names of a store's files alone.
fn check_name(name: &str) -> Result<(), TransferError> {
    let mut parts = name.split('/');
    let is_known = parts.next().is_some_and(|first| STORE_ENTRIES.contains(&first));
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if is_known && parts.all(is_plain) && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(unfit(format!("the copy has a file {name:?}, which is not one of a store")))
}

fn read_note<T: serde::de::DeserializeOwned>(
    entry: &mut tar::Entry<'_, impl Read>,
    expected: &str,
) -> Result<T, TransferError> {
    let (name, length) = described(entry)?;
    if name != expected || length > NOTE_BYTES_MAX {
        return Err(unfit(format!("the copy has {name:?} in place of {expected}")));
    }
    let mut text = Vec::new();
    entry.take(NOTE_BYTES_MAX).read_to_end(&mut text).map_err(TransferError::Broken)?;
    if text.len() as u64 != length {
        return Err(TransferError::Broken(io::ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_slice(&text).map_err(|_| unfit(format!("{expected} of the copy is damaged")))
}

/// Checks that the received journal is that of a replica up to a record.
fn check_journal(folder: &Path, through: u64) -> Result<(), TransferError> {
    let medium: Arc<dyn Medium> = Arc::new(Folder::at(folder));
    let journal = Journal::open(&medium)?;
    if journal.changes_through()?.is_none() || journal.checkpointed_through()? != through {
        return Err(unfit("the journal of the copy does not match its announcement"));
    }
    Ok(())
}
