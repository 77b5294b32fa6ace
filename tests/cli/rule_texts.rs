//! Texts of rules and receivers over HTTP: saves that conflict or are refused, alerts of a text,
//! their notification, deletion, and kill -9.

use serde_json::{Value, json};

use crate::{
    alerts::{ask, poll_until, send_level},
    daemon::{Daemon, SECONDS, granularities, request},
    hook::Hook,
};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const SHOP: &str = "/api/v1/rule-files/shop";
const RECEIVERS: &str = "/api/v1/notifications";
const RULES: &str = "groups:
- name: own
  interval: 1s
  rules:
  - alert: High
    expr: level > 5
";

fn send(daemon: &Daemon, method: &str, path: &str, body: &Value) -> (u16, Value) {
    request(&daemon.url, method, path, &[JSON], &body.to_string()).unwrap()
}

fn save(daemon: &Daemon, path: &str, version: Option<u64>, text: &str) -> (u16, Value) {
    send(daemon, "PUT", path, &json!({ "version": version, "text": text }))
}

fn get(daemon: &Daemon, path: &str) -> (u16, Value) {
    request(&daemon.url, "GET", path, &[], "").unwrap()
}

fn delete(daemon: &Daemon, path: &str, version: u64) -> u16 {
    let path = format!("{path}?version={version}");
    request(&daemon.url, "DELETE", &path, &[], "").unwrap().0
}

fn groups(daemon: &Daemon) -> Vec<String> {
    let listed = ask(daemon, "/api/v1/rules");
    let groups = listed["groups"].as_array().unwrap();
    groups.iter().map(|group| group["file"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn alerts_of_a_text_fire_notify_outlive_kill_9_and_end_when_the_text_is_deleted() {
    let hook = Hook::start(None);
    let mut daemon = Daemon::start(&granularities(&SECONDS));
    let (status, saved) = save(&daemon, SHOP, None, RULES);
    assert_eq!((status, &saved["groups"], &saved["rules"]), (200, &json!(1), &json!(1)), "{saved}");
    let version = saved["version"].as_u64().unwrap();
    assert_eq!(groups(&daemon), ["page:shop"], "the rules are in use when the save is answered");
    let receivers = format!(
        "route: {{receiver: own, group_wait: 0s, group_interval: 1s}}\nreceivers:\n- name: own\n  \
         webhook_configs: [{{url: 'http://{}/'}}]\n",
        hook.address
    );
    let (status, saved) = save(&daemon, RECEIVERS, None, &receivers);
    assert_eq!((status, &saved["receivers"]), (200, &json!(1)), "{saved}");
    send_level(&daemon, 7.0);
    let status_of = |status: &str| {
        let received = hook.received_at("/");
        received.iter().any(|message| message["status"] == status).then_some(())
    };
    poll_until(&daemon, "a firing message", || status_of("firing"));
    daemon.kill();
    daemon.restart();
    let (status, found) = get(&daemon, SHOP);
    assert_eq!((status, &found["text"]), (200, &json!(RULES)));
    assert_eq!(found["version"].as_u64(), Some(version));
    assert_eq!(get(&daemon, RECEIVERS).1["text"], json!(receivers));
    let firing = || {
        let alerts = ask(&daemon, "/api/v1/alerts");
        let first = alerts["alerts"].as_array()?.first()?;
        (first["state"] == "firing").then_some(())
    };
    poll_until(&daemon, "the alert after the kill", firing);
    assert_eq!(delete(&daemon, SHOP, version), 204);
    assert_eq!(groups(&daemon), [""; 0]);
    poll_until(&daemon, "a resolved message", || status_of("resolved"));
    let (_, listed) = get(&daemon, "/api/v1/rule-files");
    assert_eq!(listed["files"], json!([]));
    assert_eq!(listed["notifications"]["editable"], true);
    assert!(!daemon.log().contains(&hook.address.to_string()), "a text is no part of the log");
}

#[test]
fn a_refused_text_changes_nothing_and_names_its_faults() {
    let daemon = Daemon::start("");
    let version = save(&daemon, SHOP, None, RULES).1["version"].as_u64().unwrap();
    let (status, refused) = save(&daemon, SHOP, None, RULES);
    assert_eq!((status, &refused["error"]), (409, &json!("conflict")), "{refused}");
    assert_eq!(refused["version"].as_u64(), Some(version));
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("the text of rules \"shop\" was changed meanwhile"), "{message}");
    let broken = RULES.replace("level > 5", "level >");
    let (status, refused) = save(&daemon, SHOP, Some(version), &broken);
    assert_eq!((status, &refused["error"]), (422, &json!("invalid")), "{refused}");
    assert_eq!(refused["faults"][0]["location"], "group \"own\", rule 1 (High)");
    let (status, checked) =
        send(&daemon, "POST", "/api/v1/rule-files/check", &json!({ "name": "x", "text": broken }));
    assert_eq!((status, checked["faults"].as_array().unwrap().len()), (200, 1), "{checked}");
    let command = "route: {receiver: a}\nreceivers: [{name: a, command_configs: [{command: [x]}]}]";
    let (status, refused) = save(&daemon, RECEIVERS, None, command);
    assert_eq!(status, 422, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("alerts.notifications"), "{refused}");
    let (status, checked) =
        send(&daemon, "POST", "/api/v1/notifications/check", &json!({ "text": command }));
    assert_eq!((status, checked["faults"].as_array().unwrap().len()), (200, 1), "{checked}");
    for (path, body, expected) in [
        (SHOP, json!({ "version": version }), 400),
        (SHOP, json!({ "version": version, "text": "x".repeat(300_000) }), 413),
        ("/api/v1/rule-files/UPPER", json!({ "text": RULES }), 400),
        ("/api/v1/rule-files/a%2Fb", json!({ "text": RULES }), 400),
    ] {
        assert_eq!(send(&daemon, "PUT", path, &body).0, expected, "{path}");
    }
    assert_eq!(delete(&daemon, SHOP, version + 1), 409);
    assert_eq!(delete(&daemon, "/api/v1/rule-files/none", 1), 404);
    assert_eq!(get(&daemon, SHOP).1["version"].as_u64(), Some(version));
    assert_eq!(get(&daemon, RECEIVERS).0, 404);
    let audit = get(&daemon, "/api/v1/admin/audit").1.to_string();
    assert!(
        audit.contains("PUT /api/v1/rule-files/{name}") && audit.contains("\"shop\""),
        "{audit}"
    );
    assert!(!audit.contains("level > 5") && !audit.contains("rule-files/check"), "{audit}");
}
