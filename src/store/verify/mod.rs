//! Verification of a data directory: checks every file, document and object, and compares the
//! granularities with each other. Nothing on the disk is changed.
//!
//! Must never know: how a fault is fixed.

mod files;
pub(super) mod rollup;

use std::{collections::BTreeSet, ops::Range, path::Path, sync::Arc};

use serde::Serialize;

use super::{
    audit::AUDIT_FOLDER,
    documents::Documents,
    error::StoreError,
    file::{
        medium::Medium,
        names::{HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE},
        read_only::ReadOnlyFolder,
    },
    handle::Store,
    journal::{Journal, granularities, register},
    replica::Replica,
};
use crate::model::{GranularityIndex, PartitionId, UnixMillis};

/// The maximum number of faults that a report lists; further faults are only counted.
const FAULTS_SHOWN_MAX: usize = 1000;

/// A fault of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Path below the data directory.
    pub file: String,
    /// The location in the file, and the fault.
    pub problem: String,
}

/// The outcome of verifying.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    /// Files checked.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Series in the dictionary.
    pub series: u64,
    /// Journal records that no checkpoint covers yet.
    pub records: u64,
    /// Documents checked.
    pub documents: u64,
    /// Cells that are not empty.
    pub cells: u64,
    /// Slots that were recomputed from the next finer granularity and compared.
    pub compared: u64,
    /// The comparisons that were not possible, with the reasons.
    pub notes: Vec<String>,
    /// Number of faults.
    pub fault_count: u64,
    /// The first faults.
    pub faults: Vec<Fault>,
}

impl VerifyReport {
    /// Returns true when no fault was found.
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }

    fn fault(&mut self, file: &str, problem: impl Into<String>) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_SHOWN_MAX {
            self.faults.push(Fault { file: file.to_owned(), problem: problem.into() });
        }
    }

    /// Reports an error that ends the check of its file.
    fn error(&mut self, file: &str, error: &StoreError) {
        self.fault(file, error.with_causes());
    }
}

/// The progress of verifying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyProgress<'a> {
    /// The current step: the part of a file that is checked.
    pub doing: &'a str,
    /// The number of finished steps.
    pub done: u64,
    /// The total number of steps.
    pub steps: u64,
}

/// Checks the data directory in `folder`. No daemon may use it in the meantime.
///
/// # Errors
/// When `folder` is no data directory, or is in use. Faults in the files are in the report.
pub fn verify(
    folder: &Path,
    now: UnixMillis,
    progress: &mut dyn FnMut(VerifyProgress<'_>),
) -> Result<VerifyReport, StoreError> {
    let medium: Arc<dyn Medium> = Arc::new(ReadOnlyFolder::new(folder));
    let fault = |cause| StoreError::Io { operation: "find", file: JOURNAL_FILE.to_owned(), cause };
    if !medium.exists(JOURNAL_FILE).map_err(fault)? {
        return Err(StoreError::Mismatch {
            file: JOURNAL_FILE.to_owned(),
            problem: "it is missing: this is not a data directory of granary".to_owned(),
        });
    }
    let mut report = VerifyReport::default();
    let names = files::all(&medium)?;
    // Each file is read twice: first its pages, then its cells.
    let steps = names.len() as u64 * 2;
    for (done, name) in (0..).zip(&names) {
        progress(VerifyProgress { doing: &format!("checksums of {name}"), done, steps });
        files::check_integrity(&medium, name, &mut report)?;
    }
    let Some(store) = open(&medium, now, &mut report) else { return Ok(report) };
    report.series = store.all_series().len() as u64;
    if let Err(cause) = store.inner.audit.check(&mut |problem| report.fault(AUDIT_FOLDER, problem))
    {
        report.error(AUDIT_FOLDER, &cause);
    }
    if let Err(cause) =
        store.inner.objects.check(&mut |problem| report.fault(OBJECTS_FILE, problem))
    {
        report.error(OBJECTS_FILE, &cause);
    }
    let damaged = store.damaged_partitions();
    if !damaged.is_empty() {
        report
            .notes
            .push(format!("not compared, because damaged or missing: {}", damaged.join(", ")));
    }
    let (rows, count) = store.damaged_journal_rows();
    report.fault_count += count - rows.len() as u64;
    for row in rows {
        report.fault(JOURNAL_FILE, row);
    }
    note_holes(&store, &mut report);
    if let Err(cause) = check_cells(&store, now, &mut report, &mut |doing, done| {
        progress(VerifyProgress { doing, done: names.len() as u64 + done, steps });
    }) {
        report.error(HEAD_FILE, &cause);
    }
    Ok(report)
}

/// Reports the times whose damaged or lost data was replaced.
fn note_holes(store: &Store, report: &mut VerifyReport) {
    for (index, granularity) in (0..).map(GranularityIndex).zip(store.all_granularities()) {
        let (holes, name) = (store.remembered_holes(index), &granularity.name);
        for Range { start, end } in holes.stretches() {
            report.notes.push(format!(
                "not compared: {name} lacks samples from {start} to {end}, which were damaged or \
                 lost; later samples may have replaced them"
            ));
        }
    }
}

/// Checks the cells of the head and of documents.
fn check_cells(
    store: &Store,
    now: UnixMillis,
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(&str, u64),
) -> Result<(), StoreError> {
    progress(&format!("cells of {HEAD_FILE}"), 0);
    let in_head = rollup::partitions_of_head(store)?;
    for index in (0..store.all_granularities().len()).map(GranularityIndex) {
        files::check_head(store, index, report)?;
    }
    let mut ids: BTreeSet<_> =
        store.inner.documents.partitions().iter().map(|partition| partition.id).collect();
    ids.extend(&in_head);
    for (done, id) in (1..).zip(ids) {
        let documents = &store.inner.documents;
        let name = documents.name(&documents.grid(id.granularity, id.start));
        progress(&format!("cells of {name}"), done);
        if let Err(cause) = check_partition(store, id, &name, &in_head, now, report) {
            report.error(&name, &cause);
        }
    }
    Ok(())
}

fn check_partition(
    store: &Store,
    id: PartitionId,
    name: &str,
    in_head: &BTreeSet<PartitionId>,
    now: UnixMillis,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let coarser = rollup::Coarser::of(store, id);
    let mut is_expected = false;
    let mut expect = |at| is_expected |= coarser.must_have(at);
    files::check_documents(store, id, name, report, &mut expect)?;
    if store.inner.classes.of_level(id.granularity).is_none() {
        // A retired granularity has fewer cells than the others.
        return Ok(());
    }
    if in_head.contains(&id) {
        let range = store.inner.documents.grid(id.granularity, id.start).range();
        let slots = store.inner.head.read(id.granularity)?.slots(range)?;
        slots.into_iter().map(UnixMillis).for_each(expect);
    }
    if is_expected {
        rollup::check_coarser_exists(store, id, in_head, report);
    }
    rollup::compare(store, id, in_head, now, report)
}

/// Opens the store as the daemon would, with the granularities of its journal.
fn open(medium: &Arc<dyn Medium>, now: UnixMillis, report: &mut VerifyReport) -> Option<Store> {
    let missing = Journal::open(medium).and_then(|journal| {
        let set = granularities::as_set(&journal.granularities()?, JOURNAL_FILE)?;
        let is_replica = journal.changes_through()?.is_some();
        Ok((set, register::missing(medium, &journal)?, is_replica))
    });
    if let Ok((_, _, true)) = &missing {
        return open_replica(medium, now, report);
    }
    let opened = missing.and_then(|(granularities, missing, _)| {
        for file in missing {
            report.fault(&file, "it is missing, although the journal lists it");
        }
        Store::open_with_rules(medium.clone(), granularities, None, now)
    });
    match opened {
        Ok((store, _, recovery)) => {
            report.records = recovery.records;
            // Partitions are consistent only after an interrupted checkpoint is finished.
            if recovery.resumes_checkpoint
                && let Err(cause) = store.checkpoint(now)
            {
                report.error(JOURNAL_FILE, &cause);
                return None;
            }
            Some(store)
        }
        Err(cause) => {
            report.error(cause.file(), &cause);
            None
        }
    }
}

/// Opens a replica, whose records after the last checkpoint are elsewhere.
fn open_replica(
    medium: &Arc<dyn Medium>,
    now: UnixMillis,
    report: &mut VerifyReport,
) -> Option<Store> {
    match Replica::open(medium.clone(), None, now) {
        Ok((store, replica)) if !replica.is_behind_files() => Some(store),
        Ok(_) => {
            let note = "not compared: a checkpoint of this replica was interrupted, and the records \
                        to finish it are in the shared log";
            report.notes.push(note.to_owned());
            None
        }
        Err(cause) => {
            report.error(cause.file(), &cause);
            None
        }
    }
}
