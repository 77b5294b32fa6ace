//! Native histograms in `Histogram` of Prometheus' messages, beside the classic buckets of the same
//! message.
//!
//! Must never know: names and labels.

use granary_histogram::{Histogram, HistogramFault, ResetHint};

use crate::{
    buckets::{ReceivedHistogram, deltas, doubles, span, zigzag},
    wire::{Fields, Value, WireFault},
};

/// The series of a histogram in Protocol Buffers that has native buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NativeHistograms {
    /// The classic series: buckets, sum and count.
    #[default]
    Ignored,
    /// The native histogram.
    Preferred,
    /// The native histogram, and the classic series if the histogram has classic buckets.
    BesideClassic,
}

/// Decodes the native buckets of `Histogram`, with the fields count 1 or 4, sum 2, schema 5, zero
/// threshold 6, zero count 7 or 8, the negative side 9 to 11, the positive side 12 to 14. Returns
/// `None` for a histogram with classic buckets only: it has neither a span nor a zero bucket.
pub(crate) fn native_histogram(
    message: &[u8],
    is_gauge: bool,
) -> Result<Option<Result<Histogram, HistogramFault>>, WireFault> {
    let mut received = ReceivedHistogram::default();
    let mut has_spans = false;
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        let ReceivedHistogram { numbers, schema, positive, negative, .. } = &mut received;
        match (field, value) {
            (1, Value::Varint(number)) if !numbers.is_float => numbers.count = number as f64,
            (4, value) if value.double() > 0.0 => {
                (numbers.count, numbers.is_float) = (value.double(), true);
            }
            (2, value) => numbers.sum = value.double(),
            (5, Value::Varint(number)) => *schema = zigzag(number),
            (6, value) => numbers.zero_threshold = value.double(),
            (7, Value::Varint(number)) if !numbers.is_float => numbers.zero_count = number as f64,
            (8, value) if value.double() > 0.0 => {
                (numbers.zero_count, numbers.is_float) = (value.double(), true);
            }
            (9 | 12, value) => {
                let side = if field == 9 { negative } else { positive };
                side.push_span(span(value.bytes())?);
                has_spans = true;
            }
            (10, value) => deltas(value, negative)?,
            (13, value) => deltas(value, positive)?,
            (11, value) => doubles(value, &mut |count| negative.push_count(count)),
            (14, value) => doubles(value, &mut |count| positive.push_count(count)),
            _ => {}
        }
    }
    let numbers = &received.numbers;
    if !has_spans && numbers.zero_threshold <= 0.0 && numbers.zero_count <= 0.0 {
        return Ok(None);
    }
    let hint = if is_gauge { ResetHint::Gauge } else { ResetHint::Unknown };
    Ok(Some(received.checked().map(|histogram| Histogram { hint, ..histogram })))
}

#[cfg(test)]
mod tests;
