//! Real senders with keys: the host agent, an import, and keys that are limited to some senders.

use std::{fs, process::Command};

use serde_json::json;

use super::{Guarded, secret};
use crate::printed::host_agent;

#[test]
fn a_key_for_some_senders_sends_for_no_other() {
    let guarded = Guarded::start();
    let limited = json!({ "name": "web", "scopes": ["ingest"], "senders": "web" });
    let key = guarded.key(&limited);
    let batch = |agent: &str| {
        let samples = json!([{ "metric": "load", "value": 1 }]);
        json!({ "agent": agent, "epoch": 1, "seq": 1, "samples": samples }).to_string()
    };
    let (status, answer) = guarded.send("POST", "/api/v1/ingest", &key, &batch("db1"));
    assert_eq!((status, &answer["error"]), (403, &json!("forbidden")), "{answer}");
    assert_eq!(guarded.send("POST", "/api/v1/ingest", &key, &batch("web1")).0, 200);
    let sample = json!({ "metric": "load", "value": 2, "time": "2026-11-21T08:00:00Z" });
    let correction = json!({ "agent": "web1", "replace": true, "samples": [sample] }).to_string();
    let (status, answer) = guarded.send("POST", "/api/v1/ingest", &key, &correction);
    assert_eq!((status, &answer["error"]), (403, &json!("forbidden")), "{answer}");
    let ping = |agent: &str, host: &str| {
        json!({ "agent": agent, "host": host, "program": "p", "version": "1", "started": 1,
                "interval_ms": 10_000, "sent": 1 })
    };
    let pings = [ping("web1", "web1"), ping("web1", "db1"), ping("db1", "web1")];
    let body = json!({ "pings": pings }).to_string();
    let (_, answer) = guarded.send("POST", "/api/v1/ping", &key, &body);
    let refused = answer["refused"].as_array().unwrap().len();
    assert_eq!((&answer["accepted"], refused), (&json!(1), 2), "{answer}");
    let (_, hosts) = guarded.send("GET", "/api/v1/hosts", &guarded.admin, "");
    assert!(!hosts.to_string().contains("db1"), "{hosts}");
}

#[test]
fn a_host_agent_delivers_with_a_key_and_keeps_its_spool_without_one() {
    let guarded = Guarded::start();
    let dir = guarded.daemon.dir.path();
    let (spool, file) = (dir.join("spool"), dir.join("agent.key"));
    let run = |key: Option<&str>| {
        let mut command = Command::new(host_agent());
        command.args(["--url", &guarded.daemon.url, "--agent-id", "web1", "--rounds", "1"]);
        command.args(["--interval", "100ms"]).arg("--spool-dir").arg(&spool);
        if let Some(key) = key {
            fs::write(&file, key).unwrap();
            command.arg("--key-file").arg(&file);
        }
        command.output().unwrap()
    };
    let stranger = run(None);
    let log = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(log.contains("status 401 no_key this daemon requires a key"), "{log}");
    let series = || {
        let (_, answer) = guarded.send("GET", "/api/v1/series", &guarded.admin, "");
        answer.to_string().matches("web1").count()
    };
    assert_eq!(series(), 0);
    let limited = json!({ "name": "web1", "scopes": ["ingest"], "senders": "web1" });
    let key = guarded.key(&limited);
    let delivered = run(Some(&key));
    let log = String::from_utf8_lossy(&delivered.stderr).into_owned();
    assert!(delivered.status.success(), "{log}");
    assert!(series() > 10, "{log}");
    // The rounds of the first run were in the spool.
    let path = "/api/v1/chart?metric=system_load_1m&range=1h&resolution=1m&display=count";
    let (_, chart) = guarded.send("GET", path, &guarded.admin, "");
    let points = chart["series"][0]["points"].as_array().unwrap();
    let count: f64 = points.iter().filter_map(|point| point[1].as_f64()).sum();
    assert_eq!(count, 2.0, "{chart}");
    assert!(!log.contains(secret(&key)), "{log}");
}

#[test]
fn an_import_and_an_export_use_the_key() {
    let guarded = Guarded::start();
    let key = guarded.scoped("mover", &["ingest", "read"]);
    let file = guarded.daemon.dir.path().join("lines.txt");
    fs::write(&file, "load,host=a value=5 1700000000000000000\n").unwrap();
    let words = ["import", "--format", "influx", file.to_str().unwrap()];
    let output = guarded.run(&key, &words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let times = ["--start", "2023-11-01", "--end", "2023-12-01", "--resolution", "1d"];
    let words =
        [&["export", "--metric", "load_value", "--format", "csv", "--output", "-"][..], &times]
            .concat();
    let output = guarded.run(&key, &words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("load"), "{text}");
    let output = guarded.run("gry_wrong", &words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the key is not valid"), "{text}");
}
