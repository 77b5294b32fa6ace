//! The addresses on which the daemon listens, and the remedies when an address
//! cannot be bound.
//!
//! Must never know: what is served.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use crate::{
    actors::{CannotListen, GraphiteAddresses, GraphiteSockets},
    config::Settings,
};

/// The bound addresses. They stay bound while the store is opened again: connections wait until
/// they are accepted.
pub(super) struct Addresses {
    pub(super) http: TcpListener,
    pub(super) graphite: GraphiteSockets,
}

impl Addresses {
    pub(super) fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let listen = settings.server.listen;
        let http = TcpListener::bind(listen)
            .map_err(|cause| cannot_listen(listen, "--listen or server.listen", cause))?;
        http.set_nonblocking(true)?;
        let graphite = &settings.graphite.listen;
        let graphite = GraphiteSockets::bind(GraphiteAddresses {
            plain: graphite.plain,
            pickle: graphite.pickle,
            tls: graphite.tls,
        })
        .map_err(|CannotListen { address, cause }| {
            cannot_listen(address, "graphite.listen", cause)
        })?;
        Ok(Self { http, graphite })
    }
}

/// Adds the remedy to the error of binding an address, whose settings and flags are `names`.
fn cannot_listen(address: SocketAddr, names: &str, cause: io::Error) -> anyhow::Error {
    let remedies = [
        (
            io::ErrorKind::AddrInUse,
            "another process listens there, perhaps another Granary; set another address",
        ),
        (io::ErrorKind::PermissionDenied, "this user may not use the port; set a port above 1023"),
        (
            io::ErrorKind::AddrNotAvailable,
            "this machine does not have the address; set one of its addresses",
        ),
    ];
    let known = remedies.iter().find(|(kind, _)| *kind == cause.kind());
    let remedy = known.map_or("set another address", |(_, remedy)| remedy);
    anyhow::Error::new(cause).context(format!("listen on {address}: {remedy} with {names}"))
}
