//! The addresses on which the daemon listens, with the certificate, and remedies when an address
//! cannot be bound.
//!
//! Must never know: what is served.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use anyhow::Context;

use super::certificates::ReadCertificate;
use crate::config::Settings;

/// Binds the daemon's address, and reads the certificate for it.
pub(super) fn open(settings: &Settings) -> anyhow::Result<(TcpListener, ReadCertificate)> {
    let listener = bind(settings.server.listen)?;
    let certificate = ReadCertificate::read(settings.tls_files());
    Ok((listener, certificate.context("turn on TLS, as the settings of [tls] say")?))
}

/// Binds the address; connections wait until the server accepts them.
fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listen = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|cause| cannot_listen(address, "--listen or server.listen", cause))
}

/// Adds the remedy to the error of binding an address, whose settings and flags are `names`.
pub(super) fn cannot_listen(address: SocketAddr, names: &str, cause: io::Error) -> anyhow::Error {
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
