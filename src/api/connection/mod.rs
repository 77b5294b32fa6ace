//! Connections: how many there are, how long one may hold up an answer, and one request at a time.

mod framing;
mod one_at_a_time;

use std::time::Duration;

use actix_web::{dev::Extensions, rt::net::TcpStream};
use rustix::net::sockopt;

use crate::telemetry::Metrics;
pub use one_at_a_time::OneAtATime;
pub(super) use one_at_a_time::{Answered, ConnectionTurn, TurnEnd};

/// Notes connections as they come and go.
#[derive(Debug, Clone)]
pub struct Connections {
    metrics: Metrics,
    answer_timeout: Duration,
}

impl Connections {
    /// A client that takes in nothing of an answer for `answer_timeout` is cut off.
    pub fn new(metrics: &Metrics, answer_timeout: Duration) -> Self {
        Self { metrics: metrics.clone(), answer_timeout }
    }

    /// Notes a new connection; its end is noted when `data` is dropped with it.
    pub fn note(&self, connection: &OneAtATime<TcpStream>, data: &mut Extensions) {
        self.metrics.connections.inc();
        self.metrics.connections_accepted.inc();
        data.insert(Open(self.metrics.clone()));
        data.insert(connection.turn());
        // tcp(7): how long data may stay unacknowledged, or wait for a reader that takes none.
        let millis = u32::try_from(self.answer_timeout.as_millis()).unwrap_or(u32::MAX);
        if let Err(cause) = sockopt::set_tcp_user_timeout(connection.inner(), millis) {
            tracing::debug!(%cause, "a slow reader of this connection will not be cut off");
        }
    }
}

/// An open connection.
struct Open(Metrics);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}
