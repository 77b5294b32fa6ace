//! Datagrams that the kernel dropped because the socket's buffer was full.

use std::{fs, net::UdpSocket, os::fd::AsFd};

use rustix::fs::fstat;

/// The drop counter of a socket.
#[derive(Debug)]
pub(crate) struct KernelDrops {
    inode: Option<String>,
}

impl KernelDrops {
    /// Creates the counter of a socket, which is found by its inode.
    pub(crate) fn of(socket: &UdpSocket) -> Self {
        Self { inode: fstat(socket.as_fd()).ok().map(|stat| stat.st_ino.to_string()) }
    }

    /// Returns the drops since the socket was opened, or 0 when the kernel does not report them.
    pub(crate) fn total(&self) -> u64 {
        let Some(inode) = &self.inode else { return 0 };
        let tables = ["/proc/net/udp", "/proc/net/udp6"].into_iter();
        let mut tables = tables.filter_map(|table| fs::read_to_string(table).ok());
        tables.find_map(|table| drops_of_socket(&table, inode)).unwrap_or(0)
    }
}

/// Returns the drops of a socket: the last column of the line with its inode, which is the tenth
/// column (proc(5), `/proc/net/udp`).
fn drops_of_socket(table: &str, inode: &str) -> Option<u64> {
    let line = table.lines().find(|line| line.split_whitespace().nth(9) == Some(inode))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_exceed_the_buffer_are_counted() {
        const BYTES: usize = 1000;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 * BYTES).unwrap();
        let drops = KernelDrops::of(&socket);
        assert_eq!(drops.total(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (0..100).for_each(|_| assert_eq!(sender.send_to(&[b'x'; BYTES], address).unwrap(), BYTES));
        socket.set_nonblocking(true).unwrap();
        let mut datagram = [0; BYTES];
        let received = std::iter::from_fn(|| socket.recv(&mut datagram).ok()).count();
        assert_eq!(received as u64 + drops.total(), 100);
        assert!(drops.total() > 0);
    }
}
