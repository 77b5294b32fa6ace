//! A resolver of SRV, TXT and address records (RFC 1035, RFC 2782).
//!
//! The name servers of /etc/resolv.conf are queried over UDP, and over TCP when the response is
//! truncated. Queries are bounded in time, responses in size. Must never know: the meaning of the
//! records.

mod message;
#[cfg(any(test, feature = "test-server"))]
mod test_server;

use std::{
    fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket},
    time::Duration,
};

use granary_agent_kit::Stopwatch;

pub use self::message::decode_response;
use self::message::{encode_query, is_response_to, is_truncated};
#[cfg(any(test, feature = "test-server"))]
pub use self::test_server::{Answer, serve};

/// The total time of a query over UDP, and of one over TCP.
const TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;
/// The maximum number of name servers and of search domains.
const SERVERS_MAX: usize = 3;
const SEARCH_DOMAINS_MAX: usize = 6;
const DATAGRAM_BYTES: usize = 4096;

/// The type of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordType {
    /// Hosts and ports of a service.
    Srv,
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Texts.
    Txt,
}

/// A record of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The host and port of a service. The host has no dot at its end.
    Service(String, u16),
    /// An address.
    Address(IpAddr),
    /// A text; its parts are joined.
    Text(String),
}

/// The resolver's settings.
#[derive(Debug, Clone, Default)]
pub struct Resolver {
    servers: Vec<SocketAddr>,
    search_domains: Vec<String>,
}

impl Resolver {
    /// Reads /etc/resolv.conf, which changes on laptops and in containers.
    pub fn of_this_machine() -> Self {
        Self::parse(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut resolver = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address: Option<IpAddr> = words.next().and_then(|word| word.parse().ok());
                    resolver.servers.extend(address.map(|address| SocketAddr::new(address, 53)));
                }
                Some("search" | "domain") => {
                    resolver.search_domains =
                        words.take(SEARCH_DOMAINS_MAX).map(str::to_owned).collect();
                }
                _ => {}
            }
        }
        resolver.servers.truncate(SERVERS_MAX);
        if resolver.servers.is_empty() {
            resolver.servers.push(SocketAddr::from(([127, 0, 0, 1], 53)));
        }
        resolver
    }

    /// Returns the records of a name. The result is empty when the name does not exist, either
    /// alone or with a search domain. A name that ends with a dot has no search domain.
    ///
    /// # Errors
    /// No query finds a record, and a query fails.
    pub fn query(&self, name: &str, kind: RecordType) -> Result<Vec<Record>, String> {
        let is_absolute = name.ends_with('.');
        let suffixes =
            self.search_domains.iter().filter(|_| !is_absolute).map(|end| format!("{name}.{end}"));
        let mut fault = None;
        for name in std::iter::once(name.trim_end_matches('.').to_owned()).chain(suffixes) {
            match self.query_servers(&name, kind) {
                Ok(records) if records.is_empty() => {}
                Ok(records) => return Ok(records),
                Err(cause) => fault = fault.or(Some(format!("{name}: {cause}"))),
            }
        }
        fault.map_or(Ok(Vec::new()), Err)
    }

    fn query_servers(&self, name: &str, kind: RecordType) -> io::Result<Vec<Record>> {
        let mut outcome = Err(io::Error::other("there is no name server"));
        for _ in 0..ATTEMPTS {
            for server in &self.servers {
                let query = encode_query(fastrand::u16(..), name, kind)?;
                outcome =
                    query_server(*server, &query).and_then(|answer| decode_response(&answer, kind));
                if outcome.is_ok() {
                    return outcome;
                }
            }
        }
        outcome
    }
}

/// Returns the time that is left.
///
/// # Errors
/// No time is left.
fn time_left(clock: &Stopwatch) -> io::Result<Duration> {
    let left = clock.left_of(TIMEOUT);
    let expired = || {
        let cause = format!("the name server did not answer within {TIMEOUT:?}");
        io::Error::new(io::ErrorKind::TimedOut, cause)
    };
    if left.is_zero() { Err(expired()) } else { Ok(left) }
}

fn query_server(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let answer = query_by_udp(server, query)?;
    if is_truncated(&answer)? { query_by_tcp(server, query) } else { Ok(answer) }
}

/// Sends a query over UDP. Datagrams that are no response to the query, such as forged or late
/// ones, are ignored.
fn query_by_udp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let any_address: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any_address, 0))?;
    socket.connect(server)?;
    socket.send(query)?;
    let clock = Stopwatch::start();
    let mut answer = vec![0; DATAGRAM_BYTES];
    loop {
        socket.set_read_timeout(Some(time_left(&clock)?))?;
        let length = match socket.recv(&mut answer) {
            // The next turn returns the error.
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => continue,
            received => received?,
        };
        let datagram = answer.get(..length).unwrap_or_default();
        if is_response_to(query, datagram) {
            return Ok(datagram.to_vec());
        }
    }
}

/// Sends a query over TCP, where a length precedes the query and the response.
fn query_by_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let clock = Stopwatch::start();
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_write_timeout(Some(time_left(&clock)?))?;
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    read_exact(&mut stream, &clock, &mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    read_exact(&mut stream, &clock, &mut answer)?;
    if !is_response_to(query, &answer) {
        return Err(io::Error::other("the name server answered another query"));
    }
    Ok(answer)
}

/// Fills the buffer within the time that is left, even if bytes arrive one by one.
fn read_exact(stream: &mut TcpStream, clock: &Stopwatch, buffer: &mut [u8]) -> io::Result<()> {
    let mut rest = buffer;
    while !rest.is_empty() {
        stream.set_read_timeout(Some(time_left(clock)?))?;
        match stream.read(rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => rest = rest.get_mut(length..).unwrap_or_default(),
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
