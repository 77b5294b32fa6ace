//! Late samples that would have changed earlier evaluations of a rule.

use serde_json::{Value, json};

use crate::{
    alerts::{RULES, ask, poll_until, query_values, wait_for_alert},
    daemon::{Daemon, SECONDS, granary, granularities},
};

fn episodes(daemon: &Daemon) -> Vec<Value> {
    ask(daemon, "/api/v1/alerts/history?rule=High")["history"].as_array().unwrap().clone()
}

fn send_level(daemon: &Daemon, host: &str, level: f64) {
    daemon.accept(&json!([{ "metric": "level", "tags": { "host": host }, "value": level }]));
}

#[test]
fn a_late_sample_marks_the_episode_that_it_would_have_ended_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rules.yml"), RULES.replace("FOR", "0s")).unwrap();
    let path = dir.path().join("*.yml");
    let rules =
        format!("promql.lookback = \"4s\"\nalerts.rules = [{:?}]\n", path.to_str().unwrap());
    let mut daemon = Daemon::start_in(dir, &(rules + &granularities(&SECONDS)));
    // The alert of `b` ends with a current sample, the alert of `a` with a late one.
    send_level(&daemon, "a", 7.0);
    send_level(&daemon, "b", 7.0);
    let active_at = wait_for_alert(&daemon, "firing")["activeAt"].clone();
    poll_until(&daemon, "a few evaluations", || {
        let ages = query_values(&daemon, "time() - ALERTS_FOR_STATE");
        (ages.len() == 2 && ages.iter().all(|age| *age >= 3.0)).then_some(())
    });
    let late_sample =
        json!([{ "metric": "level", "tags": { "host": "a" }, "value": 1, "time": active_at }]);
    daemon.accept(&late_sample);
    send_level(&daemon, "b", 1.0);
    let revised = poll_until(&daemon, "a revision", || {
        episodes(&daemon).into_iter().find(|episode| !episode["revised"].is_null())
    });
    assert_eq!(revised["labels"]["host"], "a", "{revised}");
    assert_eq!(revised["revised"], json!({ "at": active_at, "active": false }));
    daemon.kill();
    daemon.restart();
    let after_restart = poll_until(&daemon, "both episodes", || {
        Some(episodes(&daemon)).filter(|list| list.len() == 2)
    });
    let marked: Vec<_> =
        after_restart.iter().filter(|episode| !episode["revised"].is_null()).collect();
    assert_eq!(marked, [&revised]);
    let listed = granary().args(["alerts", "history", "--url", &daemon.url]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("not active at 20") && listed.contains("2 episodes"), "{listed}");
}
