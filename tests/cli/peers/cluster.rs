//! Three real nodes with replicas of one store: kills, stops longer than a lease, clean stops,
//! and kills of MongoDB. Each acknowledged sample counts once at every level, on every replica.
//!
//! `GRANARY_CLUSTER_ROUNDS` sets the number of faults.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use granary::{
    model::UnixMillis,
    store::{Folder, Replica},
};
use serde_json::{Value, json};

use super::{mongodb::Server, need, python, wait_until};
use crate::{
    daemon::{Daemon, client, request},
    remote_write::{minute, request as write_request, series},
};

/// The number of faults, unless the environment sets it.
const ROUNDS: u64 = 4;
const SAMPLES: u64 = 20;
/// The stop of a process, longer than the lease and the wait of the next holder.
const STOP: Duration = Duration::from_secs(9);
/// The time limit of a request, after which the sender asks another node.
const REQUEST: Duration = Duration::from_secs(4);
/// The number of requests that a sender sends to a node before it changes to the next one.
const PER_NODE: u64 = 10;
pub(super) const LEVELS: [&str; 4] = ["1m", "5m", "1h", "1d"];

pub(super) struct Cluster {
    pub(super) server: Server,
    pub(super) nodes: Vec<Daemon>,
}

impl Cluster {
    pub(super) fn start(settings: &str) -> Self {
        let server = Server::start();
        let nodes = (0..3).map(|_| start_node(server.port, settings)).collect();
        Self { server, nodes }
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    fn holder(&self) -> Option<usize> {
        self.nodes.iter().position(|node| {
            let metrics = request(&node.url, "GET", "/metrics", &[], "");
            metrics.is_ok_and(|(_, text)| {
                text.as_str().is_some_and(|text| text.contains("\ngranary_cluster_holds 1\n"))
            })
        })
    }

    fn wait_for_holder(&self) -> usize {
        wait_until("a holder", || self.holder().is_some());
        self.holder().unwrap()
    }

    /// Returns the sum of all points of a metric's chart, as this node answers.
    fn total(&self, node: usize, metric: &str, display: &str, level: &str) -> f64 {
        let args = ["chart", "--metric", metric, "--display", display, "--range", "1h"];
        let args = [&args[..], &["--resolution", level]].concat();
        let mut answer = None;
        // A node that does not know the present holder yet asks for a repetition.
        wait_until("an answer", || {
            let output = self.nodes[node].run_query(&args);
            answer = output.status.success().then_some(output.stdout);
            answer.is_some()
        });
        let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
        let points = answer["series"][0]["points"].as_array().unwrap();
        points.iter().filter_map(|point| point[1].as_f64()).sum()
    }

    fn check(&self, node: usize, batches: u64, writes: u64) {
        for level in LEVELS {
            let (deltas, gauges) = (
                self.total(node, "numbered", "total", level),
                self.total(node, "written", "count", level),
            );
            let expected = ((batches * SAMPLES) as f64, writes as f64);
            assert_eq!((deltas, gauges), expected, "{level} as node {node} answers");
        }
    }
}

fn start_node(mongodb: u16, settings: &str) -> Daemon {
    let mut node = Daemon::new(tempfile::tempdir().unwrap(), " ", "http", client());
    configure(&node, (mongodb, ""), settings);
    node.restart();
    node
}

/// Makes a daemon that does not run a node of a cluster, whose log is in a database of MongoDB; in
/// the default one without a name.
pub(super) fn configure(node: &Daemon, (mongodb, database): (u16, &str), settings: &str) {
    let settings = format!(
        "[cluster]\nuri = 'mongodb://127.0.0.1:{mongodb}/{database}?directConnection=true'\n\
         {settings}\n\
         advertise = '{}'\n[storage]\ncheckpoint_interval = '1s'\n",
        node.url
    );
    fs::write(node.dir.path().join("granary.toml"), settings).unwrap();
}

/// A sender, which changes between nodes, and repeats each request at the next node until it is
/// acknowledged.
struct Sender {
    thread: JoinHandle<u64>,
    acknowledged: Arc<AtomicU64>,
}

impl Sender {
    /// Starts a sender of numbered requests.
    fn start(
        urls: Vec<String>,
        stops: Arc<AtomicBool>,
        send: impl Fn(&ureq::Agent, &str, u64) -> bool + Send + 'static,
    ) -> Self {
        let acknowledged = Arc::new(AtomicU64::new(0));
        let count = acknowledged.clone();
        let thread = thread::spawn(move || {
            let config = ureq::Agent::config_builder().http_status_as_error(false);
            let agent: ureq::Agent = config.timeout_global(Some(REQUEST)).build().into();
            let (mut number, mut node) = (1, 0);
            while !stops.load(Ordering::SeqCst) {
                while !send(&agent, &urls[node], number) {
                    node = (node + 1) % urls.len();
                    thread::sleep(Duration::from_millis(20));
                }
                count.store(number, Ordering::SeqCst);
                number += 1;
                if number.is_multiple_of(PER_NODE) {
                    node = (node + 1) % urls.len();
                }
            }
            number - 1
        });
        Self { thread, acknowledged }
    }

    fn wait_for_more(&self) {
        let before = self.acknowledged.load(Ordering::SeqCst);
        // The request that waits during a fault may be acknowledged late.
        wait_until("samples", || self.acknowledged.load(Ordering::SeqCst) > before + 2);
    }
}

/// Posts batches; returns true when they were acknowledged.
pub(super) fn post_batches(agent: &ureq::Agent, url: &str, batches: &Value) -> bool {
    let sent = agent.post(format!("{url}/api/v1/ingest")).content_type("application/json");
    let Ok(mut response) = sent.send(batches.to_string()) else { return false };
    let status = response.status().as_u16();
    let Ok(text) = response.body_mut().read_to_string() else { return false };
    assert!(matches!(status, 200 | 429 | 503), "{status}: {text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(status != 200 || answer["refused"] == json!({}), "{answer}");
    status == 200
}

/// Posts series by remote write; returns true when they were acknowledged.
pub(super) fn post_write(agent: &ureq::Agent, url: &str, all: &[Vec<u8>]) -> bool {
    let body = snap::raw::Encoder::new().compress_vec(&write_request(all)).unwrap();
    let sent = agent.post(format!("{url}/api/v1/write")).content_type("application/x-protobuf");
    let Ok(mut response) = sent.header("Content-Encoding", "snappy").send(&body[..]) else {
        return false;
    };
    let status = response.status().as_u16();
    let Ok(text) = response.body_mut().read_to_string() else { return false };
    assert!(matches!(status, 200 | 204 | 503), "{status}: {text}");
    status != 503
}

fn send_batch(agent: &ureq::Agent, url: &str, number: u64) -> bool {
    let samples: Vec<_> =
        (0..SAMPLES).map(|_| json!({"metric": "numbered", "kind": "delta", "value": 1})).collect();
    let batch = json!({"agent": "sender", "epoch": 1, "seq": number, "samples": samples});
    post_batches(agent, url, &batch)
}

fn send_write(agent: &ureq::Agent, url: &str, start: i64, number: u64) -> bool {
    let sample = (start + number as i64 * 10, 1.0);
    post_write(agent, url, &[series(&[("__name__", "written")], &[sample])])
}

pub(super) fn signal(node: &Daemon, name: &str) {
    let pid = node.pid().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[expect(clippy::disallowed_methods, reason = "the test prints how long a takeover took")]
fn seconds_until(is_done: impl FnOnce()) -> f64 {
    let since = std::time::Instant::now();
    is_done();
    since.elapsed().as_secs_f64()
}

/// Interrupts a holder or MongoDB; returns the fault and the time without acknowledgements.
fn interrupt(
    cluster: &mut Cluster,
    holder: usize,
    round: u64,
    batches: &Sender,
) -> (&'static str, f64) {
    let wait = || seconds_until(|| batches.wait_for_more());
    match round % 4 {
        0 => {
            cluster.nodes[holder].kill();
            let seconds = wait();
            cluster.nodes[holder].restart();
            ("kill", seconds)
        }
        1 => {
            assert_eq!(cluster.nodes[holder].stop(), Some(0), "{}", cluster.nodes[holder].log());
            let seconds = wait();
            cluster.nodes[holder].restart();
            ("clean stop", seconds)
        }
        2 => {
            signal(&cluster.nodes[holder], "-STOP");
            let seconds = wait();
            thread::sleep(STOP.saturating_sub(Duration::from_secs_f64(seconds)));
            signal(&cluster.nodes[holder], "-CONT");
            ("stop longer than the lease", seconds)
        }
        _ => {
            cluster.server.kill();
            thread::sleep(Duration::from_secs(3));
            let seconds = seconds_until(|| {
                cluster.server.restart();
                batches.wait_for_more();
            });
            ("kill of MongoDB", seconds + 3.0)
        }
    }
}

/// Sends batches and writes while holders, chosen for each round by `node_of`, and MongoDB are
/// interrupted. Returns the numbers of acknowledged batches and writes.
pub(super) fn send_through_faults(
    cluster: &mut Cluster,
    send_batch: impl Fn(&ureq::Agent, &str, u64) -> bool + Send + 'static,
    send_write: impl Fn(&ureq::Agent, &str, u64) -> bool + Send + 'static,
    node_of: impl Fn(&Cluster, u64) -> usize,
) -> (u64, u64) {
    let stops = Arc::new(AtomicBool::new(false));
    let batches = Sender::start(cluster.urls(), stops.clone(), send_batch);
    let writes = Sender::start(cluster.urls(), stops.clone(), send_write);
    let rounds = std::env::var("GRANARY_CLUSTER_ROUNDS").ok().and_then(|text| text.parse().ok());
    for round in 0..rounds.unwrap_or(ROUNDS) {
        batches.wait_for_more();
        writes.wait_for_more();
        let node = node_of(cluster, round);
        let (fault, seconds) = interrupt(cluster, node, round, &batches);
        eprintln!("{fault}: {seconds:.1} s without acknowledgements");
        for node in &cluster.nodes {
            let is_ready = || {
                request(&node.url, "GET", "/readyz", &[], "").is_ok_and(|(status, _)| status == 200)
            };
            wait_until("all nodes to be ready", is_ready);
        }
    }
    batches.wait_for_more();
    writes.wait_for_more();
    stops.store(true, Ordering::SeqCst);
    let (batches, writes) = (batches.thread.join().unwrap(), writes.thread.join().unwrap());
    eprintln!("{batches} batches and {writes} writes were acknowledged");
    (batches, writes)
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn each_acknowledged_sample_counts_once_whatever_is_killed_or_stopped() {
    let mut cluster = Cluster::start("replicas = 3");
    let start = minute();
    let write = move |agent: &ureq::Agent, url: &str, number| send_write(agent, url, start, number);
    let node_of = |cluster: &Cluster, _| cluster.wait_for_holder();
    let (batches, writes) = send_through_faults(&mut cluster, send_batch, write, node_of);
    for node in 0..cluster.nodes.len() {
        cluster.check(node, batches, writes);
    }
    // Each replica answers as the holder.
    for _ in 1..cluster.nodes.len() {
        let holder = cluster.wait_for_holder();
        cluster.check(holder, batches, writes);
        let mut stopped = cluster.nodes.remove(holder);
        assert_eq!(stopped.stop(), Some(0), "{}", stopped.log());
        let verified = stopped.verify();
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    }
    let last = cluster.wait_for_holder();
    cluster.check(last, batches, writes);
}

/// Runs a script of faults against three nodes; their disks must be equal afterwards.
fn run_faults(options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let secantus = python().get_program().to_owned();
    let secantus = Path::new(&secantus).with_file_name("secantusd-py");
    let rounds = std::env::var("GRANARY_CLUSTER_ROUNDS").unwrap_or_else(|_| "11".to_owned());
    let mut command = python();
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cluster_faults.py"));
    command.args(["--granary", env!("CARGO_BIN_EXE_granary"), "--rounds", &rounds]);
    command.arg("--secantus").arg(secantus).arg("--dir").arg(dir.path()).args(options);
    let output = command.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    eprintln!("{out}");
    assert!(output.status.success(), "{err}");
    let now = UnixMillis(jiff::Timestamp::now().as_millisecond());
    let digests = ["0", "1", "2"].map(|node| {
        let medium = Arc::new(Folder::new(&dir.path().join(node).join("data")).unwrap());
        Replica::open(medium, None, now).unwrap().0.digest(now).unwrap()
    });
    for other in &digests[1..] {
        digests[0].compare(other).unwrap();
    }
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn cuts_delays_lost_disks_and_strikes_lose_nothing_and_every_answer_is_right() {
    run_faults(&[]);
}

#[test]
#[ignore = "needs secantusdb and nginx; .ci/run installs them and runs this"]
fn encrypted_nodes_with_keys_behind_a_load_balancer_lose_nothing() {
    need("nginx");
    run_faults(&["--tls", "--nginx", "--seed", "2"]);
}
