//! Where rules come from: files, folders and globs, read whole or not at all; at a start, as far as
//! they can be used.
//!
//! Must never know: when they are read, what becomes of them.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::routing::{bounded_text, read_routing};
use crate::{
    alerts::{External, Routing, RuleFault, RuleGroup, read_rules},
    query::{Budget, PromqlSettings},
};

/// Rule files, at most.
const FILES_MAX: usize = 1000;
/// Groups of all files, at most.
const GROUPS_MAX: usize = 1000;
/// Rules of all files, at most.
const RULES_MAX: usize = 10_000;
/// Faults that are told of.
const FAULTS_SHOWN: usize = 20;

/// Where rules come from.
#[derive(Debug, Clone, Default)]
pub struct RuleSources {
    /// Files, folders, whose `*.yml` and `*.yaml` are read, and patterns such as `rules/*.rules`.
    pub paths: Vec<String>,
    /// Between evaluations of groups that do not say, in milliseconds.
    pub interval_ms: i64,
    /// The file that says who is told of alerts, if one does.
    pub notifications: Option<PathBuf>,
    /// The address and the labels by which alerts go out.
    pub external: Arc<External>,
    /// True when alerts are sent to Alertmanagers.
    pub has_alertmanagers: bool,
}

/// The rules of all files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleSet {
    /// In order of the files' names.
    pub groups: Vec<RuleGroup>,
    /// Who is told of alerts.
    pub routing: Option<Arc<Routing>>,
    /// Files, and folders of files, that are left out because they cannot be used.
    pub unread: Vec<PathBuf>,
}

impl RuleSet {
    /// True when groups of a file may be left out.
    pub fn is_unread(&self, file: &str) -> bool {
        self.unread.iter().any(|own| Path::new(file).starts_with(own))
    }
}

/// Why the rules cannot be used. None is used then.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// A path is no pattern.
    #[error("alerts.rules: {path:?} is no pattern: {problem}")]
    Pattern {
        /// The path.
        path: String,
        /// The problem, with its remedy.
        problem: String,
    },
    /// A file cannot be read.
    #[error("read the rule file {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// There are too many.
    #[error("{count} {what} are more than {limit}: leave some out")]
    TooMany {
        /// The number of them.
        count: usize,
        /// The name of what is counted.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Files say what cannot be.
    #[error("{}", shown(.0))]
    Rules(Vec<RuleFault>),
}

fn shown(faults: &[RuleFault]) -> String {
    let lines = faults.iter().take(FAULTS_SHOWN).map(RuleFault::to_string);
    let mut lines: Vec<_> = lines.collect();
    if faults.len() > FAULTS_SHOWN {
        lines.push(format!("and {} more", faults.len() - FAULTS_SHOWN));
    }
    lines.join("\n")
}

impl RuleSources {
    /// Reads all files. A file or folder that is named must be there, also in a pattern, which may
    /// match none.
    ///
    /// # Errors
    /// When anything cannot be used.
    pub fn read(&self, promql: &PromqlSettings) -> Result<RuleSet, SourceFault> {
        let (set, fault) = self.read_usable(promql);
        fault.map_or(Ok(set), Err)
    }

    /// Reads the files that can be used, and says what cannot. Where there is too much, nothing can.
    pub fn read_usable(&self, promql: &PromqlSettings) -> (RuleSet, Option<SourceFault>) {
        let (mut fault, mut unread) = (None, Vec::new());
        let files = self.files(&mut fault, &mut unread);
        let limits = promql.limits(&Budget::UNLIMITED);
        let (mut groups, mut faults) = (Vec::new(), Vec::new());
        for path in files {
            match bounded_text(&path) {
                Err(cause) => {
                    unread.push(path.clone());
                    fault.get_or_insert(SourceFault::Read { path, cause });
                }
                Ok(text) => {
                    let name = path.to_string_lossy();
                    match read_rules(&name, &text, self.interval_ms, &limits) {
                        Ok(own) => groups.extend(own),
                        Err(own) => {
                            faults.extend(own);
                            unread.push(path);
                        }
                    }
                }
            }
        }
        let routing = self.notifications.as_deref().map(read_routing).transpose();
        let routing = routing.unwrap_or_else(|own| {
            faults.extend(own);
            None
        });
        let routing = routing.map(|own| own.linking_to(&self.external.url));
        let rules = groups.iter().map(|group| group.rules.len()).sum();
        let is_too_much = at_most(groups.len(), "groups of rules", GROUPS_MAX)
            .and_then(|()| at_most(rules, "rules", RULES_MAX));
        if let Err(cause) = is_too_much {
            return (RuleSet { unread: any_file(), ..RuleSet::default() }, Some(cause));
        }
        if !faults.is_empty() {
            fault.get_or_insert(SourceFault::Rules(faults));
        }
        (RuleSet { groups, routing: routing.map(Arc::new), unread }, fault)
    }

    /// The files, in order of their names, each once; notes the first fault, and what is left out.
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
        for folder in patterns.iter().filter_map(|own| fixed_folder(own)) {
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
        match at_most(files.len(), "rule files", FILES_MAX) {
            Ok(()) => files,
            Err(cause) => {
                unread.extend(any_file());
                *fault = Some(cause);
                BTreeSet::new()
            }
        }
    }
}

/// The prefix of every file's name: any file may be among those left out.
fn any_file() -> Vec<PathBuf> {
    vec![PathBuf::new()]
}

/// The folder's own name is no pattern.
fn folder_pattern(folder: &Path, kind: &str) -> String {
    let folder = glob::Pattern::escape(&folder.to_string_lossy());
    format!("{}/{kind}", folder.trim_end_matches('/'))
}

/// The folder below which all is that fits a pattern, as far as its name is fixed: one that is not
/// there is no folder without files.
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

fn at_most(count: usize, what: &'static str, limit: usize) -> Result<(), SourceFault> {
    if count > limit { Err(SourceFault::TooMany { count, what, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn folders_and_patterns_name_files_and_a_bad_one_is_named() {
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
    fn what_is_left_out_at_a_start_is_known_by_its_file_or_folder() {
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
