//! The tables of the head and the keys of its rows.
//!
//! Must never know: the cells of a row, transactions.

use std::ops::Range;

use redb::{ReadTransaction, ReadableTable, TableDefinition};

use super::row::HeadRow;
use crate::{
    model::UnixMillis,
    store::{
        encoding::lanes::series_at,
        error::StoreError,
        file::{checksum::checksum, damage::Damage, names::HEAD_FILE},
    },
};

pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Prefix of tables with rows; a granularity's name follows.
pub(crate) const ROWS_PREFIX: &str = "rows/";
/// Prefix of the tables of histograms; a granularity's name follows.
pub(crate) const HISTOGRAMS_PREFIX: &str = "histograms/";
/// The number of low bits of a key that contain the number of the row.
const ROW_BITS: u32 = 26;

pub(super) fn rows_name(granularity: &str) -> String {
    format!("{ROWS_PREFIX}{granularity}")
}

/// Returns the name of a granularity's table of histograms.
pub(super) fn histograms_name(granularity: &str) -> String {
    format!("{HISTOGRAMS_PREFIX}{granularity}")
}

pub(super) fn rows_table(name: &str) -> TableDefinition<'_, u64, &'static [u8]> {
    TableDefinition::new(name)
}

pub(super) fn through(txn: &ReadTransaction, granularity: &str) -> Result<Option<u64>, StoreError> {
    let meta = txn.open_table(META).map_err(fail("read"))?;
    let value = |key: String| {
        Ok::<_, StoreError>(meta.get(&*key).map_err(fail("read"))?.map(|guard| guard.value()))
    };
    let through = value(through_key(granularity))?;
    if value(check_key(granularity))? == through.map(|through| checksum(&[through])) {
        return Ok(through);
    }
    let problem = format!("the checksum of {} does not match", through_key(granularity));
    Err(StoreError::Corrupt { file: HEAD_FILE.to_owned(), problem })
}

pub(super) fn check_key(granularity: &str) -> String {
    format!("through_check/{granularity}")
}

pub(super) fn through_key(granularity: &str) -> String {
    format!("through/{granularity}")
}

pub(super) fn fail<E: Into<redb::Error>>(operation: &'static str) -> impl FnOnce(E) -> StoreError {
    StoreError::redb(operation, HEAD_FILE)
}

/// Returns the key of a row: the slot's start in seconds, then the row's number. Slots begin at
/// whole seconds.
pub(super) fn key(slot_start: i64, row: u32) -> u64 {
    ((slot_start / 1000) as u64) << ROW_BITS | u64::from(row)
}

pub(super) fn row_of_key(key: u64) -> u32 {
    (key & ((1 << ROW_BITS) - 1)) as u32
}

/// Reads a row; `None` when it is damaged.
///
/// # Errors
/// When the damage is found for the first time: it is then logged and counted.
pub(super) fn read_row<'a>(
    damage: &Damage,
    key: u64,
    bytes: &'a [u8],
) -> Result<Option<HeadRow<'a>>, StoreError> {
    let row = HeadRow::parse(bytes, key);
    if row.is_some() {
        return Ok(row);
    }
    note_damage(damage, key, "samples")?;
    Ok(None)
}

/// Notes that the `content` of a row is damaged.
///
/// # Errors
/// When the damage is found for the first time: it is then logged and counted.
pub(super) fn note_damage(damage: &Damage, key: u64, content: &str) -> Result<(), StoreError> {
    let (first_series, slot) = (series_at(row_of_key(key), 0).0, slot_of_key(key));
    let is_new = damage.note(key, || {
        tracing::error!(
            file = HEAD_FILE,
            first_series,
            %slot,
            "a row is damaged: the {content} in it are missing at its granularity"
        );
    });
    if !is_new {
        return Ok(());
    }
    let part = format!(
        "the {content} of the row that begins with series {first_series}, in the slot at {slot},"
    );
    Err(StoreError::DamagedPart { file: HEAD_FILE.to_owned(), part })
}

pub(super) fn slot_of_key(key: u64) -> UnixMillis {
    UnixMillis((key >> ROW_BITS) as i64 * 1000)
}

/// Returns the starts of the slots within a range that have rows, ascending.
pub(super) fn slots(
    rows: &impl ReadableTable<u64, &'static [u8]>,
    range: Range<i64>,
) -> Result<Vec<i64>, StoreError> {
    let mut found = Vec::new();
    let mut from = key(range.start.max(0), 0);
    let end = key(range.end.clamp(0, UnixMillis::MAX.0), 0);
    while from < end {
        let mut next = rows.range(from..end).map_err(fail("read"))?;
        let Some(entry) = next.next() else { break };
        let (first, _) = entry.map_err(fail("read"))?;
        let slot_start = (first.value() >> ROW_BITS) as i64 * 1000;
        found.push(slot_start);
        from = key(slot_start + 1000, 0);
    }
    Ok(found)
}
