//! The audit of the real daemon: every change and refused key, no secret, and its limits.

use std::{fs, os::unix::fs::MetadataExt, process::Command};

use granary::access::{ROUTES, Right};
use serde_json::{Value, json};

use super::{Guarded, first_key, matrix::filled, secret};
use crate::{
    daemon::{Daemon, granary, request},
    peers::wait_until,
};

/// Returns the records of the audit, newest first.
fn records(guarded: &Guarded, parameters: &str) -> Vec<Value> {
    let path = format!("/api/v1/admin/audit?{parameters}");
    let (status, answer) = guarded.send("GET", &path, &guarded.admin, "");
    assert_eq!(status, 200, "{answer}");
    answer["records"].as_array().unwrap().clone()
}

#[test]
fn every_route_that_changes_something_has_a_record() {
    let guarded = Guarded::start();
    let changes: Vec<_> = ROUTES
        .iter()
        .filter(|row| row.audited && row.right != Right::Open && row.path != "/-/reload")
        .flat_map(|row| row.methods.split(' ').map(move |method| (method, row)))
        .filter(|(method, _)| *method != "GET")
        .collect();
    assert!(changes.len() > 20, "{changes:?}");
    for (method, row) in changes {
        guarded.send(method, &filled(row.path), &guarded.admin, "{}");
        let newest = &records(&guarded, "limit=1")[0];
        let action = format!("{method} {}", row.path);
        assert_eq!(newest["action"], action.as_str(), "{newest}");
        assert_eq!((&newest["kind"], &newest["who"]), (&json!("key"), &json!("first-key")));
        assert_eq!(newest["address"], "127.0.0.1");
    }
}

#[test]
fn a_record_says_who_did_what_to_what() {
    let guarded = Guarded::start();
    let ann = guarded.scoped("ann", &["admin"]);
    let selector = json!({ "selector": { "metric": "load" } }).to_string();
    guarded.send("POST", "/api/v1/admin/series/delete", &ann, &selector);
    let board = json!({ "title": "b", "panels": [] }).to_string();
    guarded.send("PUT", "/api/v1/dashboards/mine", &ann, &board);
    let path = format!("/api/v1/series?metric=cpu&api_key={ann}");
    guarded.send_with("DELETE", &path, &[], "");
    let all = records(&guarded, "who=ann");
    let shown: Vec<_> = all.iter().map(|record| record["object"].as_str().unwrap()).collect();
    assert_eq!(shown, ["metric=cpu", "mine", r#"{"selector":{"metric":"load"}}"#], "{all:?}");
    assert_eq!(all[0]["outcome"], "done");
    let made = records(&guarded, "who=first-key");
    assert_eq!((&made[0]["object"], &made[0]["status"]), (&json!("ann"), &json!(201)));
    // The pages contain successive records, and the lines contain the same records as the objects.
    let (_, page) = guarded.send("GET", "/api/v1/admin/audit?limit=2", &guarded.admin, "");
    let words = ["audit", "--lines", "--before", &page["before"].to_string()];
    let lines = guarded.output(&guarded.admin, &words);
    let rest: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut paged = page["records"].as_array().unwrap().clone();
    paged.extend(rest);
    assert_eq!(paged, records(&guarded, ""));
    let listed = guarded.output(&guarded.admin, &["audit", "--who", "ann"]);
    assert!(listed.contains("DELETE /api/v1/series") && listed.ends_with("3 records"), "{listed}");
    assert_eq!(guarded.send("GET", "/api/v1/admin/audit", &ann, "").0, 403, "needs operate");
}

#[test]
fn a_flood_of_wrong_keys_is_one_record_and_no_secret_is_written() {
    let mut guarded = Guarded::start();
    let reader = guarded.scoped("reader", &["read"]);
    let wrong = reader.replace(secret(&reader), &"0".repeat(52));
    for _ in 0..200 {
        guarded.send("GET", "/api/v1/series", &wrong, "");
    }
    assert_eq!(guarded.send("DELETE", "/api/v1/series?metric=x", &reader, "").0, 403);
    let made = guarded.output(&guarded.admin, &["key", "code"]);
    guarded.daemon.stop();
    guarded.daemon.restart();
    let ended = std::mem::replace(&mut guarded.admin, first_key(&guarded.daemon).unwrap());
    let all = records(&guarded, "");
    let refused: Vec<_> = all.iter().filter(|record| record["outcome"] == "refused").collect();
    let counts: Vec<_> = refused
        .iter()
        .map(|record| (record["reason"].as_str().unwrap(), record["count"].as_u64().unwrap()))
        .collect();
    assert!(counts.contains(&("scope", 1)), "{refused:?}");
    let wrong_keys: u64 = counts.iter().filter(|(reason, _)| *reason == "key").map(|c| c.1).sum();
    assert_eq!(wrong_keys, 200, "{refused:?}");
    assert!(refused.len() <= 4, "one record a minute: {refused:?}");
    let folder = guarded.daemon.data("audit");
    let mut content = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        content += &fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    for text in [&reader, &wrong, &ended, &guarded.admin, &made] {
        assert!(!content.contains(secret(text)), "{content}");
    }
}

#[test]
fn without_access_control_changes_are_recorded_and_notes_keep_their_names() {
    let daemon = Daemon::start("");
    let json = [("Content-Type", "application/json")];
    let send = |method: &str, path: &str, body: &str| {
        request(&daemon.url, method, path, &json, body).unwrap()
    };
    send("POST", "/api/v1/annotations", &json!({ "text": "deploy" }).to_string());
    let (_, answer) = send("GET", "/api/v1/admin/audit", "");
    let newest = &answer["records"][0];
    assert_eq!((&newest["kind"], &newest["who"]), (&json!("none"), &json!("")), "{answer}");
    assert_eq!(newest["action"], "POST /api/v1/annotations");
}

#[test]
fn names_of_callers_replace_those_in_requests() {
    let guarded = Guarded::start();
    let ann = guarded.scoped("ann", &["objects"]);
    let silence = json!({
        "matchers": [{ "name": "alertname", "value": "x", "isRegex": false }],
        "startsAt": "2026-11-21T08:00:00Z", "endsAt": "2036-11-21T08:00:00Z",
        "createdBy": "somebody else", "comment": "c",
    });
    let (status, made) = guarded.send("POST", "/api/v2/silences", &ann, &silence.to_string());
    assert_eq!(status, 200, "{made}");
    let silences = guarded.send("GET", "/api/v2/silences", &ann, "").1;
    assert_eq!(silences[0]["createdBy"], "ann");
    assert_eq!(records(&guarded, "who=ann")[0]["object"], made["silenceID"]);
    guarded.send("POST", "/api/v1/annotations", &ann, &json!({ "text": "t" }).to_string());
    let notes = guarded.send("GET", "/api/v1/annotations", &ann, "").1;
    assert_eq!(notes["annotations"][0]["author"], "ann", "{notes}");
}

#[test]
fn reloads_by_a_signal_and_commands_on_a_stopped_directory_are_recorded() {
    let mut guarded = Guarded::start();
    let reload = |guarded: &Guarded, settings: &str, done: &str| {
        fs::write(guarded.daemon.dir.path().join("granary.toml"), settings).unwrap();
        let before = guarded.daemon.log().matches(done).count();
        let pid = guarded.daemon.pid().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        wait_until(done, || guarded.daemon.log().matches(done).count() > before);
    };
    let access = "security.access = true\n";
    let changed = format!("{access}limits.series_max = 12345\nlimits.query_points_max = 3\n");
    reload(&guarded, &changed, "reloaded the settings");
    reload(&guarded, "limits.series_max = 0", "the reload failed");
    guarded.daemon.stop();
    fs::write(guarded.daemon.dir.path().join("granary.toml"), changed).unwrap();
    let data = guarded.daemon.data("").display().to_string();
    for words in [["verify", "--repair", &data], ["rebuild", "--granularity=1h", &data]] {
        let output = granary().args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    guarded.daemon.restart();
    guarded.admin = first_key(&guarded.daemon).unwrap();
    let all = records(&guarded, "limit=20");
    let machine: Vec<_> = all.iter().filter(|record| record["kind"] == "machine").collect();
    let shown: Vec<_> = machine
        .iter()
        .map(|record| ["who", "action", "object", "outcome"].map(|key| record[key].clone()))
        .collect();
    let uid = fs::metadata(guarded.daemon.dir.path()).unwrap().uid();
    let who = format!("uid {uid}");
    assert_eq!(
        json!(shown),
        json!([
            [who, "granary rebuild", "1h", "done"],
            [who, "granary verify --repair", "", "done"],
            ["", "SIGHUP", "", "failed"],
            ["", "SIGHUP", "limits.query_points_max, limits.series_max", "done"],
        ]),
        "{all:?}"
    );
}
