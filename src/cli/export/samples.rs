//! The format `samples`: lines of JSON as `POST /api/v1/ingest` accepts them, for `granary import`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{
    page::{Document, Page, Series},
    readings::{SeriesSamples, SlotHistograms},
    rows::is_in_range,
};
use crate::model::{JsonHistogram, Kind};

/// A sample; see `decode_json_sample` of granary-protocol.
#[derive(Serialize)]
struct Line<'a> {
    metric: &'a str,
    #[serde(skip_serializing_if = "is_empty")]
    tags: &'a BTreeMap<String, String>,
    kind: Kind,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
    time: i64,
    #[serde(skip_serializing_if = "is_unknown")]
    start: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<JsonHistogram>,
}

fn is_empty(tags: &BTreeMap<String, String>) -> bool {
    tags.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_unknown(start: &i64) -> bool {
    *start == 0
}

/// A number, or the text of one that JSON does not have.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            f64::INFINITY => serializer.serialize_str("+Inf"),
            f64::NEG_INFINITY => serializer.serialize_str("-Inf"),
            number if number.is_nan() => serializer.serialize_str("NaN"),
            number => serializer.serialize_f64(number),
        }
    }
}

/// The numbers of lines, and of slots that the lines do not give back exactly.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Written {
    pub(super) lines: u64,
    pub(super) inexact: u64,
}

/// Writes a page.
pub(super) fn write_page(page: &Page, out: &mut Vec<u8>) -> anyhow::Result<Written> {
    let mut written = Written::default();
    for series in &page.series {
        let mut samples = SeriesSamples::default();
        for document in &series.documents {
            if series.kind.is_histogram() {
                write_histograms((page, series, document), &mut samples, &mut written, out)?;
            } else {
                write_numbers((page, series, document), &mut written, out)?;
            }
        }
    }
    Ok(written)
}

fn write_numbers(
    (page, series, document): (&Page, &Series, &Document),
    written: &mut Written,
    out: &mut Vec<u8>,
) -> anyhow::Result<()> {
    for cell in &document.cells {
        let start = document.start + i64::from(cell.0) * page.width_ms;
        let number = if series.kind == Kind::Delta { Some(cell.sum()) } else { cell.last() };
        if let Some(number) = number.filter(|_| is_in_range(page, start)) {
            let line = Line { value: Some(Number(number)), ..line(series, start + cell.2) };
            push(&line, written, out)?;
        }
    }
    Ok(())
}

fn write_histograms(
    (page, series, document): (&Page, &Series, &Document),
    samples: &mut SeriesSamples,
    written: &mut Written,
    out: &mut Vec<u8>,
) -> anyhow::Result<()> {
    for cell in &document.cells {
        let start = document.start + i64::from(cell.0) * page.width_ms;
        if !is_in_range(page, start) {
            continue;
        }
        let Some(found) = document.histograms_of(cell) else {
            // The slot has numbers of the time before the series got histograms.
            written.inexact += 1;
            continue;
        };
        let slot = SlotHistograms {
            n: cell.1,
            first_at: start + found.first_at(),
            last_at: start + cell.2,
            first: found.first(),
            last: found.last(),
            total: found.total(),
        };
        let (found, is_exact) = samples.of_slot(series.kind, &slot);
        written.inexact += u64::from(!is_exact);
        for sample in found {
            let histogram = Some(JsonHistogram(sample.histogram));
            let line = Line { histogram, start: sample.start, ..line(series, sample.at) };
            push(&line, written, out)?;
        }
    }
    Ok(())
}

fn line(series: &Series, time: i64) -> Line<'_> {
    Line {
        metric: &series.metric,
        tags: &series.tags,
        kind: series.kind,
        unit: &series.unit,
        time,
        start: 0,
        value: None,
        histogram: None,
    }
}

fn push(line: &Line<'_>, written: &mut Written, out: &mut Vec<u8>) -> anyhow::Result<()> {
    let text = serde_json::to_string(line)?;
    out.extend_from_slice(crate::cli::screen::json(&text).as_bytes());
    out.push(b'\n');
    written.lines += 1;
    Ok(())
}
