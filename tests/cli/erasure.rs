//! Deleting the samples of series in a range of time, and correcting single readings, on the
//! command line and over HTTP, with kill -9.

use serde_json::{Value, json};

use crate::daemon::{Answer, Daemon, client, granary};

/// Returns a day that all resolutions keep, within their default retention.
fn day() -> jiff::Timestamp {
    let day_ms = 86_400_000;
    let yesterday = (jiff::Timestamp::now().as_millisecond() / day_ms - 1) * day_ms;
    jiff::Timestamp::from_millisecond(yesterday).unwrap()
}

/// Returns a time on that day.
fn at(minutes: i64) -> String {
    (day() + jiff::SignedDuration::from_mins(minutes)).to_string()
}

/// Sends a sample every half a minute, from 8:00 on for two hours, of two gauges and a counter.
fn start_with_samples() -> Daemon {
    let daemon = Daemon::start("");
    let mut samples = Vec::new();
    for half in 0..240 {
        let time = day() + jiff::SignedDuration::from_secs(8 * 3600 + 30 * half + 7);
        let sample = |metric: &str, room: &str, kind: &str, value: i64| {
            json!({"metric": metric, "tags": {"room": room}, "kind": kind, "value": value,
                   "time": time.to_string()})
        };
        samples.push(sample("temperature", "lab", "gauge", half));
        samples.push(sample("temperature", "hall", "gauge", half));
        samples.push(sample("doors", "lab", "counter", 2 * half));
    }
    daemon.accept(&Value::from(samples));
    daemon
}

fn points(daemon: &Daemon, metric: &str, room: &str, display: &str, resolution: &str) -> Vec<f64> {
    let tags = format!("room={room}");
    let words = ["chart", "--metric", metric, "--tags", &tags, "--display", display];
    let (start, end) = (at(0), at(24 * 60));
    let rest = ["--start", &start, "--end", &end, "--resolution", resolution];
    let answer = daemon.query(&[&words[..], &rest].concat());
    let points = answer["series"][0]["points"].as_array().unwrap().clone();
    points.iter().filter_map(|point| point[1].as_f64()).collect()
}

/// Returns the number of samples at each resolution.
fn counts(daemon: &Daemon, metric: &str, room: &str) -> [f64; 4] {
    ["1m", "5m", "1h", "1d"]
        .map(|resolution| points(daemon, metric, room, "count", resolution).iter().sum())
}

fn delete(daemon: &Daemon, query: &str) -> Answer {
    let request = ureq::http::Request::builder().method("DELETE");
    let uri = format!("{}/api/v1/series?{query}", daemon.url);
    let mut response = client().run(request.uri(uri).body(String::new()).unwrap()).unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status: response.status().as_u16(), body }
}

fn run(daemon: &Daemon, words: &[&str]) -> (bool, String) {
    let mut command = granary();
    let output = command.args(words).args(["--url", &daemon.url]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn deleted_samples_are_gone_at_every_resolution_after_a_kill_and_later_ones_count() {
    let mut daemon = start_with_samples();
    let query = format!("metric=temperature&tags=room%3Dlab&start={}&end={}", at(490), at(547));
    let dry = delete(&daemon, &format!("{query}&dry_run=true"));
    assert_eq!((dry.status, &dry.body["total"]), (200, &json!(1)), "{}", dry.body);
    assert_eq!(
        dry.body["resolutions"],
        json!([
            {"resolution": "1m", "cells": 57, "samples": 114, "recomputed": 0},
            {"resolution": "5m", "cells": 11, "samples": 114, "recomputed": 1},
            {"resolution": "1h", "cells": 0, "samples": 114, "recomputed": 2},
            {"resolution": "1d", "cells": 0, "samples": 114, "recomputed": 1},
        ])
    );
    assert_eq!(counts(&daemon, "temperature", "lab"), [240.0; 4]);

    let deleted = delete(&daemon, &query);
    daemon.kill();
    assert_eq!((deleted.status, &deleted.body["cells"]), (200, &json!(72)), "{}", deleted.body);
    daemon.restart();
    assert_eq!(counts(&daemon, "temperature", "lab"), [126.0; 4]);
    assert_eq!(counts(&daemon, "temperature", "hall"), [240.0; 4]);
    // The values from 134 on are left of the second hour, and those below 20 of the first.
    assert_eq!(points(&daemon, "temperature", "lab", "min", "1h"), [0.0, 134.0]);
    assert_eq!(points(&daemon, "temperature", "lab", "max", "1h"), [19.0, 239.0]);
    let later = json!([{"metric": "temperature", "tags": {"room": "lab"}, "value": 5,
                        "time": at(500)}]);
    daemon.accept(&later);
    assert_eq!(counts(&daemon, "temperature", "lab"), [127.0; 4]);
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
    daemon.restart();
    assert_eq!(counts(&daemon, "temperature", "lab"), [127.0; 4]);
}

#[test]
fn the_growth_of_a_counter_in_a_deleted_time_does_not_reappear() {
    let mut daemon = start_with_samples();
    let (start, end) = (at(500), at(530));
    let words = ["series", "delete", "--metric", "doors", "--start", &start, "--end", &end];
    let (is_done, text) = run(&daemon, &[&words[..], &["--dry-run"]].concat());
    assert!(is_done && text.contains("samples of 1 series from"), "{text}");
    let (is_done, text) = run(&daemon, &words);
    assert!(is_done && text.starts_with("deleted samples of 1 series from"), "{text}");
    // 30 minutes, 6 slots of 5 minutes, and the cut hour and day.
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_cells_deleted_total 38\n"), "{metrics}");
    daemon.kill();
    daemon.restart();
    // Each of the 60 deleted readings had grown by 2.
    let grown: [f64; 4] = ["1m", "5m", "1h", "1d"]
        .map(|resolution| points(&daemon, "doors", "lab", "total", resolution).iter().sum());
    assert_eq!(grown, [358.0; 4]);
    // Each minute after the first reading shows the growth of its two readings, or nothing.
    let of_minutes = points(&daemon, "doors", "lab", "total", "1m");
    assert_eq!(of_minutes[0], 2.0);
    assert_eq!(of_minutes[1..], [4.0; 89]);
    assert_eq!(counts(&daemon, "doors", "lab"), [180.0; 4]);
}

#[test]
fn a_deletion_that_would_divide_a_cell_or_lacks_an_end_is_refused_and_changes_nothing() {
    let daemon = start_with_samples();
    let inside = (day() + jiff::SignedDuration::from_secs(500 * 60 + 20)).to_string();
    let cut = delete(&daemon, &format!("metric=temperature&start={inside}&end={}", at(530)));
    assert_eq!((cut.status, &cut.body["error"]), (409, &json!("conflict")), "{}", cut.body);
    let message = cut.body.to_string();
    let expected = format!("the 1m slot from {} to {}", at(500), at(501));
    assert!(message.contains(&expected) && message.contains("series: 2"), "{message}");
    for query in [
        format!("metric=temperature&start={}", at(500)),
        format!("metric=temperature&end={}", at(500)),
        format!("start={}&end={}", at(500), at(501)),
        format!("metric=temperature&start={}&end={}", at(501), at(500)),
    ] {
        let refused = delete(&daemon, &query);
        assert_eq!(refused.status, 400, "{query}: {}", refused.body);
    }
    let (is_done, text) = run(&daemon, &["series", "delete", "--metric", "doors", "--end", "5"]);
    assert!(!is_done && text.contains("--start"), "{text}");
    assert_eq!(counts(&daemon, "temperature", "lab"), [240.0; 4]);
    // All samples of this slot are on one side of the edge.
    let edge = (day() + jiff::SignedDuration::from_secs(500 * 60 + 5)).to_string();
    let exact = delete(&daemon, &format!("metric=temperature&start={edge}&end={}", at(530)));
    assert_eq!(exact.status, 200, "{}", exact.body);
    assert_eq!(counts(&daemon, "temperature", "lab"), [180.0; 4]);
}

#[test]
fn parameters_at_the_wrong_position_of_a_deletion_are_refused() {
    let daemon = start_with_samples();
    let send = |method: &str, uri: &str, body: String| {
        let request = ureq::http::Request::builder().method(method);
        let request = request.header("Content-Type", "application/json");
        let request = request.uri(format!("{}/api/v1/{uri}", daemon.url)).body(body).unwrap();
        let mut response = client().run(request).unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    };
    let range = format!("start={}&end={}", at(490), at(547));
    let body = json!({"selector": {"metric": "temperature"}}).to_string();
    let (status, text) = send("POST", &format!("admin/series/delete?{range}"), body);
    assert!(status == 400 && text.contains("into the body"), "{status} {text}");
    // Times in a body are texts, or numbers of Unix seconds.
    let seconds = |minutes: i64| day().as_second() + 60 * minutes;
    let body = json!({"selector": {"metric": "temperature"}, "start": seconds(490),
                      "end": seconds(547), "dry_run": true});
    let (status, text) = send("POST", "admin/series/delete", body.to_string());
    assert!(
        status == 200 && text.contains(&format!("\"start\":\"{}\"", at(490))),
        "{status} {text}"
    );
    let body = json!({"start": at(490), "end": at(547)}).to_string();
    let (status, text) = send("DELETE", "series?metric=temperature", body);
    assert!(status == 400 && text.contains("parameters of the URL"), "{status} {text}");
    assert_eq!(counts(&daemon, "temperature", "lab"), [240.0; 4]);
}

#[test]
fn a_corrected_reading_counts_once_at_every_resolution_after_a_kill_and_a_retry() {
    let mut daemon = Daemon::start("");
    let sample = |minute: i64, value: f64| json!({"metric": "temperature", "tags": {"room": "lab"}, "time": at(minute), "value": value});
    daemon.accept(&(480..600).map(|minute| sample(minute, 20.0)).collect());
    let corrections = json!({"replace": true, "samples": [
        sample(490, 35.0), sample(547, 5.0), sample(610, 21.0),
        {"metric": "temperature", "tags": {"room": "lab"}, "value": 1,
         "time": (day() + jiff::SignedDuration::from_secs(500 * 60 + 1)).to_string()},
    ]});
    let answer = daemon.post_json(&corrections);
    daemon.kill();
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!([&answer.body["accepted"], &answer.body["replaced"]], [3, 2], "{}", answer.body);
    assert_eq!(answer.body["refused"], json!({"not_replaceable": 1}));
    let reason = answer.body["examples"][0]["message"].to_string();
    let times = format!("the 1m slot from {} to {} has the time {}", at(500), at(501), at(500));
    assert!(reason.contains(&times), "{reason}");
    daemon.restart();
    for replaced in [3, 3] {
        assert_eq!(counts(&daemon, "temperature", "lab"), [121.0; 4]);
        for resolution in ["1m", "5m", "1h", "1d"] {
            let all = |display: &str| points(&daemon, "temperature", "lab", display, resolution);
            assert_eq!(all("min").into_iter().fold(f64::INFINITY, f64::min), 5.0);
            assert_eq!(all("max").into_iter().fold(0.0, f64::max), 35.0);
            let count = all("count");
            let sums = all("avg").into_iter().zip(count).map(|(avg, count)| avg * count);
            let sum = sums.sum::<f64>();
            assert!((sum - (118.0 * 20.0 + 35.0 + 5.0 + 21.0)).abs() < 1e-6, "{resolution}: {sum}");
        }
        let again = daemon.post_json(&corrections);
        assert_eq!([&again.body["accepted"], &again.body["replaced"]], [3, replaced]);
    }
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn a_request_that_replaces_too_much_or_only_in_part_is_refused() {
    let daemon = start_with_samples();
    let sample = json!({"metric": "temperature", "tags": {"room": "lab"}, "value": 1,
                        "time": at(490)});
    let many = json!({"replace": true, "samples": vec![&sample; 1001]});
    let refused = daemon.post_json(&many);
    let message = refused.body.to_string();
    assert!(refused.status == 413 && message.contains("more than 1000"), "{message}");
    let numbered = json!({"replace": true, "agent": "a", "epoch": 1, "seq": 1,
                          "samples": [&sample]});
    let in_part = json!([{"replace": true, "samples": [&sample]}, {"samples": [&sample]}]);
    for body in [numbered, in_part] {
        let refused = daemon.post_json(&body);
        let message = refused.body.to_string();
        assert!(refused.status == 400 && message.contains("replace"), "{message}");
    }
    assert_eq!(counts(&daemon, "temperature", "lab"), [240.0; 4]);
}
