//! A block of shells: one bit for each of 16,384 neighbouring series of one document span.
//! FORMAT.md describes the bytes.
//!
//! Must never know: which span, and where blocks are stored.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    model::SeriesId,
    store::encoding::varint::{put_varint, take_varint},
};

/// The number of series of a block.
pub(crate) const BLOCK_SERIES: u32 = 1 << 14;
const WORDS: usize = BLOCK_SERIES as usize / u64::BITS as usize;
const CHECK_BYTES: usize = 8;

/// The encoding as bits, up to the last byte that is not zero.
const BITS: u8 = 0;
/// The encoding as alternating lengths of runs of clear and set bits.
const RUNS: u8 = 1;

/// The bits of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellBlock(Box<[u64; WORDS]>);

/// Returns the number of the block of a series, and the number of its bit in the block.
pub(crate) fn block_and_bit(series: SeriesId) -> (u32, u32) {
    (series.0 / BLOCK_SERIES, series.0 % BLOCK_SERIES)
}

impl Default for ShellBlock {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl ShellBlock {
    /// Sets a bit; returns whether it was clear.
    ///
    /// # Panics
    /// When a block has no such bit.
    pub(crate) fn insert(&mut self, bit: u32) -> bool {
        let (word, mask) = (&mut self.0[(bit / u64::BITS) as usize], 1 << (bit % u64::BITS));
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }

    /// Returns whether a bit is set.
    pub(crate) fn contains(&self, bit: u32) -> bool {
        let word = self.0.get((bit / u64::BITS) as usize);
        word.is_some_and(|word| word >> (bit % u64::BITS) & 1 == 1)
    }

    /// Returns the number of set bits.
    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the last set bit.
    pub(crate) fn last(&self) -> Option<u32> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(word as u32 * u64::BITS + u64::BITS - 1 - self.0[word].leading_zeros())
    }

    /// Returns the bytes of the block in the shorter encoding, with a checksum that is seeded with
    /// the block's key.
    pub(crate) fn to_bytes(&self, key: u64) -> Vec<u8> {
        let bits = self.0.iter().flat_map(|word| word.to_le_bytes());
        let mut bytes: Vec<u8> = std::iter::once(BITS).chain(bits).collect();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        bytes.truncate(used + 1);
        let mut runs = vec![RUNS];
        for length in self.runs() {
            put_varint(length.into(), &mut runs);
            if runs.len() >= bytes.len() {
                break;
            }
        }
        if runs.len() < bytes.len() {
            bytes = runs;
        }
        let check = xxh3_64_with_seed(&bytes, key);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Returns the block; `None` when the bytes are damaged or belong to another key.
    pub(crate) fn from_bytes(bytes: &[u8], key: u64) -> Option<Self> {
        let (row, check) = bytes.split_last_chunk::<CHECK_BYTES>()?;
        if xxh3_64_with_seed(row, key) != u64::from_le_bytes(*check) {
            return None;
        }
        let (form, rest) = row.split_first()?;
        match *form {
            BITS => Self::from_bits(rest),
            RUNS => Self::from_runs(rest),
            _ => None,
        }
    }

    fn from_bits(bits: &[u8]) -> Option<Self> {
        let mut block = Self::default();
        let words = bits.chunks(size_of::<u64>());
        if words.len() > WORDS {
            return None;
        }
        for (word, stored) in block.0.iter_mut().zip(words) {
            let mut bytes = [0; size_of::<u64>()];
            bytes[..stored.len()].copy_from_slice(stored);
            *word = u64::from_le_bytes(bytes);
        }
        Some(block)
    }

    fn from_runs(mut runs: &[u8]) -> Option<Self> {
        let (mut block, mut from, mut is_set) = (Self::default(), 0, false);
        while !runs.is_empty() {
            let length = u32::try_from(take_varint(&mut runs)?).ok()?;
            let to = length.checked_add(from).filter(|to| *to <= BLOCK_SERIES)?;
            if is_set {
                block.fill(from, to);
            }
            (from, is_set) = (to, !is_set);
        }
        Some(block)
    }

    /// Sets the bits of a range.
    fn fill(&mut self, from: u32, to: u32) {
        let mut bit = from;
        while bit < to {
            let (word, first) = (bit / u64::BITS, bit % u64::BITS);
            let count = (to - bit).min(u64::BITS - first);
            self.0[word as usize] |= (u64::MAX >> (u64::BITS - count)) << first;
            bit += count;
        }
    }

    /// Returns the lengths of the runs of equal bits up to the last set bit; the first run is of
    /// clear bits and may be empty.
    fn runs(&self) -> impl Iterator<Item = u32> {
        let end = self.last().map_or(0, |last| last + 1);
        let (mut from, mut is_set) = (0, false);
        std::iter::from_fn(move || {
            let start = (from < end).then_some(from)?;
            let next = self.next_of(!is_set, from).min(end);
            (from, is_set) = (next, !is_set);
            Some(next - start)
        })
    }

    /// Returns the first set or clear bit at or after `from`; the number of bits when there is
    /// none.
    fn next_of(&self, is_set: bool, from: u32) -> u32 {
        let mut bit = from;
        while let Some(word) = self.0.get((bit / u64::BITS) as usize) {
            let wanted = if is_set { *word } else { !*word };
            let left = wanted >> (bit % u64::BITS);
            if left != 0 {
                return bit + left.trailing_zeros();
            }
            bit = (bit / u64::BITS + 1) * u64::BITS;
        }
        BLOCK_SERIES
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: u64 = 7 << 32 | 2;

    fn block(bits: impl IntoIterator<Item = u32>) -> ShellBlock {
        let mut block = ShellBlock::default();
        for bit in bits {
            block.insert(bit);
        }
        block
    }

    fn bits(block: &ShellBlock) -> Vec<u32> {
        (0..BLOCK_SERIES).filter(|bit| block.contains(*bit)).collect()
    }

    fn bytes_of(bits: impl IntoIterator<Item = u32>) -> usize {
        block(bits).to_bytes(KEY).len()
    }

    #[test]
    fn few_bits_and_long_runs_take_few_bytes_and_no_block_more_than_2_kib() {
        assert_eq!(bytes_of([]), 9);
        assert_eq!(bytes_of([9_000]), 12);
        assert_eq!(bytes_of(0..BLOCK_SERIES), 13);
        assert_eq!(bytes_of((0..BLOCK_SERIES).filter(|bit| bit % 100 != 7)), 339);
        assert_eq!(bytes_of((0..BLOCK_SERIES).step_by(2)), 1 + 2048 + 8);
    }

    #[test]
    fn a_bit_is_new_once() {
        let mut block = ShellBlock::default();
        assert_eq!((block.last(), block.count()), (None, 0));
        assert_eq!([block.insert(64), block.insert(64), block.insert(3)], [true, false, true]);
        assert_eq!((block.last(), block.count(), bits(&block)), (Some(64), 2, vec![3, 64]));
        assert!(!block.contains(BLOCK_SERIES));
    }

    #[test]
    fn bytes_that_are_too_many_are_no_block() {
        let checked = |row: &[u8]| {
            let check = xxh3_64_with_seed(row, KEY).to_le_bytes();
            [row, &check].concat()
        };
        let whole = [vec![BITS], vec![0xff; 2048]].concat();
        assert_eq!(ShellBlock::from_bytes(&checked(&whole), KEY).unwrap().count(), BLOCK_SERIES);
        let mut long = Vec::new();
        put_varint(u64::MAX, &mut long);
        let faults: [&[u8]; 5] =
            [&[], &[2], &[BITS; 2050], &[RUNS, 0, 0x81, 0x80, 1], &[&[RUNS], &long[..]].concat()];
        for row in faults {
            assert_eq!(ShellBlock::from_bytes(&checked(row), KEY), None, "{row:?}");
        }
        assert_eq!(ShellBlock::from_bytes(&[], KEY), None);
    }

    proptest! {
        #[test]
        fn a_block_comes_back_and_no_flipped_bit_goes_unnoticed(
            starts in prop::collection::vec((0..BLOCK_SERIES, 1..200_u32), 0..40),
            single in prop::collection::vec(0..BLOCK_SERIES, 0..3000),
            flipped: prop::sample::Index,
        ) {
            let runs = starts.into_iter().flat_map(|(from, count)| from..(from + count).min(BLOCK_SERIES));
            let block = block(runs.chain(single));
            let mut bytes = block.to_bytes(KEY);
            prop_assert!(bytes.len() <= 1 + 2048 + 8);
            prop_assert_eq!(ShellBlock::from_bytes(&bytes, KEY), Some(block));
            prop_assert_eq!(ShellBlock::from_bytes(&bytes, KEY + 1), None);
            let bit = flipped.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(ShellBlock::from_bytes(&bytes, KEY), None);
        }
    }
}
