//! The downgrade to an older release: converts the files of a stopped data directory to an earlier
//! format.
//!
//! Each file changes in one transaction, the journal last. While the journal has the later format,
//! an older release refuses the directory, and this release opens it, whatever format the other
//! files have. After an interruption, a second run continues.
//!
//! Must never know: which release reads the result.

use std::sync::Arc;

use redb::{ReadTransaction, TableDefinition, TableHandle, WriteTransaction};

use super::{
    documents::partition::{self, SHELLS, rows::moments, shells},
    error::StoreError,
    file::{
        database::{DatabaseFile, FileOptions},
        medium::Medium,
        names::{FILE_END, HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE, data_files},
        version::{self, VERSION_KEY},
    },
    head::{HISTOGRAMS_PREFIX, ROWS_PREFIX},
    journal::{self, ERASURES},
    objects::{self, ObjectKind},
};

/// The format that [`downgrade`] writes.
pub const DOWNGRADE_VERSION: u64 = 1;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The tables of the file of objects in format 1.
const OF_OBJECTS: [&str; 3] = ["meta", "objects", "hosts"];
/// The tables of the head in format 1, except the tables of rows.
const OF_HEAD: [&str; 2] = ["meta", "holes"];
/// The tables of a partition in format 1.
const OF_PARTITION: [&str; 4] = ["meta", "documents", "segments", "holes"];
const OPTIONS: FileOptions = FileOptions { cache_bytes: 4 << 20, quick_repair: true };

/// The outcome of a downgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct DowngradeReport {
    /// The number of database files, each of which stores its format.
    pub files: u64,
    /// The number of files that were changed.
    pub lowered: u64,
    /// The number of shells that were removed, because the earlier format has none.
    pub shells: u64,
    /// The number of keys that were removed, because the earlier format has no access control.
    /// One-time codes and sessions are removed, too, and not counted.
    pub keys: u64,
    /// The number of users that were removed.
    pub users: u64,
    /// The number of texts of rules and receivers that were removed.
    pub texts: u64,
}

/// Lowers all files of a data directory to [`DOWNGRADE_VERSION`]. No process may use it in the
/// meantime. `progress` receives the name of each file, the number of finished steps and the total
/// number of steps.
///
/// # Errors
/// When the directory is no data directory, when a file is damaged, has an unknown format, an
/// unknown table or content that the earlier format cannot express, such as other projects (nothing
/// is changed then), or when a file cannot be written (a second run continues).
pub fn downgrade(
    medium: &Arc<dyn Medium>,
    progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<DowngradeReport, StoreError> {
    let fault = |cause| StoreError::Io { operation: "find", file: JOURNAL_FILE.to_owned(), cause };
    if !medium.exists(JOURNAL_FILE).map_err(fault)? {
        return Err(StoreError::Mismatch {
            file: JOURNAL_FILE.to_owned(),
            problem: "it is missing: this is not a data directory of granary".to_owned(),
        });
    }
    let mut names = data_files(medium)?;
    names.retain(|name| name.ends_with(FILE_END));
    names.push(JOURNAL_FILE.to_owned());
    let steps = names.len() as u64 * 2;
    for (done, name) in (0..).zip(&names) {
        progress(name, done, steps);
        StoredFile::open(medium, name)?.check()?;
    }
    let mut report = DowngradeReport { files: names.len() as u64, ..DowngradeReport::default() };
    for (done, name) in (names.len() as u64..).zip(&names) {
        progress(name, done, steps);
        if let Some(removed) = StoredFile::open(medium, name)?.lower()? {
            report.lowered += 1;
            report.shells += removed.shells;
            report.keys += removed.keys;
            report.users += removed.users;
            report.texts += removed.texts;
        }
    }
    Ok(report)
}

/// The kinds of files, which differ in their tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Journal,
    Head,
    Objects,
    Partition,
}

impl FileKind {
    fn of(name: &str) -> Self {
        match name {
            JOURNAL_FILE => Self::Journal,
            HEAD_FILE => Self::Head,
            OBJECTS_FILE => Self::Objects,
            _ => Self::Partition,
        }
    }

    /// Returns true when [`StoredFile::lower`] can convert a table: the earlier format has it, or
    /// it is removed.
    fn can_convert(self, table: &str) -> bool {
        match self {
            Self::Journal => journal::TABLES.contains(&table),
            Self::Head => OF_HEAD.contains(&table) || table.starts_with(ROWS_PREFIX),
            Self::Objects => OF_OBJECTS.contains(&table),
            Self::Partition => OF_PARTITION.contains(&table) || table == SHELLS.name(),
        }
    }
}

/// The numbers of removed items, which the earlier format does not have.
#[derive(Debug, Clone, Copy, Default)]
struct RemovedCounts {
    shells: u64,
    keys: u64,
    users: u64,
    texts: u64,
}

/// A database file, which stores its format.
struct StoredFile {
    kind: FileKind,
    file: DatabaseFile,
    /// The format that this release writes.
    current_format: u64,
}

impl StoredFile {
    fn open(medium: &Arc<dyn Medium>, name: &str) -> Result<Self, StoreError> {
        let file = DatabaseFile::open(medium, name.to_owned(), OPTIONS)?;
        Ok(Self { kind: FileKind::of(name), file, current_format: medium.format() })
    }

    /// Returns the refusal of a file with native histograms.
    fn has_histograms(&self) -> StoreError {
        let problem =
            "it has native histograms, which releases of format 1 cannot read: keep this \
                       release, or restore a snapshot without histograms"
                .to_owned();
        StoreError::Mismatch { file: self.file.name().to_owned(), problem }
    }

    /// Refuses a file that cannot be lowered.
    fn check(&self) -> Result<(), StoreError> {
        let file = &self.file;
        let txn = file.read()?;
        file.guard("read", || {
            version::check(file.name(), self.version(&txn)?, self.current_format)?;
            for table in txn.list_tables().map_err(file.fail("read"))? {
                if self.kind == FileKind::Journal && table.name() == ERASURES.name() {
                    let problem = "samples were deleted since the last checkpoint: start the \
                                   daemon once, stop it with SIGTERM, and repeat this command"
                        .to_owned();
                    return Err(StoreError::Mismatch { file: file.name().to_owned(), problem });
                }
                if table.name().starts_with(HISTOGRAMS_PREFIX) {
                    return Err(self.has_histograms());
                }
                if !self.kind.can_convert(table.name()) {
                    let problem = format!(
                        "it has the table {:?}, which this release cannot convert to format \
                         {DOWNGRADE_VERSION}: use the release that wrote it",
                        table.name()
                    );
                    return Err(StoreError::Mismatch { file: file.name().to_owned(), problem });
                }
            }
            if self.kind == FileKind::Journal && journal::replicated::is_replica(&txn)? {
                let problem = "it belongs to a replica, and releases of format 1 would continue it \
                               as a store of its own";
                let file = file.name().to_owned();
                return Err(StoreError::Mismatch { file, problem: problem.to_owned() });
            }
            if self.kind == FileKind::Journal && journal::projects::has_histograms(&txn)? {
                return Err(self.has_histograms());
            }
            let project = match self.kind {
                FileKind::Journal => journal::projects::with_series(&txn)?,
                FileKind::Objects => objects::project_with_objects(&txn)?,
                FileKind::Head | FileKind::Partition => None,
            };
            let Some(project) = project else { return Ok(()) };
            let problem = format!(
                "the project {project} has series or objects, which releases of format \
                 {DOWNGRADE_VERSION} would mix with those of others: export and delete them first"
            );
            Err(StoreError::Mismatch { file: file.name().to_owned(), problem })
        })
    }

    fn version(&self, txn: &ReadTransaction) -> Result<u64, StoreError> {
        let file = &self.file;
        match self.kind {
            FileKind::Journal => journal::numbers::sound_version(txn),
            FileKind::Head | FileKind::Objects => {
                let meta = txn.open_table(META).map_err(file.fail("read"))?;
                let version = meta.get(VERSION_KEY).map_err(file.fail("read"))?;
                Ok(version.map_or(0, |version| version.value()))
            }
            FileKind::Partition => {
                let meta = txn.open_table(partition::META).map_err(file.fail("read"))?;
                let version = meta.get(VERSION_KEY).map_err(file.fail("read"))?;
                Ok(version.map_or(0, |version| version.value() as u64))
            }
        }
    }

    /// Lowers the file in one transaction. Returns the numbers of removed items; `None` when
    /// nothing had to be changed.
    fn lower(&self) -> Result<Option<RemovedCounts>, StoreError> {
        let file = &self.file;
        let txn = file.read()?;
        if file.guard("read", || self.version(&txn))? == DOWNGRADE_VERSION
            && !(self.kind == FileKind::Partition
                && (has_shells(file, &txn)? || moments::has_any(file, &txn)?))
        {
            return Ok(None);
        }
        drop(txn);
        file.transact("lower the format", |txn| self.lower_within(txn)).map(Some)
    }

    fn lower_within(&self, txn: &WriteTransaction) -> Result<RemovedCounts, StoreError> {
        const OPERATION: &str = "lower the format";
        let (file, mut removed) = (&self.file, RemovedCounts::default());
        match self.kind {
            FileKind::Journal => {
                journal::projects::remove_senders(txn)?;
                journal::numbers::set_version(txn, DOWNGRADE_VERSION)?;
            }
            FileKind::Head | FileKind::Objects => {
                let mut meta = txn.open_table(META).map_err(file.fail(OPERATION))?;
                meta.insert(VERSION_KEY, DOWNGRADE_VERSION).map_err(file.fail(OPERATION))?;
                drop(meta);
                if self.kind == FileKind::Objects {
                    removed.keys = objects::remove_all(txn, ObjectKind::Key)?;
                    objects::remove_other_projects(txn)?;
                    objects::remove_all(txn, ObjectKind::Code)?;
                    removed.users = objects::remove_all(txn, ObjectKind::User)?;
                    objects::remove_all(txn, ObjectKind::Session)?;
                    removed.texts = objects::remove_all(txn, ObjectKind::RuleText)?
                        + objects::remove_all(txn, ObjectKind::ReceiversText)?;
                }
            }
            FileKind::Partition => {
                let mut meta = txn.open_table(partition::META).map_err(file.fail(OPERATION))?;
                meta.insert(VERSION_KEY, DOWNGRADE_VERSION as i64).map_err(file.fail(OPERATION))?;
                removed.shells = shells::remove_all(file, txn)?;
                drop(meta);
                moments::remove_all(file, txn)?;
            }
        }
        Ok(removed)
    }
}

/// Returns true when a partition has a table of shells. This release adds the table to a partition
/// of format 1 when it preallocates documents.
fn has_shells(file: &DatabaseFile, txn: &ReadTransaction) -> Result<bool, StoreError> {
    let mut tables = txn.list_tables().map_err(file.fail("read"))?;
    Ok(tables.any(|table| table.name() == SHELLS.name()))
}
