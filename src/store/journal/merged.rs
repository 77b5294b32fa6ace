//! The journal's table of series that were merged into other series. In the table of changes, these
//! series are marked as deleted.
//!
//! FORMAT.md describes the bytes. Must never know: the samples of series.

use redb::{TableDefinition, WriteTransaction};

use super::{Journal, fail, with_check};
use crate::{
    model::SeriesId,
    store::{dictionary::changes::SeriesUpdate, error::StoreError},
};

/// The table of parts, with the series to which each part belongs.
pub(super) const MERGED: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series_merged");

impl Journal {
    /// Returns pairs of a part and the series to which it belongs.
    pub(crate) fn merged(&self) -> Result<Vec<(SeriesId, SeriesId)>, StoreError> {
        let unknown = "the series into which it was merged is unknown: its samples are hidden";
        self.rows(MERGED, |id, row| {
            let Some(row) = row else {
                self.damaged.note("series_merged", &format!("series {id}: {unknown}"));
                return Some(None);
            };
            let into = u32::from_le_bytes(row.try_into().ok()?);
            Some(Some((SeriesId(id), SeriesId(into))))
        })
    }
}

/// Stores merges in the transaction that changes the series.
pub(super) fn note(txn: &WriteTransaction, updates: &[SeriesUpdate]) -> Result<(), StoreError> {
    const OPERATION: &str = "change series";
    let mut merged = txn.open_table(MERGED).map_err(fail(OPERATION))?;
    for SeriesUpdate { id, into, .. } in updates {
        match into {
            Some(into) => {
                let row = with_check(&into.0.to_le_bytes(), &id.0);
                merged.insert(id.0, &*row).map_err(fail(OPERATION))?;
            }
            None => {
                merged.remove(id.0).map_err(fail(OPERATION))?;
            }
        }
    }
    Ok(())
}
