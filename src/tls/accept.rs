//! Handshakes: a limited number at a time, each within a time limit.
//!
//! Must never know: what a client without TLS is answered.

use std::{fmt, io, sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::{net::TcpStream, sync::Semaphore, time::timeout};
use tokio_rustls::TlsAcceptor;

use super::Stream;

/// The first byte of a handshake: the content type of RFC 8446, section 5.1.
const HANDSHAKE: u8 = 0x16;

/// The handshakes of a listener. Clones share the limit.
#[derive(Debug, Clone)]
pub struct Handshakes {
    permits: Arc<Semaphore>,
    time_max: Duration,
}

/// The reason why a connection is not accepted.
#[derive(Debug)]
pub enum NotAccepted {
    /// The client does not speak TLS. The stream is returned for an answer.
    Plain(TcpStream),
    /// The handshake failed, or the client disconnected.
    Failed(io::Error),
    /// The handshake took too long.
    Slow,
    /// Too many handshakes are running.
    TooMany,
}

impl NotAccepted {
    /// Returns the value of the label `outcome` for a handshake.
    pub fn outcome(accepted: &Result<Stream, Self>) -> &'static str {
        match accepted {
            Ok(_) => "accepted",
            Err(Self::Plain(_)) => "plain",
            Err(Self::Failed(_)) => "failed",
            Err(Self::Slow) => "slow",
            Err(Self::TooMany) => "too_many",
        }
    }
}

impl fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => f.write_str("the client does not speak TLS"),
            Self::Failed(cause) => write!(f, "the TLS handshake failed: {cause}"),
            Self::Slow => f.write_str("the TLS handshake took too long"),
            Self::TooMany => f.write_str("too many TLS handshakes are running"),
        }
    }
}

impl Handshakes {
    /// Creates a limit: connections with further handshakes are closed. They do not wait, because
    /// clients that never finish would block the others.
    pub fn new(handshakes_max: usize, time_max: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(handshakes_max)), time_max }
    }

    /// Completes the handshake of a new connection.
    ///
    /// # Errors
    /// The client speaks another protocol or is too slow, or too many handshakes are running.
    pub async fn accept(
        &self,
        stream: TcpStream,
        config: Arc<ServerConfig>,
    ) -> Result<Stream, NotAccepted> {
        let Ok(_permit) = self.permits.try_acquire() else { return Err(NotAccepted::TooMany) };
        let handshake = async {
            let mut first = [HANDSHAKE];
            stream.peek(&mut first).await.map_err(NotAccepted::Failed)?;
            if first != [HANDSHAKE] {
                return Err(NotAccepted::Plain(stream));
            }
            let accepted = TlsAcceptor::from(config).accept(stream).await;
            accepted.map(|stream| Stream::Tls(Box::new(stream))).map_err(NotAccepted::Failed)
        };
        timeout(self.time_max, handshake).await.unwrap_or(Err(NotAccepted::Slow))
    }
}
