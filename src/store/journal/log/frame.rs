//! The bytes of a file of the log: a header, then a frame for each record, then zeros.
//!
//! Each header is within one sector, so a torn write has written it completely or not at all.
//! Senders do not know the seed of a frame's checksum, so no record contains bytes that look like a
//! frame. Must never know: the source of the bytes.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The size of a header in bytes; frames begin at multiples of this size.
pub(super) const HEADER_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"granjlog";

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// The number of the first record in the file.
    pub(super) first: u64,
    /// The random seed of the checksums of frame headers in the file.
    pub(super) salt: u64,
}

impl FileHeader {
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let (magic, numbers) = (u64::from_le_bytes(*MAGIC), [self.first, self.salt]);
        header_bytes([magic, numbers[0], numbers[1]], 0)
    }

    /// Parses the header of a file; `None` when it is damaged.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [magic, first, salt] = read_header(bytes.first_chunk()?, 0)?;
        (magic == u64::from_le_bytes(*MAGIC)).then_some(Self { first, salt })
    }
}

/// Returns the bytes of three numbers and their checksum.
fn header_bytes(numbers: [u64; 3], salt: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    for (bytes, number) in header.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *bytes = number.to_le_bytes();
    }
    let check = xxh3_64_with_seed(&header[..24], salt);
    header[24..].copy_from_slice(&check.to_le_bytes());
    header
}

fn read_header(header: &[u8; HEADER_BYTES], salt: u64) -> Option<[u64; 3]> {
    let [first, second, third, check] = header.as_chunks::<8>().0 else { return None };
    let numbers = [first, second, third].map(|bytes| u64::from_le_bytes(*bytes));
    (u64::from_le_bytes(*check) == xxh3_64_with_seed(&header[..24], salt)).then_some(numbers)
}

/// Replaces the content of `out` with the frame of a record.
pub(super) fn encode(salt: u64, number: u64, record: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let numbers = [number, record.len() as u64, xxh3_64(record)];
    out.extend_from_slice(&header_bytes(numbers, salt));
    out.extend_from_slice(record);
    out.resize(out.len().next_multiple_of(HEADER_BYTES), 0);
}

/// The frames of a file.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    bytes: &'a [u8],
    header: FileHeader,
    /// The offset of the next frame.
    at: usize,
}

impl<'a> Frames<'a> {
    /// Returns the frames of a whole file; `None` when its header is damaged.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes, header: FileHeader::read(bytes)?, at: HEADER_BYTES })
    }

    pub(super) fn header(&self) -> FileHeader {
        self.header
    }

    /// Returns the offset of the end of the frames that were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns true when bytes other than zeros follow the frames that were read.
    pub(super) fn has_rest(&self) -> bool {
        self.bytes.get(self.at..).unwrap_or_default().iter().any(|byte| *byte != 0)
    }

    /// Returns the next record and its number; `None` at the end, where a torn frame may follow.
    ///
    /// # Errors
    /// When a frame is damaged although it was written completely.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &'a [u8])>, String> {
        // The zeros for the next records are durable before anything is written there.
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(header) = rest.first_chunk() else {
            return Err(format!("it ends unexpectedly at byte {}", self.bytes.len()));
        };
        if header == &[0; HEADER_BYTES] {
            return self.end(self.at, |part| read_header(part, self.header.salt).is_some());
        }
        let Some([number, length, check]) = read_header(header, self.header.salt) else {
            return Err(format!("the frame header at byte {} is damaged", self.at));
        };
        let begin = self.at + HEADER_BYTES;
        let end = usize::try_from(length).ok().and_then(|length| begin.checked_add(length));
        let record = end.and_then(|end| self.bytes.get(begin..end));
        let Some(record) = record else {
            return Err(format!("it ends unexpectedly in record {number}"));
        };
        let after = (begin + record.len()).next_multiple_of(HEADER_BYTES);
        if xxh3_64(record) != check {
            return self.end(after, |_| true);
        }
        self.at = after;
        Ok(Some((number, record)))
    }

    /// Returns `None` for the end of the log, or an error when a later frame was written. Records
    /// are written one at a time into zeros, so a later frame proves that the record before it was
    /// complete. `is_written` recognizes parts of a later frame from `rest_at` on.
    fn end(
        &self,
        rest_at: usize,
        is_written: impl Fn(&[u8; HEADER_BYTES]) -> bool,
    ) -> Result<Option<(u64, &'a [u8])>, String> {
        let rest = self.bytes.get(rest_at..).unwrap_or_default().as_chunks().0;
        let is_zero = |part: &[u8; HEADER_BYTES]| part == &[0; HEADER_BYTES];
        if rest.iter().any(|part| !is_zero(part) && is_written(part)) {
            return Err(format!("the record at byte {} is damaged, and more follows", self.at));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const ROOM: usize = 4096;

    fn file(first: u64, records: &[Vec<u8>]) -> Vec<u8> {
        let header = FileHeader { first, salt: 77 };
        let (mut file, mut frame) = (header.to_bytes().to_vec(), Vec::new());
        for (number, record) in (first..).zip(records) {
            encode(77, number, record, &mut frame);
            file.extend_from_slice(&frame);
        }
        file.resize(file.len() + ROOM, 0);
        file
    }

    fn read(file: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, String> {
        let mut frames = Frames::new(file).ok_or("header")?;
        let mut found = Vec::new();
        while let Some((number, record)) = frames.next()? {
            found.push((number, record.to_vec()));
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn records_are_read_as_they_were_written(records in vec(vec(any::<u8>(), 0..200), 0..20)) {
            let expected: Vec<_> = (9..).zip(records.clone()).collect();
            prop_assert_eq!(read(&file(9, &records)), Ok(expected));
        }

        /// Checks any mix of written and unwritten sectors of the last write.
        #[test]
        fn a_torn_frame_is_the_end_of_the_log(
            records in vec(vec(any::<u8>(), 0..200), 0..9),
            torn in vec(1_u8.., 1..3000),
            kept in any::<u8>(),
        ) {
            let before = file(9, &records);
            let mut all = records.clone();
            all.push(torn);
            let mut after = file(9, &all);
            after.truncate(before.len());
            for (index, sector) in after.chunks_mut(512).enumerate() {
                if kept & 1 << (index % 8) == 0 {
                    let from = index * 512;
                    sector.copy_from_slice(&before[from..from + sector.len()]);
                }
            }
            let found = read(&after).unwrap();
            prop_assert!(found.len() >= records.len());
            prop_assert_eq!(&found, &(9..).zip(all).take(found.len()).collect::<Vec<_>>());
        }

        /// A damaged record with successors is never mistaken for the end.
        #[test]
        fn damage_before_the_last_record_is_reported(
            records in vec(vec(any::<u8>(), 0..200), 2..9),
            position in any::<prop::sample::Index>(),
            bit in 0_u32..8,
        ) {
            let whole = file(9, &records);
            let mut last = Vec::new();
            encode(77, 0, records.last().unwrap(), &mut last);
            let mut bytes = whole.clone();
            let at = position.index(whole.len() - ROOM - last.len());
            bytes[at] ^= 1_u8 << bit;
            // A flipped bit in the padding after a record has no effect.
            prop_assert!(read(&bytes).is_err() || read(&bytes) == read(&whole));
            prop_assert!(read(&whole[..at]).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300), length in any::<u64>()) {
            let mut file = FileHeader { first: 1, salt: 77 }.to_bytes().to_vec();
            file.extend_from_slice(&header_bytes([1, length, 0], 77));
            file.extend_from_slice(&bytes);
            prop_assert!(read(&bytes).is_err());
            // The damaged length does not match the checksum, or the record is the only one.
            prop_assert!(read(&file).map_or(true, |found| found.len() <= 1));
        }
    }
}
