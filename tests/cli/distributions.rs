//! Gauges that the settings make distributions, in the real daemon.

use std::fs;

use granary_protocol::{Batch, Kind, PACKED_MEDIA_TYPE, SeriesDefinition, pack};
use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, granary, request},
    prometheus_api::post,
    remote_write::{V1, minute, request as write_request, series, write},
};

const SETTINGS: &str = "[[ingest.distribution]]\nmetric = 'wait_*'\n";
/// Settings without distributions, so that a reload has a file to read.
const OTHER_SETTINGS: &str = "[limits]\nseries_max = 1000\n";

/// Returns the value of an instant query at the present time.
fn query_value(daemon: &Daemon, query: &str) -> Option<f64> {
    let (status, body) = post(daemon, "/api/v1/query", &[("query", query)]);
    assert_eq!(status, 200, "{body}");
    body["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

/// Checks the quantiles of observations that are spread evenly up to a maximum.
fn check_quantiles(daemon: &Daemon, metric: &str, (count, max): (f64, f64)) {
    let all = format!("sum(increase({metric}[1h]))");
    assert_eq!(query_value(daemon, &format!("histogram_count({all})")), Some(count));
    for quantile in [0.1, 0.5, 0.9, 0.99] {
        let query = format!("histogram_quantile({quantile}, {all})");
        let (found, exact) = (query_value(daemon, &query).unwrap(), quantile * max);
        assert!((found / exact - 1.0).abs() < 0.01, "{metric} {quantile}: {found}");
    }
}

fn kind(daemon: &Daemon, metric: &str) -> Value {
    daemon.query(&["series", "--metric", metric])["series"][0]["kind"].clone()
}

fn gauge_batch(seq: u64, metric: Option<&str>, values: Vec<f64>) -> Vec<u8> {
    let define = |metric: &str| SeriesDefinition {
        reference: 0,
        metric: metric.to_owned(),
        kind: Kind::Gauge,
        ..SeriesDefinition::default()
    };
    pack(&[Batch {
        agent: "web1".to_owned(),
        epoch: 5,
        seq,
        series: metric.map(define).into_iter().collect(),
        refs: vec![0; values.len()],
        times: vec![jiff::Timestamp::now().as_millisecond()],
        values,
        ..Batch::default()
    }])
}

#[test]
fn gauges_of_every_protocol_become_histograms_within_one_percent_also_after_kill_9() {
    let mut daemon = Daemon::start(SETTINGS);
    let samples: Vec<_> = (1..=1000)
        .map(|value| json!({"metric": "wait_json", "tags": {"n": (value % 2).to_string()}, "value": value}))
        .collect();
    daemon.accept(&json!(samples));
    let at = minute();
    let samples: Vec<_> = (1..=600).map(|n| (at + n * 1000, n as f64 / 10.0)).collect();
    let body = write_request(&[
        series(&[("__name__", "wait_written")], &samples),
        series(&[("__name__", "level")], &samples),
    ]);
    assert_eq!(write(&daemon, V1, &body).status, 204);
    assert_eq!(write(&daemon, V1, &body).status, 204, "the repetition counts nothing twice");
    let batch = gauge_batch(1, Some("wait_sent"), (1..=500).map(f64::from).collect());
    for accepted in [500, 0] {
        assert_eq!(daemon.post(PACKED_MEDIA_TYPE, &batch).body["accepted"], accepted);
    }
    for round in 0..2 {
        for (metric, count, max) in [
            ("wait_json", 1000.0, 1000.0),
            ("wait_written", 600.0, 60.0),
            ("wait_sent", 500.0, 500.0),
        ] {
            assert_eq!(kind(&daemon, metric), "deltahistogram");
            check_quantiles(&daemon, metric, (count, max));
        }
        assert_eq!(kind(&daemon, "level"), "gauge");
        if round == 0 {
            daemon.kill();
            daemon.restart();
        }
    }
    let answer = daemon.query(&[
        "chart",
        "--metric",
        "wait_json",
        "--display",
        "p90",
        "--range",
        "1d",
        "--resolution",
        "1d",
    ]);
    let points = answer["series"][0]["points"].as_array().unwrap();
    let found = points.iter().filter_map(|point| point[1].as_f64()).next_back().unwrap();
    assert!((found / 900.0 - 1.0).abs() < 0.01, "{found}");
    check_pipeline(&daemon);
    check_export(&daemon);
}

/// Checks a percentile of both series of `wait_json` together.
fn check_pipeline(daemon: &Daemon) {
    let pipeline = "db.1d.aggregate([{$match: {metric: 'wait_json'}}, {$group: {_id: null, \
                    p: {$percentile: {input: '$distribution', p: [0.5, 0.99]}}, n: {$sum: '$n'}}}])";
    let answer = daemon.query(&["aggregate", pipeline]);
    let document = &answer["documents"][0];
    assert_eq!(document["n"], 1000, "{answer}");
    for (found, exact) in document["p"].as_array().unwrap().iter().zip([500.0, 990.0]) {
        assert!((found.as_f64().unwrap() / exact - 1.0).abs() < 0.01, "{answer}");
    }
    let shown = daemon.query(&["aggregate", "db.1d.aggregate([{$limit: 1}])"]);
    assert_eq!(shown["documents"][0].get("distribution"), None, "only where it is named: {shown}");
}

/// Checks that an export has the buckets of both series.
fn check_export(daemon: &Daemon) {
    let mut command = granary();
    command.args(["export", "--url", &daemon.url, "--metric", "wait_json", "--range", "1d"]);
    command.args(["--resolution", "1d", "--format", "csv", "--output", "-"]);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches(r#""{""schema"":7,"#).count(), 2, "{text}");
}

#[test]
fn a_reload_makes_a_gauge_a_distribution() {
    let daemon = Daemon::start(OTHER_SETTINGS);
    let post = |values: &[f64]| {
        let sample = |value: &f64| json!({"metric": "wait_sent", "value": value});
        let samples: Vec<_> = values.iter().map(sample).collect();
        let answer = daemon.post_json(&json!({ "samples": samples })).body;
        (answer["accepted"].clone(), answer["refused"].clone())
    };
    assert_eq!(post(&[7.0]), (json!(1), json!({})));
    assert_eq!(kind(&daemon, "wait_sent"), "gauge");
    let reload = |settings: &str| {
        let settings = format!("{OTHER_SETTINGS}{settings}");
        fs::write(daemon.dir.path().join("granary.toml"), settings).unwrap();
        let (status, answer) = request(&daemon.url, "POST", "/-/reload", &[], "").unwrap();
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["changed"][0]["key"], "ingest.distribution", "{answer}");
    };
    reload(SETTINGS);
    assert_eq!(post(&[8.0, 9.0]), (json!(2), json!({})));
    assert_eq!(kind(&daemon, "wait_sent"), "deltahistogram");
    reload("");
    // JSON does not change the kind of a series.
    assert_eq!(post(&[10.0]), (json!(0), json!({"kind_conflict": 1})));
    reload(SETTINGS);
    assert_eq!(post(&[11.0]), (json!(1), json!({})));
    assert_eq!(kind(&daemon, "wait_sent"), "deltahistogram");
}

#[test]
fn what_is_no_observation_is_refused_by_name() {
    let daemon = Daemon::start(SETTINGS);
    let answer =
        daemon.post(PACKED_MEDIA_TYPE, &gauge_batch(1, Some("wait_sent"), vec![f64::NAN, 2.0]));
    assert_eq!(answer.body["refused"], json!({"not_finite": 1}), "{}", answer.body);
    assert_eq!(query_value(&daemon, "histogram_sum(increase(wait_sent[1h]))"), Some(2.0));
    let counter = json!({"metric": "wait_total", "kind": "counter", "value": 3});
    assert_eq!(daemon.post_json(&json!({"samples": [counter]})).body["accepted"], 1);
    assert_eq!(kind(&daemon, "wait_total"), "counter", "only gauges are distributions");

    let bad = "[[ingest.distribution]]\nmetric = 'a*b'\n";
    let log = Daemon::new(tempfile::tempdir().unwrap(), bad, "http", crate::daemon::client())
        .expect_failed_start();
    assert!(log.contains("ingest.distribution") && log.contains("a*b"), "{log}");
}
