//! Incomplete granularities: queries read other granularities instead and report it.

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, granularities, numbers},
    prometheus_api::get,
};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// Returns settings of granularities; they include 1m if its retention is given.
fn settings_with_minutes(minutes: Option<&str>) -> String {
    let minutes = minutes.map(|retention| ["1m", "1h", "6h", retention]);
    let others = [["5m", "4h", "1d", "14d"], ["1h", "1d", "1w", "9w"]];
    granularities(&minutes.into_iter().chain(others).collect::<Vec<_>>())
}

/// Restarts the daemon on the same data with other granularities.
fn restart_with_minutes(daemon: &mut Daemon, minutes: Option<&str>) {
    restart_with(daemon, &settings_with_minutes(minutes));
}

fn restart_with(daemon: &mut Daemon, settings: &str) {
    assert_eq!(daemon.stop(), Some(0));
    std::fs::write(daemon.dir.path().join("granary.toml"), settings).unwrap();
    daemon.restart();
}

/// Returns the start of the current hour.
fn current_hour_start() -> i64 {
    jiff::Timestamp::now().as_millisecond() / HOUR * HOUR
}

fn send_views(daemon: &Daemon, time: i64, value: i64) {
    let sample = |metric: &str, kind: &str| json!({"metric": metric, "kind": kind, "time": time, "value": value});
    daemon.accept(&json!([sample("views", "delta"), sample("load", "gauge")]));
}

/// Returns the sum over a range, and the notes of the answer.
fn sum_and_notes(daemon: &Daemon, range: (i64, i64), resolution: &str) -> (f64, Vec<String>) {
    let args = format!(
        "chart --metric views --start {} --end {} --resolution {resolution}",
        range.0, range.1
    );
    let answer = daemon.query(&args.split_whitespace().collect::<Vec<_>>());
    let notes = answer["notes"].as_array().unwrap().iter();
    let notes = notes.map(|note| note.as_str().unwrap().to_owned()).collect();
    (numbers(&answer["series"][0]["points"]).into_iter().flatten().sum(), notes)
}

/// Returns the value of a PromQL expression at a time.
fn promql_value(daemon: &Daemon, expression: &str, time: i64) -> Value {
    let path = format!("/api/v1/query?query={expression}&time={}", time / 1000);
    get(daemon, &path).1["data"]["result"][0]["value"][1].clone()
}

fn check(daemon: &Daemon, old: i64, value: i64, why: &str) {
    let range = (old - 3 * HOUR, old + 5 * HOUR);
    let (sum, notes) = sum_and_notes(daemon, range, "1m");
    assert_eq!(sum, value as f64, "{notes:?}");
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with(why) && notes[0].ends_with("5m is shown there"), "{notes:?}");
    for resolution in ["auto", "5m", "15m", "1h", "day --tz Asia/Kolkata"] {
        assert_eq!(
            sum_and_notes(daemon, range, resolution),
            (value as f64, Vec::new()),
            "{resolution}"
        );
    }
    let later = old + 7 * MINUTE;
    assert_eq!(promql_value(daemon, "sum_over_time(views[1h])", later), json!(value.to_string()));
    let times = format!("start={}&end={}&step=60", (later - MINUTE) / 1000, later / 1000);
    let (_, answer) =
        get(daemon, &format!("/api/v1/query_range?query=last_over_time(load[20m])&{times}"));
    assert_eq!(answer["data"]["result"].as_array().unwrap().len(), 1, "{answer}");
    assert!(answer["warnings"][0].as_str().unwrap().contains("come from 5m slots"), "{answer}");
}

#[test]
fn when_a_retention_is_extended_the_next_coarser_granularity_answers_for_earlier_times() {
    let mut daemon = Daemon::start(&settings_with_minutes(Some("6h")));
    let old = current_hour_start() - 36 * HOUR + 7 * MINUTE;
    send_views(&daemon, old, 1);
    check(&daemon, old, 1, "1m is no longer kept before");
    restart_with_minutes(&mut daemon, Some("48h"));
    check(&daemon, old, 1, "1m does not have all samples before");
    // A late sample is stored in every granularity, and counts once.
    send_views(&daemon, old + MINUTE, 2);
    check(&daemon, old, 3, "1m does not have all samples before");
    let verified = {
        daemon.stop();
        daemon.verify()
    };
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn an_added_granularity_is_used_for_later_samples() {
    let mut daemon = Daemon::start(&settings_with_minutes(None));
    let old = current_hour_start() - 2 * HOUR + 7 * MINUTE;
    send_views(&daemon, old, 1);
    restart_with_minutes(&mut daemon, Some("48h"));
    check(&daemon, old, 1, "1m does not have all samples before");
    let now = jiff::Timestamp::now().as_millisecond();
    send_views(&daemon, now, 4);
    let (sum, notes) = sum_and_notes(&daemon, (old - HOUR, now + MINUTE), "1m");
    assert_eq!(sum, 5.0);
    assert_eq!(notes.len(), 1);
}

#[test]
fn a_removed_granularity_is_used_for_earlier_times() {
    let mut daemon = Daemon::start(&settings_with_minutes(Some("6h")));
    let old = current_hour_start() - 36 * HOUR + 7 * MINUTE;
    let range = (old - 3 * HOUR, old + 3 * HOUR);
    let now = jiff::Timestamp::now().as_millisecond();
    for (time, value) in [(old, 1), (old + 11 * MINUTE, 2), (now, 4)] {
        send_views(&daemon, time, value);
    }
    let points = |daemon: &Daemon| -> Vec<Value> {
        let (start, end) = (range.0.to_string(), range.1.to_string());
        let args = ["chart", "--metric", "views", "--start", &start, "--end", &end];
        let answer = daemon.query(&[&args[..], &["--resolution", "5m"]].concat());
        let points = answer["series"][0]["points"].as_array().unwrap().iter();
        points.filter(|point| !point[1].is_null()).cloned().collect()
    };
    let minutes = |minutes: i64| old - 7 * MINUTE + minutes * MINUTE;
    let expected = [json!([minutes(5), 1.0]), json!([minutes(15), 2.0])];
    assert_eq!(points(&daemon), expected);

    restart_with(
        &mut daemon,
        &granularities(&[["1m", "1h", "6h", "6h"], ["1h", "1d", "1w", "9w"]]),
    );
    assert_eq!(points(&daemon), expected);
    for resolution in ["5m", "15m", "1m"] {
        let (sum, notes) = sum_and_notes(&daemon, range, resolution);
        assert_eq!(sum, 3.0, "{resolution}");
        let is_noted =
            notes.iter().any(|note| note.starts_with("5m has accepted no samples since"));
        assert!(is_noted, "{resolution}: {notes:?}");
    }
    assert_eq!(sum_and_notes(&daemon, range, "1h"), (3.0, Vec::new()));
    // Later samples are in the other granularities.
    send_views(&daemon, now + 1, 8);
    assert_eq!(sum_and_notes(&daemon, (range.0, now + MINUTE), "5m").0, 15.0);
    assert_eq!(sum_and_notes(&daemon, (now - HOUR, now + MINUTE), "5m").0, 12.0);
    let later = old + 13 * MINUTE;
    assert_eq!(promql_value(&daemon, "sum_over_time(views[10m])", later), json!("2"));
    let path =
        format!("/api/v1/export?metric=views&resolution=5m&start={}&end={}", range.0, range.1);
    let (status, page) = get(&daemon, &path);
    assert_eq!((status, &page["width_ms"]), (200, &json!(5 * MINUTE)), "{page}");
    let documents = page["series"][0]["documents"].as_array().unwrap().iter();
    assert_eq!(
        documents.map(|document| document["cells"].as_array().unwrap().len()).sum::<usize>(),
        2
    );
}
