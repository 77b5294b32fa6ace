//! The formats of an export: encode a page of series.

use bson::{Bson, DateTime, doc};
use clap::ValueEnum;

use super::{
    ExportState,
    page::{Document, Page, Series},
    parquet,
    rows::{COLUMNS, HISTOGRAM, Row, column_name, for_each_cell, histogram_text},
    samples,
};
use crate::{
    cli::screen,
    model::{Histogram, JsonHistogram, Kind, UnixMillis},
};

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Nested documents, for mongorestore and pymongo
    Bson,
    /// Nested documents, one per line, in MongoDB's extended JSON
    Jsonl,
    /// One row per slot
    Csv,
    /// The last reading of each slot, at its time (for deltas: the sum), without histograms
    Openmetrics,
    /// Samples in JSON, one per line, for granary import: the last reading of each slot, and
    /// histograms with all of their buckets
    Samples,
    /// The rows of CSV as columns, compressed with Snappy
    Parquet,
}

impl Format {
    /// Writes a page, and adds the number of its rows or documents to the state.
    pub(super) fn write(
        self,
        page: &Page,
        state: &mut ExportState,
        out: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let is_first = state.next.is_none();
        state.rows += match self {
            Self::Bson | Self::Jsonl => self.write_documents(page, out)?,
            Self::Csv => write_csv(page, is_first, out)?,
            Self::Openmetrics => {
                let histograms = page.series.iter().filter(|series| series.kind.is_histogram());
                state.histograms += histograms.count() as u64;
                write_openmetrics(page, &mut state.metric, out)?
            }
            Self::Samples => {
                let written = samples::write_page(page, out)?;
                state.inexact += written.inexact;
                written.lines
            }
            Self::Parquet => parquet::write_page(page, out)?,
        };
        Ok(())
    }

    /// Returns the end of the file.
    pub(super) fn end(self) -> &'static [u8] {
        if self == Self::Openmetrics { b"# EOF\n" } else { b"" }
    }

    fn write_documents(self, page: &Page, out: &mut Vec<u8>) -> anyhow::Result<u64> {
        let mut rows = 0;
        for series in &page.series {
            for document in &series.documents {
                rows += 1;
                if self == Self::Bson {
                    nested(page, series, document, Bson::Double)?.to_writer(&mut *out)?;
                    continue;
                }
                let document = nested(page, series, document, extended_json_number)?;
                out.extend(screen::json(&serde_json::to_string(&document)?).into_bytes());
                out.push(b'\n');
            }
        }
        Ok(rows)
    }
}

fn write_csv(page: &Page, first: bool, out: &mut Vec<u8>) -> anyhow::Result<u64> {
    if first {
        let fixed = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut header: Vec<String> = fixed(&COLUMNS[..2]);
        header.extend(page.tags.iter().map(|tag| column_name(page, tag)));
        header.extend::<Vec<String>>(fixed(&COLUMNS[2..]));
        header.extend(page.has_histograms.then(|| HISTOGRAM.to_owned()));
        csv_line(&header, out);
    }
    let mut rows = 0;
    for_each_cell(page, |row| {
        rows += 1;
        csv_line(&fields(page, row)?, out);
        Ok(())
    })?;
    Ok(rows)
}

fn write_openmetrics(page: &Page, metric: &mut String, out: &mut Vec<u8>) -> anyhow::Result<u64> {
    let mut rows = 0;
    for_each_cell(page, |Row { series, cell, start, .. }| {
        let number = if series.kind == Kind::Delta { Some(cell.sum()) } else { cell.last() };
        let Some(value) = number else { return Ok(()) };
        if *metric != series.metric {
            metric.clone_from(&series.metric);
            type_line(series, out);
        }
        rows += 1;
        sample_line(series, value, start + cell.2, out)
    })?;
    Ok(rows)
}

/// Returns a number in MongoDB's extended JSON, which also represents NaN and infinity.
fn extended_json_number(number: f64) -> Bson {
    match number {
        f64::INFINITY => doc! { "$numberDouble": "Infinity" }.into(),
        f64::NEG_INFINITY => doc! { "$numberDouble": "-Infinity" }.into(),
        _ if number.is_nan() => doc! { "$numberDouble": "NaN" }.into(),
        _ => Bson::Double(number),
    }
}

fn nested(
    page: &Page,
    series: &Series,
    document: &Document,
    double: fn(f64) -> Bson,
) -> anyhow::Result<bson::Document> {
    let mut values: Vec<bson::Document> = vec![doc! { "n": 0_i64 }; document.slots as usize];
    let (mut num_samples, mut total_samples) = (0_i64, 0.0);
    for cell in &document.cells {
        num_samples += i64::from(cell.1);
        total_samples += cell.sum();
        if let Some(value) = values.get_mut(cell.0 as usize) {
            value.insert("n", i64::from(cell.1));
            let known =
                cell.numbers().into_iter().filter_map(|(name, number)| Some((name, number?)));
            value.extend(known.map(|(name, number)| (name.to_owned(), double(number))));
            if let Some(found) = document.histograms_of(cell) {
                for (name, histogram) in [
                    ("histogram", found.total()),
                    ("first_histogram", found.first()),
                    ("last_histogram", found.last()),
                ] {
                    value.insert(name, histogram_document(histogram)?);
                }
            }
        }
    }
    let numbered = values.into_iter().enumerate();
    let values: bson::Document =
        numbered.map(|(slot, value)| (slot.to_string(), Bson::Document(value))).collect();
    let tags: bson::Document =
        series.tags.iter().map(|(name, value)| (name.clone(), Bson::from(value.clone()))).collect();
    Ok(doc! {
        page.timestamp.as_str(): DateTime::from_millis(document.start),
        "metric": series.metric.as_str(),
        "tags": tags,
        "resolution": page.resolution.as_str(),
        "num_samples": num_samples,
        "total_samples": double(total_samples),
        "values": values,
    })
}

/// Returns a histogram as a document with the fields of its JSON form.
fn histogram_document(histogram: &Histogram) -> anyhow::Result<bson::Document> {
    Ok(bson::serialize_to_document(&JsonHistogram(histogram.clone()))?)
}

/// Returns the fields of a row.
fn fields(page: &Page, row: Row<'_>) -> anyhow::Result<Vec<String>> {
    let Row { series, document, cell, start } = row;
    let mut row = vec![UnixMillis(start).to_string(), series.metric.clone()];
    row.extend(page.tags.iter().map(|tag| series.tags.get(tag).cloned().unwrap_or_default()));
    row.push(cell.1.to_string());
    let numbers = cell.numbers().into_iter();
    row.extend(
        numbers.map(|(_, number)| number.map_or_else(String::new, |number| number.to_string())),
    );
    if page.has_histograms {
        row.push(histogram_text(document, cell)?.unwrap_or_default());
    }
    Ok(row)
}

/// Writes a row as in RFC 4180. Line breaks and terminal control characters are escaped, so a row
/// is always one line.
fn csv_line(fields: &[String], out: &mut Vec<u8>) {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let field = screen::text(field);
        if field.contains([',', '"']) {
            out.extend_from_slice(format!("\"{}\"", field.replace('"', "\"\"")).as_bytes());
        } else {
            out.extend_from_slice(field.as_bytes());
        }
    }
    out.push(b'\n');
}

fn type_line(series: &Series, out: &mut Vec<u8>) {
    let (name, kind) = match series.kind.of_counts() {
        Kind::Counter => {
            (series.metric.strip_suffix("_total").unwrap_or(&series.metric), "counter")
        }
        Kind::Gauge
        | Kind::Delta
        | Kind::Histogram
        | Kind::GaugeHistogram
        | Kind::DeltaHistogram => (series.metric.as_str(), "gauge"),
    };
    let name = if is_plain(name) { name.to_owned() } else { quoted(name) };
    out.extend_from_slice(format!("# TYPE {name} {kind}\n").as_bytes());
}

fn sample_line(series: &Series, value: f64, at: i64, out: &mut Vec<u8>) -> anyhow::Result<()> {
    use std::io::Write;
    let mut labels = Vec::with_capacity(series.tags.len() + 1);
    if is_plain(&series.metric) {
        write!(out, "{}", series.metric)?;
    } else {
        labels.push(quoted(&series.metric));
    }
    for (name, value) in &series.tags {
        let name = if is_plain(name) { name.clone() } else { quoted(name) };
        labels.push(format!("{name}={}", quoted(value)));
    }
    if !labels.is_empty() {
        write!(out, "{{{}}}", labels.join(","))?;
    }
    let value = match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    };
    writeln!(out, " {value} {}.{:03}", at.div_euclid(1000), at.rem_euclid(1000))?;
    Ok(())
}

fn is_plain(name: &str) -> bool {
    let letter = |at: usize, byte: u8| {
        byte.is_ascii_alphabetic()
            || byte == b'_'
            || byte == b':'
            || at > 0 && byte.is_ascii_digit()
    };
    !name.is_empty() && name.bytes().enumerate().all(|(at, byte)| letter(at, byte))
}

fn quoted(text: &str) -> String {
    // A newline has its own escape in OpenMetrics.
    let lines: Vec<_> = text
        .split('\n')
        .map(|line| screen::text(line).replace('\\', "\\\\").replace('"', "\\\""))
        .collect();
    format!("\"{}\"", lines.join("\\n"))
}
