//! Rebuilding: a coarser granularity is computed from the next finer granularity for times whose
//! data was lost, or before the granularity was added.
//!
//! The store of a stopped data directory first moves every cell into documents and removes damaged
//! data, whose times become holes. Then each granularity, from finer to coarser, replaces the cells
//! of its missing slots, and forgets the holes in the same transaction. Replacing is idempotent, so
//! an interrupted run can be repeated, and no cell counts twice.
//!
//! Must never know: who requests a rebuild.

mod changes;
mod level;
mod settle;
mod times;

use std::{ops::Range, path::Path, sync::Arc};

use serde::Serialize;

use super::{
    documents::Documents,
    error::StoreError,
    file::{medium::Medium, names::JOURNAL_FILE, read_only::ReadOnlyFolder},
    handle::Store,
    journal::{Journal, granularities},
};
use crate::model::UnixMillis;
use level::LevelStep;
use times::Times;

/// The work that a rebuild does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildWork {
    /// The times to rebuild.
    pub range: Range<UnixMillis>,
    /// The names of the granularities to rebuild; empty for all.
    pub granularities: Vec<String>,
}

impl RebuildWork {
    /// Returns the work of rebuilding all missing times of all granularities.
    pub fn all() -> Self {
        let range = UnixMillis::EARLIEST..UnixMillis::LATEST;
        Self { range, granularities: Vec::new() }
    }
}

/// A time range, in Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RebuiltTimes {
    /// The start.
    pub start: i64,
    /// The end, exclusive.
    pub end: i64,
}

/// The outcome for one granularity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RebuiltLevel {
    /// The name of the granularity.
    pub granularity: String,
    /// The finer granularity from which it is computed.
    pub from: String,
    /// The times that were missing and are now complete; in a dry run, the times that can be
    /// computed.
    pub rebuilt: Vec<RebuiltTimes>,
    /// The times that stay missing, because the finer granularity lacks them.
    pub missing: Vec<RebuiltTimes>,
    /// Cells that were written because they were missing or had fewer samples.
    pub cells: u64,
    /// Documents with these cells.
    pub documents: u64,
    /// Cells that stay as they are, because they have more samples than the finer granularity.
    pub larger: u64,
}

/// The outcome of a rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RebuildReport {
    /// Descriptions of the files that were set aside or removed, and of the damaged data that was
    /// removed from other files.
    pub dropped: Vec<String>,
    /// The granularities, from finer to coarser, without the finest.
    pub levels: Vec<RebuiltLevel>,
}

/// Rebuilds granularities of a stopped data directory. `progress` receives the current step.
///
/// # Errors
/// When the store cannot be opened, when a granularity is unknown, or when a file cannot be read or
/// written; a second run continues.
pub fn rebuild(
    medium: &Arc<dyn Medium>,
    work: &RebuildWork,
    now: UnixMillis,
    progress: &mut dyn FnMut(&str),
) -> Result<RebuildReport, StoreError> {
    run(medium, work, now, false, progress)
}

/// Returns the report that [`rebuild`] would return, without the numbers of cells and documents.
/// Changes no file.
///
/// # Errors
/// As [`rebuild`].
pub fn plan_rebuild(
    folder: &Path,
    work: &RebuildWork,
    now: UnixMillis,
    progress: &mut dyn FnMut(&str),
) -> Result<RebuildReport, StoreError> {
    let medium: Arc<dyn Medium> = Arc::new(ReadOnlyFolder::new(folder));
    run(&medium, work, now, true, progress)
}

fn run(
    medium: &Arc<dyn Medium>,
    work: &RebuildWork,
    now: UnixMillis,
    is_dry: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<RebuildReport, StoreError> {
    let fault = |cause| StoreError::Io { operation: "find", file: JOURNAL_FILE.to_owned(), cause };
    if !medium.exists(JOURNAL_FILE).map_err(fault)? {
        return Err(StoreError::Mismatch {
            file: JOURNAL_FILE.to_owned(),
            problem: "it is missing: this is not a data directory of granary".to_owned(),
        });
    }
    progress("opening the data directory");
    let set = {
        let journal = Journal::open(medium)?;
        granularities::as_set(&journal.granularities()?, JOURNAL_FILE)?
    };
    let files_before = changes::files(medium)?;
    let (store, _appender, recovery) = Store::open_with_rules(medium.clone(), set, None, now)?;
    let mut report = RebuildReport {
        dropped: changes::since(medium, &files_before)?,
        ..RebuildReport::default()
    };
    // No sample has arrived since the last run, so nothing has become incomplete.
    let now = recovery.last_run.map_or(now, |last_run| now.min(last_run));
    let classes = store.inner.classes.clone();
    let with_finer: Vec<_> =
        classes.indexes().filter(|index| classes.finer(*index).is_some()).collect();
    let names: Vec<_> =
        with_finer.iter().map(|index| store.granularity(*index).name.clone()).collect();
    if let Some(name) = work.granularities.iter().find(|name| !names.contains(name)) {
        let problem = format!(
            "{name} cannot be rebuilt: the granularities that have a finer one are {}",
            names.join(", ")
        );
        return Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem });
    }
    progress("reading all documents");
    store.drop_damage(is_dry, &mut report.dropped, progress)?;
    if !is_dry {
        progress("moving all cells into documents");
        store.settle(now)?;
    }
    let mut planned = Times::default();
    for index in with_finer {
        let name = &store.granularity(index).name;
        let of_finer = std::mem::take(&mut planned);
        if work.granularities.is_empty() || work.granularities.contains(name) {
            progress(&format!("rebuilding {name}"));
            let step = LevelStep::new(&store, index, work, now, is_dry.then_some(&of_finer))?;
            planned = step.todo().clone();
            report.levels.push(step.run(progress)?);
        }
    }
    Ok(report)
}

impl Store {
    /// Removes the damaged data of all partitions; in a dry run, only reports it.
    fn drop_damage(
        &self,
        is_dry: bool,
        out: &mut Vec<String>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), StoreError> {
        let documents = &self.inner.documents;
        for info in documents.partitions() {
            progress(&format!("reading {}", info.file));
            if is_dry {
                documents.check(info.id, &mut |_, _, _| {})?;
                continue;
            }
            let grid = documents.grid(info.id.granularity, info.id.start);
            let dropped = match documents.drop_damage(&grid) {
                // A damaged file was set aside and replaced.
                Err(fault) if fault.is_damage() => {
                    out.push(format!("{}: set aside, because {}", info.file, fault.with_causes()));
                    continue;
                }
                outcome => outcome?,
            };
            let counts = [
                (dropped.documents, "damaged documents"),
                (dropped.segments, "damaged segments"),
                (dropped.shells, "damaged blocks of shells"),
            ];
            for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
                out.push(format!("{}: removed {what}: {count}", info.file));
            }
        }
        Ok(())
    }
}
