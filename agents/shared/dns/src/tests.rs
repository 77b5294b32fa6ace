//! Queries to a scripted DNS server on real sockets.

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
