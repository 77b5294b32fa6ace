//! The rules in use, and the limits of their number.
//!
//! Must never know: where files and texts are.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::fault::SourceFault;
use crate::alerts::{FileFault, Routing, RuleGroup};

/// The maximum number of groups in all files and texts.
const GROUPS_MAX: usize = 1000;
/// The maximum number of rules in all files and texts.
const RULES_MAX: usize = 10_000;

/// The rules of all files and texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleSet {
    /// The groups, in order of the files' names, then of the texts' names.
    pub groups: Vec<RuleGroup>,
    /// The routing tree.
    pub routing: Option<Arc<Routing>>,
    /// The files, folders and texts that are skipped because they are unusable.
    pub unread: Vec<PathBuf>,
}

impl RuleSet {
    /// Returns true when groups of a file may be missing because it was skipped.
    pub fn is_unread(&self, file: &str) -> bool {
        self.unread.iter().any(|path| Path::new(file).starts_with(path))
    }
}

/// Checks whether groups can be used in addition to others.
///
/// # Errors
/// A fault for each SLO that both have, and for exceeded limits.
pub(super) fn check_added(
    earlier: &[RuleGroup],
    added: &[RuleGroup],
) -> Result<(), Vec<FileFault>> {
    let mut faults = repeated_slos(earlier, added);
    let groups = earlier.len() + added.len();
    let rules = count_rules(earlier) + count_rules(added);
    if let (Some(first), Err(cause)) = (added.first(), check_limits(groups, rules)) {
        let problem = format!("with all other files and texts, {cause}");
        faults.push(FileFault::of_file(&first.file, problem));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Returns a fault for each SLO that an earlier file declares too: both would write the same
/// series.
pub(super) fn repeated_slos(earlier: &[RuleGroup], groups: &[RuleGroup]) -> Vec<FileFault> {
    let with_slo = groups.iter().filter_map(|group| Some((group, group.slo()?)));
    let repeated = with_slo.filter_map(|(group, slo)| {
        let first = earlier.iter().find(|other| other.slo() == Some(slo))?;
        let problem = format!("{} declares it too; choose another name", first.file);
        let location = format!("slo {slo:?}");
        Some(FileFault { location, ..FileFault::of_file(&group.file, problem) })
    });
    repeated.collect()
}

/// Returns the number of rules of groups.
pub(super) fn count_rules<'a>(groups: impl IntoIterator<Item = &'a RuleGroup>) -> usize {
    groups.into_iter().map(|group| group.rules.len()).sum()
}

pub(super) fn check_limits(groups: usize, rules: usize) -> Result<(), SourceFault> {
    check_count(groups, "groups of rules", GROUPS_MAX)
        .and_then(|()| check_count(rules, "rules", RULES_MAX))
}

pub(super) fn check_count(
    count: usize,
    what: &'static str,
    limit: usize,
) -> Result<(), SourceFault> {
    if count > limit { Err(SourceFault::TooMany { count, what, limit }) } else { Ok(()) }
}
