//! Checksums of the numbers that define the extent of a file. redb verifies its pages only when it
//! repairs a database, not when it reads a row. Without these checksums, one flipped bit in such a
//! number could make cells count twice or never.
//!
//! Must never know: the meaning of the numbers.

use xxhash_rust::xxh3::xxh3_64;

/// Returns the checksum of numbers in this order.
pub(crate) fn checksum(numbers: &[u64]) -> u64 {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    xxh3_64(&bytes)
}
