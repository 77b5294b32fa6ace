//! Native histograms of the StatsD agent and of numbered batches in the real daemon.

use std::{
    net::UdpSocket,
    process::{Command, Stdio},
};

use granary_histogram::Histogram;
use granary_protocol::{
    BSON_MEDIA_TYPE, Batch, Kind, PACKED_MEDIA_TYPE, SeriesDefinition, encode_batch, pack,
    push_histogram,
};
use serde_json::json;

use crate::{
    daemon::{Daemon, agent_program},
    peers::wait_until,
    prometheus_api::post,
};

/// Returns the value of an instant query at the present time.
fn query_value(daemon: &Daemon, query: &str) -> Option<f64> {
    let (status, body) = post(daemon, "/api/v1/query", &[("query", query)]);
    assert_eq!(status, 200, "{body}");
    body["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

/// Returns the number of stored observations of a metric.
fn observations(daemon: &Daemon, metric: &str) -> f64 {
    let args = ["chart", "--display", "total", "--range", "2d", "--resolution", "1d", "--metric"];
    let answer = daemon.query(&[&args[..], &[metric]].concat());
    let points = answer["series"][0]["points"].as_array();
    points.into_iter().flatten().filter_map(|point| point[1].as_f64()).sum()
}

#[test]
fn quantiles_of_statsd_timers_are_within_one_percent() {
    let daemon = Daemon::start("");
    let spool = tempfile::tempdir().unwrap();
    let free_socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free_socket.local_addr().unwrap();
    drop(free_socket);
    let mut command = Command::new(agent_program("granary-agent-statsd"));
    command.args(["--url", &daemon.url, "--interval", "1s", "--agent-id", "statsd-test"]);
    command.args(["--statsd-listen", &address.to_string(), "--spool-dir"]).arg(spool.path());
    let mut agent = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_series = |metric: &str| daemon.query(&["series", "--metric", metric])["total"] != 0;
    wait_until("the agent", || has_series("statsd_lines_total"));
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (page, values) in [("home", 1..501), ("cart", 501..1001)] {
        for value in values {
            let line = format!("wait:{value}|ms|#page:{page}");
            sender.send_to(line.as_bytes(), address).unwrap();
        }
        let tags = ["series", "--metric", "wait_distribution", "--tags", &format!("page={page}")];
        wait_until("a timer", || daemon.query(&tags)["total"] != 0);
    }
    let count = || query_value(&daemon, "sum(sum_over_time(wait_count[1h]))");
    wait_until("all timers", || count() == Some(1000.0));
    for quantile in [0.5, 0.9, 0.99] {
        let query = format!("histogram_quantile({quantile}, sum(increase(wait_distribution[1h])))");
        let (found, exact) = (query_value(&daemon, &query).unwrap(), quantile * 1000.0);
        assert!((found / exact - 1.0).abs() < 0.01, "{quantile}: {found}");
    }
    let pid = agent.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(agent.wait().unwrap().success());
}

fn batch_of_histograms() -> Batch {
    let define = |reference, metric: &str, kind| SeriesDefinition {
        reference,
        metric: metric.to_owned(),
        kind,
        ..SeriesDefinition::default()
    };
    let mut batch = Batch {
        agent: "web1".to_owned(),
        epoch: 5,
        seq: 1,
        series: vec![define(7, "wait", Kind::DeltaHistogram), define(8, "hits", Kind::Delta)],
        refs: vec![8, 7],
        times: vec![jiff::Timestamp::now().as_millisecond()],
        values: vec![2.0, 3.0],
        ..Batch::default()
    };
    let mut histogram = Histogram::sketch();
    histogram.observe(0.25, 3.0);
    push_histogram(&mut batch.histograms, 1, &histogram);
    batch
}

#[test]
fn a_repeated_batch_of_histograms_counts_once_also_after_kill_9() {
    let mut daemon = Daemon::start("");
    let batch = batch_of_histograms();
    let mut bson = Vec::new();
    encode_batch(&batch, &mut bson);
    let packed = pack(&[batch]);
    let counts = |daemon: &Daemon, media_type: &str, body: &[u8]| {
        let answer = daemon.post(media_type, body).body;
        (answer["accepted"].clone(), answer["duplicates"].clone())
    };
    assert_eq!(counts(&daemon, PACKED_MEDIA_TYPE, &packed), (json!(2), json!(0)));
    assert_eq!(counts(&daemon, BSON_MEDIA_TYPE, &bson), (json!(0), json!(2)));
    daemon.kill();
    daemon.restart();
    assert_eq!(counts(&daemon, PACKED_MEDIA_TYPE, &packed), (json!(0), json!(2)));
    assert_eq!((observations(&daemon, "wait"), observations(&daemon, "hits")), (3.0, 2.0));
}

#[test]
fn numbers_and_histograms_in_the_wrong_series_are_refused_by_name() {
    let daemon = Daemon::start("");
    let mut batch = batch_of_histograms();
    batch.refs.reverse();
    let answer = daemon.post(PACKED_MEDIA_TYPE, &pack(&[batch])).body;
    assert_eq!(answer["refused"], json!({"bad_histogram": 2}), "{answer}");
    let examples = answer["examples"].as_array().unwrap().iter();
    let found: Vec<_> = examples
        .map(|example| (example["series"].as_str().unwrap(), example["message"].as_str().unwrap()))
        .collect();
    assert!(found[0].0 == "wait" && found[0].1.contains("has native histograms"), "{found:?}");
    assert!(found[1].0 == "hits" && found[1].1.contains("has numbers"), "{found:?}");

    let sample = json!({"metric": "queue", "kind": "histogram", "value": 1});
    let good = json!({"metric": "depth", "value": 1});
    let answer = daemon.post_json(&json!({"samples": [sample, good]})).body;
    assert_eq!(answer["accepted"], 1, "{answer}");
    let example = &answer["examples"][0];
    assert_eq!(example["series"], "queue", "{answer}");
    let message = example["message"].as_str().unwrap();
    assert!(message.contains("kind histogram has native histograms"), "{message}");
    assert_eq!(daemon.query(&["series", "--metric", "queue"])["total"], 0);
}
