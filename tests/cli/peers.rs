//! Real senders and the real daemon. The senders must be installed, so these tests are ignored by
//! default: `.ci/run` installs the senders and runs them.
//!
//! The senders scrape a target in the test, whose counter grows by one with each scrape. Meanwhile
//! the daemon is killed and the sender restarted.

mod cluster;
mod collectd;
mod graphite_web;
mod keys;
mod mongodb;
mod native_histograms;
mod nginx;
mod node_exporter;
mod pipelines;
mod publish;
mod reading_prometheus;
mod shards;
mod statsd;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{
    daemon::{Daemon, SECONDS, granularities},
    ports::free_port,
};

/// The scrapes that a sender must make before the next step.
const SCRAPES: u64 = 4;

/// A target of scrapes that serves `test_scrapes_total`, the number of its scrapes.
struct Target {
    port: u16,
    scrapes: Arc<AtomicU64>,
}

impl Target {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let scrapes = Arc::new(AtomicU64::new(0));
        let count = scrapes.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let body = format!(
                    "# TYPE test_scrapes counter\ntest_scrapes_total {number}\n\
                     # TYPE test_level gauge\ntest_level{{part=\"a\"}} {}\n",
                    number % 7
                );
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n";
                let length = body.len();
                let answer =
                    format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
                // A sender that was stopped during a scrape does not read the answer.
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Self { port, scrapes }
    }

    /// Waits for `SCRAPES` more scrapes.
    fn wait_for_scrapes(&self) {
        let until = self.scrapes.load(Ordering::SeqCst) + SCRAPES;
        wait_until("scrapes", || self.scrapes.load(Ordering::SeqCst) >= until);
    }
}

pub(crate) fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_done() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("timed out waiting for {what}");
}

/// The process of a sender. When this value is dropped, the process is asked to stop, and waited
/// for.
struct Sender(Child);

impl Sender {
    fn start(command: &mut Command, log: &Path) -> Self {
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let (out, err) = (log.try_clone().unwrap(), log);
        Self(command.stdout(out).stderr(err).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        drop(Command::new("kill").args(["-TERM", &pid]).status());
        drop(self.0.wait());
    }
}

/// Fails if a program is not installed.
pub(crate) fn need(program: &str) {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    assert!(found.unwrap().status.success(), "{program} is not installed; .ci/run installs it");
}

fn test_points(daemon: &Daemon, resolution: &str, display: &str) -> Vec<f64> {
    let args = ["chart", "--metric", "test_scrapes_total", "--range", "30m"];
    let options = ["--resolution", resolution, "--display", display];
    let output = daemon.run_query(&[&args[..], &options].concat());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let points = answer["series"][0]["points"].as_array().cloned().unwrap_or_default();
    points.iter().filter_map(|point| point[1].as_f64()).collect()
}

/// Runs a sender through kills and restarts, then compares the daemon's samples with the samples
/// of the target.
fn assert_delivers_everything(start: impl Fn(&Target, &Daemon, &Path) -> Sender) {
    let mut daemon = Daemon::start(&granularities(&SECONDS));
    let target = Target::start();
    let dir = tempfile::tempdir().unwrap();
    let sender = start(&target, &daemon, dir.path());
    target.wait_for_scrapes();
    wait_until("the first samples", || !test_points(&daemon, "1s", "last").is_empty());
    daemon.kill();
    target.wait_for_scrapes();
    daemon.restart();
    target.wait_for_scrapes();
    // During a clean stop, the sender delivers its pending samples.
    drop(sender);
    let served_before_restart = target.scrapes.load(Ordering::SeqCst);
    let sender = start(&target, &daemon, dir.path());
    wait_until("the sender again", || {
        target.scrapes.load(Ordering::SeqCst) > served_before_restart + SCRAPES
    });
    drop(sender);
    daemon.kill();
    daemon.restart();
    let scrapes = target.scrapes.load(Ordering::SeqCst) as f64;
    let log = || fs::read_to_string(dir.path().join("log")).unwrap_or_default();
    for resolution in ["1s", "1m"] {
        let count: f64 = test_points(&daemon, resolution, "count").iter().sum();
        // Each of the two stops may interrupt a scrape.
        assert!((scrapes - 2.0..=scrapes).contains(&count), "{count} of {scrapes}: {}", log());
        let first = test_points(&daemon, resolution, "first")[0];
        let last = *test_points(&daemon, resolution, "last").last().unwrap();
        assert!(last >= scrapes - 1.0 && first <= 2.0, "{first} to {last} of {scrapes}");
        let total: f64 = test_points(&daemon, resolution, "total").iter().sum();
        assert_eq!(total, last - first, "{resolution}");
    }
    let series = daemon.query(&["series", "--metric", "test_scrapes_total"]);
    assert_eq!(series["series"][0]["kind"], "counter");
    assert_eq!(series["series"][0]["tags"]["job"], "test");
    let level = daemon.query(&["series", "--metric", "test_level", "--tags", "part=a"]);
    assert_eq!(level["series"][0]["kind"], "gauge");
}

fn scrape_config(target: &Target) -> String {
    format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: test\n  static_configs:\n  \
         - targets: ['127.0.0.1:{}']\n",
        target.port
    )
}

#[test]
#[ignore = "needs prometheus; .ci/run installs it and runs this"]
fn prometheus_delivers_everything_through_kills_and_restarts() {
    need("prometheus");
    assert_delivers_everything(|target, daemon, dir| {
        let config = dir.join("prometheus.yml");
        let remote = format!(
            "remote_write:\n- url: {}/api/v1/write\n  queue_config: {{max_backoff: 500ms}}\n",
            daemon.url
        );
        fs::write(&config, scrape_config(target) + &remote).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", dir.join("prometheus").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{}", free_port()));
        Sender::start(&mut command, &dir.join("log"))
    });
}

#[test]
#[ignore = "needs vmagent; .ci/run installs it and runs this"]
fn vmagent_delivers_everything_through_kills_and_restarts() {
    need("vmagent");
    assert_delivers_everything(|target, daemon, dir| {
        let config = dir.join("scrape.yml");
        fs::write(&config, scrape_config(target)).unwrap();
        let mut command = Command::new("vmagent");
        command.arg(format!("-promscrape.config={}", config.display()));
        command.arg(format!("-remoteWrite.url={}/api/v1/write", daemon.url));
        command.args(["-remoteWrite.queues=4", "-remoteWrite.flushInterval=200ms"]);
        command.arg(format!("-remoteWrite.tmpDataPath={}", dir.join("vmagent").display()));
        command.arg(format!("-httpListenAddr=127.0.0.1:{}", free_port()));
        Sender::start(&mut command, &dir.join("log"))
    });
}

/// Returns true when the log of carbon-c-relay ends its start. Version 3.7.3 crashes when a client
/// connects earlier.
pub(crate) fn relay_is_ready(log: &Path) -> bool {
    fs::read_to_string(log).is_ok_and(|text| text.contains("startup sequence complete"))
}

#[test]
#[ignore = "needs carbon-c-relay; .ci/run installs it and runs this"]
fn carbon_c_relay_delivers_all_samples() {
    need("carbon-c-relay");
    let port = free_port();
    let daemon = Daemon::start(&format!("graphite.listen = '127.0.0.1:{port}'"));
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("relay.conf");
    let relay_port = free_port();
    let text = format!("cluster granary forward 127.0.0.1:{port};\nmatch * send to granary;\n");
    fs::write(&config, text).unwrap();
    let mut command = Command::new("carbon-c-relay");
    command.arg("-f").arg(&config).args(["-p", &relay_port.to_string()]);
    let log = dir.path().join("log");
    let _relay = Sender::start(&mut command, &log);
    wait_until("the relay", || relay_is_ready(&log));
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", relay_port)).unwrap();
    for number in 0..500 {
        writeln!(stream, "relayed.m{number} {number} -1").unwrap();
    }
    drop(stream);
    wait_until("all metrics", || {
        let answer = daemon.query(&["series"]);
        answer["total"] == 500
    });
    for number in [0, 250, 499] {
        let metric = format!("relayed.m{number}");
        let args = ["chart", "--resolution", "1m", "--range", "5m", "--display", "last"];
        let answer = daemon.query(&[&args[..], &["--metric", &metric]].concat());
        let points = answer["series"][0]["points"].as_array().unwrap();
        let last = points.iter().rev().find_map(|point| point[1].as_f64());
        assert_eq!(last, Some(f64::from(number)));
    }
}

/// Returns a command of the Python interpreter that has the client libraries which `.ci/run`
/// installs.
pub(crate) fn python() -> Command {
    Command::new(std::env::var("GRANARY_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned()))
}

/// Runs a script of `tests/data`.
pub(crate) fn run_script(script: &str, args: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(script);
    let output = python().arg(path).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the last value of a metric's only series, and the total of its slots.
fn last_and_total(daemon: &Daemon, metric: &str) -> (f64, f64) {
    last_and_total_of(daemon, metric, "")
}

/// Returns the last value of the only series with these tags, and the total of its slots.
fn last_and_total_of(daemon: &Daemon, metric: &str, tags: &str) -> (f64, f64) {
    let read = |display: &str| -> Vec<f64> {
        let args = ["chart", "--resolution", "1m", "--range", "5m", "--display", display];
        let answer = daemon.query(&[&args[..], &["--metric", metric, "--tags", tags]].concat());
        assert_eq!(answer["series"].as_array().unwrap().len(), 1, "{metric}: {answer}");
        let points = answer["series"][0]["points"].as_array().unwrap();
        points.iter().filter_map(|point| point[1].as_f64()).collect()
    };
    (*read("last").last().unwrap(), read("total").iter().sum())
}

#[test]
#[ignore = "needs opentelemetry-sdk; .ci/run installs it and runs this"]
fn the_opentelemetry_sdk_delivers_its_measurements() {
    let daemon = Daemon::start("");
    run_script("senders/otel.py", &[&daemon.url]);
    assert_eq!(last_and_total(&daemon, "orders").0, 100.0);
    assert_eq!(last_and_total(&daemon, "latency_count").0, 50.0);
    assert_eq!(last_and_total(&daemon, "latency_sum").0, 1225.0);
    assert_eq!(last_and_total(&daemon, "latency_max").0, 49.0);
    assert_eq!(last_and_total(&daemon, "temperature").0, 21.5);
    let series = daemon.query(&["series", "--metric", "orders", "--tags", "service.name=shop"]);
    assert_eq!(series["series"][0]["kind"], "counter");
}

#[test]
#[ignore = "needs influxdb and influxdb-client; .ci/run installs it and runs this"]
fn the_influx_clients_deliver_their_measurements() {
    let daemon = Daemon::start("");
    let address = daemon.url.trim_start_matches("http://").to_owned();
    let (host, port) = address.split_once(':').unwrap();
    run_script("senders/influx.py", &[host, port]);
    assert_eq!(last_and_total(&daemon, "room_temperature"), (29.0, 245.0));
    assert_eq!(last_and_total(&daemon, "old_value").0, 3.5);
    assert_eq!(last_and_total(&daemon, "old_count").0, 4.0);
}
