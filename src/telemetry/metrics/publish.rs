//! The metrics of documents published in MongoDB.

use prometheus::{IntCounter, IntGauge, Registry};

use super::registering::{counter, gauge};

/// The metrics of the publisher.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "METRIC_NAMES explains each metric")]
pub struct PublishMetrics {
    pub documents: IntCounter,
    pub bytes: IntCounter,
    pub superseded: IntCounter,
    pub errors: IntCounter,
    pub collections_dropped: IntCounter,
    pub waiting_seconds: IntGauge,
}

impl PublishMetrics {
    pub(super) fn new(r: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            documents: counter(r, "granary_published_documents_total")?,
            bytes: counter(r, "granary_published_bytes_total")?,
            superseded: counter(r, "granary_published_superseded_total")?,
            errors: counter(r, "granary_publish_errors_total")?,
            collections_dropped: counter(r, "granary_published_collections_dropped_total")?,
            waiting_seconds: gauge(r, "granary_publish_waiting_seconds")?,
        })
    }
}
