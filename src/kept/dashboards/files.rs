//! The dashboards in files: read from a folder at the start, at each reload, and when a file
//! changes. A file that cannot be used leaves the others in use.
//!
//! Must never know: HTTP, the times of reloads and checks.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;
use rustix::fs::OFlags;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{BYTES_MAX, DASHBOARDS_MAX, check_changeable};
use crate::{
    kept::{Dashboard, LiveValue},
    telemetry::Metrics,
};

/// The end of the names of files with dashboards.
const SUFFIX: &str = ".json";
/// The maximum size of all files together, in bytes.
const ALL_BYTES_MAX: u64 = 16 << 20;
/// The maximum number of characters of a message about a file.
const MESSAGE_CHARS_MAX: usize = 500;
/// The maximum number of faults that one reading logs.
const FAULTS_LOGGED: usize = 20;

/// The dashboards of a folder. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct DashboardFiles(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The files as of the last reading; the lock lets one reading run at a time.
    last: Mutex<Listing>,
    in_use: LiveValue<FileSet>,
}

/// A folder and its files.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listing {
    folder: PathBuf,
    files: Vec<ListedFile>,
    fault: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct ListedFile {
    /// The file name, with `.json`.
    name: String,
    is_file: bool,
    bytes: u64,
    changed: Option<SystemTime>,
}

/// The usable dashboards of a folder, and the faults of the other files.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FileSet {
    /// The dashboards, by name.
    pub(super) dashboards: BTreeMap<String, Dashboard>,
    pub(super) faults: Vec<DashboardFileFault>,
}

/// A file whose dashboard is not in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DashboardFileFault {
    /// The name of the file, or of the setting when the folder cannot be read.
    pub(super) file: String,
    /// The reason, with the remedy.
    pub(super) message: String,
}

impl DashboardFiles {
    /// Reads the files of a folder, and replaces the dashboards in use. An empty path means that
    /// there is no folder.
    pub fn load(&self, folder: &Path, metrics: &Metrics) {
        let mut last = self.0.last.lock();
        // The list is older than the content, so the next check notices a change during the
        // reading.
        *last = Listing::read(folder);
        self.replace(&last, metrics);
    }

    /// Reads the files again if one of them has changed since the last reading.
    pub fn load_changed(&self, metrics: &Metrics) {
        let mut last = self.0.last.lock();
        if last.folder.as_os_str().is_empty() {
            return;
        }
        let listing = Listing::read(&last.folder);
        if *last != listing {
            *last = listing;
            self.replace(&last, metrics);
        }
    }

    fn replace(&self, listing: &Listing, metrics: &Metrics) {
        let set = listing.file_set();
        for DashboardFileFault { file, message } in set.faults.iter().take(FAULTS_LOGGED) {
            tracing::error!(file, message, "cannot use a file of a dashboard; the others are used");
        }
        let unlogged = set.faults.len().saturating_sub(FAULTS_LOGGED);
        if unlogged > 0 {
            tracing::error!(unlogged, "cannot use further files of dashboards");
        }
        if !listing.folder.as_os_str().is_empty() {
            let folder = listing.folder.display();
            tracing::info!(%folder, dashboards = set.dashboards.len(), "read the dashboards");
        }
        metrics.dashboards.files.set(set.dashboards.len() as i64);
        metrics.dashboards.files_failed.set(set.faults.len() as i64);
        self.0.in_use.set(set);
    }

    /// Returns true when there is a folder.
    pub fn has_folder(&self) -> bool {
        !self.0.last.lock().folder.as_os_str().is_empty()
    }

    /// Returns the dashboards in use.
    pub(super) fn get(&self) -> Arc<FileSet> {
        self.0.in_use.get()
    }
}

impl Listing {
    fn read(folder: &Path) -> Self {
        let mut listing = Self { folder: folder.to_owned(), ..Self::default() };
        if !folder.as_os_str().is_empty()
            && let Err(cause) = listing.add_files()
        {
            listing.fault = Some(format!("cannot read the folder: {cause}"));
        }
        listing
    }

    fn add_files(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(SUFFIX) || name.starts_with('.') {
                continue;
            }
            if self.files.len() == DASHBOARDS_MAX {
                let problem = format!("more than {DASHBOARDS_MAX} files: remove some");
                self.files.clear();
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
            }
            // Links are followed: Kubernetes mounts each file as one.
            let found = fs::metadata(entry.path());
            let is_file = found.as_ref().is_ok_and(fs::Metadata::is_file);
            let bytes = found.as_ref().map_or(0, fs::Metadata::len);
            let changed = found.and_then(|found| found.modified()).ok();
            self.files.push(ListedFile { name, is_file, bytes, changed });
        }
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    fn file_set(&self) -> FileSet {
        let mut set = FileSet::default();
        if let Some(fault) = &self.fault {
            set.add_fault("server.dashboards_dir", fault);
        }
        let mut left = ALL_BYTES_MAX;
        for file in &self.files {
            let name = file.name.strip_suffix(SUFFIX).unwrap_or(&file.name).to_owned();
            let text = check_changeable(&name)
                .map_err(|cause| format!("its name without .json cannot be used: {cause}"))
                .and_then(|()| self.text(file, &mut left));
            match text.and_then(|text| read_dashboard(&text)) {
                Ok(dashboard) => drop(set.dashboards.insert(name, dashboard)),
                Err(fault) => set.add_fault(&file.name, &fault),
            }
        }
        set
    }

    /// Returns the text of a file, within the bytes that are left for all files.
    fn text(&self, file: &ListedFile, left: &mut u64) -> Result<String, String> {
        if !file.is_file {
            return Err("it is not a file".to_owned());
        }
        let limit = (BYTES_MAX as u64).min(*left);
        let mut text = String::new();
        let opened = open_file(&self.folder.join(&file.name))
            .map_err(|cause| format!("cannot read it: {cause}"))?;
        let read = opened.take(limit + 1).read_to_string(&mut text);
        let bytes = read.map_err(|cause| format!("cannot read it: {cause}"))? as u64;
        if bytes > BYTES_MAX as u64 {
            return Err(format!("it has more than {BYTES_MAX} bytes: split the dashboard"));
        }
        if bytes > *left {
            return Err(format!("all files have more than {ALL_BYTES_MAX} bytes: remove some"));
        }
        *left -= bytes;
        Ok(text)
    }
}

/// Opens a file that may have been replaced since it was listed; a pipe without a writer would
/// block.
fn open_file(path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if opened.metadata()?.is_file() {
        Ok(opened)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"))
    }
}

impl FileSet {
    fn add_fault(&mut self, file: &str, message: &str) {
        let message = message.chars().take(MESSAGE_CHARS_MAX).collect();
        self.faults.push(DashboardFileFault { file: file.to_owned(), message });
    }
}

/// Parses the text of a file: a dashboard, or the body of a request that saves one.
fn read_dashboard(text: &str) -> Result<Dashboard, String> {
    /// The keys that distinguish the forms.
    #[derive(serde::Deserialize)]
    struct Form<'a> {
        #[serde(borrow, default)]
        dashboard: Option<&'a RawValue>,
        #[serde(rename = "schemaVersion", default)]
        grafana: Option<serde::de::IgnoredAny>,
    }
    let form = serde_json::from_str::<Form<'_>>(text).ok();
    if form.as_ref().is_some_and(|form| form.grafana.is_some()) {
        return Err("it is a dashboard of Grafana: import it in /dashboards, export it there as \
                    JSON, and use that file"
            .to_owned());
    }
    let json = form.and_then(|form| form.dashboard).map_or(text, RawValue::get);
    Dashboard::read(json).map_err(|cause| cause.to_string())
}

#[cfg(test)]
mod tests;
