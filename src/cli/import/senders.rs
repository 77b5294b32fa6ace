//! The sender names of files: the file's identity, followed by its name for people.
//!
//! A file's content and the way it is read are its identity. The daemon lists the files that it
//! knows: a file that was imported under another name keeps the name of the first import.

use std::{collections::BTreeMap, path::Path};

use crate::{
    cli::http::{Daemon, read},
    query::SendersAnswer,
};

/// The prefix of the sender names of all imports.
pub(super) const SENDER_PREFIX: &str = "import:";
/// The maximum number of characters of a file's name in a sender name.
const FILE_NAME_CHARS_MAX: usize = 48;

/// The sender names of files.
#[derive(Debug, Clone, Default)]
pub(super) struct SenderNames {
    /// Sender names by the identities of the files.
    known: BTreeMap<String, String>,
}

impl SenderNames {
    /// Reads the names of imported files from the daemon.
    pub(super) fn fetch(daemon: &Daemon) -> anyhow::Result<Self> {
        let answer = daemon.get("senders", &[("prefix", SENDER_PREFIX.to_owned())])?;
        let listed: SendersAnswer = read(&answer)?;
        let by_identity = |name: String| (identity(&name).to_owned(), name);
        Ok(Self {
            known: listed.senders.into_iter().map(|sender| by_identity(sender.agent)).collect(),
        })
    }

    /// Returns true when the daemon has batches of a file.
    pub(super) fn contains(&self, identity: &str) -> bool {
        self.known.contains_key(identity)
    }

    /// Returns the sender name of a file; equal content has an equal name.
    pub(super) fn name(&mut self, identity: &str, path: &Path) -> String {
        let named = || format!("{identity} {}", file_name(path));
        self.known.entry(identity.to_owned()).or_insert_with(named).clone()
    }
}

/// Returns the identity in a sender name, without the file's name.
fn identity(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(identity, _)| identity)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_control() { '_' } else { c };
    name.chars().map(plain).take(FILE_NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_the_name_under_which_it_was_sent_first() {
        let mut names = SenderNames::default();
        names.known.insert("import:1".to_owned(), "import:1".to_owned());
        let mut name = |identity: &str, path: &str| names.name(identity, path.as_ref());
        assert_eq!(name("import:1", "/a/old.csv"), "import:1");
        assert_eq!(name("import:2", "/a/new\n.csv"), "import:2 new_.csv");
        assert_eq!(name("import:2", "copy.csv"), "import:2 new_.csv");
        assert_eq!(identity("import:2 a b.csv"), "import:2");
        let long = name("import:3", &"é".repeat(200));
        assert!(long.len() < granary_protocol::AGENT_BYTES_MAX, "{long}");
    }
}
