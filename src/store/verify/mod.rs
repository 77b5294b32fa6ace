//! Checking a data directory: every file, every document, and the granularities against each
//! other. Nothing on the disk is changed.

mod files;
mod rollup;

use std::{path::Path, sync::Arc};

use serde::Serialize;

use super::{
    Store, StoreError,
    journal::{JOURNAL_FILE, Journal},
    levels,
    medium::Medium,
    overlay,
    partition::Partition,
};
use crate::model::UnixMillis;

/// Faults that a report lists; more are only counted.
const FAULTS_SHOWN_MAX: usize = 1000;

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Path below the data directory.
    pub file: String,
    /// Where in the file, and what is wrong there.
    pub problem: String,
}

/// What was checked and found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    /// Files checked.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Series in the dictionary.
    pub series: u64,
    /// Journal records that no checkpoint has taken up yet.
    pub records: u64,
    /// Documents checked.
    pub documents: u64,
    /// Cells that hold samples.
    pub cells: u64,
    /// Slots that were recomputed from the next finer granularity and compared.
    pub compared: u64,
    /// What could not be compared, and why.
    pub notes: Vec<String>,
    /// Number of faults.
    pub fault_count: u64,
    /// The first of them.
    pub faults: Vec<Fault>,
}

impl VerifyReport {
    /// Whether everything is as it must be.
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }

    fn fault(&mut self, file: &str, problem: impl Into<String>) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_SHOWN_MAX {
            self.faults.push(Fault { file: file.to_owned(), problem: problem.into() });
        }
    }

    /// An error that ends the check of its file.
    fn error(&mut self, file: &str, error: &StoreError) {
        self.fault(file, error.chain());
    }
}

/// A step of the work: what is looked at, and how much of the whole is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyProgress<'a> {
    /// The file, and what is done with it.
    pub doing: &'a str,
    /// Steps done.
    pub done: u64,
    /// Steps in all.
    pub steps: u64,
}

/// Checks the data directory in `folder`. No daemon may be using it.
///
/// # Errors
/// When it is no data directory, or is in use. Faults in the files are in the report.
pub fn verify(
    folder: &Path,
    now: UnixMillis,
    progress: &mut dyn FnMut(VerifyProgress<'_>),
) -> Result<VerifyReport, StoreError> {
    let medium: Arc<dyn Medium> = Arc::new(overlay::ReadOnlyFolder::new(folder));
    if !medium.exists(JOURNAL_FILE) {
        return Err(StoreError::Mismatch {
            file: JOURNAL_FILE.to_owned(),
            problem: "it is missing: this is not a data directory of granary".to_owned(),
        });
    }
    let mut report = VerifyReport::default();
    let names = files::all(&medium)?;
    // Each file is read twice: byte by byte, and document by document.
    let steps = names.len() as u64 * 2;
    for (done, name) in (0..).zip(&names) {
        progress(VerifyProgress { doing: &format!("checksums of {name}"), done, steps });
        files::check_integrity(&medium, name, &mut report)?;
    }
    let Some(store) = open(&medium, now, &mut report) else { return Ok(report) };
    report.series = store.dictionary().len() as u64;
    let damaged = store.damaged_partitions();
    if !damaged.is_empty() {
        report.notes.push(format!("not compared, because damaged: {}", damaged.join(", ")));
    }
    for (done, partition) in (names.len() as u64..).zip(store.inner.partitions.all()) {
        let name = partition.file_path().to_owned();
        progress(VerifyProgress { doing: &format!("documents of {name}"), done, steps });
        if let Err(cause) = check_partition(&store, &partition, now, &mut report) {
            report.error(&name, &cause);
        }
    }
    Ok(report)
}

fn check_partition(
    store: &Store,
    partition: &Arc<Partition>,
    now: UnixMillis,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let before = report.cells;
    files::check_documents(store, partition, report)?;
    if report.cells > before {
        rollup::check_coarser_exists(store, partition, report)?;
    }
    rollup::compare(store, partition, now, report)
}

/// Opens the store as the daemon would, with the granularities that its journal names.
fn open(medium: &Arc<dyn Medium>, now: UnixMillis, report: &mut VerifyReport) -> Option<Store> {
    let opened = Journal::open(medium)
        .and_then(|journal| journal.levels())
        .and_then(|known| levels::as_set(&known, JOURNAL_FILE))
        .and_then(|granularities| Store::open(medium.clone(), granularities, now));
    match opened {
        Ok((store, _, recovery)) => {
            report.records = recovery.records;
            // Until a checkpoint that was cut short is finished, partitions differ.
            if recovery.resumes_checkpoint
                && let Err(cause) = store.checkpoint(now)
            {
                report.error(JOURNAL_FILE, &cause);
                return None;
            }
            Some(store)
        }
        Err(cause) => {
            report.error(JOURNAL_FILE, &cause);
            None
        }
    }
}
