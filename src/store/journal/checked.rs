//! Checksums of the journal's rows and numbers. redb verifies its pages when it repairs a database,
//! but not when it reads a row, and one flipped bit could make a batch count twice.
//!
//! FORMAT.md describes the bytes. Must never know: the meaning of rows and numbers.

use parking_lot::Mutex;
use redb::{ReadableTable, Table};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::store::{error::StoreError, file::names::JOURNAL_FILE};

/// The size of a checksum in bytes.
pub(super) const CHECK_BYTES: usize = 8;
/// The end of the key of a number's checksum.
const CHECK_END: &str = "_check";
/// The maximum number of damaged rows that are described; further rows are only counted.
const NAMED_MAX: usize = 100;

/// A key of a table of rows with checksums. The key seeds the checksum.
pub(super) trait RowKey {
    /// Returns the seed.
    fn seed(&self) -> u64;
}

impl RowKey for u32 {
    fn seed(&self) -> u64 {
        u64::from(*self)
    }
}

impl RowKey for &str {
    fn seed(&self) -> u64 {
        xxh3_64(self.as_bytes())
    }
}

/// Appends the checksum to a row.
pub(super) fn push_check(row: &mut Vec<u8>, key: &impl RowKey) {
    let check = xxh3_64_with_seed(row, key.seed());
    row.extend_from_slice(&check.to_le_bytes());
}

/// Returns a row with its checksum.
pub(super) fn with_check(row: &[u8], key: &impl RowKey) -> Vec<u8> {
    let mut checked = Vec::with_capacity(row.len() + CHECK_BYTES);
    checked.extend_from_slice(row);
    push_check(&mut checked, key);
    checked
}

/// Returns a row without its checksum; `None` when it is damaged or belongs to another key.
pub(super) fn without_check<'a>(bytes: &'a [u8], key: &impl RowKey) -> Option<&'a [u8]> {
    let (row, check) = bytes.split_last_chunk::<CHECK_BYTES>()?;
    (xxh3_64_with_seed(row, key.seed()) == u64::from_le_bytes(*check)).then_some(row)
}

/// Returns the key of a number's checksum.
pub(crate) fn check_key(key: &str) -> String {
    format!("{key}{CHECK_END}")
}

fn check_of(key: &str, number: u64) -> u64 {
    xxh3_64_with_seed(&number.to_le_bytes(), key.seed())
}

/// Stores a number and its checksum.
pub(crate) fn set_number(
    meta: &mut Table<'_, &'static str, u64>,
    key: &str,
    number: u64,
) -> Result<(), redb::StorageError> {
    meta.insert(key, number)?;
    meta.insert(&*check_key(key), check_of(key, number))?;
    Ok(())
}

/// A stored number, and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredNumber {
    pub(crate) number: Option<u64>,
    pub(super) check: Option<u64>,
}

impl StoredNumber {
    /// Returns true when the number matches its checksum.
    pub(crate) fn is_sound(self, key: &str) -> bool {
        self.check == self.number.map(|number| check_of(key, number))
    }

    /// Returns true when the stored number equals `number`, or the stored checksum matches it: at
    /// least one of the two is intact.
    pub(super) fn proves(self, key: &str, number: u64) -> bool {
        self.number == Some(number) || self.check == Some(check_of(key, number))
    }
}

/// Reads a number and its checksum from the journal's table of numbers.
pub(super) fn stored(
    meta: &impl ReadableTable<&'static str, u64>,
    key: &str,
) -> Result<StoredNumber, StoreError> {
    stored_in(JOURNAL_FILE, meta, key)
}

/// Reads a number and its checksum from the table of numbers of a file.
pub(crate) fn stored_in(
    file: &str,
    meta: &impl ReadableTable<&'static str, u64>,
    key: &str,
) -> Result<StoredNumber, StoreError> {
    let fail = |cause| StoreError::redb("read", file)(cause);
    let value =
        |key: &str| Ok::<_, StoreError>(meta.get(key).map_err(fail)?.map(|guard| guard.value()));
    Ok(StoredNumber { number: value(key)?, check: value(&check_key(key))? })
}

/// The rows that were found damaged since the start: descriptions of the first rows, and the total
/// number.
#[derive(Debug, Default)]
pub(super) struct DamagedRows(Mutex<(Vec<String>, u64)>);

impl DamagedRows {
    /// Notes a damaged row, and logs it with the consequence.
    pub(super) fn note(&self, table: &str, consequence: &str) {
        let mut rows = self.0.lock();
        rows.1 += 1;
        if rows.0.len() < NAMED_MAX {
            let (file, row) = (JOURNAL_FILE, consequence);
            tracing::error!(file, table, row, "a row of the journal is damaged");
            rows.0.push(format!("a row of table {table} is damaged: {consequence}"));
        }
    }

    /// Returns the descriptions of the first damaged rows, and the total number.
    pub(super) fn get(&self) -> (Vec<String>, u64) {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_a_flipped_bit_or_under_another_key_is_refused() {
        let mut row = with_check(b"some bytes", &7);
        assert_eq!(without_check(&row, &7), Some(&b"some bytes"[..]));
        assert_eq!(without_check(&row, &8), None);
        assert_eq!(without_check(&with_check(b"", &"web1"), &"web1"), Some(&b""[..]));
        for bit in 0..row.len() * 8 {
            row[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(without_check(&row, &7), None, "bit {bit}");
            row[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
