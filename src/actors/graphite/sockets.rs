//! The bound sockets of Graphite's listeners.
//!
//! Must never know: who accepts connections.

use std::net::{SocketAddr, TcpListener, UdpSocket};

/// The bound sockets of the listeners, which outlive the listeners: when the store is opened again,
/// senders wait instead of being refused.
#[derive(Debug)]
pub struct GraphiteSockets {
    pub(super) lines: Option<TcpListener>,
    pub(super) datagrams: Option<UdpSocket>,
    pub(super) pickles: Option<TcpListener>,
    pub(super) lines_over_tls: Option<TcpListener>,
}

/// The addresses of the listeners.
#[derive(Debug, Clone, Copy, Default)]
pub struct GraphiteAddresses {
    /// Plaintext over TCP and UDP.
    pub plain: Option<SocketAddr>,
    /// Pickle over TCP.
    pub pickle: Option<SocketAddr>,
    /// Plaintext over TLS.
    pub tls: Option<SocketAddr>,
}

impl GraphiteSockets {
    /// Binds the addresses.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub fn bind(addresses: GraphiteAddresses) -> Result<Self, CannotListen> {
        let GraphiteAddresses { plain, pickle, tls } = addresses;
        let tcp =
            |address| TcpListener::bind(address).map_err(|cause| CannotListen { address, cause });
        let udp =
            |address| UdpSocket::bind(address).map_err(|cause| CannotListen { address, cause });
        Ok(Self {
            lines: plain.map(tcp).transpose()?,
            datagrams: plain.map(udp).transpose()?,
            pickles: pickle.map(tcp).transpose()?,
            lines_over_tls: tls.map(tcp).transpose()?,
        })
    }

    /// Returns true when no address is set.
    pub fn is_empty(&self) -> bool {
        [&self.lines, &self.pickles, &self.lines_over_tls].iter().all(|socket| socket.is_none())
    }
}

/// A listener's address that cannot be bound.
#[derive(Debug)]
pub struct CannotListen {
    /// The address.
    pub address: SocketAddr,
    /// The error of the operating system.
    pub cause: std::io::Error,
}
