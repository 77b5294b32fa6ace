//! The archive: texts without secrets, in one compressed file.
//!
//! Must never know: what the texts describe.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context;
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

use crate::{
    clock::{Clock, SystemClock},
    telemetry::without_secrets,
};

/// A file of the archive is cut at this size.
const FILE_BYTES_MAX: usize = 64 << 20;

/// An archive that is being written.
pub(super) struct Archive {
    files: tar::Builder<GzEncoder<File>>,
    /// The folder of all files.
    folder: String,
}

impl Archive {
    /// Creates a new file that only its owner may read.
    pub(super) fn create(path: &Path, folder: &str) -> anyhow::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = file
            .with_context(|| format!("create {}: name a new file with --output", path.display()))?;
        let files = tar::Builder::new(GzEncoder::new(file, Compression::default()));
        Ok(Self { files, folder: folder.to_owned() })
    }

    /// Adds a file with a text, without its secrets.
    pub(super) fn add(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let text = without_secrets(text);
        let bytes = text.as_bytes();
        let bytes = bytes.get(..FILE_BYTES_MAX).unwrap_or(bytes);
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(SystemClock.now().0.unsigned_abs() / 1000);
        let path = format!("{}/{name}", self.folder);
        self.files.append_data(&mut header, path, bytes).with_context(|| format!("write {name}"))
    }

    pub(super) fn add_json(&mut self, name: &str, content: &Value) -> anyhow::Result<()> {
        self.add(name, &serde_json::to_string_pretty(content)?)
    }

    /// Completes the file.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let file = self.files.into_inner()?.finish()?;
        file.sync_all().context("write the archive")
    }
}
