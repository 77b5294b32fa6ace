//! Connections: their number, the timeout for slow readers, and one request at a time.

mod framing;
mod one_at_a_time;

use std::time::Duration;

use actix_web::dev::Extensions;
use rustix::net::sockopt;

use crate::{
    telemetry::Metrics,
    tls::{ClientCertificate, Stream},
};
pub use one_at_a_time::OneAtATime;
pub(super) use one_at_a_time::{AnswerBody, ConnectionTurn, TurnEnd};

/// True for a connection with TLS.
#[derive(Debug, Clone, Copy)]
pub(super) struct IsEncrypted(pub(super) bool);

/// The counter of open connections.
#[derive(Debug, Clone)]
pub struct Connections {
    metrics: Metrics,
    answer_timeout: Duration,
}

impl Connections {
    /// Creates the counter. Connections of clients that read nothing for `answer_timeout` are
    /// closed.
    pub fn new(metrics: &Metrics, answer_timeout: Duration) -> Self {
        Self { metrics: metrics.clone(), answer_timeout }
    }

    /// Counts a new connection; dropping `data` counts its end.
    pub fn count(&self, connection: &OneAtATime<Stream>, data: &mut Extensions) {
        self.metrics.connections.inc();
        self.metrics.connections_accepted.inc();
        data.insert(OpenConnection(self.metrics.clone()));
        data.insert(connection.turn());
        if let Some(certificate) = ClientCertificate::of(connection.inner()) {
            data.insert(certificate);
        }
        data.insert(IsEncrypted(matches!(connection.inner(), Stream::Tls(_))));
        // tcp(7): the time that data may stay unacknowledged, or wait for a slow reader.
        let millis = u32::try_from(self.answer_timeout.as_millis()).unwrap_or(u32::MAX);
        if let Err(cause) = sockopt::set_tcp_user_timeout(connection.inner().tcp(), millis) {
            tracing::debug!(%cause, "cannot set the timeout for a slow reader of this connection");
        }
    }
}

/// An open connection.
struct OpenConnection(Metrics);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}
