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
    /// Whether there is such a file.
    fn exists(&self, name: &str) -> bool;
    /// Gives a file another name, replacing what has that name; durable when it returns.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Bytes that a file takes on the medium.
    fn allocated_bytes(&self, name: &str) -> io::Result<u64>;
    /// Copies a file that nobody writes to meanwhile out of the medium, durably; returns its
    /// bytes.
    fn copy(&self, name: &str, target: &Path) -> io::Result<u64>;
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
        Ok(Self::at(root))
    }

    /// Uses the folder as it is.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Makes the names in the folders above a path durable.
    fn sync_folders(&self, path: &Path) -> io::Result<()> {
        let inside = |folder: &&Path| folder.starts_with(&self.root);
        for folder in path.ancestors().skip(1).take_while(inside) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

impl Medium for Folder {
    fn open(&self, builder: &Builder, name: &str) -> Result<Database, DatabaseError> {
        let path = self.root.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        builder.create(&path)
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

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let to = self.root.join(to);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::rename(self.root.join(from), &to)?;
        self.sync_folders(&to)
    }

    fn exists(&self, name: &str) -> bool {
        self.root.join(name).exists()
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(fs::metadata(self.root.join(name))?.blocks() * 512)
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        let bytes = fs::copy(self.root.join(name), target)?;
        File::open(target)?.sync_all()?;
        Ok(bytes)
    }
}
