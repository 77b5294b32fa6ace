//! The batches of a record, as the journal's log contains them.
//!
//! FORMAT.md describes the bytes.
//!
//! Must never know: the other changes of a record.

use xxhash_rust::xxh3::xxh3_64;

use super::Record;
use crate::{
    model::{
        AcceptedBatch, BatchNumber, Deduplication, Histogram, HistogramSample, SeriesId, UnixMillis,
    },
    store::{
        encoding::{
            fixed::take_bytes,
            varint::{put_varint, take_varint},
        },
        journal::columns::{put_doubles, put_numbers, take_doubles, take_numbers},
    },
};

/// The first byte of a record that contains only batches.
pub(super) const RECORD_VERSION: u8 = 1;
/// The first byte of such a record with histograms.
pub(super) const HISTOGRAMS_VERSION: u8 = 3;

/// Appends batches that are accepted at `now` to `out` as one record.
pub(crate) fn encode<'a>(
    now: UnixMillis,
    batches: impl Iterator<Item = &'a AcceptedBatch> + Clone,
    out: &mut Vec<u8>,
) {
    let from = out.len();
    let has_histograms = batches.clone().any(|batch| !batch.histograms.is_empty());
    out.push(if has_histograms { HISTOGRAMS_VERSION } else { RECORD_VERSION });
    out.extend_from_slice(&now.0.to_le_bytes());
    for batch in batches {
        let (sender, epoch, seq) = match &batch.deduplication {
            Deduplication::ByNumber(number) => (&*number.sender, number.epoch, number.seq),
            // Without a sender, the field of the epoch contains the length of the window.
            Deduplication::ByTime { window_ms } => ("", *window_ms, 0),
            Deduplication::Never => ("", 0, 0),
        };
        out.extend_from_slice(&(sender.len() as u16).to_le_bytes());
        out.extend_from_slice(sender.as_bytes());
        out.extend_from_slice(&epoch.to_le_bytes());
        out.extend_from_slice(&seq.to_le_bytes());
        for length in [batch.values.len(), batch.times.len(), batch.starts.len()] {
            out.extend_from_slice(&(length as u32).to_le_bytes());
        }
        put_numbers(batch.series.iter().map(|id| i64::from(id.0)), out);
        put_numbers(batch.times.iter().copied(), out);
        put_numbers(batch.starts.iter().copied(), out);
        put_doubles(&batch.values, out);
        if has_histograms {
            put_histograms(&batch.histograms, out);
        }
    }
    let check = xxh3_64(&out[from..]);
    out.extend_from_slice(&check.to_le_bytes());
}

/// Returns a record without its checksum; `None` when the checksum does not match. Numbers are
/// stored as differences, so one flipped bit would change all later numbers.
pub(super) fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (record, check) = bytes.split_last_chunk()?;
    (xxh3_64(record) == u64::from_le_bytes(*check)).then_some(record)
}

/// Reads a record that contains only batches; `None` when it is damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
    let (version, mut rest) = checked(bytes)?.split_first()?;
    let has_histograms = *version == HISTOGRAMS_VERSION;
    if !has_histograms && *version != RECORD_VERSION {
        return None;
    }
    let now = UnixMillis(i64::from_le_bytes(take_bytes(&mut rest)?));
    let mut batches = Vec::new();
    while !rest.is_empty() {
        let sender_bytes = u16::from_le_bytes(take_bytes(&mut rest)?);
        let (sender, tail) = rest.split_at_checked(usize::from(sender_bytes))?;
        let sender = std::str::from_utf8(sender).ok()?;
        rest = tail;
        let epoch = i64::from_le_bytes(take_bytes(&mut rest)?);
        let seq = u64::from_le_bytes(take_bytes(&mut rest)?);
        let mut length = || take_bytes(&mut rest).map(|bytes| u32::from_le_bytes(bytes) as usize);
        let (samples, times, starts) = (length()?, length()?, length()?);
        let fits = |length: usize| length == samples || length == 1;
        // Two samples take at least one byte.
        let has_enough_bytes = samples.div_ceil(2) <= rest.len();
        if !has_enough_bytes || !fits(times) || !(fits(starts) || starts == 0) {
            return None;
        }
        let deduplication = match sender {
            "" if epoch > 0 => Deduplication::ByTime { window_ms: epoch },
            "" => Deduplication::Never,
            _ => Deduplication::ByNumber(BatchNumber { sender: sender.into(), epoch, seq }),
        };
        let mut batch =
            AcceptedBatch { deduplication, ..take_columns(&mut rest, samples, times, starts)? };
        if has_histograms {
            batch.histograms = take_histograms(&mut rest, samples)?;
        }
        batches.push(batch);
    }
    Some(Record { batches, ..Record::at(now) })
}

/// Appends the histograms of a batch: each with the distance of its index from the previous one.
fn put_histograms(histograms: &[HistogramSample], out: &mut Vec<u8>) {
    put_varint(histograms.len() as u64, out);
    let mut next = 0;
    for HistogramSample { index, histogram } in histograms {
        put_varint(u64::from(index.wrapping_sub(next)), out);
        histogram.encode(out);
        next = index.wrapping_add(1);
    }
}

/// Reads the histograms of a batch with this number of samples.
fn take_histograms(rest: &mut &[u8], samples: usize) -> Option<Vec<HistogramSample>> {
    let (count, mut next) = (take_varint(rest)?, 0_u32);
    let mut histograms = Vec::new();
    for _ in 0..count {
        let index = next.checked_add(u32::try_from(take_varint(rest)?).ok()?)?;
        next = index.checked_add(1)?;
        if index as usize >= samples {
            return None;
        }
        histograms.push(HistogramSample { index, histogram: Histogram::decode(rest).ok()? });
    }
    Some(histograms)
}

/// Reads the columns of a batch, which have these lengths.
fn take_columns(
    rest: &mut &[u8],
    samples: usize,
    times: usize,
    starts: usize,
) -> Option<AcceptedBatch> {
    Some(AcceptedBatch {
        series: take_numbers(rest, samples, |id| u32::try_from(id).ok().map(SeriesId))?,
        times: take_numbers(rest, times, Some)?,
        starts: take_numbers(rest, starts, Some)?,
        values: take_doubles(rest, samples)?,
        ..AcceptedBatch::default()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::setup::NOW;

    fn batch() -> impl Strategy<Value = AcceptedBatch> {
        let deduplication = |seq| match seq {
            0 => Deduplication::Never,
            1 => Deduplication::ByTime { window_ms: 600_000 },
            _ => Deduplication::ByNumber(BatchNumber { sender: "web1".into(), epoch: 5, seq }),
        };
        let number = || prop_oneof![Just(1_700_000_000_000), 0..9_i64, any::<i64>()];
        let samples = prop::collection::vec((0..9_u32, number(), number(), any::<f64>()), 1..9);
        (samples, any::<bool>(), 0..3_usize, 0..4_u64).prop_map(
            move |(samples, shared, starts, seq)| {
                let count = samples.len();
                let starts = [0, 1, count][starts];
                let times = if shared { 1 } else { count };
                AcceptedBatch {
                    deduplication: deduplication(seq),
                    series: samples.iter().map(|sample| SeriesId(sample.0)).collect(),
                    times: samples.iter().map(|sample| sample.1).take(times).collect(),
                    starts: samples.iter().map(|sample| sample.2).take(starts).collect(),
                    values: samples.iter().map(|sample| sample.3).collect(),
                    ..AcceptedBatch::default()
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written_and_a_damaged_one_is_refused(
            batches in prop::collection::vec(batch(), 0..4), at: usize, flip: u8
        ) {
            let mut bytes = Vec::new();
            encode(NOW, batches.iter(), &mut bytes);
            prop_assert_eq!(decode(&bytes), Some(Record { batches, ..Record::at(NOW) }));
            let at = at % bytes.len();
            prop_assert_eq!(decode(&bytes[..at]), None);
            bytes[at] ^= flip;
            prop_assert!(flip == 0 || decode(&bytes).is_none());
        }
    }
}
