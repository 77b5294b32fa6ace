//! A data directory that is opened without changing it: writes stay in memory.
//!
//! Opening a redb file may repair it, and opening a store may finish a checkpoint. `granary verify`
//! does both without changing a byte on the disk, even on read-only mounts.
//!
//! Must never know: the content of the files.

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use parking_lot::Mutex;
use redb::StorageBackend;

use super::{folder::Folder, medium::Medium};

const PAGE_BYTES: u64 = 4096;

/// A folder of the disk, with all writes kept in memory.
#[derive(Debug)]
pub(crate) struct ReadOnlyFolder {
    folder: Folder,
    /// The files that were opened, created, renamed or removed; `None` for removed files.
    files: Mutex<BTreeMap<String, Option<Arc<Mutex<Image>>>>>,
}

/// A file with the pages that were written over it.
#[derive(Debug, Default)]
struct Image {
    base: Option<File>,
    length: u64,
    /// Whole pages by number.
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl ReadOnlyFolder {
    pub(crate) fn new(root: &Path) -> Self {
        Self { folder: Folder::at(root), files: Mutex::default() }
    }

    /// Returns the image of an existing file; all users of a file share one image.
    fn image(&self, name: &str) -> io::Result<Arc<Mutex<Image>>> {
        let mut files = self.files.lock();
        match files.get(name) {
            Some(Some(image)) => return Ok(image.clone()),
            Some(None) => return Err(io::ErrorKind::NotFound.into()),
            None => {}
        }
        if !self.folder.exists(name)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = File::open(self.folder.path(name)?)?;
        // redb holds this lock while a database is open for writing.
        file.try_lock_shared().map_err(|cause| match cause {
            std::fs::TryLockError::WouldBlock => io::Error::from(io::ErrorKind::ResourceBusy),
            std::fs::TryLockError::Error(cause) => cause,
        })?;
        let length = file.metadata()?.len();
        let image = Image { base: Some(file), length, pages: BTreeMap::new() };
        let image = Arc::new(Mutex::new(image));
        files.insert(name.to_owned(), Some(image.clone()));
        Ok(image)
    }
}

impl Medium for ReadOnlyFolder {
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let image = self.image(name)?;
        if image.lock().length == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
        }
        Ok(Box::new(OverlayFile(image)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        if self.exists(name)? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let image = Arc::new(Mutex::new(Image::default()));
        self.files.lock().insert(name.to_owned(), Some(image.clone()));
        Ok(Box::new(OverlayFile(image)))
    }

    fn folders(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.folders(folder)
    }

    fn settle(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let files = self.files.lock();
        let path = |name: &str| format!("{folder}/{name}");
        let mut names = self.folder.list(folder)?;
        names.retain(|name| !matches!(files.get(&path(name)), Some(None)));
        let present = files.iter().filter(|(_, image)| image.is_some());
        let prefix = path("");
        names.extend(present.filter_map(|(name, _)| Some(name.strip_prefix(&prefix)?.to_owned())));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.lock().insert(name.to_owned(), None);
        Ok(())
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        let is_present = self.files.lock().get(name).map(Option::is_some);
        is_present.map_or_else(|| self.folder.exists(name), Ok)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let image = self.image(from)?;
        let mut files = self.files.lock();
        files.insert(from.to_owned(), None);
        files.insert(to.to_owned(), Some(image));
        Ok(())
    }

    fn allocate(&self, _name: &str, _beyond: u64, _bytes_max: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        self.folder.allocated_bytes(name)
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        self.folder.copy(name, target)
    }
}

#[derive(Debug)]
struct OverlayFile(Arc<Mutex<Image>>);

impl Image {
    /// Returns the current content of a page.
    fn page(&self, number: u64) -> io::Result<Box<[u8]>> {
        if let Some(page) = self.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE_BYTES as usize];
        if let Some(file) = &self.base {
            let from = number * PAGE_BYTES;
            let mut filled = 0;
            while filled < page.len() {
                match file.read_at(&mut page[filled..], from + filled as u64)? {
                    0 => break,
                    more => filled += more,
                }
            }
        }
        Ok(page.into())
    }

    /// Calls `visit` with the number of each page that overlaps the range, and with the position of
    /// the overlap in the page and in the range.
    fn pages_of(
        offset: u64,
        length: usize,
        mut visit: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let in_page = (at % PAGE_BYTES) as usize;
            let take = (PAGE_BYTES as usize - in_page).min(length - done);
            visit(at / PAGE_BYTES, in_page..in_page + take, done..done + take)?;
            done += take;
        }
        Ok(())
    }
}

impl StorageBackend for OverlayFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let image = self.0.lock();
        if offset.saturating_add(out.len() as u64) > image.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if image.pages.is_empty()
            && let Some(file) = &image.base
        {
            return file.read_exact_at(out, offset);
        }
        Image::pages_of(offset, out.len(), |number, in_page, in_range| {
            out[in_range].copy_from_slice(&image.page(number)?[in_page]);
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut image = self.0.lock();
        // Bytes beyond a truncated end are zero when the file grows again.
        if length < image.length {
            let last = length / PAGE_BYTES;
            let mut page = image.page(last)?;
            page[(length % PAGE_BYTES) as usize..].fill(0);
            let beyond = last + 1..image.length.div_ceil(PAGE_BYTES);
            image.pages.insert(last, page);
            for number in beyond {
                image.pages.insert(number, vec![0; PAGE_BYTES as usize].into());
            }
        }
        image.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut image = self.0.lock();
        Image::pages_of(offset, data.len(), |number, in_page, in_range| {
            let mut page = image.page(number)?;
            page[in_page].copy_from_slice(&data[in_range]);
            image.pages.insert(number, page);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use redb::{Builder, ReadableDatabase, TableDefinition};

    use super::*;
    use crate::store::file::watched::Watched;

    const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("table");

    #[test]
    fn nothing_reaches_the_disk_and_everything_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let open = |file| Builder::new().create_with_backend(Watched::new(file).0).unwrap();
        let put = |file, keys: std::ops::Range<u64>| {
            let db = open(file);
            let txn = db.begin_write().unwrap();
            for key in keys {
                txn.open_table(TABLE).unwrap().insert(key, key * 3).unwrap();
            }
            txn.commit().unwrap();
        };
        put(Folder::new(dir.path()).unwrap().create("file").unwrap(), 0..10);
        let before = std::fs::read(dir.path().join("file")).unwrap();
        let overlay = ReadOnlyFolder::new(dir.path());
        put(overlay.open("file").unwrap(), 5..500);
        overlay.rename("file", "other").unwrap();
        assert!(!overlay.exists("file").unwrap() && overlay.exists("other").unwrap());
        let db = open(overlay.open("other").unwrap());
        let table = db.begin_read().unwrap().open_table(TABLE).unwrap();
        let found = (0..500).all(|key| table.get(key).unwrap().unwrap().value() == key * 3);
        assert!(found);
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), before);
    }

    #[test]
    fn a_file_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path()).unwrap();
        let file = folder.create("file").unwrap();
        let _in_use = Builder::new().create_with_backend(Watched::new(file).0).unwrap();
        let refused = ReadOnlyFolder::new(dir.path()).open("file").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
    }
}
