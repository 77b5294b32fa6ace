//! Small files in which a node remembers, on its own disk, to which log its replica belongs and
//! which process used the directory last. Snapshots do not contain them, so a restored store
//! belongs to no log.
//!
//! Must never know: the protocol.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::replication::Origin;

/// The file with the log of the replica.
const LOG_FILE: &str = "log.json";
/// The file with the last process.
const NODE_FILE: &str = "node.json";

#[derive(Serialize, Deserialize)]
struct RememberedLog {
    log: i64,
    founded: bool,
    /// The number and the nonce of the last fence.
    fence: Option<(u64, i64)>,
}

#[derive(Serialize, Deserialize)]
struct RememberedNode {
    run: i64,
}

/// Returns the log of the replica in a data directory.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn read_origin(folder: &Path) -> anyhow::Result<Option<Origin>> {
    let read: Option<RememberedLog> = read(folder, LOG_FILE)?;
    Ok(read.map(|RememberedLog { log, founded, fence }| Origin { log, is_founded: founded, fence }))
}

/// Writes the log of the replica durably.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write_origin(folder: &Path, origin: Origin) -> anyhow::Result<()> {
    let Origin { log, is_founded, fence } = origin;
    write(folder, LOG_FILE, &RememberedLog { log, founded: is_founded, fence })
}

/// Removes what a data directory remembers, so that its store belongs to no log.
///
/// # Errors
/// When a file cannot be removed.
pub fn forget(folder: &Path) -> io::Result<()> {
    for name in [LOG_FILE, NODE_FILE] {
        match fs::remove_file(folder.join(name)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Remembers a process as the last one of a data directory; returns the one before.
///
/// # Errors
/// When the file cannot be read or written.
pub(super) fn replace_run(folder: &Path, run: i64) -> anyhow::Result<Option<i64>> {
    let previous: Option<RememberedNode> = read(folder, NODE_FILE)?;
    write(folder, NODE_FILE, &RememberedNode { run })?;
    Ok(previous.map(|previous| previous.run))
}

fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> anyhow::Result<Option<T>> {
    let path = folder.join(name);
    match fs::read(&path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause).with_context(|| format!("read {}", path.display())),
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).with_context(|| {
            format!(
                "{} is damaged: empty the data directory, and the node copies the store from another \
                 member",
                path.display()
            )
        }),
    }
}

fn write(folder: &Path, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
    let (path, new) = (folder.join(name), folder.join(format!("{name}.new")));
    let replace = || {
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(folder)?.sync_all()
    };
    replace().with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_remembers_its_log_and_its_last_process() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_origin(folder.path()).unwrap(), None);
        for fence in [None, Some((3, -9))] {
            let origin = Origin { log: i64::MIN, is_founded: true, fence };
            write_origin(folder.path(), origin).unwrap();
            assert_eq!(read_origin(folder.path()).unwrap(), Some(origin));
        }
        assert_eq!(replace_run(folder.path(), 1).unwrap(), None);
        assert_eq!(replace_run(folder.path(), 2).unwrap(), Some(1));
        forget(folder.path()).unwrap();
        assert_eq!(read_origin(folder.path()).unwrap(), None);
        fs::write(folder.path().join(LOG_FILE), "{").unwrap();
        let text = format!("{:#}", read_origin(folder.path()).unwrap_err());
        assert!(text.contains("log.json is damaged"), "{text}");
    }
}
