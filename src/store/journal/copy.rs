//! A copy of the journal for a snapshot: the files of the log, and the tables.
//!
//! Must never know: the other files of a snapshot.

use std::{path::Path, sync::Arc};

use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction};

use super::{
    CHANGES, ENDS, GRANULARITIES, HISTOGRAMS, HOLES, IN_HEAD, Journal, MERGED, META, OPTIONS, SEEN,
    SENDERS, SERIES, STATES, epochs::EPOCHS, erasures::ERASURES, fail, files::note_files,
    log::copy::LogCopies,
};
use crate::store::{
    error::StoreError,
    file::{database::DatabaseFile, medium::Medium, names::JOURNAL_FILE},
};

impl Journal {
    /// Writes a journal with the current content into an empty folder; returns the number and the
    /// size in bytes of the log's files. No checkpoint may run in the meantime.
    pub(crate) fn copy_to(
        &self,
        target: &Arc<dyn Medium>,
        folder: &Path,
        files: &[String],
    ) -> Result<(u64, u64), StoreError> {
        let (mut copies, through) = (LogCopies::default(), self.checkpointed_through()?);
        let mut full = self.log.lock().files_after(through);
        full.pop();
        copies.copy(&*self.medium, full, folder)?;
        let from = {
            // The series of a record are stored before the record.
            let mut log = self.log.lock();
            // A failed record must not be in the copy.
            log.settle()?;
            let rest = log.files_after(through).into_iter().chain(log.unnoted()).collect();
            copies.copy(&*self.medium, rest, folder)?;
            self.file.read()?
        };
        let name = JOURNAL_FILE.to_owned();
        DatabaseFile::create(target, name, OPTIONS, |_, to| {
            copy_table(&from, to, META)?;
            copy_table(&from, to, SERIES)?;
            copy_table(&from, to, CHANGES)?;
            copy_table(&from, to, MERGED)?;
            copy_table(&from, to, SENDERS)?;
            copy_table(&from, to, STATES)?;
            copy_table(&from, to, SEEN)?;
            copy_table(&from, to, HISTOGRAMS)?;
            copy_table(&from, to, GRANULARITIES)?;
            copy_table(&from, to, ENDS)?;
            copy_table(&from, to, HOLES)?;
            copy_table(&from, to, IN_HEAD)?;
            copy_table(&from, to, EPOCHS)?;
            copy_table(&from, to, ERASURES)?;
            note_files(to, files)
        })?;
        Ok((copies.files(), copies.bytes))
    }
}

fn copy_table<K: redb::Key + 'static, V: redb::Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), StoreError> {
    let source = match from.open_table(table) {
        // The table of epochs exists since the first rules, the table of erasures since the last
        // erasure, the table of histograms since the first histogram.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        source => source.map_err(fail("copy"))?,
    };
    let mut copy = to.open_table(table).map_err(fail("copy"))?;
    for entry in source.iter().map_err(fail("copy"))? {
        let (key, value) = entry.map_err(fail("copy"))?;
        copy.insert(key.value(), value.value()).map_err(fail("copy"))?;
    }
    Ok(())
}
