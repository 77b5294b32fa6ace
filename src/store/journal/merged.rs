//! The journal's table of series that were merged into others. In the table of changes, they are
//! deleted.
//!
//! FORMAT.md describes the bytes. Must never know: their samples.

use redb::{TableDefinition, WriteTransaction};

use super::{Journal, fail, with_check};
use crate::{
    model::SeriesId,
    store::{dictionary::changes::SeriesUpdate, error::StoreError},
};

/// The table of parts: the series that each is a part of.
pub(super) const MERGED: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series_merged");

impl Journal {
    /// The pairs of a series and the series that it is a part of.
    pub(crate) fn merged(&self) -> Result<Vec<(SeriesId, SeriesId)>, StoreError> {
        let unknown = "which series it was merged into is not known: its samples are hidden";
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
