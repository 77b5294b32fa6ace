//! Dashboards and annotations over HTTP: conflicting saves, refused requests, and kill -9.

use std::{sync::mpsc, thread};

use serde_json::{Value, json};

use crate::daemon::{Daemon, request as send};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn dashboard_titled(title: &str) -> Value {
    json!({ "schema": 1, "title": title, "variables": [], "panels": [] })
}

fn save(daemon: &Daemon, name: &str, version: Option<u64>, dashboard: &Value) -> (u16, Value) {
    let body = json!({ "version": version, "dashboard": dashboard }).to_string();
    send(&daemon.url, "PUT", &format!("/api/v1/dashboards/{name}"), &[JSON], &body).unwrap()
}

fn get(daemon: &Daemon, path: &str) -> (u16, Value) {
    send(&daemon.url, "GET", path, &[], "").unwrap()
}

fn annotate(daemon: &Daemon, annotation: &Value) -> (u16, Value) {
    let body = annotation.to_string();
    send(&daemon.url, "POST", "/api/v1/annotations", &[JSON], &body).unwrap()
}

#[test]
fn each_version_of_a_dashboard_is_saved_once() {
    let mut daemon = Daemon::start("");
    let (status, listed) = get(&daemon, "/api/v1/dashboards");
    assert_eq!((status, listed["dashboards"].as_array().unwrap().len()), (200, 3));
    assert_eq!(save(&daemon, "mine", None, &dashboard_titled("one")).0, 200);
    let (_, stored) = get(&daemon, "/api/v1/dashboards/mine");
    let first = stored["version"].as_u64();
    let (status, saved) = save(&daemon, "mine", first, &dashboard_titled("<b>two</b>"));
    assert_eq!((status, &saved["name"]), (200, &json!("mine")));
    let (status, refused) = save(&daemon, "mine", first, &dashboard_titled("three"));
    assert_eq!((status, &refused["error"]), (409, &json!("conflict")));
    assert_eq!(refused["version"], saved["version"]);
    assert!(refused["message"].as_str().unwrap().contains("changed meanwhile"), "{refused}");
    daemon.kill();
    daemon.restart();
    let (_, stored) = get(&daemon, "/api/v1/dashboards/mine");
    assert_eq!(stored["dashboard"], dashboard_titled("<b>two</b>"));
    assert_eq!(stored["version"], saved["version"]);
    let path_of_version = |version: u64| format!("/api/v1/dashboards/mine?version={version}");
    let version = saved["version"].as_u64().unwrap();
    let delete = |path: &str| send(&daemon.url, "DELETE", path, &[], "").unwrap().0;
    assert_eq!(delete(&path_of_version(version - 1)), 409);
    assert_eq!(delete("/api/v1/dashboards/mine"), 409);
    assert_eq!(delete(&path_of_version(version)), 204);
    assert_eq!(delete(&path_of_version(version)), 404);
    assert_eq!(get(&daemon, "/api/v1/dashboards/mine").0, 404);
}

#[test]
fn an_invalid_dashboard_is_refused_with_the_location_of_the_error() {
    let daemon = Daemon::start("");
    let mut bad = dashboard_titled("x");
    bad["panels"] = json!([{ "id": "a", "x": 0, "y": 0, "w": 6, "h": 6, "title": "A",
        "kind": "chart", "queries": [{ "kind": "metric", "metric": "" }] }]);
    let (status, answer) = save(&daemon, "mine", None, &bad);
    assert_eq!((status, &answer["error"]), (400, &json!("invalid")));
    assert_eq!(answer["message"], "panels[0].queries[0].metric: it is empty");
    for (name, status) in [("hosts", 400), ("UPPER", 400), ("a%2Fb", 400), ("a%00b", 400)] {
        assert_eq!(save(&daemon, name, None, &dashboard_titled("x")).0, status, "{name}");
    }
    for (body, status) in [
        ("{", 400),
        ("{}", 400),
        ("{\"dashboard\": 5}", 400),
        ("{\"version\": -1, \"dashboard\": {}}", 400),
        (&*"[".repeat(100_000), 400),
        (&*" ".repeat(2 << 20), 413),
    ] {
        let path = "/api/v1/dashboards/mine";
        match send(&daemon.url, "PUT", path, &[JSON], body) {
            Ok((found, answer)) => assert_eq!(found, status, "{answer}"),
            // The connection ends with the answer, perhaps while the body is still being sent.
            Err(cause) => assert_eq!(status, 413, "{cause}"),
        }
    }
    let mut large = dashboard_titled("x");
    let panel = |index: usize| {
        json!({ "id": index.to_string(), "x": 0, "y": index, "w": 1, "h": 1, "title": "",
            "kind": "text", "text": "x".repeat(20_000) })
    };
    large["panels"] = (0..20).map(panel).collect();
    let (status, answer) = save(&daemon, "mine", None, &large);
    assert_eq!(status, 400);
    assert!(answer["message"].as_str().unwrap().contains("more than 262144"), "{answer}");
    assert_eq!(get(&daemon, "/api/v1/dashboards/mine").0, 404);
}

#[test]
fn after_kills_a_save_is_complete_or_absent() {
    let mut daemon = Daemon::start("");
    let (mut saved, mut version) = (0, None);
    for round in 0..8 {
        let url = daemon.url.clone();
        let (answered, answers) = mpsc::channel();
        let saver = thread::spawn(move || {
            // Saves until the daemon is killed, so the last save has no answer.
            for title in saved + 1.. {
                let body = json!({ "version": version, "dashboard": dashboard_titled(&title.to_string()) });
                let path = "/api/v1/dashboards/mine";
                match send(&url, "PUT", path, &[JSON], &body.to_string()) {
                    Ok((200, answer)) => {
                        version = answer["version"].as_u64();
                        // The receiver ends when it has counted enough saves.
                        answered.send(()).ok();
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => return title - 1,
                }
            }
            0
        });
        // The daemon is killed during the next save.
        assert_eq!(answers.iter().take(2 + round).count(), 2 + round);
        daemon.kill();
        let acknowledged = saver.join().unwrap();
        daemon.restart();
        let (status, stored) = get(&daemon, "/api/v1/dashboards/mine");
        assert_eq!(status, 200, "{stored}");
        let found: u64 = stored["dashboard"]["title"].as_str().unwrap().parse().unwrap();
        assert!(found == acknowledged || found == acknowledged + 1, "{found}, {acknowledged}");
        (saved, version) = (found, stored["version"].as_u64());
    }
    assert!(saved >= 2 * 8 + (0..8).sum::<u64>(), "{saved}");
    daemon.stop();
    assert!(daemon.verify().status.success());
}

#[test]
fn annotations_are_posted_listed_and_deleted() {
    let mut daemon = Daemon::start("");
    let (status, posted) = annotate(
        &daemon,
        &json!({ "text": "deploy <img src=x>",
        "time": 1_763_712_000_000_i64, "tags": { "host": "web1" } }),
    );
    assert_eq!(status, 201, "{posted}");
    let id = posted["id"].as_str().unwrap().to_owned();
    daemon.kill();
    daemon.restart();
    let path = "/api/v1/annotations?start=1763711000000&end=1763713000000&tags=host=web1";
    let expected = json!({ "annotations": [{ "id": id, "time": 1_763_712_000_000_i64, "end": null,
        "text": "deploy <img src=x>", "tags": { "host": "web1" }, "source": "user", "author": "" }],
        "left_out": 0 });
    assert_eq!(get(&daemon, path), (200, expected));
    let none = json!({ "annotations": [], "left_out": 0 });
    assert_eq!(get(&daemon, &path.replace("web1", "web2")), (200, none));
    for bad in ["?start=soon", "?tags=host", "?metric=a"] {
        assert_eq!(get(&daemon, &format!("/api/v1/annotations{bad}")).0, 400, "{bad}");
    }
    let (status, answer) = annotate(&daemon, &json!({ "text": "x", "tags": { "a": "\u{7}" } }));
    assert_eq!((status, &answer["error"]), (400, &json!("invalid")));
    for _ in 0..3 {
        assert_eq!(annotate(&daemon, &json!({ "text": "later" })).0, 201);
    }
    let delete = |id: &str| {
        send(&daemon.url, "DELETE", &format!("/api/v1/annotations/{id}"), &[], "").unwrap().0
    };
    assert_eq!([delete(&id), delete(&id)], [204, 404]);
    let (_, all) = get(&daemon, "/api/v1/annotations");
    let ids: Vec<_> = all["annotations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|annotation| annotation["id"].clone())
        .collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| delete(id.as_str().unwrap()) == 204));
    assert_eq!(get(&daemon, "/api/v1/annotations").1["annotations"], json!([]));
    // The list of annotations also contains the events of hosts, such as the restart of an agent.
    for started in [1_763_712_000_000_i64, 1_763_712_600_000] {
        let ping = json!({ "pings": [{ "agent": "web1", "program": "granary-agent-host",
            "version": "1", "started": started, "interval_ms": 10_000, "sent": started + 5 }] });
        let (status, answer) =
            send(&daemon.url, "POST", "/api/v1/ping", &[JSON], &ping.to_string()).unwrap();
        assert_eq!((status, &answer["accepted"]), (200, &json!(1)), "{answer}");
    }
    assert_eq!(annotate(&daemon, &json!({ "text": "all" })).0, 201);
    let sources = |tags: &str| {
        let (_, found) = get(&daemon, &format!("/api/v1/annotations?tags={tags}"));
        let found = found["annotations"].as_array().unwrap().clone();
        found
            .iter()
            .map(|annotation| annotation["source"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(sources("host=web1"), ["agent_restart", "user"]);
    assert_eq!(sources("host=web2"), ["user"]);
    // A form on another site's page can send requests with these media types.
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let headers = [("Content-Type", media_type)];
        for (method, path) in [("POST", "/api/v1/annotations"), ("PUT", "/api/v1/dashboards/mine")]
        {
            let body = json!({ "text": "x" }).to_string();
            let (status, answer) = send(&daemon.url, method, path, &headers, &body).unwrap();
            assert_eq!((status, &answer["error"]), (415, &json!("malformed")), "{media_type}");
        }
    }
    assert_eq!(sources("host=web2"), ["user"]);
}
