//! Graphite's listeners: plaintext and pickle over TCP, plaintext over TLS and over UDP.
//!
//! Graphite has no acknowledgements. Over TCP, the listener reads from a connection only after the
//! previous samples are durable: back-pressure slows a sender down. Idle connections are closed.
//! Over UDP, datagrams that do not fit into the buffer are dropped and counted.

mod clients;
mod sockets;
mod udp;

use std::{
    io::Error,
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::Duration,
};

use actix::Addr;
use bytes::{Buf, BytesMut};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
    time::{Instant, sleep, timeout_at},
};

use super::collector::{CollectFault, CollectRows, Collector};
use crate::{
    ingest::protocol::RowProtocol,
    kept::LiveValue,
    telemetry::Metrics,
    tls::{Handshakes, NotAccepted, ServerTls, Stream},
};
use clients::Client;
pub use clients::GraphiteClients;
pub use sockets::{CannotListen, GraphiteAddresses, GraphiteSockets};
use udp::UdpReader;

/// The maximum length of a line or pickle; after a longer message, the connection is closed.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The number of bytes to read from a connection at a time.
const READ_BYTES: usize = 64 << 10;
/// The maximum number of connections; further connections are closed.
const CONNECTIONS_MAX: usize = 1000;
/// The idle timeout of connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum size of waiting datagrams; further datagrams are dropped and counted.
const UDP_BUFFER_BYTES_MAX: usize = 8 << 20;
/// The delay before a failed write is repeated.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The time limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct GraphiteTimeouts {
    /// The longest time until the first message.
    pub first: Duration,
    /// The longest time of a TLS handshake.
    pub handshake: Duration,
}

/// The running listeners.
#[derive(Debug, Default)]
pub struct GraphiteListeners {
    tasks: Vec<JoinHandle<()>>,
    udp: Option<UdpReader>,
}

/// The destination of the listeners' bytes.
#[derive(Debug, Clone)]
struct Sink {
    collector: Addr<Collector>,
    metrics: Metrics,
    connections: Arc<Semaphore>,
    first_timeout: Duration,
}

/// The step between an accepted connection and its first bytes.
#[derive(Debug, Clone)]
enum Handshake {
    /// No handshake.
    None,
    /// A handshake with the certificate in use.
    Tls(Box<GraphiteTls>, Handshakes),
}

/// The configuration of TLS.
#[derive(Debug, Clone)]
pub struct GraphiteTls {
    /// The certificate in use.
    pub server: LiveValue<Option<ServerTls>>,
    /// The clients that may send.
    pub clients: GraphiteClients,
}

impl Handshake {
    async fn complete(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        metrics: &Metrics,
    ) -> Result<(Stream, Option<Client>), String> {
        let Self::Tls(tls, handshakes) = self else { return Ok((Stream::Plain(stream), None)) };
        let config = tls.server.get().as_ref().as_ref().map(|tls| tls.strict.clone());
        let config = config.ok_or("TLS is off")?;
        let accepted = handshakes.accept(stream, config).await;
        let outcome = NotAccepted::outcome(&accepted);
        metrics.tls.handshakes.with_label_values(&[outcome]).inc();
        let stream = accepted.map_err(|refused| refused.to_string())?;
        let client = Client::new(tls.clients.clone(), &stream, peer.ip());
        client.sender()?;
        Ok((stream, Some(client)))
    }
}

impl GraphiteListeners {
    /// Starts the listeners of the sockets; a connection that exceeds a time limit is closed.
    ///
    /// # Errors
    /// The operating system refuses a socket.
    pub fn start(
        sockets: &GraphiteSockets,
        timeouts: GraphiteTimeouts,
        tls: GraphiteTls,
        collector: Addr<Collector>,
        metrics: Metrics,
    ) -> std::io::Result<Self> {
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let first_timeout = timeouts.first.min(IDLE_TIMEOUT);
        let sink = Sink { collector, metrics, connections, first_timeout };
        let mut tasks = Vec::new();
        // Half of the connections, so that clients that never finish a handshake leave room for
        // others.
        let handshakes = Handshakes::new(CONNECTIONS_MAX / 2, timeouts.handshake);
        let (lines, pickles) = (RowProtocol::GraphiteLines, RowProtocol::GraphitePickle);
        for (socket, protocol, handshake) in [
            (&sockets.lines, lines, Handshake::None),
            (&sockets.pickles, pickles, Handshake::None),
            (&sockets.lines_over_tls, lines, Handshake::Tls(Box::new(tls), handshakes)),
        ] {
            if let Some(socket) = socket {
                let listener = socket.try_clone()?;
                listener.set_nonblocking(true)?;
                let listener = TcpListener::from_std(listener)?;
                tasks.push(actix::spawn(accept(listener, protocol, handshake, sink.clone())));
            }
        }
        let read_from =
            |socket: &UdpSocket| UdpReader::start(socket.try_clone()?, UDP_BUFFER_BYTES_MAX, &sink);
        let udp = sockets.datagrams.as_ref().map(read_from).transpose()?;
        tasks.extend(udp.iter().map(|reader| actix::spawn(reader.write(sink.clone()))));
        Ok(Self { tasks, udp })
    }

    /// Stops accepting connections, and stops reading from open connections.
    pub fn stop(&mut self) {
        // Datagrams that arrive from now on wait in the socket, perhaps for the next listeners.
        drop(self.udp.take());
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, protocol: RowProtocol, handshake: Handshake, sink: Sink) {
    // Dropping the set closes the connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Ok(permit) = sink.connections.clone().try_acquire_owned() else {
                    tracing::warn!(%peer, "more than 1000 Graphite connections; the connection is closed");
                    continue;
                };
                let (sink, handshake) = (sink.clone(), handshake.clone());
                connections.spawn_local(async move {
                    let _permit = permit;
                    let accepted = match handshake.complete(stream, peer, &sink.metrics).await {
                        Ok(accepted) => accepted,
                        Err(cause) => {
                            tracing::debug!(%peer, cause, "refused a Graphite connection");
                            return;
                        }
                    };
                    sink.metrics.connections.inc();
                    sink.metrics.connections_accepted.inc();
                    if let Err(cause) = serve(accepted, peer, protocol, &sink).await {
                        tracing::debug!(%peer, %cause, "a Graphite connection ended");
                    }
                    sink.metrics.connections.dec();
                });
            }
            Err(cause) => {
                tracing::warn!(%cause, "cannot accept a Graphite connection");
                sleep(RETRY_AFTER).await;
            }
        }
    }
}

async fn serve(
    (mut stream, client): (Stream, Option<Client>),
    peer: SocketAddr,
    protocol: RowProtocol,
    sink: &Sink,
) -> std::io::Result<()> {
    let sender = || match &client {
        Some(client) => client.sender(),
        None => Ok(format!("graphite {}", peer.ip())),
    };
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut idle_max = sink.first_timeout;
    let mut last_message = Instant::now();
    loop {
        buffer.reserve(READ_BYTES);
        let read = timeout_at(last_message + idle_max, stream.read_buf(&mut buffer)).await;
        if read.map_err(|_| Error::other("silent for too long"))?? == 0 {
            // The last line may lack its line break.
            if protocol == RowProtocol::GraphiteLines && !buffer.is_empty() {
                deliver(sink, protocol, buffer, &sender().map_err(Error::other)?).await;
            }
            return Ok(());
        }
        while let Some(message) = next_message(&mut buffer, protocol)? {
            // A reload may have changed the scopes, and the certificate may have expired.
            deliver(sink, protocol, message, &sender().map_err(Error::other)?).await;
            (idle_max, last_message) = (IDLE_TIMEOUT, Instant::now());
        }
    }
}

/// Removes complete lines, or the next pickle, from the buffer.
fn next_message(buffer: &mut BytesMut, protocol: RowProtocol) -> std::io::Result<Option<BytesMut>> {
    let too_long = || Error::other("a line or pickle is too long");
    if protocol == RowProtocol::GraphiteLines {
        let end = buffer.iter().rposition(|byte| *byte == b'\n');
        return match end {
            Some(end) => Ok(Some(buffer.split_to(end + 1))),
            None if buffer.len() > MESSAGE_BYTES_MAX => Err(too_long()),
            None => Ok(None),
        };
    }
    let Some(header) = buffer.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*header) as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(too_long());
    }
    if buffer.len() < 4 + length {
        return Ok(None);
    }
    buffer.advance(4);
    Ok(Some(buffer.split_to(length)))
}

/// Writes a message, retrying until it is durable.
async fn deliver(sink: &Sink, protocol: RowProtocol, message: BytesMut, sender: &str) {
    let body = message.freeze();
    loop {
        let sender_name = sender.into();
        let collect =
            CollectRows { body: body.clone(), protocol, sender: sender_name, memory: None };
        match sink.collector.send(collect).await {
            // The message is durable, or the daemon is stopping and cannot write it.
            Ok(Ok(_)) | Err(_) => return,
            Ok(Err(CollectFault::Write(_) | CollectFault::Memory(_))) => sleep(RETRY_AFTER).await,
            Ok(Err(fault)) => {
                tracing::debug!(sender, %fault, "a Graphite message was refused");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_where_they_end() {
        let mut lines = BytesMut::from(&b"a 1 2\nb 3 4\nc 5"[..]);
        let message = next_message(&mut lines, RowProtocol::GraphiteLines).unwrap().unwrap();
        assert_eq!((&message[..], &lines[..]), (&b"a 1 2\nb 3 4\n"[..], &b"c 5"[..]));
        assert_eq!(next_message(&mut lines, RowProtocol::GraphiteLines).unwrap(), None);
        let mut pickles = BytesMut::from(&b"\0\0\0\x02ab\0\0\0\x03cd"[..]);
        let first = next_message(&mut pickles, RowProtocol::GraphitePickle).unwrap().unwrap();
        assert_eq!(&first[..], b"ab");
        assert_eq!(next_message(&mut pickles, RowProtocol::GraphitePickle).unwrap(), None);
        let mut oversized = BytesMut::from(&b"\xff\xff\xff\xff"[..]);
        assert!(next_message(&mut oversized, RowProtocol::GraphitePickle).is_err());
    }
}
