//! The daemon's key of an agent: its text or its file, and the replacement of the file.
//!
//! Must never know: when a key is sent or renewed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, chown},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::clock::Stopwatch;

/// The time between two attempts to renew a key.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3600);

/// A key, which may be in a file that changes.
#[derive(Debug)]
pub(crate) struct Token {
    path: Option<PathBuf>,
    /// The last valid content: a file can be empty for a moment while it is replaced.
    last: Mutex<String>,
    /// The time since the last attempt to renew the key.
    renewal: Mutex<Option<Stopwatch>>,
}

impl Token {
    /// Reads the key of this file.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::new(Some(path.to_owned()), read_token(path)?))
    }

    /// Returns the key with this text.
    pub(crate) fn of_text(text: &str) -> io::Result<Self> {
        Ok(Self::new(None, trimmed(text)?))
    }

    fn new(path: Option<PathBuf>, text: String) -> Self {
        Self { path, last: Mutex::new(text), renewal: Mutex::default() }
    }

    /// Returns the value of the header `Authorization`.
    pub(crate) fn authorization(&self) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(token)) = self.path.as_deref().map(read_token) {
            *last = token;
        }
        format!("Bearer {last}")
    }

    /// Returns the file of the key when it is time to try a renewal, and notes the attempt. A key
    /// without a file is not renewed.
    pub(crate) fn file_to_renew(&self) -> Option<&Path> {
        let mut renewal = self.renewal.lock().unwrap_or_else(PoisonError::into_inner);
        if renewal.is_some_and(|since| since.elapsed() < RENEWAL_INTERVAL) {
            return None;
        }
        *renewal = Some(Stopwatch::start());
        self.path.as_deref()
    }
}

/// A new file next to a key's file, which replaces that file atomically.
#[derive(Debug)]
pub(crate) struct NewKeyFile<'a> {
    file: File,
    path: PathBuf,
    target: &'a Path,
}

impl<'a> NewKeyFile<'a> {
    /// Creates the new file, which only its owner can read. A file that root creates gets the owner
    /// of the folder: the agent's user, who renews the key.
    pub(crate) fn create(target: &'a Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut new_name = name.to_owned();
        new_name.push(".new");
        let path = target.with_file_name(new_name);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        let folder = fs::metadata(folder_of(target))?;
        let is_of_root = file.metadata()?.uid() == 0;
        if is_of_root && folder.uid() != 0 {
            chown(&path, Some(folder.uid()), Some(folder.gid()))?;
        }
        Ok(Self { file, path, target })
    }

    /// Writes the key, durably, and replaces the earlier file.
    pub(crate) fn replace(mut self, key: &str) -> io::Result<()> {
        writeln!(self.file, "{}", trimmed(key)?)?;
        self.file.sync_all()?;
        fs::rename(&self.path, self.target)?;
        File::open(folder_of(self.target))?.sync_all()
    }

    /// Removes the new file.
    pub(crate) fn discard(self) {
        // The next attempt removes a file that remains.
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Reads a key's file and trims its content.
///
/// # Errors
/// The file is unreadable, empty, or contains bytes that are invalid in a header.
fn read_token(path: &Path) -> io::Result<String> {
    trimmed(&fs::read_to_string(path)?)
}

fn trimmed(text: &str) -> io::Result<String> {
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem = "must contain one token of printable ASCII without spaces";
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_changed_token_is_reloaded_and_a_removed_token_stays_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "one").unwrap();
        let token = Token::read(&path).unwrap();
        assert_eq!(token.authorization(), "Bearer one");
        fs::write(&path, "two\n").unwrap();
        assert_eq!(token.authorization(), "Bearer two");
        fs::write(&path, "").unwrap();
        assert_eq!(token.authorization(), "Bearer two");
    }

    #[test]
    fn a_token_is_trimmed_and_never_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "  s3cret\n").unwrap();
        assert_eq!(read_token(&path).unwrap(), "s3cret");
        for bad in ["", "\n", "two words", "line\nbreak"] {
            fs::write(&path, bad).unwrap();
            assert!(read_token(&path).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_new_file_replaces_the_earlier_one_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "one").unwrap();
        let token = Token::read(&path).unwrap();
        // A crash has left a file.
        fs::write(folder.path().join("key.new"), "half").unwrap();
        assert_eq!(token.file_to_renew(), Some(&*path));
        assert_eq!(token.file_to_renew(), None, "the next attempt is an hour later");
        NewKeyFile::create(&path).unwrap().replace("two").unwrap();
        assert_eq!(token.authorization(), "Bearer two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(NewKeyFile::create(&path).unwrap().replace("<html>").is_ok());
        assert!(NewKeyFile::create(&path).unwrap().replace("two words").is_err());
        NewKeyFile::create(&path).unwrap().discard();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(Token::of_text("x").unwrap().file_to_renew(), None);
    }
}
