//! Nodes of a cluster whose disks are new, lost or damaged, and the commands of their operator.

use std::{fs, process::Output, sync::Arc};

use granary::{
    model::UnixMillis,
    store::{Folder, Replica, StoreDigest},
};
use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client, granary},
    remote_write::{minute, request, series},
};

#[path = "../replicas/server.rs"]
#[allow(dead_code, reason = "the tests of tests/replicas use more of it")]
mod server;

mod origin;

use server::{Server, wait_until};

/// The time limit of each wait in seconds.
const WAIT_SECONDS: u64 = 60;

/// Three nodes on a server, each with a replica.
struct Cluster {
    server: Server,
    nodes: Vec<Daemon>,
    rounds: i64,
}

impl Cluster {
    fn new() -> Self {
        Self { server: Server::start(), nodes: Vec::new(), rounds: 0 }
    }

    /// Creates a node, which does not run yet.
    fn add(&mut self) -> usize {
        let dir = tempfile::tempdir().unwrap();
        let node = Daemon::new(dir, "# below", "http", client());
        self.nodes.push(node);
        self.set_replicas(self.nodes.len() - 1, 3);
        self.nodes.len() - 1
    }

    /// Writes the settings of a node.
    fn set_replicas(&self, node: usize, replicas: usize) {
        let node = &self.nodes[node];
        let settings = format!(
            "[cluster]\nuri = '{}'\nadvertise = '{}'\nreplicas = {replicas}\n\
             [storage]\ncheckpoint_interval = '1s'\n\
             [ingest]\nha_senders = {{ 'remote_write ' = '30s' }}\n",
            self.server.uri(),
            node.url
        );
        fs::write(node.dir.path().join("granary.toml"), settings).unwrap();
    }

    fn start(&mut self) -> usize {
        let node = self.add();
        self.nodes[node].restart();
        node
    }

    /// Returns the name of a node.
    fn name(&self, node: usize) -> String {
        let port = self.nodes[node].url.rsplit(':').next().unwrap().to_owned();
        format!("127_0_0_1-{port}")
    }

    fn command(&self, node: usize, args: &[&str]) -> Output {
        let mut command = granary();
        command.arg("cluster").args(args).args(["--url", &self.nodes[node].url]);
        command.output().unwrap()
    }

    fn succeed(&self, node: usize, args: &[&str]) -> String {
        let output = self.command(node, args);
        let log = || self.nodes[node].log();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {stderr}\n{}", log());
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self, node: usize) -> Option<Value> {
        let output = self.command(node, &["status", "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    fn row<'a>(&self, status: &'a Value, node: usize) -> Option<&'a Value> {
        let name = self.name(node);
        status["nodes"].as_array().unwrap().iter().find(|row| row["node"] == *name)
    }

    fn holder(&self) -> usize {
        let status = self.status(0).or_else(|| self.status(1)).unwrap();
        (0..self.nodes.len()).find(|node| status["holder"] == self.name(*node)).unwrap()
    }

    /// Sends samples to a node.
    fn write(&mut self, node: usize) {
        self.rounds += 1;
        let samples = (0..50).map(|index: i64| {
            let time = UnixMillis(jiff::Timestamp::now().as_millisecond() - index * 60_000);
            let tags = json!({"host": format!("web{}", index % 7)});
            let value = self.rounds * 100 + index;
            json!({"metric": "load", "tags": tags, "time": time.0, "value": value})
        });
        self.nodes[node].accept(&samples.collect());
    }

    /// Waits until the disks of these nodes have the whole log.
    fn settle(&self, nodes: &[usize]) {
        wait_until("the disks of all members", WAIT_SECONDS, || {
            let Some(status) = self.status(nodes[0]) else { return false };
            nodes
                .iter()
                .all(|node| self.row(&status, *node).is_some_and(|row| row["lag_records"] == 0))
        });
    }

    /// Waits until the log has no record that was written before.
    fn cut(&self, node: usize) {
        wait_until("the cut of the log", WAIT_SECONDS, || {
            let status = self.status(node);
            status.is_some_and(|status| status["cut"] == status["last_record"])
        });
    }

    /// Kills these nodes, and compares their disks.
    fn compare(&mut self, nodes: &[usize]) {
        self.settle(nodes);
        for node in nodes {
            self.nodes[*node].kill();
        }
        let now = UnixMillis(jiff::Timestamp::now().as_millisecond());
        let digests: Vec<StoreDigest> = nodes
            .iter()
            .map(|node| {
                let medium = Arc::new(Folder::new(&self.nodes[*node].data("")).unwrap());
                Replica::open(medium, None, now).unwrap().0.digest(now).unwrap()
            })
            .collect();
        for other in &digests[1..] {
            digests[0].compare(other).unwrap();
        }
        assert!(digests[0].applied() > 3, "{digests:?}");
    }
}

fn received(cluster: &Cluster, node: usize) -> usize {
    cluster.nodes[node].log().matches("received a copy of the replica").count()
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn new_and_wiped_nodes_copy_a_replica_when_the_log_was_cut() {
    let mut cluster = Cluster::new();
    let (a, b) = (cluster.start(), cluster.start());
    for _ in 0..3 {
        cluster.write(a);
        cluster.write(b);
    }
    cluster.settle(&[a, b]);
    cluster.cut(a);
    // A node with an empty disk joins after the log was cut.
    let c = cluster.start();
    cluster.write(c);
    cluster.settle(&[a, b, c]);
    assert_eq!(received(&cluster, c), 1, "{}", cluster.nodes[c].log());
    // A node that follows loses its disk.
    let holder = cluster.holder();
    let wiped = if holder == b { c } else { b };
    cluster.nodes[wiped].kill();
    fs::remove_dir_all(cluster.nodes[wiped].data("")).unwrap();
    cluster.write(holder);
    cluster.nodes[wiped].restart();
    cluster.write(holder);
    cluster.settle(&[a, b, c]);
    assert_eq!(received(&cluster, wiped), 1, "{}", cluster.nodes[wiped].log());
    // A node whose disk was damaged replaces its replica.
    cluster.nodes[wiped].kill();
    let head = cluster.nodes[wiped].data("head.redb");
    fs::write(head, [7; 8192]).unwrap();
    cluster.write(holder);
    cluster.nodes[wiped].restart();
    cluster.settle(&[a, b, c]);
    assert_eq!(received(&cluster, wiped), 1, "{}", cluster.nodes[wiped].log());
    cluster.compare(&[a, b, c]);
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn an_operator_hands_over_seeds_and_strikes() {
    let mut cluster = Cluster::new();
    let (a, b) = (cluster.start(), cluster.start());
    for _ in 0..4 {
        cluster.write(b);
    }
    cluster.settle(&[a, b]);
    cluster.cut(a);
    let text = cluster.succeed(b, &["status"]);
    for part in [cluster.name(a), cluster.name(b), "holder".to_owned(), "records kept".to_owned()] {
        assert!(text.contains(&part), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");

    let before = cluster.holder();
    let after = if before == a { b } else { a };
    let text = cluster.succeed(a, &["hand-over"]);
    assert_eq!(text.trim(), format!("{} holds the store now", cluster.name(after)));
    cluster.write(before);

    // The node that handed over copies its replica anew; the holder refuses to.
    let refused = cluster.command(a, &["seed", &cluster.name(after)]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("hand over first"), "{text}");
    cluster.settle(&[a, b]);
    cluster.cut(a);
    let text = cluster.succeed(a, &["seed", &cluster.name(before)]);
    assert!(text.contains("copies its replica anew"), "{text}");
    wait_until("the copy", WAIT_SECONDS, || received(&cluster, before) == 1);
    cluster.write(before);
    cluster.settle(&[a, b]);

    // Requests between nodes need the secret.
    for path in ["snapshot", "seed"] {
        let url = format!("{}/cluster/v1/{path}", cluster.nodes[after].url);
        let agent = client();
        let status = match path {
            "seed" => agent.post(&url).header("Authorization", "Bearer 1").send_empty(),
            _ => agent.get(&url).call(),
        };
        assert_eq!(status.unwrap().status().as_u16(), 401, "{path}");
    }

    // A lost node holds back the log until it is struck.
    cluster.nodes[before].kill();
    cluster.write(after);
    let name = cluster.name(before);
    let text = cluster.succeed(after, &["strike", &name]);
    assert_eq!(text.trim(), format!("{name} is no member any more"));
    cluster.cut(after);
    cluster.nodes[before].restart();
    cluster.settle(&[after, before]);
    cluster.compare(&[after, before]);
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn a_sender_has_the_same_name_at_each_node() {
    let mut cluster = Cluster::new();
    let nodes = [cluster.start(), cluster.start()];
    cluster.write(nodes[0]);
    cluster.settle(&nodes);
    // Two servers send the same series, through a proxy on this machine.
    let start = minute();
    for number in 0..20 {
        let (sender, url) = (number % 2, &cluster.nodes[nodes[number / 2 % 2]].url);
        let sample = (start + number as i64 * 1000, 1.0);
        let body = request(&[series(&[("__name__", "twice")], &[sample])]);
        let body = snap::raw::Encoder::new().compress_vec(&body).unwrap();
        let sent = client().post(format!("{url}/api/v1/write"));
        let sent = sent.content_type("application/x-protobuf").header("Content-Encoding", "snappy");
        let sent = sent.header("X-Forwarded-For", format!("10.0.3.{sender}")).send(&body[..]);
        assert!(sent.unwrap().status().is_success());
    }
    for node in nodes {
        let args = ["chart", "--metric", "twice", "--display", "count", "--range", "1h"];
        let chart = cluster.nodes[node].query(&[&args[..], &["--resolution", "1m"]].concat());
        let points = chart["series"][0]["points"].as_array().unwrap();
        let count: f64 = points.iter().filter_map(|point| point[1].as_f64()).sum();
        assert_eq!(count, 10.0, "as node {node} answers");
    }
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn a_cluster_is_restored_from_a_snapshot() {
    let mut lost = Cluster::new();
    let node = lost.start();
    lost.nodes[node].accept(&json!([{"metric": "before", "value": 17}]));
    let url = lost.nodes[node].url.clone();
    let output = granary().args(["snapshot", "--url", &url]).output().unwrap();
    let snapshot = String::from_utf8(output.stdout).unwrap();
    lost.nodes[node].kill();

    // The log begins after the snapshot, in an empty database.
    let mut cluster = Cluster::new();
    let first = cluster.add();
    let mut restore = granary();
    restore.args(["restore", snapshot.trim(), "--data-dir"]).arg(cluster.nodes[first].data(""));
    let output = restore.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cluster.nodes[first].restart();
    let second = cluster.start();
    cluster.write(second);
    cluster.settle(&[first, second]);
    assert_eq!(received(&cluster, second), 1, "{}", cluster.nodes[second].log());
    let args = ["chart", "--metric", "before", "--range", "3h", "--resolution", "1m"];
    let chart = cluster.nodes[second].query(&args).to_string();
    assert!(chart.contains("17"), "{chart}");
    cluster.compare(&[first, second]);
}

#[test]
fn an_embedded_daemon_says_that_it_is_no_node() {
    let daemon = Daemon::start("");
    let mut command = granary();
    let output = command.args(["cluster", "status", "--url", &daemon.url]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("no node of a cluster"), "{text}");
}
