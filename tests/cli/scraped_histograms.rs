//! Native histograms that the real agent scrapes and delivers to the real daemon.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, agent_program},
    peers::wait_until,
    prometheus_api::post,
    protobuf::{bytes, double, int, message, varint},
};

/// The media type of Prometheus' messages.
pub(crate) const PROTOBUF: &str =
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

/// The agent, which is killed when this value is dropped.
pub(crate) struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Returns a family in Prometheus' messages: a native histogram of schema 2 with the buckets 5 and
/// 6, also as one classic bucket, and a counter.
fn families() -> Vec<u8> {
    let histogram = message(|out| {
        int(1, 6, out);
        double(2, 7.5, out);
        // The classic bucket up to 2.5.
        bytes(3, &[&[8, 4][..], &message(|out| double(2, 2.5, out))].concat(), out);
        // Schema 2.
        int(5, 4, out);
        double(6, 0.001, out);
        int(7, 1, out);
        bytes(12, &[0x08, 10, 0x10, 2], out);
        // The counts 3 and 2 as differences.
        int(13, 6, out);
        int(13, 1, out);
    });
    let family = |name: &str, kind: i64, values: &[u8]| {
        let family = message(|out| {
            bytes(1, name.as_bytes(), out);
            int(3, kind, out);
            bytes(4, values, out);
        });
        message(|out| {
            varint(family.len() as u64, out);
            out.extend(&family);
        })
    };
    let wait = message(|out| bytes(7, &histogram, out));
    let hits = message(|out| bytes(3, &message(|out| double(1, 3.0, out)), out));
    [family("wait_seconds", 4, &wait), family("hits_total", 0, &hits)].concat()
}

/// The JSON of the histogram in [`families`], without a time.
pub(crate) fn expected_histogram() -> Value {
    let bound = |index: f64| ((index / 4.0).exp2()).to_string();
    json!({"count": "6", "sum": "7.5", "buckets": [
        [3, "-0.001", "0.001", "1"],
        [0, bound(4.0), bound(5.0), "3"],
        [0, bound(5.0), bound(6.0), "2"],
    ]})
}

/// Starts a target that sends messages to a client that prefers them, and text to others. Returns
/// its address.
pub(crate) fn start_target() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
            let accept = head.filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("accept").then(|| value.to_owned())
            });
            let prefers_protobuf = accept.last().is_some_and(|value| value.starts_with(PROTOBUF));
            let (kind, body) = if prefers_protobuf {
                (PROTOBUF, families())
            } else {
                ("text/plain; version=0.0.4", b"wait_seconds_count 6\nhits_total 3\n".to_vec())
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n");
            let length = format!("Content-Length: {}\r\n\r\n", body.len());
            // A client that was stopped does not read the answer.
            drop(stream.write_all(&[head.as_bytes(), length.as_bytes(), &body].concat()));
        }
    });
    address
}

/// Starts an agent that scrapes a target with these settings of its job.
pub(crate) fn start_agent(daemon: &Daemon, target: &str, settings: &str, folder: &Path) -> Agent {
    let yaml = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n\
         - {{job_name: j, {settings} static_configs: [{{targets: ['{target}']}}]}}\n"
    );
    let config = folder.join("prometheus.yml");
    fs::write(&config, yaml).unwrap();
    let mut command = Command::new(agent_program("granary-agent"));
    command.args(["scrape", "--url", &daemon.url, "--interval", "1s", "--agent-id", "scraper"]);
    command.arg("--scrape-config").arg(config).arg("--spool-dir").arg(folder.join("spool"));
    Agent(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Returns the newest histogram of a query at the present time.
pub(crate) fn newest_histogram(daemon: &Daemon, query: &str) -> Value {
    let (status, body) = post(daemon, "/api/v1/query", &[("query", query)]);
    assert_eq!(status, 200, "{body}");
    body["data"]["result"][0]["histogram"][1].clone()
}

fn has_series(daemon: &Daemon, metric: &str) -> bool {
    daemon.query(&["series", "--metric", metric])["total"] != 0
}

#[test]
fn a_scraped_native_histogram_keeps_its_buckets_also_after_kill_9() {
    let mut daemon = Daemon::start("");
    let folder = tempfile::tempdir().unwrap();
    let target = start_target();
    let _agent = start_agent(&daemon, &target, "scrape_native_histograms: true,", folder.path());
    wait_until("the histogram", || has_series(&daemon, "wait_seconds"));
    wait_until("the counter", || has_series(&daemon, "hits_total"));
    assert_eq!(newest_histogram(&daemon, "wait_seconds"), expected_histogram());
    assert!(!has_series(&daemon, "wait_seconds_count"), "the classic series are not stored");
    let series = daemon.query(&["series", "--metric", "wait_seconds"]);
    assert_eq!(series["series"][0]["kind"], "histogram");
    daemon.kill();
    daemon.restart();
    assert_eq!(newest_histogram(&daemon, "wait_seconds"), expected_histogram());
}

#[test]
fn classic_series_are_stored_instead_or_also_as_the_job_says() {
    let daemon = Daemon::start("");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let target = start_target();
    let agent = start_agent(&daemon, &target, "", folders[0].path());
    wait_until("the count", || has_series(&daemon, "wait_seconds_count"));
    assert!(!has_series(&daemon, "wait_seconds"), "native histograms are off by default");
    drop(agent);
    let both = "scrape_native_histograms: true, always_scrape_classic_histograms: true,";
    let _agent = start_agent(&daemon, &target, both, folders[1].path());
    wait_until("the histogram", || has_series(&daemon, "wait_seconds"));
    wait_until("the bucket", || has_series(&daemon, "wait_seconds_bucket"));
}
