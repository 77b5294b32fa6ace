//! Hosts by their agents' pings, over HTTP and across restarts of the daemon.

use serde_json::{Value, json};

use crate::daemon::{Daemon, client};

fn ping(daemon: &Daemon, pings: &Value) -> Value {
    let url = format!("{}/api/v1/ping", daemon.url);
    let body = json!({ "pings": pings }).to_string();
    let mut answer = client().post(url).content_type("application/json").send(body).unwrap();
    assert_eq!(answer.status(), 200);
    serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
}

fn of(agent: &str, started: i64) -> Value {
    json!({"agent": agent, "program": "host", "version": "1.2", "started": started,
           "interval_ms": 10_000, "sent": started, "tags": {"role": "db"}})
}

fn hosts(daemon: &Daemon, query: &str) -> Value {
    let mut answer = client().get(format!("{}/api/v1/hosts{query}", daemon.url)).call().unwrap();
    serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
}

fn names(hosts: &Value) -> Vec<&str> {
    let all = hosts["hosts"].as_array().unwrap().iter();
    all.map(|own| own["host"].as_str().unwrap()).collect()
}

#[test]
fn hosts_are_those_that_ping_and_outlive_a_stop() {
    let mut daemon = Daemon::start("");
    assert_eq!(hosts(&daemon, "")["totals"], json!({"up": 0, "late": 0, "down": 0}));
    assert!(!daemon.data("objects.redb").exists());
    let mut bad = of("bad", 5);
    bad["interval_ms"] = json!("often");
    let mut other = of("other-agent", 7);
    other["host"] = json!("web2");
    let answer = ping(&daemon, &json!([of("web1", 5), bad, other, 3]));
    assert_eq!(answer["accepted"], 2);
    assert_eq!(
        (&answer["refused"][0]["agent"], &answer["refused"][1]["agent"]),
        (&json!("bad"), &json!("pings.3"))
    );
    let listed = hosts(&daemon, "");
    assert_eq!(names(&listed), ["web1", "web2"]);
    assert_eq!((&listed["totals"]["up"], &listed["down_after_ms"]), (&json!(2), &json!(240_000)));
    let web1 = &listed["hosts"][0];
    assert_eq!(
        (&web1["state"], &web1["booted"], &web1["version"]),
        (&json!("up"), &Value::Null, &json!("1.2"))
    );
    assert_eq!(
        (&web1["tags"]["role"], &web1["agents"][0]["program"]),
        (&json!("db"), &json!("host"))
    );
    let metrics = daemon.metrics();
    for line in [
        "granary_hosts{state=\"up\"} 2",
        "granary_pings_accepted_total 2",
        "granary_pings_refused_total 2",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
    daemon.restart();
    let again = hosts(&daemon, "");
    assert_eq!(again["totals"]["up"], 2, "the daemon's time away is no silence");
    assert_eq!(again["hosts"][0]["pinged"], web1["pinged"]);
    assert_eq!(names(&hosts(&daemon, "?host=web2")), ["web2"]);

    let delete = |query: &str| {
        let answer = client().delete(format!("{}/api/v1/hosts{query}", daemon.url)).call();
        answer.unwrap().status().as_u16()
    };
    assert_eq!((delete("?host=web2"), delete("?host=web2"), delete("")), (204, 404, 400));
    daemon.kill();
    daemon.restart();
    assert_eq!(
        names(&hosts(&daemon, "")),
        ["web1"],
        "a host that was removed is gone after a crash"
    );
}

#[test]
fn a_body_that_is_not_json_or_too_long_is_refused() {
    let daemon = Daemon::start("");
    let post = |kind: &str, body: &str| {
        let url = format!("{}/api/v1/ping", daemon.url);
        client().post(url).content_type(kind).send(body).unwrap().status().as_u16()
    };
    assert_eq!(post("text/plain", "{\"pings\": []}"), 415);
    assert_eq!(post("application/json", "[]"), 400);
    assert_eq!(post("application/json", &" ".repeat(3 << 20)), 413);
    assert_eq!(post("application/json", "{\"pings\": []}"), 200);
    let many = json!({ "pings": vec![of("a", 1); 1001] }).to_string();
    assert_eq!(post("application/json", &many), 400);
}
