//! The BSON encoder of batches.

use bson::{
    Binary, DateTime,
    raw::{CString, RawArrayBuf, RawDocumentBuf, cstr},
    spec::BinarySubtype,
};

use crate::{Batch, PROTOCOL_VERSION, SeriesDefinition};

/// Appends the batch to `out` as one BSON document.
///
/// A tag name with a NUL byte cannot be a BSON key. The encoder writes the empty name instead, so
/// that the daemon refuses the series. Without the tag, the samples would belong to another series.
pub fn encode_batch(batch: &Batch, out: &mut Vec<u8>) {
    let mut doc = RawDocumentBuf::new();
    doc.append(cstr!("v"), PROTOCOL_VERSION);
    doc.append(cstr!("agent"), batch.agent.as_str());
    doc.append(cstr!("epoch"), batch.epoch);
    doc.append(cstr!("seq"), batch.seq as i64);
    if batch.sent != 0 {
        doc.append(cstr!("sent"), DateTime::from_millis(batch.sent));
    }
    if !batch.series.is_empty() {
        let mut series = RawArrayBuf::new();
        for definition in &batch.series {
            series.push(encode_definition(definition));
        }
        doc.append(cstr!("series"), series);
    }
    let mut samples = RawDocumentBuf::new();
    samples.append(cstr!("refs"), encode_column(&batch.refs, u32::to_le_bytes));
    samples.append(cstr!("times"), encode_column(&batch.times, i64::to_le_bytes));
    samples.append(cstr!("values"), encode_column(&batch.values, f64::to_le_bytes));
    if !batch.starts.is_empty() {
        samples.append(cstr!("starts"), encode_column(&batch.starts, i64::to_le_bytes));
    }
    if !batch.histograms.is_empty() {
        let column = Binary { subtype: BinarySubtype::Generic, bytes: batch.histograms.clone() };
        samples.append(cstr!("histograms"), column);
    }
    doc.append(cstr!("samples"), samples);
    out.extend_from_slice(doc.as_bytes());
}

fn encode_definition(definition: &SeriesDefinition) -> RawDocumentBuf {
    let mut doc = RawDocumentBuf::new();
    doc.append(cstr!("ref"), i64::from(definition.reference));
    doc.append(cstr!("metric"), definition.metric.as_str());
    let mut tags = RawDocumentBuf::new();
    for (key, value) in &definition.tags {
        let key = CString::try_from(key.as_str());
        // An empty value would mean "no such tag".
        let value = if key.is_ok() { value.as_str() } else { "?" };
        tags.append(key.as_deref().unwrap_or(cstr!("")), value);
    }
    doc.append(cstr!("tags"), tags);
    doc.append(cstr!("kind"), definition.kind.as_str());
    if !definition.unit.is_empty() {
        doc.append(cstr!("unit"), definition.unit.as_str());
    }
    doc
}

fn encode_column<T: Copy, const N: usize>(items: &[T], bytes: impl Fn(T) -> [u8; N]) -> Binary {
    let mut column = Vec::with_capacity(items.len() * N);
    for item in items {
        column.extend_from_slice(&bytes(*item));
    }
    Binary { subtype: BinarySubtype::Generic, bytes: column }
}
