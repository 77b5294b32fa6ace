//! A scripted DNS server on real sockets of the loopback interface, for tests.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    thread,
};

use simple_dns::{
    CLASS, Name, Packet, PacketFlag, RCODE, ResourceRecord,
    rdata::{A, AAAA, RData, SRV, TXT},
};

use crate::{Record, Resolver};

/// The attempts to find a port that is free for UDP and TCP.
const PORTS_TRIED_MAX: usize = 100;

/// The response to one question.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The records.
    pub records: Vec<Record>,
    /// The code, such as 2 for a failed server and 3 for an unknown name.
    pub code: u16,
    /// True when the response over UDP has no records, and its query is repeated over TCP.
    pub is_truncated: bool,
}

impl Answer {
    /// Creates a response with these records.
    pub fn of(records: &[Record]) -> Self {
        Self { records: records.to_vec(), ..Self::default() }
    }
}

/// Starts a server that gives each question the next response. Returns its resolver.
///
/// # Errors
/// No port is free.
pub fn serve(answers: Vec<Answer>) -> io::Result<Resolver> {
    let (udp, tcp) = (0..PORTS_TRIED_MAX)
        .find_map(|_| {
            let udp = UdpSocket::bind("127.0.0.1:0").ok()?;
            let tcp = TcpListener::bind(udp.local_addr().ok()?).ok()?;
            Some((udp, tcp))
        })
        .ok_or(io::ErrorKind::AddrInUse)?;
    let address: SocketAddr = udp.local_addr()?;
    // The client of a server that fails reports a time-out.
    thread::spawn(move || answers.iter().try_for_each(|answer| respond(&udp, &tcp, answer)));
    Ok(Resolver { servers: vec![address], search_domains: Vec::new() })
}

fn respond(udp: &UdpSocket, tcp: &TcpListener, answer: &Answer) -> io::Result<()> {
    let mut question = vec![0; 512];
    let (length, from) = udp.recv_from(&mut question)?;
    question.truncate(length);
    udp.send_to(&encode(&question, answer, answer.is_truncated)?, from)?;
    if !answer.is_truncated {
        return Ok(());
    }
    let (mut stream, _) = tcp.accept()?;
    let question = read_question(&mut stream)?;
    let response = encode(&question, answer, false)?;
    let length = u16::try_from(response.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), &response[..]].concat())
}

fn read_question(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut question)?;
    Ok(question)
}

fn encode(question: &[u8], answer: &Answer, is_truncated: bool) -> io::Result<Vec<u8>> {
    let mut packet = Packet::parse(question).map_err(io::Error::other)?.into_reply();
    *packet.rcode_mut() = RCODE::from(answer.code);
    if is_truncated {
        packet.set_flags(PacketFlag::TRUNCATION);
    }
    let name = packet.questions.first().map(|question| question.qname.clone());
    let name = name.ok_or(io::ErrorKind::InvalidData)?;
    for record in answer.records.iter().filter(|_| !is_truncated) {
        let data = match record {
            Record::Service(host, port) => {
                let target = Name::new(host).map_err(io::Error::other)?;
                RData::SRV(SRV { priority: 1, weight: 1, port: *port, target })
            }
            Record::Address(IpAddr::V4(address)) => RData::A(A { address: address.to_bits() }),
            Record::Address(IpAddr::V6(address)) => {
                RData::AAAA(AAAA { address: address.to_bits() })
            }
            Record::Text(text) => {
                RData::TXT(TXT::new().with_string(text).map_err(io::Error::other)?)
            }
        };
        packet.answers.push(ResourceRecord::new(name.clone(), CLASS::IN, 5, data));
    }
    packet.build_bytes_vec().map_err(io::Error::other)
}
