//! Spare files of the log: whole files of durable zeros in `reserve/`, which become the next files.
//!
//! A file whose records a checkpoint covers becomes a spare file again, so the log needs no free
//! space while it does not grow. Must never know: records.

use std::{io, sync::Arc};

use super::{name_of, write_zeros};
use crate::store::file::{database::UNFINISHED, medium::Medium};

/// The folder of spare files.
pub(crate) const FOLDER: &str = "reserve";
/// The suffix of the names of spare files.
const SPARE_END: &str = ".spare";
/// The suffix of the names of used files, which are not zeros yet.
const USED_END: &str = ".used";
/// The maximum number of spare and used files: 256 MiB.
const SPARES_MAX: usize = 64;

/// Returns the paths of the files in the reserve with this suffix, sorted.
fn files(medium: &Arc<dyn Medium>, end: &str) -> io::Result<Vec<String>> {
    let names = medium.list(FOLDER)?.into_iter().filter(|name| name.ends_with(end));
    Ok(names.map(|name| format!("{FOLDER}/{name}")).collect())
}

/// Fills used files with zeros, and creates a spare file of `bytes` when there is none.
pub(super) fn prepare(medium: &Arc<dyn Medium>, bytes: u64) -> io::Result<()> {
    for unfinished in files(medium, &format!("{SPARE_END}{UNFINISHED}"))? {
        medium.remove(&unfinished)?;
    }
    for used in files(medium, USED_END)? {
        let file = medium.open(&used)?;
        if file.len()? > bytes {
            // A large record made the file grow.
            file.set_len(bytes)?;
        }
        write_zeros(&*file, 0, bytes)?;
        file.sync_data()?;
        medium.rename(&used, &used.replace(USED_END, SPARE_END))?;
    }
    if files(medium, SPARE_END)?.is_empty() {
        let spare = format!("{FOLDER}/0{SPARE_END}");
        let new = format!("{spare}{UNFINISHED}");
        let file = medium.create(&new)?;
        let filled = write_zeros(&*file, 0, bytes).and_then(|()| file.sync_data());
        if let Err(cause) = filled {
            medium.remove(&new)?;
            return Err(cause);
        }
        medium.rename(&new, &spare)?;
    }
    Ok(())
}

/// Renames a spare file. Returns true when there was one.
pub(super) fn take(medium: &Arc<dyn Medium>, to: &str) -> io::Result<bool> {
    let Some(spare) = files(medium, SPARE_END)?.pop() else { return Ok(false) };
    medium.rename(&spare, to)?;
    Ok(true)
}

/// Moves a file of the log whose records are covered to the reserve. Returns false when there are
/// already `count_max` spare files.
pub(super) fn recycle(medium: &Arc<dyn Medium>, first: u64, count_max: usize) -> io::Result<bool> {
    let count = files(medium, SPARE_END)?.len() + files(medium, USED_END)?.len();
    if count >= count_max.min(SPARES_MAX) {
        return Ok(false);
    }
    medium.rename(&name_of(first), &format!("{FOLDER}/{first}{USED_END}"))?;
    Ok(true)
}
