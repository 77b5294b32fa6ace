//! Queries to a scripted DNS server on a real socket.

use std::thread;

use simple_dns::{ResourceRecord, rdata};

use super::*;

/// Answers one question over UDP; when the response is truncated, once more over TCP.
fn serve(records: Vec<RData<'static>>, code: RCODE, is_truncated: bool) -> Resolver {
    // The port must be free for both protocols.
    let (udp, tcp) = (0..100)
        .find_map(|_| {
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            let tcp = std::net::TcpListener::bind(udp.local_addr().unwrap()).ok()?;
            Some((udp, tcp))
        })
        .unwrap();
    let address = udp.local_addr().unwrap();
    thread::spawn(move || {
        let mut question = vec![0; 512];
        let (length, from) = udp.recv_from(&mut question).unwrap();
        let answer = |question: &[u8], records: &[RData<'static>], is_truncated: bool| {
            let mut packet = Packet::parse(question).unwrap().into_reply();
            *packet.rcode_mut() = code;
            if is_truncated {
                packet.set_flags(PacketFlag::TRUNCATION);
            }
            for data in records {
                let name = packet.questions[0].qname.clone();
                packet.answers.push(ResourceRecord::new(name, CLASS::IN, 5, data.clone()));
            }
            packet.build_bytes_vec().unwrap()
        };
        let first_response =
            answer(&question[..length], if is_truncated { &[] } else { &records }, is_truncated);
        udp.send_to(&first_response, from).unwrap();
        if is_truncated {
            let (mut stream, _) = tcp.accept().unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut question).unwrap();
            let full_response = answer(&question, &records, false);
            stream.write_all(&(full_response.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&full_response).unwrap();
        }
    });
    Resolver::with_server(address)
}

fn names(kind: RecordType, port: u16) -> DnsNames {
    let names = vec!["x.example".to_owned()];
    DnsNames(DnsDiscovery { names, kind, port, ..DnsDiscovery::default() })
}

fn srv_record(port: u16, target: &'static str) -> RData<'static> {
    RData::SRV(rdata::SRV { priority: 1, weight: 1, port, target: Name::new_unchecked(target) })
}

fn addresses(found: &[Labels]) -> Vec<&str> {
    found.iter().map(|labels| labels.get("__address__")).collect()
}

#[test]
fn srv_records_name_hosts_and_ports() {
    let resolver = serve(
        vec![srv_record(9101, "b.example"), srv_record(9100, "a.example")],
        RCODE::NoError,
        false,
    );
    let found = names(RecordType::Srv, 0).look_up(&resolver).unwrap().targets;
    assert_eq!(addresses(&found), ["a.example:9100", "b.example:9101"]);
    assert_eq!(found[0].get("__meta_dns_name"), "x.example");
    assert_eq!(found[0].get("__meta_dns_srv_record_target"), "a.example.");
    assert_eq!(found[0].get("__meta_dns_srv_record_port"), "9100");
}

#[test]
fn addresses_get_the_port_of_the_settings() {
    let address_record = RData::A(rdata::A { address: u32::from(Ipv4Addr::new(10, 0, 0, 7)) });
    let found = names(RecordType::A, 9100)
        .look_up(&serve(vec![address_record], RCODE::NoError, false))
        .unwrap()
        .targets;
    assert_eq!(addresses(&found), ["10.0.0.7:9100"]);
    let ipv6_record = RData::AAAA(rdata::AAAA { address: 1 });
    let resolver = serve(vec![ipv6_record], RCODE::NoError, false);
    let found = names(RecordType::Aaaa, 9100).look_up(&resolver).unwrap().targets;
    assert_eq!(addresses(&found), ["[::1]:9100"]);
}

#[test]
fn a_truncated_response_is_requested_again_over_tcp() {
    let resolver = serve(vec![srv_record(1, "a.example")], RCODE::NoError, true);
    let found = names(RecordType::Srv, 0).look_up(&resolver).unwrap().targets;
    assert_eq!(addresses(&found), ["a.example:1"]);
}

#[test]
fn an_unknown_name_has_no_targets_and_a_failing_server_is_reported() {
    let resolver = serve(Vec::new(), RCODE::NameError, false);
    assert_eq!(names(RecordType::Srv, 0).look_up(&resolver), Ok(Found::default()));
    let fault = names(RecordType::Srv, 0).look_up(&serve(Vec::new(), RCODE::ServerFailure, false));
    assert!(fault.unwrap_err().contains("x.example"));
}

/// Answers each question with the next code.
fn serve_codes(codes: [RCODE; 3]) -> Resolver {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = Resolver::with_server(socket.local_addr().unwrap());
    thread::spawn(move || {
        for code in codes {
            let mut question = vec![0; 512];
            let (length, from) = socket.recv_from(&mut question).unwrap();
            let mut packet = Packet::parse(&question[..length]).unwrap().into_reply();
            *packet.rcode_mut() = code;
            socket.send_to(&packet.build_bytes_vec().unwrap(), from).unwrap();
        }
    });
    Resolver { search_domains: vec!["c.d".to_owned()], ..resolver }
}

#[test]
fn a_missing_search_domain_does_not_hide_a_failed_query() {
    let failure = RCODE::ServerFailure;
    let fault =
        names(RecordType::Srv, 0).look_up(&serve_codes([failure, failure, RCODE::NameError]));
    assert!(fault.unwrap_err().starts_with("x.example: "), "the failed query is reported");
    let resolver = serve_codes([RCODE::NameError; 3]);
    assert_eq!(names(RecordType::Srv, 0).look_up(&resolver), Ok(Found::default()));
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

proptest::proptest! {
    #[test]
    fn any_bytes_are_parsed_or_rejected(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        fuzz(&bytes);
    }
}
