//! The packed form of batches: all batches of a request in columns, before compression.
//!
//! The form encodes the same data as BSON, without loss of a bit. Refs, times and starts are
//! encoded as differences between neighbours. A value that is a short decimal is encoded as the
//! integer of its digits, minus the integer of the previous value of the ref in the body. Each body
//! can be decoded without other bodies.
//!
//! A body has these parts. All numbers are LEB128; signed numbers are in zigzag encoding:
//!
//! 1. the bytes `GP`, the version, and the number of batches. The version is 3 if a batch has
//!    native histograms, and otherwise 2, which older daemons read
//! 2. for each batch: flags; the sender, unless the previous batch has the same sender; the
//!    differences of epoch and seq from the previous batch; if the time of sending is set, its
//!    difference from the epoch; if there are definitions, their number and the definitions; and
//!    the number of samples
//! 3. the refs of all batches, all times, all starts, the forms of all values, the digits of the
//!    short decimals, the eight bytes of each other value, and in version 3 for each batch the
//!    length and the bytes of its histograms

use std::collections::HashMap;

use self::bytes::Reader;
use crate::{AGENT_BYTES_MAX, BATCHES_PER_REQUEST_MAX, Batch, DecodeError, Kind, SeriesDefinition};

mod bytes;

/// The media type of a packed body.
pub const PACKED_MEDIA_TYPE: &str = "application/vnd.granary.packed";

/// The announcement of a daemon that reads packed bodies with native histograms.
pub const PACKED_HISTOGRAMS: &str = "application/vnd.granary.packed;version=3";

const HEAD: [u8; 2] = *b"GP";
/// The version of a body of numbers.
const VERSION_NUMBERS: u8 = 2;
/// The version of a body with histograms.
const VERSION_HISTOGRAMS: u8 = 3;
/// The batch has a time of sending.
const SENT: u8 = 1;
/// Each sample has a time; otherwise all samples share one time.
const EACH_TIME: u8 = 1 << 1;
/// All samples share a start.
const ONE_START: u8 = 1 << 2;
/// Each sample has a start.
const EACH_START: u8 = 1 << 3;
/// The batch has the same sender as the previous batch.
const SAME_AGENT: u8 = 1 << 4;
/// The batch defines series.
const DEFINES: u8 = 1 << 5;

/// The form of a value that is not a short decimal; other forms are the number of decimals.
const RAW: u8 = 15;
const POWERS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// Integers below this limit are exact as `f64`.
const DIGITS_BELOW: f64 = 9_007_199_254_740_992.0;

/// A value as `digits / 10^decimals`.
#[derive(Debug, Clone, Copy, Default)]
struct Decimal {
    digits: i64,
    decimals: u8,
}

impl Decimal {
    /// Returns the value with this number of decimals, if the result is exact.
    fn with(value: f64, decimals: u8) -> Option<Self> {
        let digits = (value * POWERS.get(usize::from(decimals))?).round();
        if digits.abs() >= DIGITS_BELOW || digits.is_nan() {
            return None;
        }
        let decimal = Self { digits: digits as i64, decimals };
        (decimal.value().to_bits() == value.to_bits()).then_some(decimal)
    }

    /// Returns the value in the form of the ref's previous value, or with the fewest decimals.
    fn of(value: f64, previous: Option<Self>) -> Option<Self> {
        let in_previous_form = previous.and_then(|previous| Self::with(value, previous.decimals));
        in_previous_form.or_else(|| (0..10).find_map(|decimals| Self::with(value, decimals)))
    }

    fn value(self) -> f64 {
        self.digits as f64 / POWERS.get(usize::from(self.decimals)).copied().unwrap_or(f64::NAN)
    }

    /// Returns the base of the difference, given the ref's previous value.
    fn base(self, previous: Option<Self>) -> i64 {
        previous
            .filter(|previous| previous.decimals == self.decimals)
            .map_or(0, |previous| previous.digits)
    }
}

/// The previous item of each column, from which the next item is encoded as a difference.
#[derive(Debug, Default)]
struct PreviousItem {
    epoch: i64,
    seq: u64,
    time: i64,
    start: i64,
    values: HashMap<u32, Decimal>,
}

/// Encodes batches as one body.
pub fn pack(batches: &[Batch]) -> Vec<u8> {
    let has_histograms = batches.iter().any(|batch| {
        let mut kinds = batch.series.iter().map(|definition| definition.kind);
        !batch.histograms.is_empty() || kinds.any(Kind::is_histogram)
    });
    let mut out = HEAD.to_vec();
    out.push(if has_histograms { VERSION_HISTOGRAMS } else { VERSION_NUMBERS });
    bytes::push_unsigned(batches.len() as u64, &mut out);
    let mut previous = PreviousItem::default();
    let mut agent = None;
    for batch in batches {
        push_head(batch, agent == Some(&batch.agent), &mut previous, &mut out);
        agent = Some(&batch.agent);
    }
    for batch in batches {
        let mut expected = 0;
        for reference in &batch.refs {
            bytes::push_signed(i64::from(*reference).wrapping_sub(expected), &mut out);
            expected = i64::from(*reference) + 1;
        }
    }
    let first_epoch = batches.first().map_or(0, |batch| batch.epoch);
    (previous.time, previous.start) = (first_epoch, first_epoch);
    let push_differences = |column: &[i64], last: &mut i64, out: &mut Vec<u8>| {
        for item in column {
            bytes::push_signed(item.wrapping_sub(*last), out);
            *last = *item;
        }
    };
    for batch in batches {
        push_differences(&batch.times, &mut previous.time, &mut out);
    }
    for batch in batches {
        push_differences(&batch.starts, &mut previous.start, &mut out);
    }
    push_values(batches, &mut previous.values, &mut out);
    for batch in batches.iter().filter(|_| has_histograms) {
        bytes::push_unsigned(batch.histograms.len() as u64, &mut out);
        out.extend_from_slice(&batch.histograms);
    }
    out
}

fn push_head(batch: &Batch, is_same_agent: bool, previous: &mut PreviousItem, out: &mut Vec<u8>) {
    let flag_if = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let samples = batch.values.len();
    out.push(
        flag_if(batch.sent != 0, SENT)
            | flag_if(batch.times.len() != 1, EACH_TIME)
            | flag_if(batch.starts.len() == 1, ONE_START)
            | flag_if(batch.starts.len() > 1, EACH_START)
            | flag_if(is_same_agent, SAME_AGENT)
            | flag_if(!batch.series.is_empty(), DEFINES),
    );
    if !is_same_agent {
        bytes::push_text(&batch.agent, out);
    }
    bytes::push_signed(batch.epoch.wrapping_sub(previous.epoch), out);
    bytes::push_unsigned(batch.seq.wrapping_sub(previous.seq), out);
    (previous.epoch, previous.seq) = (batch.epoch, batch.seq);
    if batch.sent != 0 {
        bytes::push_signed(batch.sent.wrapping_sub(batch.epoch), out);
    }
    if !batch.series.is_empty() {
        bytes::push_unsigned(batch.series.len() as u64, out);
        batch.series.iter().for_each(|definition| push_definition(definition, out));
    }
    bytes::push_unsigned(samples as u64, out);
}

fn push_definition(definition: &SeriesDefinition, out: &mut Vec<u8>) {
    bytes::push_unsigned(definition.reference.into(), out);
    out.push(definition.kind.code());
    bytes::push_text(&definition.metric, out);
    bytes::push_text(&definition.unit, out);
    bytes::push_unsigned(definition.tags.len() as u64, out);
    for (name, value) in &definition.tags {
        bytes::push_text(name, out);
        bytes::push_text(value, out);
    }
}

fn push_values(batches: &[Batch], previous: &mut HashMap<u32, Decimal>, out: &mut Vec<u8>) {
    let (mut digits, mut raw_bytes) = (Vec::new(), Vec::new());
    for (reference, value) in batches.iter().flat_map(|batch| batch.refs.iter().zip(&batch.values))
    {
        let last = previous.get(reference).copied();
        if let Some(decimal) = Decimal::of(*value, last) {
            out.push(decimal.decimals);
            bytes::push_signed(decimal.digits - decimal.base(last), &mut digits);
            previous.insert(*reference, decimal);
        } else {
            out.push(RAW);
            raw_bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
    out.append(&mut digits);
    out.append(&mut raw_bytes);
}

/// A batch whose columns are not decoded yet.
struct PackedBatch {
    batch: Batch,
    flags: u8,
    samples: usize,
}

/// Decodes a body.
///
/// # Errors
/// The fault, with its byte position.
pub fn unpack(body: &[u8]) -> Result<Vec<Batch>, DecodeError> {
    let mut reader = Reader::new(body);
    if reader.read_bytes(2)? != HEAD {
        return Err(reader.fault("no packed batches"));
    }
    let version = reader.byte()?;
    if ![VERSION_NUMBERS, VERSION_HISTOGRAMS].contains(&version) {
        let problem = format!("version {version} is not known; this daemon reads 2 and 3");
        return Err(reader.fault(&problem));
    }
    let count = reader.count(BATCHES_PER_REQUEST_MAX)?;
    let mut packed: Vec<PackedBatch> = Vec::new();
    for _ in 0..count {
        let previous = packed.last().map(|packed| &packed.batch);
        let next_batch = read_head(&mut reader, version, previous)?;
        // Each sample takes at least one byte, which bounds the allocation by the size of the body.
        let samples: usize = packed.iter().map(|packed| packed.samples).sum();
        if samples + next_batch.samples > reader.remaining() {
            return Err(reader.fault("more samples than the body has bytes"));
        }
        packed.push(next_batch);
    }
    read_columns(&mut reader, &mut packed)?;
    read_values(&mut reader, &mut packed)?;
    for PackedBatch { batch, .. } in packed.iter_mut().filter(|_| version == VERSION_HISTOGRAMS) {
        let length = reader.count(usize::MAX)?;
        batch.histograms = reader.read_bytes(length)?.to_vec();
    }
    if reader.remaining() > 0 {
        return Err(reader.fault("more bytes than the batches need"));
    }
    Ok(packed.into_iter().map(|packed| packed.batch).collect())
}

fn read_head(
    reader: &mut Reader<'_>,
    version: u8,
    previous: Option<&Batch>,
) -> Result<PackedBatch, DecodeError> {
    let flags = reader.byte()?;
    let mut batch = Batch::default();
    if flags & SAME_AGENT == 0 {
        reader.text()?.clone_into(&mut batch.agent);
    } else if let Some(previous) = previous {
        batch.agent.clone_from(&previous.agent);
    }
    if batch.agent.is_empty() || batch.agent.len() > AGENT_BYTES_MAX {
        return Err(reader.fault(&format!("a sender's name has 1 to {AGENT_BYTES_MAX} bytes")));
    }
    batch.epoch = previous.map_or(0, |previous| previous.epoch).wrapping_add(reader.signed()?);
    batch.seq = previous.map_or(0, |previous| previous.seq).wrapping_add(reader.unsigned()?);
    if flags & SENT != 0 {
        batch.sent = batch.epoch.wrapping_add(reader.signed()?);
    }
    if flags & DEFINES != 0 {
        let count = reader.count(usize::MAX)?;
        for _ in 0..count {
            batch.series.push(read_definition(reader, version)?);
        }
    }
    let samples = reader.count(usize::MAX)?;
    Ok(PackedBatch { batch, flags, samples })
}

fn read_definition(reader: &mut Reader<'_>, version: u8) -> Result<SeriesDefinition, DecodeError> {
    let reference = u32::try_from(reader.unsigned()?);
    let reference = reference.map_err(|_| reader.fault("a ref is 0 to 4294967295"))?;
    let code = reader.byte()?;
    let is_known = |kind: &Kind| version == VERSION_HISTOGRAMS || !kind.is_histogram();
    let kind = Kind::from_code(code).filter(is_known);
    let kind = kind.ok_or_else(|| reader.fault("the code of a kind is unknown"))?;
    let (metric, unit) = (reader.text()?.to_owned(), reader.text()?.to_owned());
    let mut tags = Vec::new();
    for _ in 0..reader.count(usize::MAX)? {
        tags.push((reader.text()?.to_owned(), reader.text()?.to_owned()));
    }
    Ok(SeriesDefinition { reference, metric, tags, kind, unit })
}

/// Decodes refs, times and starts.
fn read_columns(reader: &mut Reader<'_>, packed: &mut [PackedBatch]) -> Result<(), DecodeError> {
    for PackedBatch { batch, samples, .. } in &mut *packed {
        let mut expected = 0_i64;
        for _ in 0..*samples {
            let reference = u32::try_from(expected.wrapping_add(reader.signed()?));
            let reference = reference.map_err(|_| reader.fault("a ref is 0 to 4294967295"))?;
            batch.refs.push(reference);
            expected = i64::from(reference) + 1;
        }
    }
    let first_epoch = packed.first().map_or(0, |packed| packed.batch.epoch);
    let (mut time, mut start) = (first_epoch, first_epoch);
    for PackedBatch { batch, samples, flags } in &mut *packed {
        let count = if *flags & EACH_TIME == 0 { 1 } else { *samples };
        for _ in 0..count {
            time = time.wrapping_add(reader.signed()?);
            batch.times.push(time);
        }
    }
    for PackedBatch { batch, samples, flags } in packed {
        let count = match (*flags & EACH_START != 0, *flags & ONE_START != 0) {
            (true, _) => *samples,
            (false, is_one) => usize::from(is_one),
        };
        for _ in 0..count {
            start = start.wrapping_add(reader.signed()?);
            batch.starts.push(start);
        }
    }
    Ok(())
}

fn read_values(reader: &mut Reader<'_>, packed: &mut [PackedBatch]) -> Result<(), DecodeError> {
    let samples: usize = packed.iter().map(|packed| packed.samples).sum();
    let forms = reader.read_bytes(samples)?;
    let mut digits = Vec::new();
    for form in forms.iter().filter(|form| **form != RAW) {
        if usize::from(*form) >= POWERS.len() {
            return Err(reader.fault("the form of a value is unknown"));
        }
        digits.push(reader.signed()?);
    }
    let (mut forms, mut digits) = (forms.iter(), digits.into_iter());
    let mut previous: HashMap<u32, Decimal> = HashMap::new();
    for PackedBatch { batch, .. } in packed {
        for reference in &batch.refs {
            let decimals = forms.next().copied().unwrap_or(RAW);
            let value = if decimals == RAW {
                f64::from_le_bytes(reader.eight_bytes()?)
            } else {
                let decimal = Decimal { digits: 0, decimals };
                let base = decimal.base(previous.get(reference).copied());
                let digits = base.wrapping_add(digits.next().unwrap_or(0));
                if digits.unsigned_abs() >= DIGITS_BELOW as u64 {
                    return Err(reader.fault("a value has more than 53 bits"));
                }
                let decimal = Decimal { digits, decimals };
                previous.insert(*reference, decimal);
                decimal.value()
            };
            batch.values.push(value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
