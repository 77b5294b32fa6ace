//! The rows of granularities in the journal: reading and writing.
//!
//! Must never know: the use of the rows.

use redb::{ReadableTable, WriteTransaction};

use super::{
    GRANULARITIES, Journal, fail, granularities::StoredGranularity, with_check, without_check,
};
use crate::{
    model::{Span, UnixMillis},
    store::{error::StoreError, file::holes::Holes},
};

const OPERATION: &str = "store the granularities";

/// The name of a level, its new retention, and the time before which its slots lack samples.
pub(crate) type NewRetention<'a> = (&'a str, Span, UnixMillis);

impl Journal {
    /// Returns the granularities of the last run, finest first.
    pub(crate) fn granularities(&self) -> Result<Vec<StoredGranularity>, StoreError> {
        let unknown =
            "the time since which this granularity is complete is unknown: it begins again now";
        let mut all = self.rows(GRANULARITIES, |name, text| {
            let Some(text) = text else {
                self.damaged.note("granularities", &format!("{name}: {unknown}"));
                return Some(None);
            };
            StoredGranularity::from_text(name, std::str::from_utf8(text).ok()?).map(Some)
        })?;
        all.sort_by_key(|stored| stored.granularity.width_ms);
        Ok(all)
    }

    /// Stores the granularities of this run.
    pub(crate) fn set_granularities(&self, all: &[StoredGranularity]) -> Result<(), StoreError> {
        self.file.transact(OPERATION, |txn| {
            let mut table = txn.open_table(GRANULARITIES).map_err(fail(OPERATION))?;
            table.retain(|_, _| false).map_err(fail(OPERATION))?;
            for stored in all {
                let name = &*stored.granularity.name;
                let row = with_check(stored.to_text().as_bytes(), &name);
                table.insert(name, &*row).map_err(fail(OPERATION))?;
            }
            Ok(())
        })
    }

    /// Stores the times of late samples that a removed granularity lacks; returns all times whose
    /// samples it lacks.
    pub(crate) fn note_retired_holes(&self, name: &str, late: &Holes) -> Result<Holes, StoreError> {
        let away = self.change_granularity(name, |stored| {
            stored.away.add_all(late);
            stored.away.clone()
        })?;
        Ok(away.unwrap_or_default())
    }

    /// Stores that slots of a granularity before a time lack samples.
    pub(crate) fn note_lacking(&self, name: &str, before: UnixMillis) -> Result<(), StoreError> {
        self.change_granularity(name, |stored| {
            stored.complete_since = stored.complete_since.max(before);
        })?;
        Ok(())
    }

    /// Stores new retentions of granularities together, each with the time before which slots lack
    /// samples.
    pub(crate) fn note_retentions<'a>(
        &self,
        changes: impl Iterator<Item = NewRetention<'a>>,
    ) -> Result<(), StoreError> {
        self.file.transact(OPERATION, |txn| set_retentions(txn, changes))
    }

    /// Stores the time since which a granularity is complete, and the later times whose samples it
    /// lacks.
    pub(crate) fn set_complete(
        &self,
        name: &str,
        since: UnixMillis,
        away: &Holes,
    ) -> Result<(), StoreError> {
        self.change_granularity(name, |stored| {
            stored.complete_since = since;
            stored.away.clone_from(away);
        })?;
        Ok(())
    }

    /// Changes the row of a granularity; `None` when the row is missing or damaged.
    fn change_granularity<T>(
        &self,
        name: &str,
        alter: impl FnOnce(&mut StoredGranularity) -> T,
    ) -> Result<Option<T>, StoreError> {
        self.file.transact(OPERATION, |txn| change(txn, name, alter))
    }
}

/// Stores new retentions in a transaction.
pub(super) fn set_retentions<'a>(
    txn: &WriteTransaction,
    changes: impl Iterator<Item = NewRetention<'a>>,
) -> Result<(), StoreError> {
    for (name, retention, before) in changes {
        change(txn, name, |stored| {
            stored.granularity = stored.granularity.with_retention(retention);
            stored.complete_since = stored.complete_since.max(before);
        })?;
    }
    Ok(())
}

fn change<T>(
    txn: &WriteTransaction,
    name: &str,
    alter: impl FnOnce(&mut StoredGranularity) -> T,
) -> Result<Option<T>, StoreError> {
    let mut table = txn.open_table(GRANULARITIES).map_err(fail(OPERATION))?;
    let known = {
        let row = table.get(name).map_err(fail(OPERATION))?;
        let text = row.as_ref().and_then(|row| without_check(row.value(), &name));
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        text.and_then(|text| StoredGranularity::from_text(name, text))
    };
    let Some(mut known) = known else { return Ok(None) };
    let out = alter(&mut known);
    let row = with_check(known.to_text().as_bytes(), &name);
    table.insert(name, &*row).map_err(fail(OPERATION))?;
    Ok(Some(out))
}
