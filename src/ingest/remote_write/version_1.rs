//! Version 1.0, `prometheus.WriteRequest`: labels as text in each series, types next to the series.
//!
//! Must never know: version 2.0.

use granary_exposition::wire::{Fields, WireFault};

use super::{
    EntryCounts, Families, Labels, entries, histograms::TimedHistogram, plain_sample, sample,
};
use crate::{
    ingest::{rows::Rows, series_cache::Fingerprint},
    model::{SeriesLimits, UnixMillis, is_stale_marker},
};

const PROTOCOL: u8 = 1;

pub(super) fn decode(
    body: &[u8],
    families: &Families,
    rows: &mut Rows<'_>,
) -> Result<EntryCounts, WireFault> {
    let mut contents = EntryCounts::default();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        match field {
            1 if rows.is_full() => {}
            1 => series(value.bytes(), families, rows, &mut contents)?,
            3 => families.remember_kind(value.bytes(), rows.limits)?,
            _ => {}
        }
    }
    Ok(contents)
}

/// Decodes `TimeSeries` of 1.0: the labels come first, and their bytes are equal for equal series.
fn series(
    message: &[u8],
    families: &Families,
    rows: &mut Rows<'_>,
    contents: &mut EntryCounts,
) -> Result<(), WireFault> {
    let labels = &message[..labels_end(message)];
    if labels.len() > rows.limits.series_bytes_max() {
        rows.fits(labels.len(), entries(message, [2, 4])?);
        return Ok(());
    }
    let mut rest = &message[labels.len()..];
    let describe = |limits: &SeriesLimits| {
        let labels = Labels::read_1(labels)?;
        let kind = families.kind(labels.metric);
        labels.described(kind, "", limits)
    };
    let mut target = None;
    let mut find = |rows: &mut Rows<'_>, value: f64| {
        let plain = || Fingerprint::new(PROTOCOL, labels);
        if is_stale_marker(value) {
            return rows.ended_series(plain(), plain(), describe);
        }
        *target.get_or_insert_with(|| rows.series(plain(), describe))
    };
    while let Some((at, value, after)) = next_plain_sample(rest) {
        let target = find(rows, value);
        contents.samples += 1;
        rows.push(target, at, value, 0);
        rest = after;
    }
    let mut fields = Fields::of(rest);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            2 => {
                let (at, value, start) = sample(value.bytes())?;
                let target = find(rows, value);
                contents.samples += 1;
                rows.push(target, at, value, start);
            }
            3 => contents.exemplars += 1,
            4 => {
                let sample = TimedHistogram::read(value.bytes())?;
                contents.histograms += u64::from(sample.histogram.is_ok());
                let start = sample.start;
                sample.push(rows, Fingerprint::new(PROTOCOL, labels), start, |kind, limits| {
                    Labels::read_1(labels)?.described((kind, true), "", limits)
                });
            }
            // Labels after the samples; no sender writes them there.
            _ => {}
        }
    }
    Ok(())
}

/// Returns the next sample, if it has the usual form, and the bytes after it.
fn next_plain_sample(bytes: &[u8]) -> Option<(UnixMillis, f64, &[u8])> {
    const SAMPLE: u8 = 2 << 3 | 2;
    let ([SAMPLE, length], after) = bytes.split_first_chunk()? else { return None };
    let (message, after) = after.split_at_checked(usize::from(*length))?;
    let (at, value) = plain_sample(message)?;
    Some((at, value, after))
}

/// Returns the end of the labels at the start of a series by their lengths alone. The general
/// decoder reads labels of 128 bytes and more.
fn labels_end(message: &[u8]) -> usize {
    const LABEL: u8 = 1 << 3 | 2;
    let mut at = 0;
    while let Some([LABEL, length]) = message.get(at..at + 2) {
        let end = at + 2 + usize::from(*length);
        if *length >= 0x80 || end > message.len() {
            return long_labels_end(message, at);
        }
        at = end;
    }
    at
}

fn long_labels_end(message: &[u8], from: usize) -> usize {
    let mut ahead = Fields::of(&message[from..]);
    let mut end = from;
    while let Ok(Some((1, _))) = ahead.next_field() {
        end = from + ahead.position();
    }
    end
}

impl<'a> Labels<'a> {
    fn read_1(labels: &'a [u8]) -> Result<Self, String> {
        let mut out = Self { metric: "", tags: Vec::new() };
        let mut fields = Fields::of(labels);
        while let Some((_, label)) = fields.next_field().map_err(|fault| fault.to_string())? {
            let (mut name, mut value) = (&[][..], &[][..]);
            let mut parts = Fields::of(label.bytes());
            while let Some((field, part)) = parts.next_field().map_err(|fault| fault.to_string())? {
                match field {
                    1 => name = part.bytes(),
                    2 => value = part.bytes(),
                    _ => {}
                }
            }
            out.add(name, value)?;
        }
        Ok(out)
    }
}
