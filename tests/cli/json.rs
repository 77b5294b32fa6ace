//! Batches in the form that scripts write: each sample has a separate verdict, and no
//! sample is dropped silently.

use serde_json::json;

use crate::daemon::Daemon;

/// Returns the sum of all accepted samples of a metric.
fn sum_of_metric(daemon: &Daemon, metric: &str) -> f64 {
    let args = ["chart", "--metric", metric, "--display", "total", "--range", "2h"];
    let answer = daemon.query(&args);
    let points = answer["series"][0]["points"].as_array().unwrap();
    points.iter().filter_map(|point| point[1].as_f64()).sum()
}

#[test]
fn the_batches_of_a_body_do_not_mix_their_series() {
    // Regression: each batch numbered its series from 0, and all samples were added to the series
    // of the last batch.
    let daemon = Daemon::start("");
    let batch = |metric: &str, value: f64| json!({"samples": [{"metric": metric, "kind": "delta", "value": value}]});
    let answer = daemon.post_json(&json!([batch("first", 3.0), batch("second", 5.0)]));
    assert_eq!(answer.body["accepted"], 2, "{}", answer.body);
    assert_eq!((sum_of_metric(&daemon, "first"), sum_of_metric(&daemon, "second")), (3.0, 5.0));
}

#[test]
fn each_sample_has_a_verdict_that_names_its_series() {
    let daemon = Daemon::start("");
    let body = r#"[
        {"samples": [
            {"metric": "ok", "kind": "delta", "tags": {"port": 8080, "up": true}, "value": 2},
            {"metric": "bad", "tags": {"host": "a"}, "value": null},
            {"metric": "bad", "value": "1.5"},
            {"metric": "bad", "time": "noon", "value": 1},
            {"metric": "bad name\n", "value": 1},
            {"metric": "bad", "tags": {"a\u0000b": "x"}, "value": 1},
            {"metric": "bad", "tags": {"__name__": "x"}, "value": 1},
            {"metric": "old", "tags": {"host": "a"}, "time": 5, "value": 1}]},
        {"samples": [{"metric": "disk", "tags": {"d": "sda"}, "kind": "delta",
                      "fields": {"reads": 3, "writes": 4, "model": "x"}}]}]"#;
    let answer = daemon.post("application/json", body.as_bytes());
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(3)), "{}", answer.body);
    let refused = json!({"bad_sample": 5, "bad_series": 2, "too_old": 1});
    assert_eq!(answer.body["refused"], refused, "{}", answer.body);
    let examples = answer.body["examples"].as_array().unwrap();
    let assert_example = |series: &str, part: &str| {
        let is_named = |example: &serde_json::Value| {
            example["series"] == series && example["message"].as_str().unwrap().contains(part)
        };
        assert!(examples.iter().any(is_named), "{series}: {part} in {examples:?}");
    };
    assert_example("bad{host=\"a\"}", "value is missing or null");
    assert_example("bad", "value \"1.5\" is not a number");
    assert_example("bad", "\"noon\" is not a time");
    assert_example("\"bad name\\n\"{}", "control character");
    assert_example("bad{a\0b=\"x\"}", "NUL");
    assert_example("\"bad\"{\"__name__\"=\"x\"}", "__name__");
    assert_example("old{host=\"a\"}", "is before");
    assert_example("disk_model{d=\"sda\"}", "value \"x\" is not a number");
    let series = daemon.query(&["series", "--metric", "ok"]);
    assert_eq!(series["series"][0]["tags"], json!({"port": "8080", "up": "true"}));
    assert_eq!(
        (sum_of_metric(&daemon, "disk_reads"), sum_of_metric(&daemon, "disk_writes")),
        (3.0, 4.0)
    );
}

#[test]
fn another_kind_or_unit_of_a_series_is_refused_with_a_reason() {
    let daemon = Daemon::start("");
    let sample = |kind: &str, unit: &str, value: f64| json!({"metric": "m", "kind": kind, "unit": unit, "value": value});
    let body = json!({"samples": [
        sample("delta", "bytes", 1.0), sample("counter", "bytes", 2.0), sample("delta", "", 4.0),
        sample("delta", "seconds", 8.0)]});
    for times in 1..3 {
        let answer = daemon.post_json(&body);
        let refused = json!({"kind_conflict": 1, "unit_conflict": 1});
        assert_eq!((&answer.body["accepted"], &answer.body["refused"]), (&json!(2), &refused));
        let messages = answer.body["examples"].to_string();
        assert!(messages.contains("the series is a delta, not a counter"), "{messages}");
        assert!(messages.contains("unit is \\\"bytes\\\", not \\\"seconds\\\""), "{messages}");
        assert_eq!(sum_of_metric(&daemon, "m"), 5.0 * f64::from(times));
    }
}
