//! Three real nodes with several shards of one store: kills, stops longer than a lease, ordered
//! stops, and kills of MongoDB. Each acknowledged sample counts once, as every node answers.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use super::{
    cluster::{Cluster, LEVELS, configure, post_batches, post_write, send_through_faults, signal},
    mongodb::Server,
    wait_until,
};
use crate::{
    daemon::{Daemon, client, granary, request},
    remote_write::{minute, series},
};

/// The number of series of each sender, which are in all shards.
const SERIES: u64 = 16;
const SHARDS: u64 = 4;

/// Sends a batch of each of several agents in one request.
fn send_batches(agent: &ureq::Agent, url: &str, number: u64) -> bool {
    let batch = |sender: u64| {
        let tags = json!({"host": format!("h{sender}")});
        let sample = json!({"metric": "numbered", "kind": "delta", "value": 1, "tags": tags});
        json!({"agent": format!("a{sender}"), "epoch": 1, "seq": number, "samples": [sample]})
    };
    post_batches(agent, url, &Value::Array((0..SERIES).map(batch).collect()))
}

fn send_write(agent: &ureq::Agent, url: &str, start: i64, number: u64) -> bool {
    let at = start + number as i64 * 10;
    let names: Vec<_> = (0..SERIES).map(|index| format!("s{index}")).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| series(&[("__name__", "written"), ("name", name)], &[(at, 1.0)]))
        .collect();
    post_write(agent, url, &all)
}

/// Returns the value of an instant query, as a node answers.
fn value(url: &str, query: &str) -> f64 {
    let query = query.replace('[', "%5B").replace(']', "%5D");
    let path = format!("/api/v1/query?query={query}");
    let mut found = None;
    wait_until("an answer of all shards", || {
        let (status, answer) = request(url, "GET", &path, &[], "").unwrap();
        assert!(matches!(status, 200 | 503), "{status}: {answer}");
        let text = answer["data"]["result"][0]["value"][1].as_str();
        if text.is_none() {
            eprintln!("{status}: {answer}");
        }
        found = text.and_then(|text| text.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

/// Returns the number of lines of a chart and the sum of all their points, as a node answers.
fn total(node: &Daemon, metric: &str, display: &str, level: &str) -> (u64, f64) {
    total_of(node, &[metric, "--display", display, "--resolution", level])
}

/// Returns the number of lines of a chart and the sum of all their points. The first argument is
/// the metric.
fn total_of(node: &Daemon, args: &[&str]) -> (u64, f64) {
    let args = [&["chart", "--range", "1h", "--metric"], args].concat();
    let mut answer = None;
    wait_until("a chart of all shards", || {
        let output = node.run_query(&args);
        answer = output.status.success().then_some(output.stdout);
        answer.is_some()
    });
    let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
    let lines = answer["series"].as_array().unwrap();
    let points = lines.iter().flat_map(|line| line["points"].as_array().unwrap());
    (lines.len() as u64, points.filter_map(|point| point[1].as_f64()).sum())
}

/// Merged and ranked lines have the series of all shards.
fn check_charts(node: &Daemon, batches: u64, writes: u64) {
    for (metric, display, requests) in
        [("numbered", "total", batches), ("written", "count", writes)]
    {
        let shown = |args: &[&str], series: u64| {
            let all = (series * requests) as f64;
            let metric = [&[metric, "--resolution", "1h", "--display", display], args].concat();
            let (lines, sum) = total_of(node, &metric);
            assert_eq!(sum, all, "{metric:?}");
            lines
        };
        assert_eq!(shown(&["--merge"], SERIES), 1);
        assert_eq!(shown(&["--top", "3"], 3), 3);
        let tag = if metric == "numbered" { "host" } else { "name" };
        assert_eq!(shown(&["--group-by", tag, "--bottom", "20"], SERIES), SERIES);
    }
    let query = "count(topk(3,count_over_time(written[1h])))";
    assert_eq!(value(&node.url, query), 3.0);
    let query = "avg(count_over_time(written[1h]))";
    assert_eq!(value(&node.url, query), writes as f64);
}

fn holders(url: &str) -> Vec<Option<String>> {
    let mut found = Vec::new();
    wait_until("the state of the cluster", || {
        let Ok((200, status)) = request(url, "GET", "/api/v1/cluster/status", &[], "") else {
            return false;
        };
        let shards = status["shards"].as_array().unwrap().clone();
        let holder = |shard: &Value| shard["holder"].as_str().map(str::to_owned);
        found = shards.iter().map(holder).collect();
        found.len() == SHARDS as usize
    });
    found
}

/// Each shard's store has its metrics on the node that holds it, below one description.
fn check_metrics(cluster: &Cluster) {
    let shards = || -> u64 {
        let of_node = |node: &Daemon| {
            let (_, text) = request(&node.url, "GET", "/metrics", &[], "").unwrap();
            let text = text.as_str().unwrap();
            let mut described: Vec<_> =
                text.lines().filter(|line| line.starts_with("# HELP")).collect();
            let count = described.len();
            described.sort_unstable();
            described.dedup();
            assert_eq!(described.len(), count, "{text}");
            let series = text.lines().filter_map(|line| line.strip_prefix("granary_series{shard="));
            let series = series.map(|rest| rest.split(' ').next_back().unwrap().parse::<u64>());
            series.map(|count| u64::from(count.unwrap() > 0)).sum::<u64>()
        };
        cluster.nodes.iter().map(of_node).sum()
    };
    // The first shard has no label.
    wait_until("the metrics of all shards", || shards() == SHARDS - 1);
}

/// The lists of the page and of other programs have the series of all shards.
fn check_lists(node: &Daemon) {
    // On a busy machine, a node can lose a lease: then the answer says that it can be requested again.
    let answer = |path: &str| {
        let mut found = (503, Value::Null);
        wait_until("an answer of all shards", || {
            found = request(&node.url, "GET", path, &[], "").unwrap();
            found.0 != 503
        });
        assert_eq!(found.0, 200, "{path}: {}", found.1);
        found.1
    };
    let moved = answer("/api/v1/moved?metric=numbered&range=20m");
    assert_eq!(moved["compared"], SERIES, "{moved}");
    assert_eq!(answer("/api/v1/hosts/sparklines")["points"], 60);
    let counted = answer("/api/v1/cardinality");
    let metrics = counted["metrics"].as_array().unwrap();
    let numbered = metrics.iter().find(|metric| metric["name"] == "numbered");
    assert_eq!(numbered.unwrap()["count"], SERIES, "{counted}");
    let federated = answer("/federate?match%5B%5D=numbered");
    let lines = federated.as_str().unwrap().lines();
    let lines = lines.filter(|line| line.starts_with("numbered{"));
    assert_eq!(lines.count() as u64, SERIES, "{federated}");
    let drawn = answer("/render?target=seriesByTag(%27name=numbered%27)&from=-1h");
    assert_eq!(drawn.as_array().unwrap().len() as u64, SERIES, "{drawn}");
    let listed = answer("/api/v1/senders?prefix=a");
    assert_eq!(listed["total"], SERIES, "{listed}");
    let all = listed["senders"].as_array().unwrap();
    assert!(all.iter().all(|sender| sender["series"] == 1 && sender["heard"].as_i64() > Some(0)));
    for form in ["nested", "levels"] {
        let path = format!("/api/v1/documents?metric=numbered&range=20m&form={form}");
        let documents = answer(&path)["documents"].as_array().unwrap().clone();
        let hosts: BTreeSet<_> =
            documents.iter().map(|document| document["tags"].to_string()).collect();
        assert_eq!(hosts.len() as u64, SERIES, "{path} {documents:?}");
    }
    let status = answer("/api/v1/status/tsdb?limit=100");
    let metrics = status["data"]["seriesCountByMetricName"].as_array().unwrap();
    for metric in ["numbered", "written"] {
        assert!(metrics.contains(&json!({"name": metric, "value": SERIES})), "{status}");
    }
    let (status, refused) = request(&node.url, "GET", "/api/v1/tail", &[], "").unwrap();
    assert_eq!((status, &refused["error"]), (501, &json!("several_shards")), "{refused}");
}

/// An export has all series, with all of their samples, as each level stores them.
fn check_export(node: &Daemon, batches: u64, writes: u64) {
    for (metric, requests) in [("numbered", batches), ("written", writes)] {
        for level in LEVELS {
            let mut command = granary();
            command.args(["export", "--url", &node.url, "--metric", metric, "--range", "1h"]);
            command.args(["--resolution", level, "--format", "jsonl", "--output", "-"]);
            let mut exported = None;
            wait_until("an export of all shards", || {
                let output = command.output().unwrap();
                exported = output.status.success().then_some(output);
                exported.is_some()
            });
            let output = exported.unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            let documents = String::from_utf8(output.stdout).unwrap();
            let documents: Vec<Value> =
                documents.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let series: BTreeSet<_> =
                documents.iter().map(|document| document["tags"].to_string()).collect();
            let samples =
                documents.iter().map(|document| document["num_samples"].as_u64().unwrap());
            let found = (series.len() as u64, samples.sum::<u64>());
            assert_eq!(found, (SERIES, SERIES * requests), "{metric} {level} {errors}");
        }
    }
}

/// A reload of a node that follows the first shard reaches the shards that it holds.
fn check_reload(cluster: &Cluster) {
    let name =
        |node: &Daemon| node.url.trim_start_matches("http://").replace('.', "_").replace(':', "-");
    let mut holder = None;
    // After faults, one node may hold all shards until others take some of them.
    wait_until("a node that follows the first shard and holds another", || {
        let all = holders(&cluster.nodes[0].url);
        let holds = |node: &Daemon, shard: &Option<String>| shard.as_deref() == Some(&*name(node));
        holder = cluster
            .nodes
            .iter()
            .find(|node| !holds(node, &all[0]) && all[1..].iter().any(|shard| holds(node, shard)));
        holder.is_some()
    });
    let node = holder.unwrap();
    let path = node.dir.path().join("granary.toml");
    let settings = fs::read_to_string(&path).unwrap();
    // The first node may be the one whose server starts anew with its settings.
    let status = || {
        let path = "/api/v1/query?query=count(sort(%7B__name__%3D~%22numbered%7Cwritten%22%7D))";
        request(&cluster.nodes[0].url, "GET", path, &[], "").ok()
    };
    fs::write(&path, format!("{settings}[limits]\nquery_points_max = 40\n")).unwrap();
    signal(node, "-HUP");
    wait_until("the limit of a shard", || {
        status().is_some_and(|(status, answer)| {
            status == 422 && answer.to_string().contains("more than 1 series match")
        })
    });
    fs::write(&path, settings).unwrap();
    signal(node, "-HUP");
    wait_until("the old limit", || status().is_some_and(|(status, _)| status == 200));
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn each_acknowledged_sample_counts_once_in_all_shards() {
    let mut cluster = Cluster::start(&format!("replicas = 2\nshards = {SHARDS}"));
    let start = minute();
    let write = move |agent: &ureq::Agent, url: &str, number| send_write(agent, url, start, number);
    let node_of = |_: &Cluster, round| (round % 3) as usize;
    let (batches, writes) = send_through_faults(&mut cluster, send_batches, write, node_of);
    for node in &cluster.nodes {
        eprintln!("holders: {:?}", holders(&node.url));
        let counted = value(&node.url, "sum(sum_over_time(numbered[1h]))");
        let written = value(&node.url, "sum(count_over_time(written[1h]))");
        assert_eq!((counted, written), ((batches * SERIES) as f64, (writes * SERIES) as f64));
        assert_eq!(value(&node.url, "count(numbered)"), SERIES as f64);
        for level in LEVELS {
            let expected = |requests: u64| (SERIES, (requests * SERIES) as f64);
            assert_eq!(total(node, "numbered", "total", level), expected(batches), "{level}");
            assert_eq!(total(node, "written", "count", level), expected(writes), "{level}");
        }
        check_charts(node, batches, writes);
        let (_, found) = request(&node.url, "GET", "/api/v1/find?q=numb", &[], "").unwrap();
        assert_eq!(found["metrics"][0]["series"], SERIES, "{found}");
        let path = "/api/v1/facets?metric=numbered";
        let (_, found) = request(&node.url, "GET", path, &[], "").unwrap();
        let tag = &found["tags"][0];
        assert_eq!((&found["series"], &tag["values_total"]), (&json!(SERIES), &json!(SERIES)));
        let path = "/api/v1/series?metric=written";
        let (_, found) = request(&node.url, "GET", path, &[], "").unwrap();
        let listed = found["series"].as_array().unwrap().len() as u64;
        assert_eq!((&found["total"], listed), (&json!(SERIES), SERIES), "{found}");
        let (_, found) = request(&node.url, "GET", "/api/v1/metadata", &[], "").unwrap();
        assert!(found["data"]["numbered"].is_array(), "{found}");
        let (status, _) = request(&node.url, "GET", "/api/v1/hosts", &[], "").unwrap();
        assert_eq!(status, 200);
        let (_, names) = request(&node.url, "GET", "/api/v1/label/name/values", &[], "").unwrap();
        assert_eq!(names["data"].as_array().unwrap().len(), SERIES as usize, "{names}");
        check_lists(node);
        check_export(node, batches, writes);
    }
    check_metrics(&cluster);
    check_reload(&cluster);
}

/// Returns a stopped daemon whose embedded store was migrated to that of a node.
fn migrated() -> Daemon {
    let mut daemon = Daemon::new(tempfile::tempdir().unwrap(), " ", "http", client());
    daemon.restart();
    let sample = json!({"metric": "numbered", "kind": "delta", "value": 7});
    let batch = json!({"agent": "a", "epoch": 1, "seq": 1, "samples": [sample]});
    assert_eq!(daemon.post_json(&batch).status, 200);
    assert_eq!(daemon.stop(), Some(0));
    let migrated = granary().args(["migrate", "--to", "cluster"]).arg(daemon.data("")).output();
    assert!(migrated.unwrap().status.success());
    daemon
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn a_migrated_store_begins_a_cluster_with_one_shard_and_joins_none_with_several() {
    let server = Server::start();
    let settings = "replicas = 1\nshards = 4";
    let mut first = migrated();
    configure(&first, (server.port, ""), settings);
    first.restart();
    assert!(first.log().contains("cluster.shards = 4 has no effect"), "{}", first.log());
    assert_eq!(value(&first.url, "sum_over_time(numbered[1h])"), 7.0);
    let (_, status) = request(&first.url, "GET", "/api/v1/cluster/status", &[], "").unwrap();
    assert_eq!(status["shards"].as_array().unwrap().len(), 1, "{status}");
    // The number stays when the directory belongs to the cluster.
    assert_eq!(first.stop(), Some(0));
    first.restart();
    assert_eq!(value(&first.url, "sum_over_time(numbered[1h])"), 7.0);
    drop(first);

    let others = (server.port, "granary-others");
    let mut other = Daemon::new(tempfile::tempdir().unwrap(), " ", "http", client());
    configure(&other, others, settings);
    other.restart();
    let mut second = migrated();
    configure(&second, others, settings);
    let log = second.expect_failed_start();
    assert!(log.contains("the database has 4: name an empty database in cluster.uri"), "{log}");
    // The refused store began no log: it can begin that of an empty database.
    configure(&second, (server.port, "granary-empty"), settings);
    second.restart();
    assert_eq!(value(&second.url, "sum_over_time(numbered[1h])"), 7.0);
}
