//! Silences and acknowledgements in the real daemon: across kill -9, on the command line, and with
//! the real amtool.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    alerts::{poll_until, send_level, start, wait_for_alert},
    daemon::{Daemon, granary, request},
    peers::need,
};

fn get(daemon: &Daemon, path: &str) -> Value {
    let (status, answer) = request(&daemon.url, "GET", path, &[], "").unwrap();
    assert_eq!(status, 200, "{answer}");
    answer
}

fn post(daemon: &Daemon, path: &str, body: &Value) -> (u16, Value) {
    let json = [("Content-Type", "application/json")];
    request(&daemon.url, "POST", path, &json, &body.to_string()).unwrap()
}

/// Runs a command with the daemon's address; returns true if it succeeds, and its output.
fn run_command(daemon: &Daemon, args: &[&str]) -> (bool, String) {
    let output = granary().args(args).args(["--url", &daemon.url]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Returns the states of firing alerts in the API of Alertmanager.
fn alert_states(daemon: &Daemon, path: &str) -> Vec<String> {
    let all = get(daemon, path);
    let state = |value: &Value| value["status"]["state"].as_str().unwrap().to_owned();
    all.as_array().unwrap().iter().map(state).collect()
}

#[test]
fn a_silence_suppresses_matching_alerts_also_after_kill_9() {
    let mut daemon = start("0s");
    send_level(&daemon, 7.0);
    wait_for_alert(&daemon, "firing");
    assert_eq!(alert_states(&daemon, "/api/v2/alerts"), ["active"]);
    let add = ["silence", "add", "alertname=High", "host=~\"a|b\"", "--comment", "disks"];
    let (succeeds, id) = run_command(&daemon, &add);
    assert!(succeeds, "{id}");
    let id = id.trim();
    assert_eq!(alert_states(&daemon, "/api/v2/alerts"), ["suppressed"]);
    let rules = get(&daemon, "/api/v1/rules");
    let shown = &rules["data"]["groups"][0]["rules"][1]["alerts"][0];
    assert_eq!(shown["silencedBy"], json!([id]), "{rules}");
    assert_eq!(get(&daemon, "/api/v1/alerts")["data"]["alerts"][0], *shown);
    assert_eq!(alert_states(&daemon, "/api/v2/alerts?silenced=false"), [""; 0]);
    assert_eq!(
        alert_states(&daemon, "/api/v2/alerts?filter=host%3Da&active=false"),
        ["suppressed"]
    );
    assert_eq!(alert_states(&daemon, "/api/v2/alerts?filter=host%3Db"), [""; 0]);
    daemon.kill();
    daemon.restart();
    let listed = get(&daemon, &format!("/api/v2/silence/{id}"));
    assert_eq!(
        (&listed["status"]["state"], &listed["comment"]),
        (&json!("active"), &json!("disks"))
    );
    wait_for_alert(&daemon, "firing");
    assert_eq!(alert_states(&daemon, "/api/v2/alerts"), ["suppressed"]);

    let (succeeds, text) = run_command(&daemon, &["silence", "list"]);
    assert!(
        succeeds && text.contains(id) && text.contains("1 silence") && !text.contains("1 silences"),
        "{text}"
    );
    let (succeeds, text) = run_command(&daemon, &["silence", "expire", id]);
    assert!(succeeds, "{text}");
    assert_eq!(alert_states(&daemon, "/api/v2/alerts"), ["active"]);
    let (succeeds, text) = run_command(&daemon, &["silence", "expire", id]);
    assert!(!succeeds && text.contains("already expired"), "{text}");
    // Only `--expired` lists expired silences.
    let (_, text) = run_command(&daemon, &["silence", "list"]);
    assert!(text.contains("0 silences"), "{text}");
    let (_, text) = run_command(&daemon, &["silence", "list", "--expired"]);
    assert!(text.contains(id) && text.contains("expired"), "{text}");
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn a_recurring_silence_shows_its_next_window_and_names_errors() {
    let daemon = start("0s");
    let add = |args: &[&str]| {
        let all =
            [&["silence", "add", "host=a", "--comment", "weekly", "--for", "4w"], args].concat();
        run_command(&daemon, &all)
    };
    let window = ["--from", "22:00", "--until", "06:00", "--on", "sat,sun", "--zone"];
    let (succeeds, id) = add(&[&window[..], &["Europe/Berlin"]].concat());
    assert!(succeeds, "{id}");
    let listed = get(&daemon, "/api/v2/silences")[0].clone();
    let time = |key: &str| listed[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let local = time("endsAt").in_tz("Europe/Berlin").unwrap();
    assert_eq!((local.hour(), local.minute()), (6, 0), "{listed}");
    let seconds = time("endsAt").as_second() - time("startsAt").as_second();
    // The rest of a window that is active now is shorter.
    assert!((1..=9 * 3600).contains(&seconds), "{listed}");
    assert_eq!(listed["recurring"]["weekdays"], json!(["saturday", "sunday"]));
    let (_, text) = run_command(&daemon, &["silence", "list"]);
    assert!(text.contains("sat,sun 22:00-06:00 Europe/Berlin"), "{text}");
    let (succeeds, text) = add(&[&window[..], &["Mars/Phobos"]].concat());
    assert!(!succeeds && text.contains("Mars/Phobos"), "{text}");
    // A client that does not know recurring silences keeps the recurrence.
    let (status, text) = post(
        &daemon,
        "/api/v2/silences",
        &json!({
            "id": listed["id"], "matchers": listed["matchers"], "startsAt": listed["startsAt"],
            "endsAt": listed["endsAt"], "createdBy": "ann", "comment": "longer",
        }),
    );
    assert!(status == 400 && text.as_str().unwrap().contains("recurs"), "{text}");
    // A client that sends back the complete silence keeps the recurrence.
    let mut posted = listed.clone();
    posted["comment"] = json!("longer");
    let (status, text) = post(&daemon, "/api/v2/silences", &posted);
    assert_eq!((status, &text["silenceID"]), (200, &listed["id"]), "{text}");
    let changed = get(&daemon, "/api/v2/silences")[0].clone();
    assert_eq!(changed["comment"], "longer");
    for key in ["recursFrom", "recursUntil", "recurring", "endsAt"] {
        assert_eq!(changed[key], listed[key], "{key}");
    }
    let (status, _) = request(&daemon.url, "DELETE", "/api/v2/silence/none", &[], "").unwrap();
    assert_eq!(status, 404);
}

#[test]
fn an_alert_is_acknowledged_until_it_ends_also_after_kill_9() {
    let mut daemon = start("0s");
    send_level(&daemon, 7.0);
    wait_for_alert(&daemon, "firing");
    let ack = ["alerts", "ack", "alertname=High", "--by", "ann", "--comment", "on it"];
    let (succeeds, text) = run_command(&daemon, &ack);
    assert!(succeeds && text.lines().any(|line| line == "acknowledged 1 alert"), "{text}");
    let acknowledged = |daemon: &Daemon| wait_for_alert(daemon, "firing")["acknowledged"].clone();
    let first = acknowledged(&daemon);
    assert_eq!((&first["by"], &first["comment"]), (&json!("ann"), &json!("on it")));
    daemon.kill();
    daemon.restart();
    assert_eq!(acknowledged(&daemon), first);
    let (_, text) = run_command(&daemon, &["alerts"]);
    assert!(text.contains("ann: on it"), "{text}");
    let (succeeds, text) = run_command(&daemon, &["alerts", "ack", "alertname=Low"]);
    assert!(!succeeds && text.contains("no alert"), "{text}");
    let (status, text) = post(&daemon, "/api/v1/alerts/ack", &json!({ "labels": {}, "by": "ann" }));
    assert_eq!(status, 400, "{text}");
    assert!(run_command(&daemon, &["alerts", "unack", "host=a"]).0);
    assert_eq!(acknowledged(&daemon), Value::Null);
    // An alert that ends and fires again is a new alert.
    assert!(run_command(&daemon, &ack).0);
    send_level(&daemon, 1.0);
    poll_until(&daemon, "the end", || {
        alert_states(&daemon, "/api/v2/alerts").is_empty().then_some(())
    });
    send_level(&daemon, 7.0);
    assert_eq!(acknowledged(&daemon), Value::Null);
    // The history contains the ended alert with its acknowledgement, even after kill -9.
    daemon.kill();
    daemon.restart();
    wait_for_alert(&daemon, "firing");
    let history = get(&daemon, "/api/v1/alerts/history?rule=High")["data"]["history"].clone();
    let ended = |value: &&Value| !value["resolvedAt"].is_null();
    let ended_alerts: Vec<_> = history.as_array().unwrap().iter().filter(ended).collect();
    assert_eq!((history.as_array().unwrap().len(), ended_alerts.len()), (2, 1), "{history}");
    assert_eq!(
        (&ended_alerts[0]["acknowledged"]["by"], &ended_alerts[0]["value"]),
        (&json!("ann"), &json!("7e+00"))
    );
    assert!(ended_alerts[0]["seconds"].as_f64().unwrap() >= 1.0, "{history}");
    let no_history = get(&daemon, "/api/v1/alerts/history?rule=Low");
    assert_eq!(no_history["data"]["history"], json!([]));
}

/// Runs the real amtool against the daemon.
fn amtool(daemon: &Daemon, args: &[&str]) -> String {
    let url = format!("--alertmanager.url={}", daemon.url);
    let output = Command::new("amtool").arg(url).args(args).output().unwrap();
    // amtool also prints that the versions differ.
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs prometheus-alertmanager; .ci/run installs it and runs this"]
fn the_real_amtool_lists_alerts_and_adds_changes_and_expires_silences() {
    need("amtool");
    let daemon = start("0s");
    send_level(&daemon, 7.0);
    wait_for_alert(&daemon, "firing");
    let listed: Value = serde_json::from_str(&amtool(&daemon, &["alert", "-o", "json"])).unwrap();
    assert_eq!(listed[0]["labels"]["alertname"], "High", "{listed}");
    assert_eq!(listed[0]["annotations"]["summary"], "a is at 7");
    let query = |args: &[&str]| {
        let all = [&["silence", "query", "-o", "json"], args].concat();
        serde_json::from_str::<Value>(&amtool(&daemon, &all)).unwrap()
    };
    let add = ["silence", "add", "--author=ann", "--comment=new disk", "--duration=2h"];
    let id = amtool(&daemon, &[&add[..], &["alertname=High", "host=~a|b", "job!=x"]].concat());
    let id = id.trim();
    let found = query(&[]);
    assert_eq!((&found[0]["id"], &found[0]["createdBy"]), (&json!(id), &json!("ann")), "{found}");
    assert_eq!(found[0]["matchers"].as_array().unwrap().len(), 3);
    assert_eq!(query(&["alertname=High"])[0]["id"], json!(id));
    assert_eq!(query(&["alertname=Other"]), json!([]));
    let list_alerts = ["alert", "query", "-o", "json"];
    assert_eq!(serde_json::from_str::<Value>(&amtool(&daemon, &list_alerts)).unwrap(), json!([]));
    let silenced = amtool(&daemon, &[&list_alerts[..], &["--silenced"]].concat());
    assert!(silenced.contains(id), "{silenced}");
    // A silence with another comment and end keeps its ID.
    let updated = amtool(&daemon, &["silence", "update", "-d", "3h", "-c", "two disks", id]);
    assert!(updated.contains("two disks"), "{updated}");
    assert_eq!(
        (&query(&[])[0]["id"], &query(&[])[0]["comment"]),
        (&json!(id), &json!("two disks"))
    );
    amtool(&daemon, &["silence", "expire", id]);
    assert_eq!(query(&[]), json!([]));
    assert_eq!(query(&["--expired"])[0]["status"]["state"], "expired");
    assert!(amtool(&daemon, &["cluster", "show"]).contains("disabled"));
    amtool(&daemon, &["config", "show"]);
}
