//! Where the files are: a folder, or in tests a medium that fails on purpose.

use std::{
    fmt::Debug,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use redb::{Builder, Database, DatabaseError};

/// A place for redb files. Names are paths below the data directory, with `/`.
pub trait Medium: Send + Sync + Debug {
    /// Opens a database, creating it if it is not there.
    fn open(&self, builder: &Builder, name: &str) -> Result<Database, DatabaseError>;
    /// Files in a folder, sorted; none when the folder is not there.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Removes a file for good.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Bytes that a file takes on the medium.
    fn allocated_bytes(&self, name: &str) -> io::Result<u64>;
}

/// A folder of the file system.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Uses the folder, creating it if it is not there.
    pub fn new(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        Ok(Self { root: root.to_owned() })
    }
}

impl Medium for Folder {
    fn open(&self, builder: &Builder, name: &str) -> Result<Database, DatabaseError> {
        let path = self.root.join(name);
        let is_new = !path.exists();
        if let (true, Some(parent)) = (is_new, path.parent()) {
            fs::create_dir_all(parent)?;
        }
        let db = builder.create(&path)?;
        if is_new {
            for folder in path.ancestors().skip(1).take_while(|p| p.starts_with(&self.root)) {
                File::open(folder)?.sync_all()?;
            }
        }
        Ok(db)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(cause),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.root.join(name);
        fs::remove_file(&path)?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(fs::metadata(self.root.join(name))?.blocks() * 512)
    }
}
