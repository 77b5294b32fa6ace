//! Databases and processes that do not belong together: another log, an older state of the log, and
//! two processes with the name of one node.

use std::{fs, path::Path};

use super::{Cluster, Server, WAIT_SECONDS, wait_until};
use crate::daemon::request;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Waits until a node is not ready for a reason.
fn wait_for_reason(cluster: &Cluster, node: usize, reason: &str) {
    let url = &cluster.nodes[node].url;
    wait_until(reason, WAIT_SECONDS, || {
        let answer = request(url, "GET", "/readyz", &[], "");
        answer.is_ok_and(|(status, body)| status == 503 && body.to_string().contains(reason))
    });
}

fn wait_until_ready(cluster: &Cluster, node: usize) {
    let url = &cluster.nodes[node].url;
    wait_until("a ready node", WAIT_SECONDS, || {
        request(url, "GET", "/readyz", &[], "").is_ok_and(|(status, _)| status == 200)
    });
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn a_replica_refuses_a_log_that_is_older() {
    let mut cluster = Cluster::new();
    let nodes = [cluster.start(), cluster.start()];
    cluster.write(nodes[0]);
    cluster.settle(&nodes);
    let (backup, newest) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let database = cluster.server.dir.path().join("db");
    cluster.server.kill();
    copy(&database, backup.path());
    cluster.server.restart();
    for node in nodes {
        wait_until_ready(&cluster, node);
    }
    for _ in 0..3 {
        cluster.write(nodes[1]);
    }
    cluster.settle(&nodes);
    for node in nodes {
        cluster.nodes[node].kill();
    }
    cluster.server.kill();
    copy(&database, newest.path());
    let replace = |cluster: &mut Cluster, by: &Path| {
        cluster.server.kill();
        fs::remove_dir_all(&database).unwrap();
        copy(by, &database);
        cluster.server.restart();
    };
    replace(&mut cluster, backup.path());
    for node in nodes {
        cluster.nodes[node].spawn();
    }
    for node in nodes {
        wait_for_reason(&cluster, node, "is older than this replica");
        let log = cluster.nodes[node].log();
        assert!(!log.contains("this node holds the store"), "{log}");
    }
    // With the newest state, the nodes continue by themselves.
    replace(&mut cluster, newest.path());
    for node in nodes {
        wait_until_ready(&cluster, node);
    }
    cluster.write(nodes[0]);
    cluster.compare(&nodes);
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn a_replica_refuses_another_log() {
    let mut cluster = Cluster::new();
    let node = cluster.start();
    cluster.write(node);
    cluster.settle(&[node]);
    cluster.nodes[node].stop();
    let first = std::mem::replace(&mut cluster.server, Server::start());
    cluster.set_replicas(node, 3);
    cluster.nodes[node].spawn();
    wait_for_reason(&cluster, node, "the database has no log, but this replica belongs to log");
    // Another node founds a log there.
    let other = cluster.start();
    cluster.write(other);
    wait_for_reason(&cluster, node, "and the database has log");
    let (status, body) =
        request(&cluster.nodes[node].url, "GET", "/api/v1/hosts", &[], "").unwrap();
    assert_eq!(status, 503, "no request is forwarded to another cluster: {body}");
    cluster.nodes[node].stop();
    // In its own database, it continues.
    cluster.server = first;
    cluster.set_replicas(node, 3);
    cluster.nodes[node].restart();
    cluster.write(node);
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn a_name_has_one_process_and_differing_rules_are_reported() {
    let mut cluster = Cluster::new();
    let (a, b) = (cluster.start(), cluster.start());
    let double = cluster.add();
    let settings = cluster.nodes[double].dir.path().join("granary.toml");
    let text = fs::read_to_string(&settings).unwrap();
    let text = text.replace(&cluster.nodes[double].url, &cluster.nodes[b].url);
    fs::write(&settings, text).unwrap();
    cluster.nodes[double].spawn();
    wait_until("the refusal", WAIT_SECONDS, || {
        cluster.nodes[double].log().contains("another process runs as the node")
    });
    wait_until_ready(&cluster, b);
    // A restart of the node itself is not delayed.
    cluster.nodes[b].kill();
    cluster.nodes[b].restart();

    let rules = cluster.nodes[b].dir.path().join("rules.yml");
    fs::write(&rules, "groups: []").unwrap();
    let settings = cluster.nodes[b].dir.path().join("granary.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("{text}[alerts]\nrules = ['{}']\n", rules.display())).unwrap();
    assert_eq!(cluster.nodes[b].stop(), Some(0));
    cluster.nodes[b].restart();
    for node in [a, b] {
        wait_until("the metric", WAIT_SECONDS, || {
            let text = cluster.nodes[node].metrics();
            text.contains("\ngranary_cluster_nodes_with_other_rules 1\n")
        });
    }
}
