//! The reasons why rules are unusable.

use std::{io, path::PathBuf};

use crate::{alerts::FileFault, store::StoreError};

/// The maximum number of faults in a message.
const FAULTS_SHOWN: usize = 20;

/// The reason why the rules are unusable.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// A path is not a valid pattern.
    #[error("alerts.rules: {path:?} is not a valid pattern: {problem}")]
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
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// There are too many files, groups or rules.
    #[error("{count} {what} exceed the limit of {limit}: leave some out")]
    TooMany {
        /// The number of items.
        count: usize,
        /// The kind of item.
        what: &'static str,
        /// The maximum number.
        limit: usize,
    },
    /// The files contain invalid rules.
    #[error("{}", fault_lines(.0))]
    Rules(Vec<FileFault>),
    /// The texts cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn fault_lines(faults: &[FileFault]) -> String {
    let lines = faults.iter().take(FAULTS_SHOWN).map(FileFault::to_string);
    let mut lines: Vec<_> = lines.collect();
    if faults.len() > FAULTS_SHOWN {
        lines.push(format!("and {} more", faults.len() - FAULTS_SHOWN));
    }
    lines.join("\n")
}
