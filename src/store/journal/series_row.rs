//! Rows of the journal's `series` table: the series that one commit defined, each with a checksum.
//!
//! FORMAT.md describes the bytes. Must never know: the table.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::checked::CHECK_BYTES;
use crate::model::{Kind, SeriesInfo, SeriesKey};

/// The size of a series' length in bytes.
const LENGTH_BYTES: usize = 4;

/// Encodes the new series of one commit as one row, because a commit may define thousands. The
/// first ID is the key of the row.
pub(crate) fn encode(first: u32, series: &[SeriesInfo]) -> Vec<u8> {
    let mut row = Vec::with_capacity(series.len() * 96);
    for (id, info) in (first..).zip(series) {
        push(&mut row, id, &encode_series(info));
    }
    row
}

fn push(row: &mut Vec<u8>, id: u32, bytes: &[u8]) {
    row.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    row.extend_from_slice(bytes);
    row.extend_from_slice(&check(id, bytes).to_le_bytes());
}

fn check(id: u32, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, u64::from(id))
}

/// A parsed row: a list of series, of which some may be lost.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReadRow {
    /// The series in the format of [`take`], with an empty entry for a lost series.
    pub(super) series: Vec<u8>,
    /// The IDs of the lost series.
    pub(super) lost: Vec<u32>,
    /// The ID of the next row.
    pub(super) next: u32,
}

impl ReadRow {
    /// Parses a row. Returns `None` when damage hides the number of its series, because their IDs
    /// would otherwise be assigned again. `next` is the key of the next row, if there is one; IDs
    /// have no gaps.
    pub(super) fn new(first: u32, mut row: &[u8], next: Option<u32>) -> Option<Self> {
        let mut read = Self { next: first, ..Self::default() };
        while !row.is_empty() {
            let id = read.next;
            let lengths = length(row).into_iter().flat_map(|length| {
                // All lengths with one flipped bit are tried, because a wrong length would make all
                // later series unreadable.
                let flipped = (0..u32::BITS).map(move |bit| length ^ 1 << bit);
                std::iter::once(length).chain(flipped)
            });
            let found =
                lengths.filter_map(|length| split(row, length)).find(|found| found.is_of(id));
            if let Some(Entry { bytes, rest, .. }) = found {
                read.push(bytes);
                row = rest;
                continue;
            }
            // When an intact series follows, only this series is damaged.
            let Some(stated) = length(row).and_then(|length| split(row, length)) else { break };
            let next_length = length(stated.rest);
            let follows = next_length.and_then(|length| split(stated.rest, length));
            let is_next = follows.is_some_and(|follows| follows.is_of(id + 1));
            if !is_next && !stated.rest.is_empty() {
                break;
            }
            read.lose();
            row = stated.rest;
        }
        match next {
            Some(next) if next < read.next => return None,
            Some(next) => (read.next..next).for_each(|_| read.lose()),
            None if !row.is_empty() => return None,
            None => {}
        }
        Some(read)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.series.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.series.extend_from_slice(bytes);
        self.next += 1;
    }

    fn lose(&mut self) {
        self.lost.push(self.next);
        self.push(&[]);
    }
}

/// A series in a row, and the rest of the row.
struct Entry<'a> {
    bytes: &'a [u8],
    check: u64,
    rest: &'a [u8],
}

impl Entry<'_> {
    /// Returns true when the series is intact and has the ID.
    fn is_of(&self, id: u32) -> bool {
        check(id, self.bytes) == self.check
    }
}

fn length(row: &[u8]) -> Option<u32> {
    row.first_chunk::<LENGTH_BYTES>().map(|length| u32::from_le_bytes(*length))
}

fn split(row: &[u8], length: u32) -> Option<Entry<'_>> {
    let (bytes, rest) = row.get(LENGTH_BYTES..)?.split_at_checked(length as usize)?;
    let (check, rest) = rest.split_first_chunk::<CHECK_BYTES>()?;
    Some(Entry { bytes, check: u64::from_le_bytes(*check), rest })
}

/// A parsed series.
#[derive(Debug)]
pub(crate) struct SeriesBytes<'a> {
    pub(crate) kind: Kind,
    pub(crate) unit: &'a str,
    pub(crate) sender: &'a str,
    /// The bytes of the series' key, which may not be a valid key.
    pub(crate) key: &'a [u8],
}

/// Removes a series from the front of a list. The inner `None` is a lost series, the outer `None` a
/// damaged list.
#[expect(clippy::option_option, reason = "a lost series is not a damaged list")]
pub(crate) fn take<'a>(list: &mut &'a [u8]) -> Option<Option<SeriesBytes<'a>>> {
    let (length, rest) = list.split_first_chunk::<LENGTH_BYTES>()?;
    let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *list = rest;
    let Some((kind, bytes)) = bytes.split_first() else { return Some(None) };
    let (unit, bytes) = decode_text(bytes)?;
    let (sender, key) = decode_text(bytes)?;
    Some(Some(SeriesBytes { kind: Kind::from_code(*kind)?, unit, sender, key }))
}

/// Returns the bytes of one series.
fn encode_series(info: &SeriesInfo) -> Vec<u8> {
    let mut row = vec![info.kind.code()];
    for text in [&*info.unit, &*info.sender] {
        row.extend_from_slice(&(text.len() as u16).to_le_bytes());
        row.extend_from_slice(text.as_bytes());
    }
    row.extend_from_slice(info.key.as_bytes());
    row
}

fn decode_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// Returns all series of a row that begins with the ID `first`; `None` when the row is damaged.
pub(super) fn decode_all(first: u32, row: &[u8]) -> Option<Vec<SeriesInfo>> {
    // No ID is too large for its type: a series takes more than one byte.
    first.checked_add(u32::try_from(row.len()).ok()?)?;
    let read = ReadRow::new(first, row, None)?;
    let mut list = &*read.series;
    let mut series = Vec::new();
    while !list.is_empty() {
        let SeriesBytes { kind, unit, sender, key } = take(&mut list)??;
        let key = SeriesKey::from_bytes(key)?;
        series.push(SeriesInfo { key, kind, unit: unit.into(), sender: sender.into() });
    }
    Some(series)
}

/// Fuzz entry point: decodes bytes as a row of series.
pub(crate) fn fuzz_rows(bytes: &[u8]) {
    if let Some(series) = decode_all(0, bytes) {
        assert_eq!(decode_all(0, &encode(0, &series)), Some(series));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::series;

    fn three() -> Vec<SeriesInfo> {
        let info = |metric: &str, tags: &[(&str, &str)], unit: &str| {
            let info = series(metric, tags, Kind::Counter);
            SeriesInfo { unit: unit.into(), sender: "a".into(), ..info }
        };
        vec![
            info("cpu", &[("host", "a"), ("core", "0")], ""),
            info("mem", &[], "bytes"),
            info("disk", &[("host", "a")], ""),
        ]
    }

    #[test]
    fn series_are_read_as_they_were_written_and_a_shortened_row_is_refused() {
        let row = encode(0, &three());
        assert_eq!(decode_all(0, &row), Some(three()));
        assert_eq!(decode_all(0, &row[..row.len() - 1]), None);
    }

    #[test]
    fn a_flipped_bit_loses_at_most_one_series_and_no_id() {
        let (row, sound) = (encode(7, &three()), ReadRow::new(7, &encode(7, &three()), None));
        let sound = sound.unwrap();
        assert_eq!((sound.lost.len(), sound.next), (0, 10));
        let mut reads_by_loss = [0, 0];
        for bit in 0..row.len() * 8 {
            let mut damaged = row.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            for next in [None, Some(10)] {
                let read = ReadRow::new(7, &damaged, next).unwrap();
                assert!(read.lost.len() <= 1 && read.next == 10, "bit {bit}: {read:?}");
                assert!(read.lost.len() == 1 || read == sound, "bit {bit}");
                reads_by_loss[read.lost.len()] += 1;
            }
        }
        assert_eq!(reads_by_loss[0], 3 * 32 * 2, "flipped bits of lengths lose nothing");
        // The key of the next row shows how many series the shortened row had.
        assert_eq!(ReadRow::new(7, &row[..50], Some(10)).unwrap().next, 10);
        assert_eq!(ReadRow::new(7, &row[..50], None), None);
    }
}
