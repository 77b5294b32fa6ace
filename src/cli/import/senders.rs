//! The names under which files are sent: what tells a file, and the file's name for people.
//!
//! A file is identified by its content and by how it is read. So the daemon is asked first under
//! which names it knows files: a file that was imported under another name keeps the name of then.

use std::{collections::BTreeMap, path::Path};

use crate::{
    cli::http::{Daemon, read},
    query::SendersAnswer,
};

/// The prefix of the names of all imports.
pub(super) const SENDERS: &str = "import:";
/// Characters of a file's name that are part of a sender's.
const FILE_NAME_CHARS_MAX: usize = 48;

/// The senders of files.
#[derive(Debug, Clone, Default)]
pub(super) struct SenderNames {
    /// By what tells their file.
    known: BTreeMap<String, String>,
}

impl SenderNames {
    /// Asks the daemon which files it knows.
    pub(super) fn ask(daemon: &Daemon) -> anyhow::Result<Self> {
        let answer = daemon.get("senders", &[("prefix", SENDERS.to_owned())])?;
        let listed: SendersAnswer = read(&answer)?;
        let by_identity = |name: String| (identity(&name).to_owned(), name);
        Ok(Self { known: listed.senders.into_iter().map(|own| by_identity(own.agent)).collect() })
    }

    /// Whether the daemon has batches of a file.
    pub(super) fn has(&self, identity: &str) -> bool {
        self.known.contains_key(identity)
    }

    /// The sender of a file; the same for all files of one content.
    pub(super) fn name(&mut self, identity: &str, path: &Path) -> String {
        let named = || format!("{identity} {}", file_name(path));
        self.known.entry(identity.to_owned()).or_insert_with(named).clone()
    }
}

/// The part of a sender's name that identifies its file, without the file's name.
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
