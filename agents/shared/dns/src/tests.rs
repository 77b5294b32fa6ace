//! Queries to a scripted DNS server on real sockets.

use std::{net::TcpListener, sync::mpsc::RecvTimeoutError};

use simple_dns::{
    CLASS, Name, Packet, QTYPE, ResourceRecord, TYPE,
    rdata::{A, RData},
};

use super::*;

const FAILURE: u16 = 2;
const UNKNOWN_NAME: u16 = 3;

fn code(code: u16) -> Answer {
    Answer { code, ..Answer::default() }
}

fn check(kind: RecordType, records: &[Record]) {
    let resolver = serve(vec![Answer::of(records)]).unwrap();
    assert_eq!(resolver.query("x.example", kind).unwrap(), records, "{kind:?}");
}

#[test]
fn records_of_each_type_are_returned_without_loss() {
    let service = |host: &str, port| Record::Service(host.to_owned(), port);
    check(RecordType::Srv, &[service("b.example", 9101), service("a.example", 9100)]);
    check(RecordType::A, &[Record::Address([10, 0, 0, 7].into())]);
    check(RecordType::Aaaa, &[Record::Address(Ipv6Addr::LOCALHOST.into())]);
    check(RecordType::Txt, &[Record::Text("replicaSet=rs0&authSource=admin".to_owned())]);
}

#[test]
fn records_of_other_types_are_ignored() {
    let other = Record::Text("x".to_owned());
    let resolver = serve(vec![Answer::of(&[other])]).unwrap();
    assert_eq!(resolver.query("x.example", RecordType::Srv), Ok(Vec::new()));
}

#[test]
fn a_truncated_response_is_requested_again_over_tcp() {
    let records = [Record::Service("a.example".to_owned(), 1)];
    let answer = Answer { is_truncated: true, ..Answer::of(&records) };
    let found = serve(vec![answer]).unwrap().query("x.example", RecordType::Srv);
    assert_eq!(found.unwrap(), records);
}

#[test]
fn a_missing_search_domain_does_not_hide_a_failed_query() {
    let query = |codes: [u16; 3]| {
        let resolver = serve(codes.map(code).to_vec()).unwrap();
        let resolver = Resolver { search_domains: vec!["c.d".to_owned()], ..resolver };
        resolver.query("x.example", RecordType::Srv)
    };
    let fault = query([FAILURE, FAILURE, UNKNOWN_NAME]).unwrap_err();
    assert!(fault.starts_with("x.example: "), "the failed query is reported: {fault}");
    assert_eq!(query([UNKNOWN_NAME; 3]), Ok(Vec::new()));
}

#[test]
fn an_absolute_name_has_no_search_domain() {
    let record = Record::Address([10, 0, 0, 7].into());
    let answers = vec![code(UNKNOWN_NAME), Answer::of(std::slice::from_ref(&record))];
    let resolver = serve(answers.clone()).unwrap();
    let with_domain = Resolver { search_domains: vec!["c.d".to_owned()], ..resolver };
    assert_eq!(with_domain.query("x", RecordType::A), Ok(vec![record]));
    let resolver = serve(answers).unwrap();
    let with_domain = Resolver { search_domains: vec!["c.d".to_owned()], ..resolver };
    assert_eq!(with_domain.query("x.", RecordType::A), Ok(Vec::new()));
}

#[test]
fn servers_and_search_domains_are_read_from_resolv_conf() {
    let resolver = Resolver::parse("# x\nnameserver 10.0.0.1\nnameserver ::1\nsearch a.b c.d\n");
    assert_eq!(resolver.servers[1].to_string(), "[::1]:53");
    assert_eq!(
        (resolver.servers.len(), resolver.search_domains),
        (2, vec!["a.b".to_owned(), "c.d".to_owned()])
    );
    assert_eq!(Resolver::parse("").servers[0].to_string(), "127.0.0.1:53");
}

/// Returns a response to the query, with these changes and one address.
fn response_to(query: &[u8], address: [u8; 4], change: impl Fn(&mut Packet<'_>)) -> Vec<u8> {
    let mut packet = Packet::parse(query).unwrap().into_reply();
    let name = Name::new("x.example").unwrap();
    let data = RData::A(A { address: Ipv4Addr::from(address).to_bits() });
    packet.answers.push(ResourceRecord::new(name, CLASS::IN, 5, data));
    change(&mut packet);
    packet.build_bytes_vec().unwrap()
}

/// Regression: any datagram that reached the port of a query was its response.
#[test]
fn datagrams_with_another_id_or_question_are_ignored() {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = Resolver { servers: vec![udp.local_addr().unwrap()], ..Resolver::default() };
    let server = std::thread::spawn(move || {
        let mut query = [0; 512];
        let (length, from) = udp.recv_from(&mut query).unwrap();
        let query = &query[..length];
        let forged = [6, 6, 6, 6];
        let other_id = response_to(query, forged, |packet| packet.set_id(packet.id() ^ 1));
        let other_name = response_to(query, forged, |packet| {
            packet.questions[0].qname = Name::new("y.example").unwrap();
        });
        let other_type = response_to(query, forged, |packet| {
            packet.questions[0].qtype = QTYPE::TYPE(TYPE::AAAA);
        });
        let no_question = response_to(query, forged, |packet| packet.questions.clear());
        let right = response_to(query, [10, 0, 0, 7], |packet| {
            packet.questions[0].qname = Name::new("X.EXAMPLE").unwrap();
        });
        // The query itself is no response either.
        for datagram in [&other_id, &other_name, &other_type, &no_question, query, b"?", &right] {
            udp.send_to(datagram, from).unwrap();
        }
    });
    let found = resolver.query("x.example.", RecordType::A);
    server.join().unwrap();
    assert_eq!(found, Ok(vec![Record::Address([10, 0, 0, 7].into())]));
}

#[test]
fn the_id_differs_from_query_to_query() {
    let ids: Vec<Vec<u8>> = (0..8)
        .map(|_| encode_query(fastrand::u16(..), "x", RecordType::A).unwrap()[..2].to_vec())
        .collect();
    assert!(ids.iter().any(|id| *id != ids[0]), "{ids:?}");
}

/// Regression: a server that sent a byte now and then held a query for hours.
#[test]
fn a_response_over_tcp_has_a_total_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&u16::MAX.to_be_bytes()).unwrap();
        let pause = Duration::from_millis(100);
        while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            // The client has closed the connection at the end.
            let _sent = stream.write_all(&[0]);
        }
    });
    let query = encode_query(1, "x.example", RecordType::A).unwrap();
    let fault = query_by_tcp(address, &query).unwrap_err();
    assert_eq!(fault.kind(), io::ErrorKind::TimedOut, "{fault}");
    drop(end);
    server.join().unwrap();
}

#[test]
fn a_response_over_tcp_to_another_query_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let query = encode_query(1, "x.example", RecordType::A).unwrap();
    let other = response_to(&query, [6, 6, 6, 6], |packet| packet.set_id(2));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let length = u16::try_from(other.len()).unwrap();
        stream.write_all(&[&length.to_be_bytes(), &other[..]].concat()).unwrap();
    });
    let fault = query_by_tcp(address, &query).unwrap_err();
    assert!(fault.to_string().contains("another query"), "{fault}");
    server.join().unwrap();
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_decoded_or_rejected(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)
    ) {
        for kind in [RecordType::Srv, RecordType::A, RecordType::Aaaa, RecordType::Txt] {
            drop(decode_response(&bytes, kind));
        }
    }
}
