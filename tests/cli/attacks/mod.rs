//! Malicious requests to the real daemon.

mod ingest;
mod queries;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::daemon::{Daemon, request};

/// Returns the resident memory of a process in bytes.
fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// Returns the peak resident memory of a process in bytes.
fn peak_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, row: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(row)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Sends a request with these headers; returns the status and the answer.
fn send(
    daemon: &Daemon,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, Value) {
    request(&daemon.url, method, path, headers, body).unwrap()
}

fn connect(daemon: &Daemon) -> TcpStream {
    let stream = TcpStream::connect(daemon.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn requests_sent_without_reading_answers_take_no_memory() {
    let daemon = Daemon::start("");
    let before = resident_bytes(daemon.pid());
    let requests = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(4000);
    let mut connections = Vec::new();
    for _ in 0..100 {
        let mut stream = connect(&daemon);
        stream.set_nonblocking(true).unwrap();
        // The daemon does not read the rest of the requests.
        let mut sent = 0;
        while let Ok(bytes) = stream.write(&requests.as_bytes()[sent..]) {
            sent += bytes;
            if sent == requests.len() {
                break;
            }
        }
        assert!(sent > 50_000, "only {sent} bytes left");
        connections.push(stream);
    }
    // When the last connection has a pending answer, each connection has a pending answer.
    for stream in &mut connections {
        stream.set_nonblocking(false).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    let growth = resident_bytes(daemon.pid()).saturating_sub(before);
    assert!(growth < 100 << 20, "{} MiB", growth >> 20);
    assert!(ureq::get(format!("{}/healthz", daemon.url)).call().is_ok());
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let daemon = Daemon::start("");
    let mut stream = connect(&daemon);
    let batch = json!({ "samples": [{ "metric": "a", "value": 1 }] }).to_string();
    let head = "POST /api/v1/ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let chunk = format!("{:x}\r\n{batch}\r\n0\r\n\r\n", batch.len());
    let all = [
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        format!("{head}\r\nContent-Length: {}\r\n\r\n{batch}", batch.len()),
        "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"),
        "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_owned(),
    ];
    stream.write_all(all.concat().as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let expected_words =
        ["\"alive\"", "\"accepted\":1", "not_found", "\"accepted\":1", "\"ready\""];
    let mut rest = text.as_str();
    for word in expected_words {
        let (_, rest_of_text) = rest.split_once(word).unwrap_or_else(|| panic!("{word} in {text}"));
        rest = rest_of_text;
    }
}

#[test]
fn a_web_page_of_another_site_changes_nothing() {
    let daemon = Daemon::start("");
    let json_type = ("Content-Type", "application/json");
    let batch = json!({ "samples": [{ "metric": "a", "value": 1 }] }).to_string();
    assert_eq!(daemon.post("application/json", batch.as_bytes()).status, 200);
    let deletion = json!({ "selector": { "metric": "a" } }).to_string();
    let renaming = json!({ "selector": { "metric": "a" }, "set": { "metric": "b" } }).to_string();
    let changes = [
        ("DELETE", "/api/v1/series?metric=a", String::new()),
        ("POST", "/api/v1/admin/series/delete", deletion.clone()),
        ("POST", "/api/v1/admin/series/rename", renaming),
        ("POST", "/api/v1/admin/snapshot", String::new()),
        ("POST", "/api/v1/ingest", batch),
        ("POST", "/api/v1/write", String::new()),
        ("POST", "/write", "a value=2".to_owned()),
        ("PUT", "/api/v1/dashboards/mine", String::new()),
        ("DELETE", "/api/v1/dashboards/mine?version=1", String::new()),
        ("PUT", "/api/v1/rule-files/mine", json!({ "text": "" }).to_string()),
        ("DELETE", "/api/v1/rule-files/mine?version=1", String::new()),
        ("PUT", "/api/v1/notifications", json!({ "text": "" }).to_string()),
        ("POST", "/api/v1/annotations", json!({ "text": "x" }).to_string()),
        ("DELETE", "/api/v1/annotations/000000000000001-000000", String::new()),
    ];
    for (method, path, body) in &changes {
        for foreign_header in [
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Referer", "http://evil.example/page"),
            ("Upgrade-Insecure-Requests", "1"),
        ] {
            let (status, answer) = send(&daemon, method, path, &[json_type, foreign_header], body);
            assert_eq!((status, &answer["error"]), (403, &json!("foreign_origin")), "{path}");
        }
        let (status, answer) =
            send(&daemon, method, path, &[json_type, ("Host", "evil.example")], body);
        assert_eq!((status, &answer["error"]), (421, &json!("unknown_host")), "{path}");
        // A page of a foreign name is refused even when the name resolves to the daemon.
        let rebound = [json_type, ("Host", "evil.example"), ("Origin", "http://evil.example")];
        assert_eq!(send(&daemon, method, path, &rebound, body).0, 421, "{path}");
    }
    for media_type in ["text/plain", "application/x-www-form-urlencoded"] {
        let headers = [("Content-Type", media_type)];
        let (status, answer) =
            send(&daemon, "POST", "/api/v1/admin/series/delete", &headers, &deletion);
        assert_eq!(status, 415, "{answer}");
        let (status, answer) = send(&daemon, "POST", "/api/v1/ingest", &headers, "{}");
        assert_eq!(status, 415, "{answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("use application/json"), "{message}");
    }
    assert_eq!(send(&daemon, "GET", "/api/v1/series", &[("Host", "evil.example")], "").0, 421);
    let listed = daemon.query(&["series"]);
    assert_eq!(listed["total"], 1, "{listed}");
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_requests_refused_total{reason=\"origin\"} 70"), "{metrics}");
}

#[test]
fn a_web_page_of_another_site_starts_no_work() {
    let daemon = Daemon::start("");
    let paths = [
        "/api/v1/tail?metric=a&resolution=1m",
        "/%61pi/v1/tail?metric=a&resolution=1m",
        "/api/v1/chart?metric=a&range=1h",
        "/api/v1/query?query=up",
        "/prometheus/api/v1/query_range?query=up&start=0&end=1&step=1",
        "/api/v1/aggregate",
        "/api/v1/nothing",
        "/metrics",
    ];
    let foreign_header = [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Origin", "http://localhost:3000"),
    ];
    for path in paths {
        for header in foreign_header {
            let (status, answer) = send(&daemon, "GET", path, &[header], "");
            assert_eq!((status, &answer["error"]), (403, &json!("foreign_origin")), "{path}");
        }
    }
    // All live tails are free for the page itself.
    let same_origin = [("Sec-Fetch-Site", "same-origin"), ("Origin", daemon.url.as_str())];
    let tails: Vec<_> = (0..16)
        .map(|_| {
            let request = ureq::get(format!("{}{}", daemon.url, paths[0]));
            let with =
                |request: ureq::RequestBuilder<_>, (name, value)| request.header(name, value);
            same_origin.iter().copied().fold(request, with).call().unwrap()
        })
        .collect();
    assert!(tails.iter().all(|tail| tail.status() == 200));
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_requests_refused_total{reason=\"origin\"} 24"), "{metrics}");
}

#[test]
fn snapshots_do_not_fill_the_disk() {
    let daemon = Daemon::start("");
    let folder = daemon.data("snapshots");
    let cut_short = folder.join("2020-01-01T000000.000Z.partial/partitions");
    let old = folder.join("2020-01-01T000000.000Z");
    fs::create_dir_all(&cut_short).unwrap();
    fs::create_dir_all(&old).unwrap();
    let json_type = [("Content-Type", "application/json")];
    let answers: Vec<_> =
        (0..40).map(|_| send(&daemon, "POST", "/api/v1/admin/snapshot", &json_type, "")).collect();
    let made = answers.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!(made, 30, "{answers:?}");
    let (status, answer) = answers.last().unwrap();
    assert_eq!((*status, &answer["error"]), (409, &json!("limit")));
    assert!(
        answer["message"].as_str().unwrap().contains("remove one from storage.snapshot_dir"),
        "{answer}"
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 30);
    assert!(!old.exists() && !cut_short.exists());
    assert!(daemon.metrics().contains("granary_snapshots_refused_total 10"));
}
