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
    pub listen: Option<SocketAddr>,
    /// Pickle over TCP.
    pub pickle_listen: Option<SocketAddr>,
    /// Plaintext over TLS.
    pub tls_listen: Option<SocketAddr>,
}

impl GraphiteSockets {
    /// Binds the addresses.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub fn bind(addresses: GraphiteAddresses) -> Result<Self, CannotListen> {
        let GraphiteAddresses { listen, pickle_listen, tls_listen } = addresses;
        let tcp = |setting, address: Option<SocketAddr>| {
            let bind = |address| {
                let bound = TcpListener::bind(address);
                bound.map_err(|cause| CannotListen { setting, address, cause })
            };
            address.map(bind).transpose()
        };
        let udp = |address| {
            UdpSocket::bind(address).map_err(|cause| CannotListen {
                setting: "graphite.listen",
                address,
                cause,
            })
        };
        Ok(Self {
            lines: tcp("graphite.listen", listen)?,
            datagrams: listen.map(udp).transpose()?,
            pickles: tcp("graphite.pickle_listen", pickle_listen)?,
            lines_over_tls: tcp("graphite.tls_listen", tls_listen)?,
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
    /// The setting that names the address.
    pub setting: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// The error of the operating system.
    pub cause: std::io::Error,
}
