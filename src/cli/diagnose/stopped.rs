//! The description of a data directory that no daemon uses.
//!
//! Must never know: the archive's format.

use std::{fs, path::Path};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::archive::Archive;
use crate::{cli::verify, config::SettingsSource, daemon::process_using};

/// The maximum number of listed files.
const FILES_MAX: usize = 100_000;

/// Adds the settings, the list of files, and the result of the check.
pub(super) fn add(
    archive: &mut Archive,
    dir: &Path,
    source: &SettingsSource,
) -> anyhow::Result<()> {
    if let Some(pid) = process_using(dir) {
        bail!(
            "the daemon with process id {pid} uses {}: leave out --data-dir to describe it",
            dir.display()
        );
    }
    match source.load() {
        Ok(settings) => {
            archive.add_json("settings.json", &serde_json::to_value(&settings.shown)?)?;
        }
        Err(cause) => archive.add("settings.json.error", &format!("{cause}\n"))?,
    }
    let mut files = Vec::new();
    list(dir, &mut files).with_context(|| format!("read the folder {}", dir.display()))?;
    archive.add_json("files.json", &Value::Array(files))?;
    match verify::check(dir) {
        Ok(report) => archive.add_json("verify.json", &serde_json::to_value(&report)?),
        Err(cause) => archive.add("verify.json.error", &format!("{cause:#}\n")),
    }
}

fn list(folder: &Path, files: &mut Vec<Value>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let data = entry.metadata()?;
        if data.is_dir() {
            list(&entry.path(), files)?;
        } else if files.len() < FILES_MAX {
            files.push(json!({ "file": entry.path(), "bytes": data.len() }));
        }
    }
    Ok(())
}
