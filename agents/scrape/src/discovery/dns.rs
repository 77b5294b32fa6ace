//! Discovery by DNS: SRV records with their ports, or addresses (RFC 1035, RFC 2782).
//!
//! The name servers of /etc/resolv.conf are queried over UDP, and over TCP when the response is
//! truncated. Queries are bounded in time, responses in size.

use std::{
    error::Error,
    fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket},
    time::Duration,
};

use granary_agent_kit::relabel::Labels;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, Question, RCODE, TYPE, rdata::RData};

use super::Found;
use crate::config::{DnsDiscovery, RecordType};

const TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;
/// The maximum number of name servers and of search domains.
const SERVERS_MAX: usize = 3;
const SEARCH_DOMAINS_MAX: usize = 6;
const DATAGRAM_BYTES: usize = 4096;

/// The resolver's settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resolver {
    servers: Vec<SocketAddr>,
    search_domains: Vec<String>,
}

impl Resolver {
    /// Reads /etc/resolv.conf, which changes on laptops and in containers.
    pub(crate) fn of_this_machine() -> Self {
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

    /// Creates a resolver with one name server.
    #[cfg(test)]
    pub(crate) fn with_server(server: SocketAddr) -> Self {
        Self { servers: vec![server], search_domains: Vec::new() }
    }

    /// Resolves a name to addresses, with ports or without. The result is empty when the name does
    /// not exist, either alone or with a search domain. It is an error when no query finds an
    /// address and a query fails.
    fn query_records(
        &self,
        name: &str,
        kind: RecordType,
    ) -> Result<Vec<(String, Option<u16>)>, String> {
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

    fn query_servers(
        &self,
        name: &str,
        kind: RecordType,
    ) -> io::Result<Vec<(String, Option<u16>)>> {
        let query = encode_query(name, kind)?;
        let mut outcome = Err(io::Error::other("there is no name server"));
        for _ in 0..ATTEMPTS {
            for server in &self.servers {
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

fn invalid_data(cause: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause)
}

fn encode_query(name: &str, kind: RecordType) -> io::Result<Vec<u8>> {
    // Any query ID is safe, because the socket has its own port and only accepts responses of this
    // server.
    let mut packet = Packet::new_query(1);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let record_type = match kind {
        RecordType::Srv => TYPE::SRV,
        RecordType::A => TYPE::A,
        RecordType::Aaaa => TYPE::AAAA,
    };
    let name = Name::new(name).map_err(invalid_data)?;
    packet.questions.push(Question::new(name, QTYPE::TYPE(record_type), CLASS::IN.into(), false));
    packet.build_bytes_vec().map_err(invalid_data)
}

fn query_server(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let any_address: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any_address, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.send(query)?;
    let mut answer = vec![0; DATAGRAM_BYTES];
    let length = socket.recv(&mut answer)?;
    answer.truncate(length);
    let is_truncated =
        Packet::parse(&answer).map_err(invalid_data)?.has_flags(PacketFlag::TRUNCATION);
    if is_truncated { query_by_tcp(server, query) } else { Ok(answer) }
}

/// Sends a query over TCP, where a length precedes the query and the response.
fn query_by_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let length = u16::try_from(query.len()).map_err(invalid_data)?;
    stream.write_all(&[&length.to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

fn decode_response(answer: &[u8], kind: RecordType) -> io::Result<Vec<(String, Option<u16>)>> {
    let packet = Packet::parse(answer).map_err(invalid_data)?;
    let code = packet.rcode();
    if !matches!(code, RCODE::NoError | RCODE::NameError) {
        return Err(invalid_data(format!("the server answered {code:?}")));
    }
    let address_of_record = |data: &RData<'_>| {
        if let (RData::SRV(srv), RecordType::Srv) = (data, kind) {
            Some((srv.target.to_string(), Some(srv.port)))
        } else if let (RData::A(record), RecordType::A) = (data, kind) {
            Some((Ipv4Addr::from(record.address).to_string(), None))
        } else if let (RData::AAAA(record), RecordType::Aaaa) = (data, kind) {
            Some((format!("[{}]", Ipv6Addr::from(record.address)), None))
        } else {
            None
        }
    };
    Ok(packet.answers.iter().filter_map(|record| address_of_record(&record.rdata)).collect())
}

/// The discovery of one entry of `dns_sd_configs`.
#[derive(Debug)]
pub(crate) struct DnsNames(pub(crate) DnsDiscovery);

impl DnsNames {
    /// Returns the current targets of the names. When a query fails, the caller keeps the
    /// previous targets.
    pub(crate) fn look_up(&self, resolver: &Resolver) -> Result<Found, String> {
        let DnsDiscovery { names, kind, port, .. } = &self.0;
        let mut all = Vec::new();
        for name in names {
            for (host, record_port) in resolver.query_records(name, *kind)? {
                let port = record_port.unwrap_or(*port);
                let mut labels: Labels =
                    [("__address__", format!("{host}:{port}")), ("__meta_dns_name", name.clone())]
                        .into_iter()
                        .collect();
                if record_port.is_some() {
                    labels.set("__meta_dns_srv_record_target", format!("{host}."));
                    labels.set("__meta_dns_srv_record_port", port.to_string());
                }
                all.push(labels);
            }
        }
        // Name servers return records in any order.
        all.sort_by(|left, right| left.iter().cmp(right.iter()));
        let mut found = Found::default();
        for labels in all {
            found.add(|| labels);
        }
        Ok(found)
    }
}

/// Parses bytes as a response, for fuzz tests.
pub(crate) fn fuzz(bytes: &[u8]) {
    for kind in [RecordType::Srv, RecordType::A, RecordType::Aaaa] {
        drop(decode_response(bytes, kind));
    }
}

#[cfg(test)]
mod tests;
