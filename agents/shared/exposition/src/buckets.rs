//! The parts that all messages with native histograms share: spans, and counts as differences or as
//! floats. The messages differ in the numbers of their fields.

use granary_histogram::{BUCKETS_MAX, Histogram, HistogramFault, ReceivedSide, Span};

use crate::wire::{Fields, Value, WireFault, packed_varints};

/// A histogram while its message is decoded.
#[derive(Debug, Default)]
pub struct ReceivedHistogram {
    /// The numbers outside of buckets.
    pub numbers: Numbers,
    /// The schema, which can be finer than the stored ones.
    pub schema: i64,
    /// The buckets with positive bounds.
    pub positive: ReceivedSide,
    /// The buckets with negative bounds.
    pub negative: ReceivedSide,
    bounds: Vec<f64>,
}

/// The numbers of a histogram outside of its buckets.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The number of observations.
    pub count: f64,
    /// The sum of observations.
    pub sum: f64,
    /// The threshold of the zero bucket.
    pub zero_threshold: f64,
    /// The number of observations in the zero bucket.
    pub zero_count: f64,
    /// True when the counts are floats.
    pub is_float: bool,
}

impl ReceivedHistogram {
    /// Adds a custom bound.
    pub fn push_bound(&mut self, bound: f64) {
        // One more bound than is allowed is enough to refuse the histogram.
        if self.bounds.len() <= BUCKETS_MAX {
            self.bounds.push(bound);
        }
    }

    /// Returns the checked histogram, without a hint.
    ///
    /// # Errors
    /// The histogram contradicts itself, or has too many buckets.
    pub fn checked(self) -> Result<Histogram, HistogramFault> {
        let Numbers { count, sum, zero_threshold, zero_count, is_float } = self.numbers;
        let mut histogram =
            Histogram { count, sum, zero_threshold, zero_count, ..Histogram::empty(0) };
        if histogram.is_stale() {
            return Ok(Histogram::stale());
        }
        histogram.custom_bounds = self.bounds.into();
        histogram.positive = self.positive.buckets()?;
        histogram.negative = self.negative.buckets()?;
        let schema = i32::try_from(self.schema).unwrap_or(i32::MAX);
        if is_float { histogram.checked_parts(schema) } else { histogram.checked(schema) }
    }
}

/// Returns the signed number of a varint in zigzag encoding.
pub fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Decodes `BucketSpan`: offset 1, length 2.
///
/// # Errors
/// The message is invalid.
pub fn span(message: &[u8]) -> Result<Span, WireFault> {
    let mut span = Span { offset: 0, length: 0 };
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match (field, value) {
            (1, Value::Varint(number)) => {
                // An offset beyond all indexes is refused with the spans.
                span.offset = i32::try_from(zigzag(number)).unwrap_or(i32::MAX);
            }
            (2, value) => span.length = u32::try_from(value.int()).unwrap_or(u32::MAX),
            _ => {}
        }
    }
    Ok(span)
}

/// Decodes counts as differences, packed or one per field.
///
/// # Errors
/// The packed numbers are truncated.
pub fn deltas(value: Value<'_>, side: &mut ReceivedSide) -> Result<(), WireFault> {
    match value {
        Value::Bytes(packed) => packed_varints(packed, |number| side.push_delta(zigzag(number))),
        Value::Varint(number) => {
            side.push_delta(zigzag(number));
            Ok(())
        }
        Value::Fixed64(_) | Value::Fixed32(_) => Ok(()),
    }
}

/// Visits the numbers of a field of doubles, packed or one per field.
pub fn doubles(value: Value<'_>, visit: &mut dyn FnMut(f64)) {
    if let Value::Fixed64(bits) = value {
        visit(f64::from_bits(bits));
    }
    for bytes in value.bytes().as_chunks().0 {
        visit(f64::from_le_bytes(*bytes));
    }
}
