//! A folder of the file system as the medium: durable names, no links, files for the daemon's user
//! alone.
//!
//! Must never know: the content of the files.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use redb::{StorageBackend, backends::FileBackend};
use rustix::fs::{Advice, FallocateFlags, OFlags, fadvise, fallocate};

use super::{
    durable::{copy_file, create_file, create_folders, settle_above},
    medium::Medium,
    names::{HEAD_FILE, JOURNAL_FILE},
    steady::SteadyFile,
};

/// A folder of the file system. Its path may contain symbolic links; the folder must not.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Folders whose names are durable. Locked while names change.
    settled: Mutex<BTreeSet<PathBuf>>,
}

impl Folder {
    /// Opens the folder, and creates it when it is missing.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn new(root: &Path) -> io::Result<Self> {
        create_folders(root)?;
        settle_above(root)?;
        Ok(Self::at(root))
    }

    /// Opens the folder without creating or syncing it.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), settled: Mutex::default() }
    }

    /// Returns the path of a file or folder. Links are refused, because they could point anywhere.
    pub(super) fn path(&self, name: &str) -> io::Result<PathBuf> {
        let mut path = self.root.clone();
        for part in name.split('/') {
            path.push(part);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => {
                    let problem = format!(
                        "{} is a symbolic link, which must not be in a data directory: replace the \
                         link with its target, or mount the target there",
                        path.display()
                    );
                    return Err(io::Error::other(problem));
                }
                Ok(_) => {}
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(path)
    }

    /// Returns the path of a new file, and creates its parents.
    fn new_path(&self, name: &str, settled: &mut BTreeSet<PathBuf>) -> io::Result<PathBuf> {
        let path = self.path(name)?;
        if let Some(parent) = path.parent() {
            create_folders(parent)?;
        }
        for folder in path.ancestors().skip(1) {
            settled.remove(folder);
        }
        Ok(path)
    }

    /// Makes the names in the parents of a path durable.
    fn sync_folders(&self, path: &Path, settled: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        let inside = |folder: &&Path| folder.starts_with(&self.root);
        for folder in path.ancestors().skip(1).take_while(inside) {
            if !settled.contains(folder) {
                File::open(folder)?.sync_all()?;
                settled.insert(folder.to_owned());
            }
        }
        Ok(())
    }

    /// Returns the names in a folder, sorted, of the entries whose type `fits` accepts.
    fn names(&self, folder: &str, fits: fn(&fs::FileType) -> bool) -> io::Result<Vec<String>> {
        let path = self.path(folder)?;
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(cause),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Links are listed, so that opening one reports the problem.
            let kind = entry.file_type()?;
            match entry.file_name().into_string() {
                Ok(name) if fits(&kind) || kind.is_symlink() => names.push(name),
                Ok(_) if kind.is_file() || kind.is_dir() => {}
                Ok(_) | Err(_) => {
                    let name = entry.file_name();
                    tracing::warn!(folder, ?name, "skipped an entry that is not a file of a store");
                }
            }
        }
        names.sort();
        Ok(names)
    }
}

impl Medium for Folder {
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let path = self.path(name)?;
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path)?;
        if file.metadata()?.len() == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
        }
        // After a failed sync, the kernel keeps pages as if they had been written.
        if let Err(cause) = fadvise(&file, 0, None, Advice::DontNeed) {
            tracing::warn!(name, %cause, "cannot drop the cached pages of a file");
        }
        backend(name, file)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let mut settled = self.settled.lock();
        let path = self.new_path(name, &mut settled)?;
        backend(name, create_file(&path)?)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.names(folder, fs::FileType::is_file)
    }

    fn folders(&self, folder: &str) -> io::Result<Vec<String>> {
        self.names(folder, fs::FileType::is_dir)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut settled = self.settled.lock();
        let path = self.path(name)?;
        for folder in path.ancestors().skip(1) {
            settled.remove(folder);
        }
        match fs::remove_file(&path) {
            // An earlier removal may not be durable yet.
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            Ok(()) | Err(_) => {}
        }
        match self.sync_folders(&path, &mut settled) {
            // A missing folder contains no file.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut settled = self.settled.lock();
        let from = self.path(from)?;
        let to = self.new_path(to, &mut settled)?;
        for folder in from.ancestors().skip(1) {
            settled.remove(folder);
        }
        fs::rename(&from, &to)?;
        self.sync_folders(&to, &mut settled)?;
        self.sync_folders(&from, &mut settled)
    }

    fn settle(&self, name: &str) -> io::Result<()> {
        let mut settled = self.settled.lock();
        self.sync_folders(&self.path(name)?, &mut settled)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        match fs::symlink_metadata(self.path(name)?) {
            Ok(found) => Ok(found.is_file()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(cause),
        }
    }

    fn allocate(&self, name: &str, beyond: u64, bytes_max: u64) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let path = self.path(name)?;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
        let bytes = file.metadata()?.len().saturating_add(beyond).min(bytes_max);
        // This calls the system directly: the C library would write zeros if the file system does
        // not support the call.
        Ok(fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes.max(1))?)
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path(name)?)?.blocks() * 512)
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        copy_file(&self.path(name)?, target)
    }

    fn link(&self, name: &str, target: &Path) -> io::Result<u64> {
        let path = self.path(name)?;
        match fs::hard_link(&path, target) {
            Ok(()) => Ok(fs::metadata(target)?.len()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(cause),
            // The file system has no links, or the target is on another one.
            Err(_) => copy_file(&path, target),
        }
    }
}

fn backend(name: &str, file: File) -> io::Result<Box<dyn StorageBackend>> {
    // Checkpoints change these files, even while another program fills the disk.
    if [HEAD_FILE, JOURNAL_FILE].contains(&name) {
        return Ok(Box::new(SteadyFile::new(file)?));
    }
    Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::store::file::durable::{FILE_MODE, FOLDER_MODE};

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(&dir.path().join("a/b")).unwrap();
        (dir, folder)
    }

    fn put(folder: &Folder, name: &str, bytes: &[u8]) {
        let file = folder.create(name).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        file.write(0, bytes).unwrap();
        file.sync_data().unwrap();
    }

    #[test]
    fn only_the_user_has_access_to_created_files_and_folders() {
        let (_dir, folder) = folder();
        put(&folder, "one/two/file", b"x");
        folder.copy("one/two/file", &folder.root.join("copy")).unwrap();
        let mode =
            |name: &str| fs::metadata(folder.root.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!([".", "one", "one/two"].map(mode), [FOLDER_MODE; 3]);
        assert_eq!(["one/two/file", "copy"].map(mode), [FILE_MODE; 2]);
    }

    #[test]
    fn only_an_existing_file_can_be_opened_and_only_a_missing_one_created() {
        let (_dir, folder) = folder();
        assert_eq!(folder.open("file").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!folder.exists("file").unwrap());
        put(&folder, "file", b"x");
        assert_eq!(folder.open("file").unwrap().len().unwrap(), 1);
        assert_eq!(folder.create("file").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(folder.create("empty").unwrap());
        assert_eq!(folder.open("empty").unwrap_err().kind(), io::ErrorKind::InvalidData);
        folder.remove("file").unwrap();
        folder.remove("file").unwrap();
        folder.remove("nowhere/file").unwrap();
        assert!(!folder.exists("file").unwrap());
    }

    #[test]
    fn links_are_refused_and_entries_that_are_no_files_are_skipped() {
        let (dir, folder) = folder();
        put(&folder, "real/file", b"x");
        symlink(folder.root.join("real"), folder.root.join("link")).unwrap();
        symlink(folder.root.join("real/file"), folder.root.join("real/to_file")).unwrap();
        for outcome in [
            folder.open("link/file").map(drop),
            folder.open("real/to_file").map(drop),
            folder.create("link/new").map(drop),
            folder.remove("link/file"),
            folder.rename("real/file", "link/other"),
            folder.exists("real/to_file").map(drop),
            folder.list("link").map(drop),
        ] {
            assert!(outcome.unwrap_err().to_string().contains("is a symbolic link"));
        }
        assert!(dir.path().join("a/b/real/file").exists());
        let pipe = folder.root.join("real/pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let strange = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff.redb");
        fs::write(folder.root.join("real").join(strange), "x").unwrap();
        assert_eq!(folder.list("real").unwrap(), ["file", "to_file"]);
        assert_eq!(folder.folders("real").unwrap(), ["to_file"]);
        assert!(folder.open("real/pipe").is_err());
        assert!(!folder.exists("real/pipe").unwrap());
    }

    #[test]
    fn blocks_are_allocated_without_a_change_of_the_content() {
        let (_dir, folder) = folder();
        let file = folder.create("file").unwrap();
        file.set_len(1 << 20).unwrap();
        file.write(5, b"x").unwrap();
        file.sync_data().unwrap();
        if let Err(cause) = folder.allocate("file", 1 << 20, u64::MAX) {
            assert_eq!(cause.kind(), io::ErrorKind::Unsupported, "{cause}");
            eprintln!("skipped: this file system allocates no blocks ahead");
            return;
        }
        assert!(folder.allocated_bytes("file").unwrap() >= 2 << 20);
        assert_eq!(file.len().unwrap(), 1 << 20);
        let mut bytes = [0; 7];
        file.read(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0\0\0\0x\0");
        file.set_len(4096).unwrap();
        assert!(folder.allocated_bytes("file").unwrap() <= 8192, "the rest is free again");
    }

    #[test]
    fn the_head_keeps_the_blocks_after_its_end_when_its_length_changes() {
        let (_dir, folder) = folder();
        let bytes = |name: &str| folder.allocated_bytes(name).unwrap();
        for (name, keeps) in [(HEAD_FILE, true), ("other", false)] {
            put(&folder, name, &[7; 8192]);
            let file = folder.open(name).unwrap();
            if folder.allocate(name, 1 << 20, u64::MAX).is_err() {
                eprintln!("skipped: this file system allocates no blocks ahead");
                return;
            }
            for length in [100_000, 4096, 65_536] {
                file.set_len(length).unwrap();
                assert_eq!(file.len().unwrap(), length);
            }
            assert_eq!(bytes(name) > 1 << 20, keeps, "{name}: {}", bytes(name));
            file.set_len(4 << 20).unwrap();
            file.set_len(4096).unwrap();
            assert!(bytes(name) < 2 << 20, "{name}: {}", bytes(name));
        }
    }

    #[test]
    fn a_copy_that_fails_leaves_no_file() {
        let (dir, folder) = folder();
        let target = dir.path().join("copy");
        let missing = folder.copy("file", &target).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(!target.exists());
        // A folder can be opened but not read.
        put(&folder, "one/file", b"x");
        folder.copy("one", &target).unwrap_err();
        assert!(!target.exists());
        assert_eq!(folder.copy("one/file", &target).unwrap(), 1);
    }

    /// Regression: after a failed sync, the kernel keeps pages in memory that are not on the disk.
    #[test]
    fn opening_a_file_drops_its_cached_pages() {
        let (_dir, folder) = folder();
        put(&folder, "file", &vec![7; 1 << 20]);
        let file = File::open(folder.root.join("file")).unwrap();
        let is_cached = || {
            let mut byte = [0];
            let flags = rustix::io::ReadWriteFlags::NOWAIT;
            let mut parts = [io::IoSliceMut::new(&mut byte)];
            rustix::io::preadv2(&file, &mut parts, 900_000, flags)
        };
        if is_cached() != Ok(1) {
            eprintln!("skipped: this file system does not report cached pages");
            return;
        }
        if is_in_memory(&file) {
            eprintln!("skipped: this file system has no disk");
            return;
        }
        // The system keeps pages that are in use.
        let is_dropped = |_| {
            drop(folder.open("file").unwrap());
            is_cached() == Err(rustix::io::Errno::AGAIN)
        };
        assert!((0..1000).any(is_dropped), "still cached");
    }

    fn is_in_memory(file: &File) -> bool {
        const TMPFS: i64 = 0x0102_1994;
        rustix::fs::fstatfs(file).unwrap().f_type == TMPFS
    }
}
