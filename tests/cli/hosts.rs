//! The states of hosts by their agents' pings, over HTTP and across restarts of the daemon.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client, granary},
    first_hour::bench,
    printed::host_agent,
};

fn send_pings(daemon: &Daemon, pings: &Value) -> Value {
    let url = format!("{}/api/v1/ping", daemon.url);
    let body = json!({ "pings": pings }).to_string();
    let mut answer = client().post(url).content_type("application/json").send(body).unwrap();
    assert_eq!(answer.status(), 200);
    serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
}

fn agent_ping(agent: &str, started: i64) -> Value {
    json!({"agent": agent, "program": "host", "version": "1.2", "started": started,
           "interval_ms": 10_000, "sent": started, "tags": {"role": "db"}})
}

fn list_hosts(daemon: &Daemon, query: &str) -> Value {
    let mut answer = client().get(format!("{}/api/v1/hosts{query}", daemon.url)).call().unwrap();
    serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
}

fn host_names(hosts: &Value) -> Vec<&str> {
    let all = hosts["hosts"].as_array().unwrap().iter();
    all.map(|host| host["host"].as_str().unwrap()).collect()
}

#[test]
fn hosts_are_listed_by_pings_and_survive_a_stop() {
    let mut daemon = Daemon::start("");
    assert_eq!(
        list_hosts(&daemon, "")["totals"],
        json!({"up": 0, "late": 0, "down": 0, "stopped": 0})
    );
    let mut bad = agent_ping("bad", 5);
    bad["interval_ms"] = json!("often");
    let mut other = agent_ping("other-agent", 7);
    other["host"] = json!("web2");
    let answer = send_pings(&daemon, &json!([agent_ping("web1", 5), bad, other, 3]));
    assert_eq!(answer["accepted"], 2);
    assert_eq!(
        (&answer["refused"][0]["agent"], &answer["refused"][1]["agent"]),
        (&json!("bad"), &json!("pings.3"))
    );
    let listed = list_hosts(&daemon, "");
    assert_eq!(host_names(&listed), ["web1", "web2"]);
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
    let listed_again = list_hosts(&daemon, "");
    assert_eq!(listed_again["totals"]["up"], 2, "the time without a daemon is not a silence");
    assert_eq!(listed_again["hosts"][0]["pinged"], web1["pinged"]);
    assert_eq!(host_names(&list_hosts(&daemon, "?host=web2")), ["web2"]);

    let delete = |query: &str| {
        let answer = client().delete(format!("{}/api/v1/hosts{query}", daemon.url)).call();
        answer.unwrap().status().as_u16()
    };
    assert_eq!((delete("?host=web2"), delete("?host=web2"), delete("")), (204, 404, 400));
    daemon.kill();
    daemon.restart();
    assert_eq!(
        host_names(&list_hosts(&daemon, "")),
        ["web1"],
        "a removed host stays removed after a crash"
    );
}

#[test]
fn the_first_ping_of_a_host_survives_a_kill() {
    let mut daemon = Daemon::start("");
    let mut crash_after = |pings: Value| {
        send_pings(&daemon, &pings);
        daemon.kill();
        daemon.restart();
        let (status, events) = crate::prometheus_api::get(&daemon, "/api/v1/annotations");
        assert_eq!(status, 200);
        let all = events["annotations"].as_array().unwrap().iter();
        let events: Vec<_> =
            all.map(|event| event["source"].as_str().unwrap().to_owned()).collect();
        let listed = list_hosts(&daemon, "");
        let names: Vec<_> = host_names(&listed).into_iter().map(str::to_owned).collect();
        (names, events, listed["hosts"][0]["version"].clone())
    };
    let (names, events, _) = crash_after(json!([agent_ping("web1", 5)]));
    assert_eq!((names, events), (vec!["web1".to_owned()], vec![]), "a new host is not an event");
    let (names, events, _) = crash_after(json!([agent_ping("web1", 5), agent_ping("web2", 5)]));
    assert_eq!((names.len(), events.len()), (2, 0), "another new host is not an event");
    let (_, events, _) = crash_after(json!([agent_ping("web1", 9)]));
    assert_eq!(events, ["agent_restart"], "the agent restarted");
    let mut newer = agent_ping("web1", 9);
    newer["version"] = json!("1.3");
    let (_, events, version) = crash_after(json!([newer]));
    assert_eq!((events.len(), version), (1, json!("1.3")), "the agent has another version");
}

#[test]
fn a_body_that_is_not_json_or_too_long_is_refused() {
    let daemon = Daemon::start("");
    let try_post = |kind: &str, body: &str| {
        let url = format!("{}/api/v1/ping", daemon.url);
        client().post(url).content_type(kind).send(body).map(|answer| answer.status().as_u16())
    };
    let post = |kind: &str, body: &str| try_post(kind, body).unwrap();
    assert_eq!(post("text/plain", "{\"pings\": []}"), 415);
    assert_eq!(post("application/json", "[]"), 400);
    // The daemon answers before it has read the body, so a slow client may find the connection
    // closed while it still sends.
    match try_post("application/json", &" ".repeat(3 << 20)) {
        Ok(status) => assert_eq!(status, 413),
        Err(ureq::Error::Io(fault)) => assert_eq!(fault.kind(), std::io::ErrorKind::BrokenPipe),
        Err(fault) => panic!("{fault}"),
    }
    assert_eq!(post("application/json", "{\"pings\": []}"), 200);
    let many = json!({ "pings": vec![agent_ping("a", 1); 1001] }).to_string();
    assert_eq!(post("application/json", &many), 400);
}

/// Polls until the closure returns a value.
fn poll_until<T>(mut find_value: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = find_value() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the condition did not hold in time");
}

fn start_agent(daemon: &Daemon) -> Child {
    let mut agent = Command::new(host_agent());
    agent.args([
        "--url",
        &daemon.url,
        "--agent-id",
        "web1",
        "--interval",
        "200ms",
        "--tag",
        "role=db",
    ]);
    agent.arg("--spool-dir").arg(daemon.dir.path().join("spool"));
    agent.stderr(Stdio::null()).spawn().unwrap()
}

fn kill_agent(mut agent: Child) {
    agent.kill().unwrap();
    agent.wait().unwrap();
}

fn stop_agent_in_order(mut agent: Child) {
    let pid = agent.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(agent.wait().unwrap().code(), Some(0));
}

#[test]
fn an_agent_reports_its_host_and_its_restarts() {
    let mut daemon = Daemon::start("");
    let first = start_agent(&daemon);
    let started = |daemon: &Daemon| {
        let listed = list_hosts(daemon, "?host=web1");
        listed["hosts"][0]["agents"][0]["started"].as_i64()
    };
    let before = poll_until(|| started(&daemon));
    let web1 = list_hosts(&daemon, "")["hosts"][0].clone();
    assert_eq!((&web1["state"], &web1["tags"]["role"]), (&json!("up"), &json!("db")));
    assert!(web1["booted"].as_i64().unwrap() < before, "{web1}");
    assert_eq!(daemon.stop(), Some(0));
    daemon.restart();
    assert_eq!(started(&daemon), Some(before));
    kill_agent(first);
    let second = start_agent(&daemon);
    let after = poll_until(|| started(&daemon).filter(|after| *after != before));
    kill_agent(second);
    let (start, end) = (before - 1000, after + 60_000);
    let range = format!("start={start}&end={end}&tags=host=web1");
    let url = format!("{}/api/v1/annotations?{range}", daemon.url);
    let mut answer = client().get(url).call().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let events: Value = serde_json::from_str(&text).unwrap();
    let event = &events["annotations"][0];
    assert_eq!(
        (&event["source"], &event["time"]),
        (&json!("agent_restart"), &json!(after)),
        "{text}"
    );

    let shown = granary().args(["hosts", "--url", &daemon.url]).env("COLUMNS", "80").output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("web1") && shown.contains("1 up, 0 late, 0 down"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let removed =
        granary().args(["hosts", "remove", "web1", "web2", "--url", &daemon.url]).output();
    assert_eq!(removed.unwrap().stdout, b"removed 1 host\n");
    assert_eq!(host_names(&list_hosts(&daemon, "")), [""; 0]);
}

#[test]
fn sparklines_show_the_samples_of_a_fleet() {
    let daemon = Daemon::start("");
    let args = ["--like", "host", "--hosts", "3", "--history", "30m", "--interval", "1m"];
    bench(&daemon, &[&args[..], &["--keep"]].concat());
    let names_of = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let lines = list_hosts(&daemon, "/sparklines");
    let fleet = ["cache-00002", "db-00001", "web-00000"];
    assert_eq!(
        (names_of(&lines["hosts"]), &lines["points"]),
        (fleet.map(str::to_owned).to_vec(), &json!(60))
    );
    let listed = list_hosts(&daemon, "");
    assert_eq!(host_names(&listed), fleet);
    assert_eq!(listed["hosts"][2]["tags"], json!({"datacenter": "dc0", "role": "web"}));
    for host in fleet {
        for line in ["cpu", "memory", "disk", "network"] {
            let sparkline = &lines["hosts"][host][line];
            let points = sparkline["line"].as_str().unwrap();
            assert_eq!(points.len(), 60, "{sparkline}");
            let points_with_values = points.chars().filter(|step| *step != '.').count();
            assert!((27..=31).contains(&points_with_values), "{host} {line}: {sparkline}");
        }
    }
}

/// Regression: each stop of an agent for maintenance raised `HostDown`.
#[test]
fn a_host_is_stopped_after_an_agents_clean_stop_but_not_after_a_kill() {
    let mut daemon = Daemon::start("");
    let state = |daemon: &Daemon| list_hosts(daemon, "")["hosts"][0]["state"].clone();
    let first = start_agent(&daemon);
    poll_until(|| (state(&daemon) == "up").then_some(()));
    stop_agent_in_order(first);
    assert_eq!(state(&daemon), "stopped");
    daemon.kill();
    daemon.restart();
    assert_eq!(state(&daemon), "stopped", "a restart of the daemon keeps the state");
    let output = granary().args(["hosts", "--url", &daemon.url]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("0 up, 0 late, 0 down, 1 stopped"), "{shown}");
    let second = start_agent(&daemon);
    poll_until(|| (state(&daemon) == "up").then_some(()));
    kill_agent(second);
    assert_eq!(state(&daemon), "up", "only silence follows a kill");
}
