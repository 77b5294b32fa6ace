//! A stopped data directory that a command changes.

use std::{path::Path, sync::Arc};

use anyhow::{Context, bail};

use crate::{
    clock::{Clock, SystemClock},
    daemon::{DataDir, process_using},
    model::AuditRecord,
    store::{Folder, Medium, append_audit},
};

/// A data directory that no daemon can start on while this value exists.
pub(super) struct StoppedDir {
    _lock: DataDir,
    pub(super) medium: Arc<dyn Medium>,
}

impl StoppedDir {
    /// Writes the record of a command on the directory to the directory's audit, with the user who
    /// runs the command.
    pub(super) fn record(&self, command: &str, object: &str, is_done: bool) -> anyhow::Result<()> {
        let who = format!("uid {}", rustix::process::getuid().as_raw());
        let now = SystemClock.now();
        let record = AuditRecord::of_machine(&who, command, object, is_done, now);
        append_audit(&self.medium, vec![record]).context("write the command to the audit")
    }

    /// Locks an existing data directory for the command `command`.
    pub(super) fn claim(dir: &Path, command: &str) -> anyhow::Result<Self> {
        let shown = dir.display();
        if !dir.join("journal.redb").is_file() {
            bail!("{command} {shown}: it is not a data directory of granary");
        }
        if let Some(pid) = process_using(dir) {
            bail!(
                "{command} {shown}: the daemon with process id {pid} uses this data directory; \
                 stop it first"
            );
        }
        let lock = DataDir::claim(dir)?;
        let medium = Folder::new(dir).with_context(|| format!("{command} {shown}"))?;
        Ok(Self { _lock: lock, medium: Arc::new(medium) })
    }
}
