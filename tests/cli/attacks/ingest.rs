//! Bodies that are small and become large, and senders that say nothing.

use std::{
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use serde_json::json;

use super::peak_bytes;
use crate::{
    daemon::{Daemon, client},
    peers::{free_port, wait_until},
    protobuf,
};

const MIB: usize = 1 << 20;

/// Posts a body; returns the status and the answer's text.
pub(super) fn post(
    daemon: &Daemon,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, String) {
    let request = client().post(format!("{}{path}", daemon.url));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let mut response = request.send(body).unwrap();
    (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
}

fn field_bytes(field: u32, value: &[u8]) -> Vec<u8> {
    protobuf::message(|out| protobuf::bytes(field, value, out))
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_is_decompressed_counts_before_it_is_there() {
    let daemon = Daemon::start("[ingest]\nbody_memory_max = 62914560\n");
    let before = peak_bytes(daemon.pid());
    let bomb = gzip(&vec![b'#'; 32 * MIB - 1]);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let headers = [("Content-Encoding", "gzip")];
                let (status, answer) = post(&daemon, "/write", &headers, &bomb);
                // Influx clients send again what was answered 503.
                assert!(matches!(status, 204 | 503), "{status} {answer}");
            });
        }
    });
    let grown = peak_bytes(daemon.pid()) - before;
    // The bound, what grows while it is copied, and what the allocator keeps.
    assert!(grown < 200 << 20, "{} MiB", grown >> 20);
    assert!(daemon.metrics().contains("granary_body_memory_bytes 0"));
}

/// An OTLP request with so many histogram points of two bytes each.
fn empty_points(points: usize) -> Vec<u8> {
    let histogram = [0x0a, 0x00].repeat(points);
    let mut metric = field_bytes(1, b"latency");
    metric.extend(field_bytes(9, &histogram));
    let scope = field_bytes(2, &metric);
    field_bytes(1, &field_bytes(2, &scope))
}

#[test]
fn small_messages_take_the_memory_of_what_they_become() {
    let daemon = Daemon::start("[ingest]\nbody_memory_max = 62914560\n");
    let before = peak_bytes(daemon.pid());
    let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "gzip")];
    let (status, answer) = post(&daemon, "/v1/metrics", &headers, &gzip(&empty_points(2 * MIB)));
    assert_eq!(status, 413, "{answer}");
    assert!(answer.contains("ingest.body_memory_max"), "{answer}");
    let json_points = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"a","gauge":{{"dataPoints":[{}{{}}]}}}}]}}]}}]}}"#,
        "{},".repeat(MIB)
    );
    let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    let (status, answer) = post(&daemon, "/v1/metrics", &headers, &gzip(json_points.as_bytes()));
    assert_eq!(status, 413, "{answer}");
    let samples = format!(r#"{{"samples":[{}{{}}]}}"#, "{},".repeat(MIB));
    let (status, answer) = post(&daemon, "/api/v1/ingest", &headers, &gzip(samples.as_bytes()));
    assert_eq!(status, 413, "{answer}");
    // A series with millions of samples of two bytes each, as remote write has them.
    let series = field_bytes(1, &[0x12, 0x00].repeat(2 * MIB));
    let body = snap::raw::Encoder::new().compress_vec(&series).unwrap();
    let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
    let (status, answer) = post(&daemon, "/api/v1/write", &headers, &body);
    assert_eq!(status, 413, "{answer}");
    let grown = peak_bytes(daemon.pid()) - before;
    assert!(grown < 130 << 20, "{} MiB", grown >> 20);
    assert!(daemon.metrics().contains("granary_body_memory_bytes 0"));
}

#[test]
fn a_long_series_is_written_out_once_however_many_samples_share_it() {
    let daemon = Daemon::start("");
    let tags: Vec<_> = (0..30).map(|tag| format!("t{tag}={}", "v".repeat(1000))).collect();
    let line = format!("m,{} {}b=1\n", tags.join(","), "a=1,".repeat(50_000));
    assert_eq!(post(&daemon, "/write", &[], line.repeat(20).as_bytes()).0, 204);
    let listed = daemon.query(&["series"]);
    assert_eq!(listed["total"], 2, "{}", listed["total"]);
}

#[test]
fn a_line_that_is_too_long_spoils_no_other() {
    let daemon = Daemon::start("");
    let line = format!("m {}b=1\n", "a=1,".repeat(8 * MIB - 32));
    let peak = peak_bytes(daemon.pid());
    let body = gzip(format!("a x=1\n{line}c x=1\n").as_bytes());
    let (status, answer) = post(&daemon, "/write", &[("Content-Encoding", "gzip")], &body);
    assert_eq!(status, 400, "{answer}");
    assert!(answer.contains("line 2 has more than 262144 bytes"), "{answer}");
    assert_eq!(daemon.query(&["series"])["total"], 2);
    let grown = peak_bytes(daemon.pid()) - peak;
    assert!(grown < 120 << 20, "{} MiB", grown >> 20);
}

#[test]
fn a_large_body_is_read_like_a_small_one() {
    let daemon = Daemon::start("");
    let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    let sample = r#"{"metric":"large","kind":"delta","value":1}"#;
    let batch = |seq: u32, samples: usize| {
        let samples = vec![sample; samples].join(",");
        gzip(format!(r#"{{"agent":"a","epoch":1,"seq":{seq},"samples":[{samples}]}}"#).as_bytes())
    };
    // Of 4 MiB, small, and the first once more: who reads a batch does not matter.
    for (seq, samples) in [(1, 100_000), (2, 1), (1, 100_000)] {
        let (status, answer) = post(&daemon, "/api/v1/ingest", &headers, &batch(seq, samples));
        assert_eq!(status, 200, "{answer}");
    }
    let documents =
        daemon.query(&["documents", "--metric", "large", "--resolution", "1d", "--unfold"]);
    assert_eq!(documents["rows"][0]["value"], 100_001.0, "{documents}");
}

#[test]
fn a_request_with_too_many_new_series_ends_at_the_bound() {
    let daemon = Daemon::start("[limits]\nrequest_series_max = 1000\n");
    let lines: Vec<_> = (0..700_000).map(|field| format!("m f{field:x}=1")).collect();
    let (status, answer) = post(&daemon, "/write", &[], lines.join("\n").as_bytes());
    assert_eq!(status, 413, "{answer}");
    assert_eq!(daemon.query(&["series"])["total"], 0);
}

#[test]
fn datagrams_are_read_as_they_come_and_lost_ones_are_counted() {
    const DATAGRAMS: u64 = 30_000;
    let port = free_port();
    let daemon = Daemon::start(&format!("[graphite]\nudp_listen = \"127.0.0.1:{port}\"\n"));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = jiff::Timestamp::now().as_second() - 60;
    for index in 0..DATAGRAMS {
        let line = format!("burst.{} {index} {at}\n", index % 100);
        socket.send_to(line.as_bytes(), ("127.0.0.1", port)).unwrap();
    }
    let count = |metrics: &str, name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()
    };
    wait_until("every datagram is counted", || {
        let metrics = daemon.metrics();
        let graphite = "{protocol=\"graphite\"}";
        let seen: u64 = [
            format!("granary_samples_accepted_total{graphite}"),
            format!("granary_samples_duplicate_total{graphite}"),
            "granary_datagrams_dropped_total{reason=\"buffer\"}".to_owned(),
            "granary_datagrams_dropped_total{reason=\"kernel\"}".to_owned(),
            "granary_datagrams_dropped_total{reason=\"not_written\"}".to_owned(),
        ]
        .iter()
        .map(|name| count(&metrics, name))
        .sum();
        seen == DATAGRAMS
    });
}

#[test]
fn silent_senders_make_room() {
    let port = free_port();
    let settings = format!(
        "[server]\nclient_timeout = \"1s\"\n[graphite]\nlisten = \"127.0.0.1:{port}\"\n\
         connections_max = 20\n"
    );
    let daemon = Daemon::start(&settings);
    let address = ("127.0.0.1", port);
    let mut silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed by the daemon");
    }
    let mut sender = TcpStream::connect(address).unwrap();
    writeln!(sender, "own.metric 1 {}", jiff::Timestamp::now().as_second()).unwrap();
    wait_until("the sender is heard", || daemon.query(&["series"])["total"] == json!(1));
}
