//! The self-metrics as numbers for people.
//!
//! Must never know: how the numbers are shown.

use prometheus::{Histogram, core::Metric};

use super::{
    labels::{IngestOutcome, Protocol},
    metrics::{Metrics, status_bytes},
};
use crate::policy::RefusalReason;

/// The number of samples of a protocol since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the counters of the same name")]
pub struct SampleCounts {
    pub protocol: &'static str,
    pub accepted: u64,
    pub duplicate: u64,
    pub refused: u64,
}

/// The number of samples refused for one reason since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the labels and the value of the counter")]
pub struct RefusedCount {
    pub protocol: &'static str,
    pub reason: &'static str,
    pub count: u64,
}

/// Durations since the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// The number of durations.
    pub count: u64,
    /// Upper bounds in seconds, with the number of durations up to each; the last bound is
    /// infinite.
    pub buckets: Vec<(f64, f64)>,
}

impl Metrics {
    /// Returns the numbers of samples by protocol.
    pub fn sample_counts(&self) -> Vec<SampleCounts> {
        let refused = self.refused_counts();
        let counts = |protocol: &Protocol| {
            let protocol = protocol.as_str();
            let matching = refused.iter().filter(|count| count.protocol == protocol);
            SampleCounts {
                protocol,
                accepted: self.samples_accepted.with_label_values(&[protocol]).get(),
                duplicate: self.samples_duplicate.with_label_values(&[protocol]).get(),
                refused: matching.map(|refused| refused.count).sum(),
            }
        };
        Protocol::ALL.iter().map(counts).collect()
    }

    /// Returns the numbers of refused samples by protocol and reason, without zeros.
    pub fn refused_counts(&self) -> Vec<RefusedCount> {
        let all = Protocol::ALL.iter().flat_map(|protocol| {
            RefusalReason::ALL.iter().map(move |reason| {
                let (protocol, reason) = (protocol.as_str(), reason.as_str());
                let count = self.samples_refused.with_label_values(&[protocol, reason]).get();
                RefusedCount { protocol, reason, count }
            })
        });
        all.filter(|refused| refused.count > 0).collect()
    }

    /// Returns the numbers of ingest requests by outcome.
    pub fn request_outcomes(&self) -> Vec<(&'static str, u64)> {
        let words = IngestOutcome::ALL.iter().map(|outcome| outcome.as_str());
        words.map(|word| (word, self.ingest_requests.with_label_values(&[word]).get())).collect()
    }

    /// Returns the durations of group commits.
    pub fn commit_timing(&self) -> Timing {
        timing(&self.commit_duration)
    }

    /// Returns the durations of ingest requests.
    pub fn request_timing(&self) -> Timing {
        timing(&self.ingest_request_duration)
    }
}

fn timing(histogram: &Histogram) -> Timing {
    let metric = histogram.metric();
    let durations = metric.get_histogram();
    let count = durations.get_sample_count();
    let buckets = durations.get_bucket().iter();
    let finite = buckets.map(|bucket| (bucket.upper_bound(), bucket.cumulative_count() as f64));
    let finite = finite.filter(|(bound, _)| bound.is_finite());
    Timing { count, buckets: finite.chain([(f64::INFINITY, count as f64)]).collect() }
}

/// Returns the resident memory of this process.
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}
