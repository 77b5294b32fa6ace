//! A real Prometheus reads from the daemon, by remote read and by scraping `/federate`.

use std::{fs, process::Command};

use prost::Message;
use serde_json::Value;

use super::{Sender, need, wait_until};
use crate::{
    daemon::{Daemon, client},
    ports::free_port,
    prometheus_api::get,
    remote_write::{V1, minute, request, series, write},
};

/// A Prometheus server with its configuration.
struct Prometheus {
    url: String,
    _process: Sender,
    _dir: tempfile::TempDir,
}

impl Prometheus {
    fn start(config: &str) -> Self {
        need("prometheus");
        let dir = tempfile::tempdir().unwrap();
        let (file, port) = (dir.path().join("prometheus.yml"), free_port());
        fs::write(&file, config).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command.arg("--web.enable-remote-write-receiver");
        let process = Sender::start(&mut command, &dir.path().join("log"));
        let url = format!("http://127.0.0.1:{port}");
        wait_until("Prometheus", || ureq::get(format!("{url}/-/ready")).call().is_ok());
        Self { url, _process: process, _dir: dir }
    }

    fn get(&self, path: &str) -> Value {
        let codes = [('{', "%7B"), ('}', "%7D"), ('"', "%22"), ('~', "%7E"), ('+', "%2B")];
        let path = codes.iter().fold(path.to_owned(), |path, (from, to)| path.replace(*from, to));
        let mut response = client().get(format!("{}{path}", self.url)).call().unwrap();
        serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
    }
}

/// Returns samples every 30 s for 50 minutes, all within a block of two hours.
fn samples(start: i64, value: impl Fn(i64) -> f64) -> Vec<(i64, f64)> {
    (0..100).map(|i| (start + i * 30_000, value(i))).collect()
}

/// Returns the body of a request with the series that both the daemon and Prometheus store.
fn body(start: i64) -> Vec<u8> {
    let counter = |job: &str, step: f64| {
        // The counter is reset in the middle, and the values after it need all bits of a number.
        let value = |i: i64| if i < 40 { i as f64 * step } else { (i - 40) as f64 * step / 3.0 };
        series(&[("__name__", "requests_total"), ("job", job)], &samples(start, value))
    };
    let level = samples(start, |i| (i as f64 / 7.0).sin() * 1e6);
    request(&[
        counter("db", 60.0),
        counter("web", 30.0),
        series(&[("__name__", "level"), ("part", "a")], &level),
    ])
}

const TWO_HOURS: i64 = 7_200_000;

#[test]
#[ignore = "needs prometheus; .ci/run installs it and runs this"]
fn prometheus_answers_from_the_daemons_samples_by_remote_read() {
    let daemon = Daemon::start("");
    let start = (minute() - 2 * TWO_HOURS) / TWO_HOURS * TWO_HOURS + 607_000;
    assert_eq!(write(&daemon, V1, &body(start)).status, 204);
    let recent = minute();
    let ended = [(recent, 1.0), (recent + 60_000, 2.0), (recent + 90_000, f64::from_bits(STALE))];
    let ended = request(&[series(&[("__name__", "ended")], &ended)]);
    assert_eq!(write(&daemon, V1, &ended).status, 204);
    let config = format!("remote_read:\n- url: {}/api/v1/read\n  read_recent: true\n", daemon.url);
    let peer = Prometheus::start(&config);
    // No sample is at the edge of a window, because releases of Prometheus treat edges differently.
    let (first, last) = (start / 1000 + 593, start / 1000 + 2393);
    for query in [
        "sum(level)",
        "level{part=~\"a|b\"}",
        "max_over_time(level[10m])",
        "sum(count_over_time(requests_total[5m]))by(job)",
        "requests_total{job!=\"web\"}",
    ] {
        let path = format!("/api/v1/query_range?query={query}&start={first}&end={last}&step=30");
        let (theirs, (status, ours)) = (peer.get(&path), get(&daemon, &path));
        assert_eq!((status, &theirs["status"]), (200, &"success".into()), "{query}: {theirs}");
        assert_eq!(theirs["data"]["result"], ours["data"]["result"], "{query}");
        assert!(!theirs["data"]["result"].as_array().unwrap().is_empty(), "{query}");
    }
    // The stale marker ends the series at once, not after five minutes.
    let at = |seconds: i64| {
        let time = recent / 1000 + seconds;
        let answer = peer.get(&format!("/api/v1/query?query=ended&time={time}"));
        answer["data"]["result"].as_array().unwrap().len()
    };
    assert_eq!([at(80), at(100)], [1, 0]);
    let (from, to) = (start / 1000, start / 1000 + 3600);
    let names = peer.get(&format!("/api/v1/series?match[]=requests_total&start={from}&end={to}"));
    assert_eq!(names["data"].as_array().unwrap().len(), 2, "{names}");
    let metrics = daemon.metrics();
    let query_count = metrics.lines().find_map(|line| {
        line.strip_prefix("granary_queries_total{endpoint=\"remote_read\"} ")?.parse().ok()
    });
    assert!(query_count.is_some_and(|count: u64| count >= 6), "{query_count:?}");
}

/// Prometheus' stale marker.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// The message `ChunkedReadResponse`, with the labels as bytes.
#[derive(Clone, PartialEq, Message)]
struct Frame {
    #[prost(message, repeated, tag = "1")]
    series: Vec<FrameSeries>,
    #[prost(int64, tag = "2")]
    query_index: i64,
}

#[derive(Clone, PartialEq, Message)]
struct FrameSeries {
    #[prost(bytes = "vec", repeated, tag = "1")]
    labels: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    chunks: Vec<Vec<u8>>,
}

/// Returns the frames of a stream, whose checksums must be right.
fn frames(url: &str, query: &[u8]) -> Vec<Frame> {
    let body = snap::raw::Encoder::new().compress_vec(query).unwrap();
    let sent = client().post(format!("{url}/api/v1/read")).header("Content-Encoding", "snappy");
    let sent = sent.content_type("application/x-protobuf");
    let mut response = sent.send(&body[..]).unwrap();
    let kind = response.headers().get("Content-Type").unwrap().to_str().unwrap().to_owned();
    let bytes = response.body_mut().read_to_vec().unwrap();
    assert!(kind.contains("ChunkedReadResponse"), "{kind}: {}", String::from_utf8_lossy(&bytes));
    let (mut rest, mut all) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let length = prost::decode_length_delimiter(rest).unwrap();
        let (_, rest_of_bytes) = rest.split_at(prost::length_delimiter_len(length));
        let (checksum, rest_of_bytes) = rest_of_bytes.split_first_chunk::<4>().unwrap();
        let (message, rest_of_bytes) = rest_of_bytes.split_at(length);
        assert_eq!(u32::from_be_bytes(*checksum), crc32c::crc32c(message));
        all.push(Frame::decode(message).unwrap());
        rest = rest_of_bytes;
    }
    all
}

#[test]
#[ignore = "needs prometheus; .ci/run installs it and runs this"]
fn streamed_chunks_equal_those_of_prometheus_byte_by_byte() {
    use crate::protobuf::{bytes, int, message};
    let (daemon, peer) = (Daemon::start(""), Prometheus::start("{}"));
    let start = (minute() - 2 * TWO_HOURS) / TWO_HOURS * TWO_HOURS + 607_000;
    assert_eq!(write(&daemon, V1, &body(start)).status, 204);
    let compressed = snap::raw::Encoder::new().compress_vec(&body(start)).unwrap();
    let sent = client().post(format!("{}/api/v1/write", peer.url));
    let sent = sent.content_type(V1).header("Content-Encoding", "snappy");
    assert_eq!(sent.send(&compressed[..]).unwrap().status(), 204);
    let query = message(|out| {
        for pattern in ["requests_total|level", "requests_total"] {
            let query = message(|out| {
                int(1, start, out);
                int(2, start + TWO_HOURS, out);
                let matcher = message(|out| {
                    int(1, 2, out);
                    bytes(2, b"__name__", out);
                    bytes(3, pattern.as_bytes(), out);
                });
                bytes(3, &matcher, out);
            });
            bytes(1, &query, out);
        }
        int(2, 1, out);
        int(2, 0, out);
    });
    let (ours, theirs) = (frames(&daemon.url, &query), frames(&peer.url, &query));
    assert_eq!(ours.len(), 5);
    assert_eq!(ours, theirs);
}

#[test]
#[ignore = "needs prometheus; .ci/run installs it and runs this"]
fn prometheus_scrapes_federate() {
    let daemon = Daemon::start("");
    let target = super::Target::start();
    let address = |url: &str| url.trim_start_matches("http://").to_owned();
    let source = super::scrape_config(&target)
        + &format!("remote_write:\n- url: {}/api/v1/write\n", daemon.url);
    let source = Prometheus::start(&source);
    wait_until("samples", || {
        let (_, found) = get(&daemon, "/api/v1/query?query=test_scrapes_total");
        found["data"]["result"].as_array().is_some_and(|all| !all.is_empty())
    });
    let reader = Prometheus::start(&format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: federate\n  \
         honor_labels: true\n  metrics_path: /federate\n  params:\n    'match[]': \
         ['{{job=\"test\"}}', 'granary_absent']\n  static_configs:\n  - targets: ['{}']\n",
        address(&daemon.url)
    ));
    let newest = |peer: &Prometheus| {
        let found = peer.get("/api/v1/query?query=test_scrapes_total");
        let result = &found["data"]["result"];
        let value = result[0]["value"][1].as_str().and_then(|text| text.parse::<f64>().ok());
        (result[0]["metric"].clone(), value.unwrap_or_default())
    };
    wait_until("a federated counter that grows", || newest(&reader).1 >= 3.0);
    let (labels, _) = newest(&reader);
    assert_eq!(labels, newest(&source).0, "the labels are those of the source");
    let up = reader.get("/api/v1/query?query=up{job=\"federate\"}");
    assert_eq!(up["data"]["result"][0]["value"][1], "1", "{up}");
    let types = reader.get("/api/v1/targets/metadata?metric=test_scrapes_total");
    assert!(types["data"].as_array().unwrap().iter().any(|metadata| metadata["type"] == "counter"));
}
