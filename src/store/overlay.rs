//! A data directory that is only read: what is written stays in memory.
//!
//! Opening a redb file may repair it, and opening a store may finish a checkpoint. Checking does
//! both without changing a byte on the disk, also on read-only mounts.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use redb::{Builder, Database, DatabaseError, StorageBackend};

use super::medium::{Folder, Medium};

const PAGE_BYTES: u64 = 4096;

/// See the module.
#[derive(Debug)]
pub(crate) struct ReadOnlyFolder {
    root: PathBuf,
    /// Files that were opened, made, renamed or removed; `None` for removed ones.
    files: Mutex<BTreeMap<String, Option<Arc<Mutex<Image>>>>>,
}

/// A file with what was written over it.
#[derive(Debug, Default)]
struct Image {
    base: Option<File>,
    length: u64,
    /// Whole pages by number.
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl ReadOnlyFolder {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), files: Mutex::default() }
    }

    /// The image of a file, which stays the same however often it is opened.
    fn image(&self, name: &str) -> Result<Arc<Mutex<Image>>, DatabaseError> {
        let mut files = self.files.lock();
        if let Some(Some(image)) = files.get(name) {
            return Ok(image.clone());
        }
        let removed = files.contains_key(name);
        let image = match File::open(self.root.join(name)) {
            Ok(file) if !removed => {
                // redb holds this lock while a database is open for writing.
                file.try_lock_shared().map_err(|cause| match cause {
                    std::fs::TryLockError::WouldBlock => DatabaseError::DatabaseAlreadyOpen,
                    std::fs::TryLockError::Error(cause) => cause.into(),
                })?;
                let length = file.metadata()?.len();
                Image { base: Some(file), length, pages: BTreeMap::new() }
            }
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause.into()),
            Ok(_) | Err(_) => Image::default(),
        };
        let image = Arc::new(Mutex::new(image));
        files.insert(name.to_owned(), Some(image.clone()));
        Ok(image)
    }
}

impl Medium for ReadOnlyFolder {
    fn open(&self, builder: &Builder, name: &str) -> Result<Database, DatabaseError> {
        builder.create_with_backend(OverlayFile(self.image(name)?))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let files = self.files.lock();
        let path = |name: &str| format!("{folder}/{name}");
        let mut names = Folder::at(&self.root).list(folder)?;
        names.retain(|name| !matches!(files.get(&path(name)), Some(None)));
        let made = files.iter().filter(|(_, image)| image.is_some());
        let prefix = path("");
        names.extend(made.filter_map(|(name, _)| Some(name.strip_prefix(&prefix)?.to_owned())));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.lock().insert(name.to_owned(), None);
        Ok(())
    }

    fn exists(&self, name: &str) -> bool {
        let files = self.files.lock();
        files.get(name).map_or_else(|| self.root.join(name).exists(), Option::is_some)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let image = self.image(from).map_err(io::Error::other)?;
        let mut files = self.files.lock();
        files.insert(from.to_owned(), None);
        files.insert(to.to_owned(), Some(image));
        Ok(())
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        Ok(std::fs::metadata(self.root.join(name))?.blocks() * 512)
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        std::fs::copy(self.root.join(name), target)
    }
}

#[derive(Debug)]
struct OverlayFile(Arc<Mutex<Image>>);

impl Image {
    /// The page as it is now.
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

    /// Calls `visit` with each page that overlaps the range, its number, and the overlap's place
    /// in the page and in the range.
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
        // What lies beyond a shorter end is zero if the file grows again.
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
    use redb::{ReadableDatabase, TableDefinition};

    use super::*;

    const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("table");

    #[test]
    fn nothing_reaches_the_disk_and_everything_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let put = |medium: &dyn Medium, keys: std::ops::Range<u64>| {
            let db = medium.open(&Builder::new(), "file").unwrap();
            let txn = db.begin_write().unwrap();
            for key in keys {
                txn.open_table(TABLE).unwrap().insert(key, key * 3).unwrap();
            }
            txn.commit().unwrap();
        };
        put(&Folder::new(dir.path()).unwrap(), 0..10);
        let before = std::fs::read(dir.path().join("file")).unwrap();
        let overlay = ReadOnlyFolder::new(dir.path());
        put(&overlay, 5..500);
        overlay.rename("file", "other").unwrap();
        assert!(!overlay.exists("file") && overlay.exists("other"));
        let db = overlay.open(&Builder::new(), "other").unwrap();
        let table = db.begin_read().unwrap().open_table(TABLE).unwrap();
        let found = (0..500).all(|key| table.get(key).unwrap().unwrap().value() == key * 3);
        assert!(found);
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), before);
    }

    #[test]
    fn a_file_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path()).unwrap();
        let _in_use = folder.open(&Builder::new(), "file").unwrap();
        let refused = ReadOnlyFolder::new(dir.path()).open(&Builder::new(), "file");
        assert!(matches!(refused, Err(DatabaseError::DatabaseAlreadyOpen)), "{refused:?}");
    }
}
