//! Spans of buckets, the form in which Prometheus sends them: gaps and numbers of buckets, with the
//! counts in a list of their own.

use super::{Bucket, HistogramFault, check::SPAN_BUCKETS_MAX};

/// Neighbouring buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The index of the first span's first bucket; for other spans, the number of empty buckets
    /// after the previous span.
    pub offset: i32,
    /// The number of buckets.
    pub length: u32,
}

/// One side of a histogram as it is received. More than the maximum of spans and counts is noted,
/// but not stored.
#[derive(Debug, Default)]
pub struct ReceivedSide {
    spans: Vec<Span>,
    counts: Vec<f64>,
    /// The last count of an integer, which later differences refer to.
    last: i64,
    is_too_long: bool,
}

impl ReceivedSide {
    /// Adds a span.
    pub fn push_span(&mut self, span: Span) {
        if self.spans.len() < SPAN_BUCKETS_MAX {
            self.spans.push(span);
        } else {
            self.is_too_long = true;
        }
    }

    /// Adds a count.
    pub fn push_count(&mut self, count: f64) {
        if self.counts.len() < SPAN_BUCKETS_MAX {
            self.counts.push(count);
        } else {
            self.is_too_long = true;
        }
    }

    /// Adds an integer count as the difference from the previous one.
    pub fn push_delta(&mut self, delta: i64) {
        self.last = self.last.saturating_add(delta);
        self.push_count(self.last as f64);
    }

    /// Returns true when no count was added.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the buckets.
    pub fn buckets(self) -> Result<Vec<Bucket>, HistogramFault> {
        if self.is_too_long {
            return Err(HistogramFault::TooManyBuckets);
        }
        Bucket::from_spans(self.spans, &self.counts)
    }
}

impl Bucket {
    /// Returns the buckets of spans and their counts.
    pub fn from_spans(
        spans: impl IntoIterator<Item = Span>,
        counts: &[f64],
    ) -> Result<Vec<Self>, HistogramFault> {
        if counts.len() > SPAN_BUCKETS_MAX {
            return Err(HistogramFault::TooManyBuckets);
        }
        let mut buckets = Vec::with_capacity(counts.len());
        let mut next = 0_i64;
        let mut is_first = true;
        for span in spans {
            if span.offset < 0 && !is_first {
                return Err(HistogramFault::Spans);
            }
            is_first = false;
            next += i64::from(span.offset);
            let left = counts.len() - buckets.len();
            let length = span.length as usize;
            if length > left {
                return Err(HistogramFault::SpanLengths);
            }
            for _ in 0..length {
                let index = i32::try_from(next).map_err(|_| HistogramFault::Spans)?;
                buckets.push(Self { index, count: counts[buckets.len()] });
                next += 1;
            }
        }
        if buckets.len() == counts.len() { Ok(buckets) } else { Err(HistogramFault::SpanLengths) }
    }

    /// Returns the spans of buckets. Short gaps are not bridged.
    pub fn spans(buckets: &[Self]) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut end = 0_i64;
        for run in buckets.chunk_by(|left, right| i64::from(left.index) + 1 == right.index.into()) {
            let first = i64::from(run[0].index);
            let offset = i32::try_from(first - end).unwrap_or(i32::MAX);
            spans.push(Span { offset, length: run.len() as u32 });
            end = first + run.len() as i64;
        }
        spans
    }
}
