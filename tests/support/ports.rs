//! Ports of 127.0.0.1 for servers that tests start, kill and start again.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU16, Ordering},
};

/// The first port that is tried, and the number of ports above it.
///
/// All of them are below the ports that Linux gives to clients (32768 to 60999): a client that
/// tries to reach a killed server on one of those can get that very port as its own, connect to
/// itself, and keep the server from starting again.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Returns a port on which nothing listens, another one at each call.
pub(crate) fn free_port() -> u16 {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin at different ports.
    let begin = (std::process::id() % 199) as u16 * 100;
    (0..COUNT)
        .map(|_| FIRST + begin.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .unwrap()
}
