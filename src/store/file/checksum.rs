//! Checksums of the numbers that define the extent of a file. redb verifies its pages when it
//! repairs a database, not when it reads a row, and one flipped bit of such a number would count
//! cells twice or never.
//!
//! Must never know: what the numbers mean.

use xxhash_rust::xxh3::xxh3_64;

/// The checksum of numbers in this order.
pub(crate) fn checksum(numbers: &[u64]) -> u64 {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    xxh3_64(&bytes)
}
