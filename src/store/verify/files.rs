//! Checks of single files: checksums of pages, and the content of documents.
//!
//! Must never know: the other files.

use std::{io, sync::Arc};

use redb::Builder;

use super::VerifyReport;
use crate::{
    model::{Cell, GranularityIndex, Kind, PartitionId, UnixMillis},
    store::{
        documents::{Documents, mark::Mark},
        encoding::lanes::series_at,
        error::StoreError,
        file::{
            assertion,
            medium::Medium,
            names::{FILE_END, HEAD_FILE, JOURNAL_FILE, data_files},
            watched::Watched,
        },
        handle::Store,
        journal::log,
    },
};

/// Returns the names of all files with data, the journal first.
pub(super) fn all(medium: &Arc<dyn Medium>) -> Result<Vec<String>, StoreError> {
    let mut names = vec![JOURNAL_FILE.to_owned()];
    names.extend(log::names(medium)?);
    names.extend(data_files(medium)?);
    Ok(names)
}

/// Verifies the checksums of a file's pages.
///
/// # Errors
/// When another process uses the file.
pub(super) fn check_integrity(
    medium: &Arc<dyn Medium>,
    name: &str,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    report.files += 1;
    report.bytes += medium.allocated_bytes(name).unwrap_or(0);
    if !name.ends_with(FILE_END) {
        // Blocks of segments are verified with their documents, records when they are replayed.
        return Ok(());
    }
    let check = || {
        let file = medium.open(name).map_err(|cause| {
            if cause.kind() == io::ErrorKind::ResourceBusy {
                redb::DatabaseError::DatabaseAlreadyOpen
            } else {
                cause.into()
            }
        })?;
        Builder::new().create_with_backend(Watched::new(file).0)?.check_integrity()
    };
    match assertion::catch(check) {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => report.fault(name, "its pages do not match their checksums"),
        Ok(Err(cause @ redb::DatabaseError::DatabaseAlreadyOpen)) => {
            return Err(StoreError::Open { file: name.to_owned(), cause });
        }
        Ok(Err(cause)) => report.error(name, &StoreError::Open { file: name.to_owned(), cause }),
        Err(location) => report.fault(name, format!("an assertion failed at {location}")),
    }
    Ok(())
}

/// Checks every document of a partition and every cell in it; `filled` receives the slots that have
/// samples.
pub(super) fn check_documents(
    store: &Store,
    id: PartitionId,
    file: &str,
    report: &mut VerifyReport,
    filled: &mut dyn FnMut(UnixMillis),
) -> Result<(), StoreError> {
    let dictionary = store.all_series();
    let width_ms = store.granularity(id.granularity).width_ms;
    let mark = store.inner.documents.check(id, &mut |start, series, cells| {
        report.documents += 1;
        let location = || format!("document of series {} at {start}", series.0);
        let cells = match cells {
            Ok(cells) => cells,
            Err(fault) => return report.fault(file, format!("{}: {fault}", location())),
        };
        let Some(kind) = dictionary.kind(series) else {
            report.fault(file, format!("{}: the dictionary has no such series", location()));
            return;
        };
        for (slot, cell) in (0..).zip(cells) {
            let at = UnixMillis(start.0 + slot * width_ms);
            if !cell.is_empty() {
                report.cells += 1;
                filled(at);
            }
            if let Some(problem) = cell_problem(cell, kind, width_ms) {
                report.fault(file, format!("{}, slot at {at}: {problem}", location()));
            }
        }
    })?;
    store.inner.documents.check_shells(id, &mut |start, series, fault| {
        let problem = match fault {
            Some(fault) => fault,
            None if dictionary.kind(series).is_none() => "the dictionary has no such series",
            None => return,
        };
        report.fault(file, format!("shells of series {} at {start}: {problem}", series.0));
    })?;
    let applied = store.inner.catalog.read().applied();
    if let Some(Mark { through, .. }) = mark
        && through > applied
    {
        report.fault(file, format!("mark {through} is above the journal's last record {applied}"));
    }
    Ok(())
}

/// Checks every cell of one granularity of the head.
pub(super) fn check_head(
    store: &Store,
    index: GranularityIndex,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let width_ms = store.granularity(index).width_ms;
    let head = store.inner.head.read(index)?;
    let dictionary = store.all_series();
    for slot in head.slots(0..i64::MAX)? {
        let mut cursor = head.cursor(&[slot])?;
        while let Some(row) = cursor.next_row()? {
            let mut is_sound = false;
            cursor.take(row, |_, cells| {
                is_sound = true;
                for (lane, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                    report.cells += 1;
                    let series = series_at(row, lane);
                    let problem = match dictionary.kind(series) {
                        None => Some("the dictionary has no such series"),
                        // A correction has no samples.
                        Some(_) if cell.n == 0 => None,
                        Some(kind) => cell_problem(cell, kind, width_ms),
                    };
                    if let Some(problem) = problem {
                        let at = UnixMillis(slot);
                        let location = format!("series {}, slot at {at}", series.0);
                        report.fault(HEAD_FILE, format!("{location}: {problem}"));
                    }
                }
            })?;
            if !is_sound {
                let first = series_at(row, 0).0;
                let slot = UnixMillis(slot);
                let location =
                    format!("the row that begins with series {first}, in the slot at {slot}");
                report.fault(HEAD_FILE, format!("{location}: its checksum does not fit"));
            }
        }
    }
    Ok(())
}

/// Returns the fault of a cell, if it has one.
fn cell_problem(cell: &Cell, kind: Kind, width_ms: i64) -> Option<&'static str> {
    let kind = kind.of_counts();
    if cell.is_empty() {
        return None;
    }
    let finite = [cell.sum, cell.first, cell.last].iter().all(|value| value.is_finite());
    let within = |value: f64| value.is_nan() || (cell.min..=cell.max).contains(&value);
    // A counter's cell whose readings have no neighbour has no rate.
    let no_rate = kind == Kind::Counter && cell.min == f64::INFINITY;
    if i64::from(cell.last_at) >= width_ms || cell.first_at > cell.last_at {
        Some("its times are not in order, or not in the slot")
    } else if kind != Kind::Gauge && !finite {
        Some("a value is not finite")
    } else if !no_rate && cell.min > cell.max {
        Some("its minimum is above its maximum")
    } else if kind != Kind::Counter && !within(cell.first) {
        Some("its first value is not between minimum and maximum")
    } else if kind != Kind::Counter && !within(cell.last) {
        Some("its last value is not between minimum and maximum")
    } else {
        None
    }
}
