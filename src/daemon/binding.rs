//! The addresses on which the daemon listens, and remedies when one cannot be bound.
//!
//! Must never know: what is served.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

/// Binds the address; connections wait until the server accepts them.
pub(super) fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
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
            "another process listens there, perhaps granary itself; name another address",
        ),
        (io::ErrorKind::PermissionDenied, "this user may not; name a port above 1023"),
        (
            io::ErrorKind::AddrNotAvailable,
            "this machine does not have the address; name one of its own",
        ),
    ];
    let known = remedies.iter().find(|(kind, _)| *kind == cause.kind());
    let what_to_do = known.map_or("name another address", |(_, what_to_do)| what_to_do);
    anyhow::Error::new(cause).context(format!("listen on {address}: {what_to_do} with {names}"))
}
