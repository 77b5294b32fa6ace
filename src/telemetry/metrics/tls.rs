//! The metrics of TLS: handshakes and the certificate in use.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Registry};

use super::registering::{counter, counters, gauge};

/// The metrics of TLS.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "METRIC_NAMES explains each metric")]
pub struct TlsMetrics {
    pub handshakes: IntCounterVec,
    pub certificate_expires: IntGauge,
    pub reload_failures: IntCounter,
}

impl TlsMetrics {
    pub(super) fn new(r: &Registry) -> Result<Self, prometheus::Error> {
        let handshakes = counters(r, "granary_tls_handshakes_total", &["outcome"])?;
        for outcome in ["accepted", "failed", "slow", "plain", "too_many"] {
            handshakes.with_label_values(&[outcome]);
        }
        Ok(Self {
            handshakes,
            certificate_expires: gauge(r, "granary_tls_certificate_expires_timestamp_seconds")?,
            reload_failures: counter(r, "granary_tls_reload_failures_total")?,
        })
    }
}
