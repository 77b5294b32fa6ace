//! InfluxDB line protocol (docs.influxdata.com, "Line protocol reference"): each field of a line
//! is a sample of the metric `measurement_field`.

use granary_exposition::kind_of_name;
use influxdb_line_protocol::{FieldValue, ParsedLine, parse_lines};

use super::{
    rows::{DescribedSeries, Rows},
    series_cache::Fingerprint,
};
use crate::{
    model::{SeriesKey, SeriesLimits, UnixMillis},
    policy::RefusalReason,
};

const PROTOCOL: u8 = 3;
/// The maximum length of a line; VictoriaMetrics has the same limit (`-influx.maxLineSize`).
const LINE_BYTES_MAX: usize = 256 << 10;

/// The unit of timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Nanoseconds, the default.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes; version 1 only.
    Minutes,
    /// Hours; version 1 only.
    Hours,
}

impl Precision {
    /// Parses the `precision` parameter of either version.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "" | "n" | "ns" => Self::Nanoseconds,
            "u" | "us" | "µ" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => return None,
        })
    }

    fn time(self, timestamp: i64) -> UnixMillis {
        UnixMillis(match self {
            Self::Nanoseconds => timestamp.div_euclid(1_000_000),
            Self::Microseconds => timestamp.div_euclid(1000),
            Self::Milliseconds => timestamp,
            Self::Seconds => timestamp.saturating_mul(1000),
            Self::Minutes => timestamp.saturating_mul(60_000),
            Self::Hours => timestamp.saturating_mul(3_600_000),
        })
    }
}

/// Decodes a body; lines without a timestamp get the time `now`. A malformed line does not affect
/// the others.
///
/// # Errors
/// The body is not UTF-8.
pub fn decode(
    body: &[u8],
    precision: Precision,
    now: UnixMillis,
    rows: &mut Rows<'_>,
) -> Result<(), String> {
    let text = std::str::from_utf8(body).map_err(|fault| format!("body: {fault}"))?;
    let mut written = Vec::new();
    let mut number = 0;
    for part in parts(text) {
        let Part::Lines(lines) = part else {
            number += 1;
            rows.refuse(RefusalReason::BadSample, 1, || {
                format!("line {number} has more than {LINE_BYTES_MAX} bytes: send fewer fields")
            });
            continue;
        };
        for line in parse_lines(lines) {
            number += 1;
            if rows.is_full() {
                return Ok(());
            }
            match line {
                Ok(line) => {
                    let at = line.timestamp.map_or(now, |timestamp| precision.time(timestamp));
                    read_line(&line, at, rows, &mut written);
                }
                Err(fault) => {
                    rows.refuse(RefusalReason::BadSample, 1, || format!("line {number}: {fault}"));
                }
            }
        }
    }
    Ok(())
}

/// A part of a body.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    /// Lines to parse.
    Lines(&'a str),
    /// A line above the maximum length.
    TooLong,
}

/// Splits a body at lines that are too long. The parser builds a whole line at a time, which takes
/// tens of times its bytes.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut from, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        // Comments are skipped without parsing.
        if line.len() > LINE_BYTES_MAX && !line.starts_with('#') {
            parts.extend(text.get(from..end).map(Part::Lines));
            parts.push(Part::TooLong);
            from = end + line.len();
        }
        end += line.len();
    }
    parts.extend(text.get(from..).map(Part::Lines));
    parts
}

fn read_line(line: &ParsedLine<'_>, at: UnixMillis, rows: &mut Rows<'_>, written: &mut Vec<u8>) {
    let tags = line.series.tag_set.iter().flatten();
    let tag_bytes: usize = tags.map(|(name, value)| name.len() + value.len()).sum();
    let bytes = line.series.measurement.len() + tag_bytes;
    if !rows.fits(bytes, line.field_set.len() as u64) {
        return;
    }
    // The hash covers parsed parts: escapes and the order of fields do not matter.
    written.clear();
    let mut put = |part: &str| {
        written.extend_from_slice(part.as_bytes());
        written.push(0);
    };
    put(line.series.measurement.as_str());
    line.series.tag_set.iter().flatten().for_each(|(name, value)| {
        put(name.as_str());
        put(value.as_str());
    });
    let shared = Fingerprint::new(PROTOCOL, written);
    for (field, value) in &line.field_set {
        let value = match value {
            FieldValue::F64(value) => *value,
            FieldValue::I64(value) => *value as f64,
            FieldValue::U64(value) => *value as f64,
            FieldValue::Boolean(value) => f64::from(u8::from(*value)),
            FieldValue::String(_) => {
                rows.refuse(RefusalReason::TextField, 1, || {
                    format!("field {field} of {} is a text; send numbers", line.series.measurement)
                });
                continue;
            }
        };
        let target = rows.series(shared.and(field.as_str().as_bytes()), |limits| {
            describe(line, field.as_str(), limits)
        });
        rows.push(target, at, value, 0);
    }
}

fn describe(
    line: &ParsedLine<'_>,
    field: &str,
    limits: &SeriesLimits,
) -> Result<DescribedSeries, String> {
    let metric = format!("{}_{field}", line.series.measurement.as_str());
    let tags = line.series.tag_set.iter().flatten();
    let tags: Vec<_> = tags.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let key = SeriesKey::new(&metric, tags, limits).map_err(|cause| cause.to_string())?;
    Ok(DescribedSeries { key, kind: kind_of_name(&metric), unit: "".into(), is_declared: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_too_long_are_cut_out() {
        let long_line = format!("m {}a=1\n", "a=1,".repeat(LINE_BYTES_MAX / 4));
        let comment = format!("# {long_line}");
        let text = format!("a b=1\nc d=2\n{long_line}{long_line}{comment}e f=3");
        let rest = format!("{comment}e f=3");
        let expected = [
            Part::Lines("a b=1\nc d=2\n"),
            Part::TooLong,
            Part::Lines(""),
            Part::TooLong,
            Part::Lines(&rest),
        ];
        assert_eq!(parts(&text), expected);
        assert_eq!(parts(""), [Part::Lines("")]);
    }
}
