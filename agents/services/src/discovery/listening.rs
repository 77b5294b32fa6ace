//! The TCP ports on which programs of this host listen, from `/proc/net/tcp` and `/proc/net/tcp6`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// The maximum size of a table that is read: about 27,000 sockets.
const TABLE_BYTES_MAX: u64 = 4 << 20;
/// The state of a listening socket.
const LISTEN: &str = "0A";

/// A socket on which a program listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listening {
    /// The address at which the program can be reached.
    pub(super) address: SocketAddr,
    /// The number of the socket, as in `/proc/PID/fd`; zero when it is unknown.
    pub(super) inode: u64,
}

/// Returns the sockets on which programs listen, one for each port, and the reasons why a table
/// cannot be read.
pub(super) fn listening() -> (Vec<Listening>, Vec<String>) {
    let mut by_port = BTreeMap::new();
    let mut problems = Vec::new();
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let mut table = String::new();
        let file = File::open(path);
        match file.and_then(|file| file.take(TABLE_BYTES_MAX).read_to_string(&mut table)) {
            Ok(_) => add_listening(&table, &mut by_port),
            Err(cause) => problems.push(format!("{path}: {cause}")),
        }
    }
    let socket =
        |(port, (address, inode))| Listening { address: SocketAddr::new(address, port), inode };
    (by_port.into_iter().map(socket).collect(), problems)
}

/// Adds the listening sockets of a table. An address of IPv4 is preferred, and loopback above all.
fn add_listening(table: &str, by_port: &mut BTreeMap<u16, (IpAddr, u64)>) {
    for line in table.lines().skip(1) {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(LISTEN)) = (fields.next(), fields.nth(1)) else { continue };
        let Some((address, port)) = parse_address(local) else { continue };
        let inode = fields.nth(5).and_then(|inode| inode.parse().ok()).unwrap_or(0);
        let known = by_port.entry(port).or_insert((address, inode));
        if preference(address) < preference(known.0) {
            *known = (address, inode);
        }
    }
}

fn preference(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) if address.is_loopback() => 0,
        IpAddr::V6(address) if address.is_loopback() => 1,
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 3,
    }
}

/// Parses an address such as `0100007F:1F90`: words of 32 bits in the byte order of the machine.
/// An unspecified address becomes loopback.
fn parse_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let word = |index: usize| {
        let hex = address.get(index * 8..index * 8 + 8)?;
        u32::from_str_radix(hex, 16).ok().map(u32::to_ne_bytes)
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (index, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index)?);
            }
            let address = Ipv6Addr::from(bytes);
            address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
        }
        _ => return None,
    };
    // A socket of all IPv6 addresses usually accepts IPv4, too.
    let is_everywhere = address.is_unspecified();
    let reachable = if is_everywhere { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address };
    Some((reachable, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_read_and_loopback_is_preferred() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
             0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1\n\
             1: 0500000A:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n\
             2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n\
             3: 0100007F:9C40 0100007F:18EB 01 00000000:00000000 00:00000000 00000000\n\
             4: xyz 00000000:0000 0A\n 5:\n";
        let table6 = "  sl  local_address remote_address st\n\
             0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A\n\
             1: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A\n\
             2: 0000000000000000FFFF00000200000A:0051 00000000000000000000000000000000:0000 0A\n";
        let mut by_port = BTreeMap::new();
        add_listening(table, &mut by_port);
        add_listening(table6, &mut by_port);
        let found: Vec<_> = by_port.into_iter().map(|(p, (a, n))| format!("{a} {p} {n}")).collect();
        assert_eq!(found, ["127.0.0.1 80 0", "10.0.0.2 81 0", "127.0.0.1 6379 77", "::1 8080 0"]);
    }
}
