//! Queries to a scripted DNS server on a real socket.

use granary_dns::{Answer, serve};

use super::*;

fn names(kind: RecordType, port: u16) -> DnsNames {
    let names = vec!["x.example".to_owned()];
    DnsNames(DnsDiscovery { names, kind, port, ..DnsDiscovery::default() })
}

fn look_up(names: &DnsNames, answer: Answer) -> Result<Found, String> {
    names.look_up(&serve(vec![answer; 2]).unwrap())
}

fn addresses(found: &[Labels]) -> Vec<&str> {
    found.iter().map(|labels| labels.get("__address__")).collect()
}

#[test]
fn srv_records_name_hosts_and_ports() {
    let record = |port, host: &str| Record::Service(host.to_owned(), port);
    let answer = Answer::of(&[record(9101, "b.example"), record(9100, "a.example")]);
    let found = look_up(&names(RecordType::Srv, 0), answer).unwrap().targets;
    assert_eq!(addresses(&found), ["a.example:9100", "b.example:9101"]);
    assert_eq!(found[0].get("__meta_dns_name"), "x.example");
    assert_eq!(found[0].get("__meta_dns_srv_record_target"), "a.example.");
    assert_eq!(found[0].get("__meta_dns_srv_record_port"), "9100");
}

#[test]
fn addresses_get_the_port_of_the_settings() {
    for (kind, address, expected) in
        [(RecordType::A, "10.0.0.7", "10.0.0.7:9100"), (RecordType::Aaaa, "::1", "[::1]:9100")]
    {
        let answer = Answer::of(&[Record::Address(address.parse().unwrap())]);
        let found = look_up(&names(kind, 9100), answer).unwrap().targets;
        assert_eq!(addresses(&found), [expected]);
    }
}

#[test]
fn an_unknown_name_has_no_targets_and_a_failing_server_is_reported() {
    let code = |code| Answer { code, ..Answer::default() };
    assert_eq!(look_up(&names(RecordType::Srv, 0), code(3)), Ok(Found::default()));
    let fault = look_up(&names(RecordType::Srv, 0), code(2));
    assert!(fault.unwrap_err().contains("x.example"));
}
