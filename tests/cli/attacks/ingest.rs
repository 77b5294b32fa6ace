//! Attacks on ingestion: small bodies that expand, and senders that stop sending.

use std::{
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{peak_bytes, send};
use crate::{
    alerts,
    daemon::{Daemon, client, granary},
    peers::wait_until,
    ports::free_port,
    protobuf,
};

const MIB: usize = 1 << 20;

/// Posts a body; returns the status and the text of the answer.
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
fn decompressed_bytes_are_counted_before_they_are_allocated() {
    let daemon = Daemon::start("[ingest]\nbody_memory_max = 62914560\n");
    let before = peak_bytes(daemon.pid());
    // Each body has almost the maximum size of a decompressed request.
    let bomb = gzip(&vec![b'#'; 7 * MIB]);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let headers = [("Content-Encoding", "gzip")];
                let (status, answer) = post(&daemon, "/write", &headers, &bomb);
                // Influx clients repeat requests that were answered 503.
                assert!(matches!(status, 204 | 503), "{status} {answer}");
            });
        }
    });
    let growth = peak_bytes(daemon.pid()) - before;
    // This is more than the limit because buffers are copied when they grow, and because the
    // allocator keeps memory.
    assert!(growth < 200 << 20, "{} MiB", growth >> 20);
    assert!(daemon.metrics().contains("granary_body_memory_bytes 0"));
}

/// Returns an OTLP request with this many histogram points of two bytes each.
fn empty_points(points: usize) -> Vec<u8> {
    let histogram = [0x0a, 0x00].repeat(points);
    let mut metric = field_bytes(1, b"latency");
    metric.extend(field_bytes(9, &histogram));
    let scope = field_bytes(2, &metric);
    field_bytes(1, &field_bytes(2, &scope))
}

#[test]
fn small_messages_reserve_the_memory_of_their_expanded_form() {
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
    // A remote-write series with millions of samples of two bytes each.
    let series = field_bytes(1, &[0x12, 0x00].repeat(2 * MIB));
    let body = snap::raw::Encoder::new().compress_vec(&series).unwrap();
    let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
    let (status, answer) = post(&daemon, "/api/v1/write", &headers, &body);
    assert_eq!(status, 413, "{answer}");
    let growth = peak_bytes(daemon.pid()) - before;
    assert!(growth < 130 << 20, "{} MiB", growth >> 20);
    assert!(daemon.metrics().contains("granary_body_memory_bytes 0"));
}

#[test]
fn a_long_series_is_copied_once_however_many_samples_share_it() {
    let daemon = Daemon::start("");
    let tags: Vec<_> = (0..30).map(|tag| format!("t{tag}={}", "v".repeat(1000))).collect();
    let line = format!("m,{} {}b=1\n", tags.join(","), "a=1,".repeat(50_000));
    assert_eq!(post(&daemon, "/write", &[], line.repeat(20).as_bytes()).0, 204);
    let listed = daemon.query(&["series"]);
    assert_eq!(listed["total"], 2, "{}", listed["total"]);
}

#[test]
fn a_line_that_is_too_long_does_not_affect_others() {
    let daemon = Daemon::start("");
    let line = format!("m {}b=1\n", "a=1,".repeat(8 * MIB - 32));
    let peak = peak_bytes(daemon.pid());
    let body = gzip(format!("a x=1\n{line}c x=1\n").as_bytes());
    let (status, answer) = post(&daemon, "/write", &[("Content-Encoding", "gzip")], &body);
    assert_eq!(status, 400, "{answer}");
    assert!(answer.contains("line 2 has more than 262144 bytes"), "{answer}");
    assert_eq!(daemon.query(&["series"])["total"], 2);
    let growth = peak_bytes(daemon.pid()) - peak;
    assert!(growth < 120 << 20, "{} MiB", growth >> 20);
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
    // Different collectors read large and small bodies, but check batch numbers against the same
    // window.
    for (seq, samples) in [(1, 100_000), (2, 1), (1, 100_000)] {
        let (status, answer) = post(&daemon, "/api/v1/ingest", &headers, &batch(seq, samples));
        assert_eq!(status, 200, "{answer}");
    }
    let documents =
        daemon.query(&["documents", "--metric", "large", "--resolution", "1d", "--unfold"]);
    // Just after midnight, there is also a row of the day before.
    let values =
        documents["rows"].as_array().unwrap().iter().filter_map(|row| row["value"].as_f64());
    assert_eq!(values.sum::<f64>(), 100_001.0, "{documents}");
}

#[test]
fn a_request_with_too_many_new_series_ends_at_the_limit() {
    let daemon = Daemon::start("");
    let lines: Vec<_> = (0..700_000).map(|field| format!("m f{field:x}=1")).collect();
    let (status, answer) = post(&daemon, "/write", &[], lines.join("\n").as_bytes());
    assert_eq!(status, 413, "{answer}");
    assert_eq!(daemon.query(&["series"])["total"], 0);
}

#[test]
fn datagrams_are_read_as_they_arrive_and_lost_ones_are_counted() {
    const DATAGRAMS: u64 = 30_000;
    let port = free_port();
    let daemon = Daemon::start(&format!("[graphite]\nlisten = \"127.0.0.1:{port}\"\n"));
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
fn connections_of_silent_senders_are_closed() {
    let port = free_port();
    let settings =
        format!("[server]\nclient_timeout = \"1s\"\n[graphite]\nlisten = \"127.0.0.1:{port}\"\n");
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

/// Regression: a client could make the daemon's own batches stale by sending later epochs under
/// the names of the daemon's senders. Then hosts were not watched, and recording rules stored
/// nothing.
#[test]
fn no_client_sends_under_the_daemons_own_names() {
    let daemon = alerts::start("0s");
    alerts::send_level(&daemon, 3.0);
    let wait_for_recorded = |value: f64| {
        alerts::poll_until(&daemon, "the rule", || {
            let answer = daemon.query(&["chart", "--metric", "level:max", "--range", "10m"]);
            let points = answer["series"].get(0)?["points"].as_array()?.clone();
            let last = points.iter().rev().find_map(|point| point[1].as_f64())?;
            (last == value).then_some(())
        });
    };
    wait_for_recorded(3.0);
    let args = ["senders", "list", "--json", "--url", daemon.url.as_str()];
    let listed = granary().args(args).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut names =
        listed["senders"].as_array().unwrap().iter().filter_map(|sender| sender["agent"].as_str());
    let evaluator = names.find(|name| name.starts_with("granary:rules/own/")).unwrap().to_owned();
    // These epochs are later than all epochs of the daemon.
    let now = 1_763_000_000_000_i64;
    for agent in [evaluator.as_str(), "granary:hosts", "granary:rules", "granary:self", "granary:"]
    {
        for later in 0..4 {
            let batch = json!({ "agent": agent, "epoch": now - later, "seq": 1,
                "samples": [{ "metric": "x", "value": 1 }] });
            let refused = daemon.post_json(&batch);
            let message = refused.body["message"].as_str().unwrap_or_default();
            assert!(
                refused.status == 400 && message.contains("reserved for the daemon"),
                "{message}"
            );
        }
        let ping = json!({ "pings": [{ "agent": agent, "program": "a", "version": "1",
            "started": now, "interval_ms": 1000, "sent": now }] });
        let json_type = [("Content-Type", "application/json")];
        let (_, answer) = send(&daemon, "POST", "/api/v1/ping", &json_type, &ping.to_string());
        let reason = answer["refused"][0]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("reserved for the daemon"), "{answer}");
    }
    // Names that earlier versions of the daemon used are free for any sender.
    for agent in [evaluator.trim_start_matches("granary:"), "hosts", "rules", "granary"] {
        for later in 0..4 {
            let batch = json!({ "agent": agent, "epoch": now - later, "seq": 1,
                "samples": [{ "metric": "x", "value": 1 }] });
            assert_eq!(daemon.post_json(&batch).status, 200);
        }
    }
    alerts::send_level(&daemon, 4.0);
    wait_for_recorded(4.0);
    assert!(daemon.metrics().contains("granary_rule_samples_lost_total 0"));
}

/// A series of another kind under a rule's name makes the rule's samples fail, which is reported.
#[test]
fn lost_samples_of_the_daemon_are_counted_and_degrade_it() {
    let daemon = alerts::start("0s");
    let conflicting_sample = json!([{ "metric": "level:max", "kind": "counter", "value": 1 }]);
    daemon.accept(&conflicting_sample);
    alerts::send_level(&daemon, 3.0);
    alerts::poll_until(&daemon, "the reason", || {
        let (status, answer) = send(&daemon, "GET", "/readyz", &[], "");
        let reason = answer["reasons"]["own_samples"].as_str()?.to_owned();
        assert_eq!((status, &answer["status"]), (200, &json!("degraded")));
        (reason.contains("granary:rules/own/") && reason.contains("counter")).then_some(())
    });
    assert!(!daemon.metrics().contains("granary_rule_samples_lost_total 0"));
}

#[test]
fn control_characters_in_tag_values_are_refused_without_affecting_other_samples() {
    let daemon = Daemon::start("");
    let samples = json!({ "samples": [
        { "metric": "a", "tags": { "x": "b\u{1b}[2J" }, "value": 1 },
        { "metric": "a", "tags": { "x": "good" }, "value": 1 },
        { "metric": "a", "tags": { "x": "c\nd" }, "value": 1 },
    ] });
    let answer = daemon.post_json(&samples);
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{}", answer.body);
    assert_eq!(answer.body["refused"], json!({ "bad_series": 2 }));
    let lines = b"a,x=e\x1bf value=1\na,x=fine value=1\n";
    let (status, answer) = post(&daemon, "/write", &[], lines);
    assert!(status == 400 && answer.contains("dropped=1"), "{answer}");
    assert_eq!(daemon.query(&["series"])["total"], 2);
    let forged = json!({ "agent": "a\nb", "epoch": 1, "seq": 1, "samples": [] });
    assert_eq!(daemon.post_json(&forged).body["error"], "malformed");
}
