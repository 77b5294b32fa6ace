//! The compact bytes of a histogram.
//!
//! A byte of flags and the schema come first, then what the flags announce: custom bounds, the zero
//! bucket. Count and sum follow, then the buckets of each side: their number, and for each bucket
//! the distance of its index from the previous one and its count. Counts are varints if all counts
//! are integers below 2^53, otherwise f64 (little-endian).

use std::sync::Arc;

use thiserror::Error;

use super::{
    BUCKETS_MAX, Bucket, CUSTOM_BOUNDS, Histogram, ResetHint, SCHEMA_MAX, SCHEMA_MIN,
    ZERO_THRESHOLD,
};

/// The flag of integers.
const INTEGERS: u8 = 1;
/// The flag of a threshold other than 2^-128.
const THRESHOLD: u8 = 2;
/// The flag of a zero bucket with observations.
const ZERO: u8 = 4;
/// The flag of buckets with positive bounds.
const POSITIVE: u8 = 8;
/// The flag of buckets with negative bounds.
const NEGATIVE: u8 = 16;
/// The position of the two bits of the hint.
const HINT_SHIFT: u8 = 5;
/// The first integer that a float cannot distinguish from the next one.
const INTEGER_END: f64 = 9_007_199_254_740_992.0;

/// Bytes that are no histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the bytes are no histogram")]
pub struct Corrupt;

impl Histogram {
    /// Appends the compact bytes of a normalized histogram.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let buckets = self.positive.iter().chain(&self.negative).map(|bucket| bucket.count);
        let mut counts = buckets.chain([self.zero_count, self.count]);
        let is_integer = counts
            .all(|count| count.is_sign_positive() && count < INTEGER_END && count.trunc() == count);
        let has_threshold = self.zero_threshold.to_bits() != ZERO_THRESHOLD.to_bits();
        let flags = [
            (is_integer, INTEGERS),
            (has_threshold, THRESHOLD),
            (self.zero_count != 0.0, ZERO),
            (!self.positive.is_empty(), POSITIVE),
            (!self.negative.is_empty(), NEGATIVE),
        ];
        let flags = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum::<u8>();
        out.push(flags | (self.hint as u8) << HINT_SHIFT);
        out.push(self.schema.cast_unsigned());
        if self.is_custom() {
            put_varint(out, self.custom_bounds.len() as u64);
            self.custom_bounds.iter().for_each(|bound| put_f64(out, *bound));
        }
        let put_count = |out: &mut Vec<u8>, count: f64| {
            if is_integer {
                put_varint(out, count as u64);
            } else {
                put_f64(out, count);
            }
        };
        if has_threshold {
            put_f64(out, self.zero_threshold);
        }
        if self.zero_count != 0.0 {
            put_count(out, self.zero_count);
        }
        put_count(out, self.count);
        put_f64(out, self.sum);
        for side in [&self.positive, &self.negative] {
            let mut next = 0_i64;
            if !side.is_empty() {
                put_varint(out, side.len() as u64);
            }
            for bucket in side {
                let gap = i64::from(bucket.index) - next;
                put_varint(out, ((gap << 1) ^ (gap >> 63)).cast_unsigned());
                put_count(out, bucket.count);
                next = i64::from(bucket.index) + 1;
            }
        }
    }

    /// Returns the histogram at the start of the bytes, and moves the bytes past it.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, Corrupt> {
        let [flags, schema] = take(bytes)?;
        let schema = schema.cast_signed();
        if !(SCHEMA_MIN..=SCHEMA_MAX).contains(&schema) && schema != CUSTOM_BOUNDS {
            return Err(Corrupt);
        }
        let has = |flag| flags & flag != 0;
        let custom_bounds: Arc<[f64]> = if schema == CUSTOM_BOUNDS {
            (0..take_len(bytes, 8)?).map(|_| take_f64(bytes)).collect::<Result<_, _>>()?
        } else {
            Arc::default()
        };
        let zero_threshold = if has(THRESHOLD) { take_f64(bytes)? } else { ZERO_THRESHOLD };
        let zero_count = if has(ZERO) { take_count(bytes, has(INTEGERS))? } else { 0.0 };
        let count = take_count(bytes, has(INTEGERS))?;
        let sum = take_f64(bytes)?;
        let hint = match flags >> HINT_SHIFT {
            0 => ResetHint::Unknown,
            1 => ResetHint::Reset,
            2 => ResetHint::NotReset,
            3 => ResetHint::Gauge,
            _ => return Err(Corrupt),
        };
        let mut side = |flag| if has(flag) { take_side(bytes, has(INTEGERS)) } else { Ok(vec![]) };
        let (positive, negative) = (side(POSITIVE)?, side(NEGATIVE)?);
        Ok(Self {
            schema,
            zero_threshold,
            zero_count,
            count,
            sum,
            positive,
            negative,
            custom_bounds,
            hint,
        })
    }
}

fn take_side(bytes: &mut &[u8], is_integer: bool) -> Result<Vec<Bucket>, Corrupt> {
    let len = take_len(bytes, 2)?;
    let mut buckets: Vec<Bucket> = Vec::with_capacity(len);
    let mut next = 0_i64;
    for at in 0..len {
        let gap = take_varint(bytes)?;
        let gap = (gap >> 1).cast_signed() ^ -(gap & 1).cast_signed();
        let index = next.checked_add(gap).and_then(|index| i32::try_from(index).ok());
        let index = index.filter(|_| at == 0 || gap >= 0).ok_or(Corrupt)?;
        buckets.push(Bucket { index, count: take_count(bytes, is_integer)? });
        next = i64::from(index) + 1;
    }
    Ok(buckets)
}

/// Returns a number of items of at least `item_bytes` that the bytes can contain.
fn take_len(bytes: &mut &[u8], item_bytes: usize) -> Result<usize, Corrupt> {
    let len = usize::try_from(take_varint(bytes)?).map_err(|_| Corrupt)?;
    // One more custom bucket than bounds.
    let fits = len <= BUCKETS_MAX + 1 && len * item_bytes <= bytes.len();
    if fits { Ok(len) } else { Err(Corrupt) }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Corrupt> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(Corrupt)?;
    *bytes = rest;
    Ok(*taken)
}

fn put_f64(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn take_f64(bytes: &mut &[u8]) -> Result<f64, Corrupt> {
    take(bytes).map(f64::from_le_bytes)
}

fn take_count(bytes: &mut &[u8], is_integer: bool) -> Result<f64, Corrupt> {
    if is_integer { Ok(take_varint(bytes)? as f64) } else { take_f64(bytes) }
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, Corrupt> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Corrupt)
}
