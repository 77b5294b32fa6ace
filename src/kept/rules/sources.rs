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
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn folders_and_patterns_select_files_and_the_error_names_a_bad_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let rules = |name: &str| format!("groups:\n- name: {name}\n");
        fs::write(at("b.yml"), rules("b")).unwrap();
        fs::write(at("a.yaml"), rules("a")).unwrap();
        fs::write(at("c.rules"), rules("c")).unwrap();
        let settings = config::load(None, &config::Overrides::default()).unwrap();
        let read = |paths: &[PathBuf]| {
            let paths = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
            let set = RuleSources { paths, interval_ms: 60_000, ..RuleSources::default() }
                .read(&settings.promql_settings());
            let names = |set: RuleSet| {
                let groups = set.groups.into_iter();
                groups.map(|group| group.name).collect::<Vec<_>>().join(" ")
            };
            set.map(names).map_err(|cause| cause.to_string())
        };
        assert_eq!(read(&[folder.path().to_owned()]), Ok("a b".to_owned()));
        assert_eq!(read(&[at("*.rules"), at("a.yaml"), at("a.*")]), Ok("a c".to_owned()));
        assert_eq!(read(&[at("*.none")]), Ok(String::new()));
        assert!(read(&[at("none.yml")]).unwrap_err().contains("none.yml"));
        fs::write(at("b.yml"), "groups:\n- nam: b\n").unwrap();
        let message = read(&[folder.path().to_owned()]).unwrap_err();
        assert!(message.contains("b.yml") && message.contains("nam"), "{message}");
    }

    #[test]
    fn an_slo_of_two_files_is_refused_in_the_second_one() {
        let folder = tempfile::tempdir().unwrap();
        let slo = "slos: [{name: shop, target: 99, good: 'increase(a[$window])', total: \
                   'increase(b[$window])'}]\n";
        for name in ["a.yml", "b.yml"] {
            fs::write(folder.path().join(name), slo).unwrap();
        }
        let settings = config::load(None, &config::Overrides::default()).unwrap();
        let paths = vec![folder.path().display().to_string()];
        let sources = RuleSources { paths, interval_ms: 60_000, ..RuleSources::default() };
        let (set, fault) = sources.read_usable(&settings.promql_settings());
        let files: Vec<_> = set.groups.iter().map(|group| group.file.as_str()).collect();
        assert_eq!(files, [folder.path().join("a.yml").display().to_string()]);
        assert_eq!(set.unread, [folder.path().join("b.yml")]);
        let message = fault.unwrap().to_string();
        for part in ["b.yml: slo \"shop\"", "a.yml declares it too"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_digest_changes_with_the_rules_and_not_with_their_folder() {
        let [one, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let sources = |folder: &tempfile::TempDir| RuleSources {
            paths: vec![folder.path().display().to_string()],
            notifications: Some(folder.path().join("notifications.toml")),
            ..RuleSources::default()
        };
        let write = |folder: &tempfile::TempDir, name: &str, text: &str| {
            fs::write(folder.path().join(name), text).unwrap();
        };
        for folder in [&one, &other] {
            write(folder, "a.yml", "groups: []");
            write(folder, "b.yml", "groups: []");
        }
        let digest = sources(&one).digest();
        assert_eq!(sources(&other).digest(), digest);
        write(&other, "b.yml", "groups: [] ");
        assert_ne!(sources(&other).digest(), digest);
        write(&other, "b.yml", "groups: []");
        write(&other, "notifications.toml", "");
        assert_ne!(sources(&other).digest(), digest);
    }

    #[test]
    fn skipped_rules_are_known_by_their_file_or_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        fs::write(at("good.yml"), "groups:\n- name: g\n").unwrap();
        fs::write(at("bad.yml"), "groups:\n- nam: b\n").unwrap();
        let settings = config::load(None, &config::Overrides::default()).unwrap();
        let unread = |paths: &[String]| {
            let sources = RuleSources {
                paths: paths.to_vec(),
                interval_ms: 60_000,
                ..RuleSources::default()
            };
            let (set, _) = sources.read_usable(&settings.promql_settings());
            ["good.yml", "bad.yml", "gone/x.yml", "other.yml"].map(|name| set.is_unread(&at(name)))
        };
        assert_eq!(unread(&[at("good.yml")]), [false; 4]);
        assert_eq!(unread(&[at("*.yml"), at("gone")]), [false, true, true, false]);
        assert_eq!(unread(&[at("gone/*.yml"), at("good.yml")]), [false, false, true, false]);
        assert_eq!(unread(&[at("[")]), [true; 4]);
    }
}
