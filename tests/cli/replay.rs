//! `granary rules replay` evaluates rules over stored samples without effects.

use std::fs;

use serde_json::{Value, json};

use crate::{
    alerts::poll_until,
    daemon::{Daemon, granary},
};

const MINUTE: i64 = 60_000;
const RULES: &str = "groups:
- name: own
  interval: 1m
  rules:
  - record: level:max
    expr: max(level)
  - alert: High
    expr: level > 5
    recover: '< 3'
    for: 5m
    labels: {severity: page}
    annotations: {summary: '{{ $labels.host }} is at {{ $value }}'}
";

#[test]
fn a_replay_shows_when_alerts_would_have_been_pending_fired_and_ended() {
    let daemon = Daemon::start("[ingest]\nout_of_order_window = '1d'\n");
    // The samples are at whole minutes, so each slot has one sample.
    let now = jiff::Timestamp::now().as_millisecond() / MINUTE * MINUTE;
    let level = |host: &str, ago: i64| match host {
        "long" if (21..=40).contains(&ago) => 9,
        // These levels are below the threshold, but have not recovered yet.
        "long" if (11..=20).contains(&ago) => 4,
        "short" if (31..=33).contains(&ago) => 9,
        "on" if ago <= 8 => 9,
        _ => 1,
    };
    for ago in (0..60).rev() {
        let samples = ["long", "short", "on"].map(|host| {
            let time = now - ago * MINUTE;
            let tags = json!({ "host": host });
            json!({ "metric": "level", "tags": tags, "value": level(host, ago), "time": time })
        });
        daemon.accept(&json!(samples));
    }
    let path = daemon.dir.path().join("rules.yml");
    fs::write(&path, RULES).unwrap();
    let replay = |options: &[&str]| {
        let args = ["rules", "replay", path.to_str().unwrap(), "--range", "1h"];
        let output =
            granary().args(args).args(options).args(["--url", &daemon.url]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let episodes = poll_until(&daemon, "the samples", || {
        let answer: Value = serde_json::from_str(&replay(&["--json"])).unwrap();
        let episodes = answer["episodes"].as_array().unwrap().clone();
        (episodes.len() == 3).then_some(episodes)
    });
    let minutes = |value: &Value| {
        let at = value.as_str()?.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        Some((now - at) / MINUTE)
    };
    let times_of = |host: &str| {
        let episode = episodes.iter().find(|episode| episode["labels"]["host"] == host).unwrap();
        assert_eq!(
            (&episode["group"], &episode["labels"]["severity"]),
            (&json!("own"), &json!("page"))
        );
        [&episode["pendingAt"], &episode["firedAt"], &episode["endedAt"]].map(minutes)
    };
    // A sample counts from the end of its slot on, or from its own time on while it is recent.
    let is_near = |found: [Option<i64>; 3], expected: [Option<i64>; 3]| {
        found.into_iter().zip(expected).all(|times| match times {
            (Some(minutes_ago), Some(expected)) => (minutes_ago - expected).abs() <= 1,
            (found, expected) => found == expected,
        })
    };
    for (host, expected) in [
        ("long", [Some(40), Some(35), Some(10)]),
        ("short", [Some(33), None, Some(30)]),
        ("on", [Some(8), Some(3), None]),
    ] {
        assert!(is_near(times_of(host), expected), "{host}: {:?}", times_of(host));
    }
    let fired = episodes.iter().find(|episode| episode["labels"]["host"] == "on").unwrap();
    assert_eq!(fired["annotations"]["summary"], "on is at 9");
    let table = replay(&[]);
    assert!(table.contains("2 fired, 1 only pending"), "{table}");
    // The daemon evaluated no rule: it sends no notification and writes nothing.
    assert!(!daemon.metrics().contains("granary_rule_evaluations_total 1"));
    let output = granary()
        .args(["rules", "replay", path.to_str().unwrap(), "--range", "5y", "--url", &daemon.url])
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("limit of 200000"), "{message}");
}
