//! The step between an accepted connection and its first request: the handshake of TLS.
//!
//! Must never know: certificate files.

use std::{io, net::SocketAddr, time::Duration};

use actix_http::{Protocol, error::DispatchError};
use actix_server::GracefulShutdownSignal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    api::OneAtATime,
    kept::LiveValue,
    telemetry::Metrics,
    tls::{Handshakes, NotAccepted, ServerTls, Stream},
};

/// The answer to a client without TLS: a word for programs, a sentence for people.
const USE_HTTPS: &str = "{\"error\":\"tls_required\",\"message\":\"this port serves https only: use https:// instead of http://\"}";
/// The maximum number of bytes that are read from a client without TLS, so that the closed
/// connection does not discard the answer.
const DISCARDED_BYTES_MAX: u64 = 64 << 10;
/// The time limit for a client without TLS to read its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The step for the connections of one HTTP worker.
#[derive(Clone)]
pub(super) struct Accepting {
    pub(super) tls: LiveValue<Option<ServerTls>>,
    pub(super) handshakes: Handshakes,
    pub(super) metrics: Metrics,
    pub(super) stop: GracefulShutdownSignal,
}

/// A connection as the HTTP server expects it.
pub(super) type Accepted = (OneAtATime<Stream>, Protocol, Option<SocketAddr>);

impl Accepting {
    /// Accepts a connection: with the certificate in use, or plain without one.
    ///
    /// # Errors
    /// The handshake failed, or the daemon is stopping.
    pub(super) async fn accept(self, stream: TcpStream) -> Result<Accepted, DispatchError> {
        // Without this, the end of an answer may wait 40 ms until the client acknowledges its
        // beginning.
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr().ok();
        let config = self.tls.get().as_ref().as_ref().map(|tls| tls.config.clone());
        let Some(config) = config else {
            return Ok((OneAtATime::new(Stream::Plain(stream)), Protocol::Http1, peer));
        };
        let accepted = tokio::select! {
            biased;
            // A client that sends nothing must not delay the stop.
            () = self.stop.notified() => return Err(io::Error::other("stopping").into()),
            accepted = self.handshakes.accept(stream, config) => accepted,
        };
        let outcome = NotAccepted::outcome(&accepted);
        self.metrics.tls.handshakes.with_label_values(&[outcome]).inc();
        match accepted {
            Ok(stream) => Ok((OneAtATime::new(stream), Protocol::Http1, peer)),
            Err(refused) => {
                tracing::debug!(%refused, "closed a connection before its first request");
                let cause = io::Error::other(refused.to_string());
                if let NotAccepted::Plain(stream) = refused {
                    tokio::select! {
                        () = self.stop.notified() => {}
                        _ = timeout(ANSWER_TIMEOUT, answer_plain(stream)) => {}
                    }
                }
                Err(cause.into())
            }
        }
    }
}

/// Answers a client without TLS, and waits until it closes the connection.
async fn answer_plain(mut stream: TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-content-type-options: nosniff\r\ncontent-length: {}\r\n\r\n{USE_HTTPS}",
        USE_HTTPS.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(DISCARDED_BYTES_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}
