//! Queries that are short and become large, and lines of the log that strangers cause.

use std::{io::Read, net::TcpStream};

use serde_json::json;

use super::{peak_bytes, send};
use crate::{
    daemon::Daemon,
    peers::{free_port, wait_until},
};

const MIB: usize = 1 << 20;

#[test]
fn forms_are_no_longer_than_any_needs_to_be() {
    let daemon = Daemon::start("");
    let before = peak_bytes(daemon.pid());
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let long = "a&".repeat(8 * MIB);
    for path in ["/api/v1/query", "/prometheus/api/v1/query_range", "/api/v1/labels"] {
        let (status, answer) = send(&daemon, "POST", path, &form, &long);
        assert_eq!((status, &answer["error"]), (413, &json!("too_large")), "{path} {answer}");
        assert!(answer["message"].as_str().unwrap().contains("1048576 bytes"), "{answer}");
    }
    let (status, answer) = send(&daemon, "POST", "/api/v1/aggregate", &[], &long);
    assert_eq!(status, 413, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("65536 bytes"), "{answer}");
    let json_type = [("Content-Type", "application/json")];
    let (status, answer) = send(&daemon, "POST", "/api/v1/admin/series/delete", &json_type, &long);
    assert_eq!(status, 413, "{answer}");
    let grown = peak_bytes(daemon.pid()) - before;
    assert!(grown < 100 << 20, "{} MiB", grown >> 20);
    // One that is long and means something is answered.
    let query = format!("query=1{}", "%20".repeat(MIB / 4));
    assert_eq!(send(&daemon, "POST", "/api/v1/query", &form, &query[..60_000]).0, 200);
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_queries_refused_total{reason=\"invalid\"} 4"), "{metrics}");
}

#[test]
fn a_line_that_strangers_cause_is_not_written_again_and_again() {
    let port = free_port();
    let daemon =
        Daemon::start(&format!("[graphite]\nlisten = \"127.0.0.1:{port}\"\nconnections_max = 1\n"));
    let address = ("127.0.0.1", port);
    let _kept = TcpStream::connect(address).unwrap();
    let said = "too many Graphite connections";
    // The first place may not be taken yet; a connection too many is closed.
    for _ in 0..300 {
        let mut stream = TcpStream::connect(address).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
    wait_until("lines are counted", || {
        daemon.metrics().contains("granary_log_lines_left_out_total 200")
    });
    let lines = daemon.log().lines().filter(|line| line.contains(said)).count();
    assert_eq!(lines, 100);
}
