//! Batches as scripts write them: each sample has a verdict of its own, and none is silent.

use serde_json::json;

use crate::daemon::Daemon;

/// The sum of all that was accepted for a metric.
fn total(daemon: &Daemon, metric: &str) -> f64 {
    let words = ["chart", "--metric", metric, "--display", "total", "--range", "2h"];
    let answer = daemon.query(&words);
    let points = answer["series"][0]["points"].as_array().unwrap();
    points.iter().filter_map(|point| point[1].as_f64()).sum()
}

#[test]
fn the_batches_of_a_body_do_not_mix_their_series() {
    // A story: each batch numbered its series from 0, and all samples went to those of the last.
    let daemon = Daemon::start("");
    let batch = |metric: &str, value: f64| json!({"samples": [{"metric": metric, "kind": "delta", "value": value}]});
    let answer = daemon.post_json(&json!([batch("first", 3.0), batch("second", 5.0)]));
    assert_eq!(answer.body["accepted"], 2, "{}", answer.body);
    assert_eq!((total(&daemon, "first"), total(&daemon, "second")), (3.0, 5.0));
}
