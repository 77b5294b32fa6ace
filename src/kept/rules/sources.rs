//! The sources of rules: files, folders and globs. A reload uses all or nothing; a start uses the
//! valid files.
//!
//! Must never know: reload times, evaluation.

use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    fault::SourceFault,
    routing::{bounded_text, read_routing},
    set::{RuleSet, check_count, check_limits, count_rules, repeated_slos},
};
use crate::{
    alerts::{ExternalIdentity, FileFault, Routing, RuleGroup, read_rules},
    query::{Budget, PromqlSettings},
};

/// The maximum number of rule files.
const FILES_MAX: usize = 1000;
/// The number of bytes of a file that its digest covers.
const DIGESTED_BYTES_MAX: u64 = 16 << 20;

/// The sources of rules.
#[derive(Debug, Clone, Default)]
pub struct RuleSources {
    /// The paths: files, folders (their `*.yml` and `*.yaml` files), and patterns such as
    /// `rules/*.rules`.
    pub paths: Vec<String>,
    /// The default interval of groups, in milliseconds.
    pub interval_ms: i64,
    /// The notification file, if there is one.
    pub notifications: Option<PathBuf>,
    /// The address and the labels that messages contain.
    pub external: Arc<ExternalIdentity>,
    /// True when alerts are sent to Alertmanagers.
    pub has_alertmanagers: bool,
}

/// The rules of files, before stored texts are added.
#[derive(Debug, Default)]
pub(super) struct FileRules {
    /// The files, by name.
    pub(super) files: BTreeSet<PathBuf>,
    pub(super) groups: Vec<RuleGroup>,
    pub(super) routing: Option<Routing>,
    /// The files and folders that are skipped because they are unusable.
    pub(super) unread: Vec<PathBuf>,
    /// The faults of unusable files.
    pub(super) faults: Vec<FileFault>,
}

impl RuleSources {
    /// Loads all files. Named files and folders must exist, as must the folders of patterns; a
    /// pattern may match no file.
    ///
    /// # Errors
    /// A file is unusable.
    pub fn read(&self, promql: &PromqlSettings) -> Result<RuleSet, SourceFault> {
        let (set, fault) = self.read_usable(promql);
        fault.map_or(Ok(set), Err)
    }

    /// Loads the usable files, and returns the faults of the others. Above a limit, nothing is
    /// usable.
    pub fn read_usable(&self, promql: &PromqlSettings) -> (RuleSet, Option<SourceFault>) {
        let (FileRules { groups, routing, unread, .. }, fault) = self.read_files(promql);
        (RuleSet { groups, routing: routing.map(Arc::new), unread }, fault)
    }

    /// Loads the usable files, without the texts, and returns the first fault of the others.
    pub(super) fn read_files(&self, promql: &PromqlSettings) -> (FileRules, Option<SourceFault>) {
        let (mut fault, mut found) = (None, FileRules::default());
        let files = self.files(&mut fault, &mut found.unread);
        let limits = promql.limits(&Budget::UNLIMITED);
        let mut faults = Vec::new();
        for path in &files {
            let name = path.to_string_lossy();
            let text = match bounded_text(path) {
                Ok(text) => text,
                Err(cause) => {
                    found.unread.push(path.clone());
                    found
                        .faults
                        .push(FileFault::of_file(&name, format!("cannot read it: {cause}")));
                    fault.get_or_insert(SourceFault::Read { path: path.clone(), cause });
                    continue;
                }
            };
            let read = read_rules(&name, &text, self.interval_ms, &limits);
            let read = read.and_then(|groups| match repeated_slos(&found.groups, &groups) {
                repeated if repeated.is_empty() => Ok(groups),
                repeated => Err(repeated),
            });
            match read {
                Ok(groups) => found.groups.extend(groups),
                Err(file_faults) => {
                    faults.extend(file_faults);
                    found.unread.push(path.clone());
                }
            }
        }
        let routing = self.notifications.as_deref().map(read_routing).transpose();
        let routing = routing.unwrap_or_else(|routing_faults| {
            faults.extend(routing_faults);
            None
        });
        found.routing = routing.map(|routing| routing.linking_to(&self.external.url));
        if let Err(cause) = check_limits(found.groups.len(), count_rules(&found.groups)) {
            let unread = any_file();
            return (FileRules { files, unread, ..FileRules::default() }, Some(cause));
        }
        found.files = files;
        found.faults.extend(faults.iter().cloned());
        if !faults.is_empty() {
            fault.get_or_insert(SourceFault::Rules(faults));
        }
        (found, fault)
    }

    /// Returns a digest of all files, by which nodes of a cluster compare their rules. Folders do not
    /// matter.
    pub fn digest(&self) -> String {
        let files = self.files(&mut None, &mut Vec::new());
        let mut parts: Vec<_> = files
            .iter()
            .chain(&self.notifications)
            .map(|path| {
                let mut text = Vec::new();
                let read = fs::File::open(path)
                    .and_then(|file| file.take(DIGESTED_BYTES_MAX).read_to_end(&mut text));
                (path.file_name(), read.is_ok(), xxh3_64(&text))
            })
            .collect();
        parts.sort_unstable();
        format!("{:016x}", xxh3_64(format!("{parts:?}").as_bytes()))
    }

    /// Returns the files in order of their names, each once; notes the first fault, and the skipped
    /// paths.
    fn files(
        &self,
        fault: &mut Option<SourceFault>,
        unread: &mut Vec<PathBuf>,
    ) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        let (mut folders, mut patterns) = (Vec::new(), Vec::new());
        for path in &self.paths {
            let plain = Path::new(path);
            if plain.is_dir() {
                folders.extend(["*.yml", "*.yaml"].map(|kind| folder_pattern(plain, kind)));
            } else if path.contains(['*', '?', '[']) {
                patterns.push(path.clone());
            } else {
                files.insert(plain.to_owned());
            }
        }
        for folder in patterns.iter().filter_map(|pattern| fixed_folder(pattern)) {
            if let Err(cause) = fs::metadata(&folder) {
                unread.push(folder.clone());
                fault.get_or_insert(SourceFault::Read { path: folder, cause });
            }
        }
        for pattern in folders.into_iter().chain(patterns) {
            match matching(&pattern) {
                Ok(found) => files.extend(found),
                Err(cause) => {
                    unread.extend(any_file());
                    fault.get_or_insert(cause);
                }
            }
        }
        match check_count(files.len(), "rule files", FILES_MAX) {
            Ok(()) => files,
            Err(cause) => {
                unread.extend(any_file());
                *fault = Some(cause);
                BTreeSet::new()
            }
        }
    }
}

/// Returns the prefix of every file's name: any file may have been skipped.
fn any_file() -> Vec<PathBuf> {
    vec![PathBuf::new()]
}

/// Returns the pattern of a folder's files; special characters in its name are escaped.
fn folder_pattern(folder: &Path, kind: &str) -> String {
    let folder = glob::Pattern::escape(&folder.to_string_lossy());
    format!("{}/{kind}", folder.trim_end_matches('/'))
}

/// Returns the longest folder of a pattern without special characters: it must exist.
fn fixed_folder(pattern: &str) -> Option<PathBuf> {
    let fixed = pattern.split(['*', '?', '[']).next()?;
    let (folder, _) = fixed.rsplit_once('/')?;
    Some(PathBuf::from(if folder.is_empty() { "/" } else { folder }))
}

fn matching(pattern: &str) -> Result<Vec<PathBuf>, SourceFault> {
    let found = glob::glob(pattern).map_err(|cause| SourceFault::Pattern {
        path: pattern.to_owned(),
        problem: cause.to_string(),
    })?;
    let mut files = Vec::new();
    for entry in found.take(FILES_MAX + 1) {
        let path = entry.map_err(|cause| SourceFault::Read {
            path: cause.path().to_owned(),
            cause: cause.into(),
        })?;
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
