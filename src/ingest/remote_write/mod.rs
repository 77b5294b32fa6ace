//! Prometheus remote write 1.0 and 2.0 (prometheus.io/docs/specs/prw), decoded without an
//! allocation for known series.
//!
//! Each version has a file; this file has the common parts: samples, native histograms, labels.

mod families;
mod histograms;
mod version_1;
mod version_2;

pub use families::Families;

use granary_exposition::wire::{Fields, WireFault};

use super::rows::{DescribedSeries, Rows};
use crate::model::{Kind, SeriesKey, SeriesLimits, UnixMillis};

const NAME: &str = "__name__";

/// The message in a body, according to its `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `prometheus.WriteRequest`
    V1,
    /// `io.prometheus.write.v2.Request`
    V2,
}

/// The numbers of entries in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryCounts {
    /// Plain samples.
    pub samples: u64,
    /// Native histograms.
    pub histograms: u64,
    /// Exemplars, which are discarded.
    pub exemplars: u64,
}

/// Decodes a body.
///
/// # Errors
/// The body is malformed; samples before the fault are in `rows`.
pub fn decode(
    version: Version,
    body: &[u8],
    families: &Families,
    rows: &mut Rows<'_>,
) -> Result<EntryCounts, WireFault> {
    match version {
        Version::V1 => version_1::decode(body, families, rows),
        Version::V2 => version_2::decode(body, rows),
    }
}

/// Returns the number of fields with these numbers in a message.
fn entries(message: &[u8], numbers: [u32; 2]) -> Result<u64, WireFault> {
    let (mut fields, mut count) = (Fields::of(message), 0);
    while let Some((field, _)) = fields.next_field()? {
        count += u64::from(numbers.contains(&field));
    }
    Ok(count)
}

/// Decodes `Sample` of both versions: value 1, timestamp 2, and in 2.0 start timestamp 3.
fn sample(message: &[u8]) -> Result<(UnixMillis, f64, i64), WireFault> {
    if let Some((at, number)) = plain_sample(message) {
        return Ok((at, number, 0));
    }
    let (mut at, mut number, mut start) = (0, 0.0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            1 => number = value.double(),
            2 => at = value.int(),
            3 => start = value.int(),
            _ => {}
        }
    }
    Ok((UnixMillis(at), number, start))
}

/// Decodes the usual form of a sample: the value, then the timestamp, which takes six bytes from
/// 1971 to 2109. The general decoder reads all other forms.
fn plain_sample(message: &[u8]) -> Option<(UnixMillis, f64)> {
    const VALUE: u8 = 1 << 3 | 1;
    const TIMESTAMP: u8 = 2 << 3;
    const MORE: u64 = 0x80_8080_8080;
    let message: &[u8; 16] = message.try_into().ok()?;
    let (value, time) = message.split_first_chunk::<9>()?;
    let ([VALUE, value @ ..], [TIMESTAMP, time @ ..]) = (value, time) else { return None };
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(time.get(..6)?);
    let time = u64::from_le_bytes(bytes);
    if time & 0x8080_8080_8080 != MORE {
        return None;
    }
    let seven = |byte: u32| (time >> (8 * byte) & 0x7f) << (7 * byte);
    let at = (0..6).map(seven).sum::<u64>();
    Some((UnixMillis(at as i64), f64::from_le_bytes(*value)))
}

/// The labels of one series, as text.
struct Labels<'a> {
    metric: &'a str,
    tags: Vec<(&'a str, &'a str)>,
}

impl<'a> Labels<'a> {
    fn add(&mut self, name: &'a [u8], value: &'a [u8]) -> Result<(), String> {
        let text = |bytes: &'a [u8], part: &str| {
            std::str::from_utf8(bytes).map_err(|_| {
                format!("a label {part} is not UTF-8: {:?}", String::from_utf8_lossy(bytes))
            })
        };
        let (name, value) = (text(name, "name")?, text(value, "value")?);
        if name == NAME {
            self.metric = value;
        } else {
            self.tags.push((name, value));
        }
        Ok(())
    }

    fn described(
        self,
        (kind, is_declared): (Kind, bool),
        unit: &str,
        limits: &SeriesLimits,
    ) -> Result<DescribedSeries, String> {
        let key =
            SeriesKey::new(self.metric, self.tags, limits).map_err(|cause| cause.to_string())?;
        Ok(DescribedSeries { key, kind, is_declared, unit: unit.into() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: f64, at: i64, other: &[u8]) -> Vec<u8> {
        let mut message = vec![9];
        message.extend(value.to_le_bytes());
        message.push(16);
        let mut rest = at as u64;
        while rest >= 0x80 {
            message.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        message.push(rest as u8);
        message.extend(other);
        message
    }

    proptest! {
        #[test]
        fn both_decoders_of_samples_agree(
            value: f64, at in prop_oneof![0..1_i64 << 43, any::<i64>()], start in 0..100_u8,
        ) {
            let bits = |(at, value, start): (UnixMillis, f64, i64)| (at.0, value.to_bits(), start);
            let expected = (at, value.to_bits(), 0);
            prop_assert_eq!(bits(sample(&written(value, at, &[])).unwrap()), expected);
            let general = sample(&written(value, at, &[24, start])).unwrap();
            prop_assert_eq!(bits(general), (at, value.to_bits(), i64::from(start)));
            let plain = plain_sample(&written(value, at, &[]));
            prop_assert_eq!(plain.is_some(), (1_i64 << 35..1 << 42).contains(&at));
        }
    }
}
