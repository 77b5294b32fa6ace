//! The parser of a whole response: samples one by one, or the first fault with its location.

use std::io::Read;

use crate::{
    Families, Format, MemoryRequest, NativeHistograms, cut,
    pieces::Pieces,
    proto::{self, Messages},
    sample::{Fault, LINE_BYTES_MAX, Sample, SampleSink},
};

/// The maximum length of the part of a line that a fault quotes.
const EXCERPT_BYTES_MAX: usize = 100;

/// Parses a response without its native histograms. `take` receives each sample with the families
/// known so far; its error ends the parsing.
///
/// # Errors
/// The first fault. Samples before it were already passed to `take`.
pub fn read(
    body: &[u8],
    format: Format,
    take: impl FnMut(Sample<'_>, &Families) -> Result<(), String>,
) -> Result<(), Fault> {
    read_from(&mut &*body, (format, NativeHistograms::Ignored), &mut |_| Ok(()), take)
}

/// Parses a response while it arrives, see [`read`]. Only one line or family, and the names of all
/// families, are in memory. The parser calls `reserve_memory` before it allocates memory.
///
/// # Errors
/// The errors of [`read`], a truncated response, or a refusal of `reserve_memory`.
pub fn read_from<'a>(
    answer: &'a mut dyn Read,
    (format, native): (Format, NativeHistograms),
    reserve_memory: &'a mut MemoryRequest<'a>,
    mut take: impl FnMut(Sample<'_>, &Families) -> Result<(), String>,
) -> Result<(), Fault> {
    let pieces = Pieces::of(answer, reserve_memory);
    match format {
        Format::Protobuf => Messages::of(pieces, native).pass_all(&mut take),
        Format::Prometheus | Format::OpenMetrics => read_text(pieces, format, &mut take),
    }
}

fn read_text(
    mut pieces: Pieces<'_>,
    format: Format,
    take: &mut SampleSink<'_>,
) -> Result<(), Fault> {
    let mut families = Families::default();
    let mut has_ended = false;
    for number in 1_u64.. {
        let location = || format!("line {number}");
        let line = pieces.line(LINE_BYTES_MAX);
        let Some(line) = line.map_err(|problem| Fault::new(location(), problem))? else { break };
        let line = line.trim_ascii();
        let fault = |problem: String| {
            let excerpt = String::from_utf8_lossy(&line[..line.len().min(EXCERPT_BYTES_MAX)]);
            Fault::new(location(), format!("{problem}: {excerpt:?}"))
        };
        if line.is_empty() {
            continue;
        }
        if has_ended {
            return Err(fault("a line after # EOF".to_owned()));
        }
        if let Some(comment) = line.strip_prefix(b"#") {
            has_ended = format == Format::OpenMetrics && comment.trim_ascii() == b"EOF";
            let before = families.bytes();
            let outcome = families.note(&String::from_utf8_lossy(comment));
            outcome.map_err(|problem| fault(problem.to_owned()))?;
            let family_bytes = families.bytes() - before;
            pieces.reserve(family_bytes).map_err(|problem| Fault::new(location(), problem))?;
            continue;
        }
        let parsed_line = cut(line).map_err(|problem| fault(problem.to_owned()))?;
        let time_ms = match parsed_line.time {
            None => None,
            Some(word) => {
                let parsed = parse_time_ms(word, format);
                Some(parsed.ok_or_else(|| fault("the timestamp is not a number".to_owned()))?)
            }
        };
        let sample = Sample {
            series: parsed_line.series,
            value: parsed_line.value,
            time_ms,
            start_ms: None,
            histogram: None,
        };
        take(sample, &families).map_err(fault)?;
    }
    if format == Format::OpenMetrics && !has_ended {
        return Err(Fault::new("at the end".to_owned(), "no # EOF: the response is truncated"));
    }
    Ok(())
}

/// Parses a timestamp: milliseconds in Prometheus' text, seconds with a fraction in OpenMetrics.
fn parse_time_ms(word: &str, format: Format) -> Option<i64> {
    if format == Format::Prometheus {
        return word.parse().ok();
    }
    let seconds: f64 = word.parse().ok()?;
    let millis = (seconds * 1000.0).round();
    (millis.abs() < 9e15).then_some(millis as i64)
}

/// Parses bytes in each format, and the parts of each series, for fuzz tests.
pub fn fuzz(bytes: &[u8]) {
    let take = |sample: Sample<'_>, families: &Families| {
        let parts = crate::parts(sample.series, crate::Names::Valid)?;
        families.find(&parts.metric);
        Ok(())
    };
    for format in [Format::Prometheus, Format::OpenMetrics, Format::Protobuf] {
        drop(read(bytes, format, take));
    }
    let format = (Format::Protobuf, NativeHistograms::BesideClassic);
    drop(read_from(&mut &*bytes, format, &mut |_| Ok(()), take));
    let _text = proto::format_number(f64::from_bits(
        bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
    ));
}

#[cfg(test)]
mod tests;
