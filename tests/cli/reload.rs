//! Changes of settings while the daemon runs: SIGHUP, `POST /-/reload` and `granary config diff`.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary, request};

fn reload(daemon: &Daemon) -> (u16, Value) {
    request(&daemon.url, "POST", "/-/reload", &[], "").unwrap()
}

fn write_settings(daemon: &Daemon, settings: &str) {
    fs::write(daemon.dir.path().join("granary.toml"), settings).unwrap();
}

fn keys_of(listed: &Value) -> Vec<&str> {
    listed
        .as_array()
        .unwrap()
        .iter()
        .map(|listed_setting| listed_setting["key"].as_str().unwrap())
        .collect()
}

fn get(daemon: &Daemon, path: &str) -> Value {
    let (status, answer) = request(&daemon.url, "GET", path, &[], "").unwrap();
    assert_eq!(status, 200, "{answer}");
    answer
}

fn config_diff(daemon: &Daemon, args: &[&str]) -> String {
    let mut command = granary();
    command.args(["config", "diff", "--url", &daemon.url]).args(args);
    let output = command.env("GRANARY__TELEMETRY__INTERVAL", "").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the limit of a setting that the status shows.
fn limit_in_status(daemon: &Daemon, setting: &str) -> Value {
    let limits = get(daemon, "/api/v1/status")["limits"].clone();
    let found = limits
        .as_array()
        .unwrap()
        .iter()
        .find(|limit| [&limit["setting"], &limit["name"]].contains(&&Value::from(setting)));
    found.unwrap()["max"].clone()
}

#[test]
fn a_reload_applies_settings_and_names_what_needs_a_restart() {
    let daemon = Daemon::start("[limits]\nseries_max = 1000\n");
    let define = |name: &str| {
        daemon.post_json(&json!({ "samples": [
        { "metric": "load", "tags": { "host": name }, "value": 1.0 } ] }))
    };
    assert_eq!(define("a").body["accepted"], 1);
    let file = "[graphite]\nlisten = '127.0.0.1:1'\n\
        [server]\nhost_names = ['granary.example.com']\n\
        [limits]\nseries_max = 1\nquery_points_max = 3\nquery_memory_max = 2000000\n\
        [ingest]\nbody_memory_max = 300000000\n\
        [log]\nformat = 'json'\nfilter = 'debug'\n\
        [storage]\ncheckpoint_interval = '1h'\n";
    let host = [("Host", "granary.example.com")];
    assert_eq!(request(&daemon.url, "GET", "/api/v1/status", &host, "").unwrap().0, 421);
    write_settings(&daemon, file);
    let diff = config_diff(&daemon, &[]);
    for part in ["graphite.listen", "with a restart", "limits.series_max", "1000", "with a reload"]
    {
        assert!(diff.contains(part), "{part} in {diff}");
    }
    assert_eq!(limit_in_status(&daemon, "limits.series_max"), 1000);
    let (status, answer) = reload(&daemon);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (keys_of(&answer["kept"]), &answer["reopens"]),
        (vec!["graphite.listen"], &json!(false))
    );
    assert_eq!(
        keys_of(&answer["changed"]),
        [
            "ingest.body_memory_max",
            "limits.query_memory_max",
            "limits.query_points_max",
            "limits.series_max",
            "log.filter",
            "log.format",
            "server.host_names",
            "storage.checkpoint_interval",
        ]
    );
    assert_eq!(request(&daemon.url, "GET", "/api/v1/status", &host, "").unwrap().0, 200);
    assert_eq!(limit_in_status(&daemon, "limits.series_max"), 1);
    assert_eq!(limit_in_status(&daemon, "bytes of queries"), 2_000_000);
    assert_eq!(limit_in_status(&daemon, "queries under way"), 1);
    assert_eq!(limit_in_status(&daemon, "ingest.body_memory_max"), 300_000_000);
    let refused = define("b");
    assert!(refused.body.to_string().contains("series_limit"), "{}", refused.body);
    let line = daemon.log().lines().last().unwrap().to_owned();
    assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
    assert!(daemon.metrics().contains("granary_config_last_reload_successful 1"));
    write_settings(&daemon, "");
    let (status, answer) = reload(&daemon);
    assert_eq!((status, keys_of(&answer["kept"])), (200, vec![]), "{answer}");
    assert!(define("b").body["accepted"] == 1, "the limit is the default again");
}

#[test]
fn settings_or_rules_that_are_invalid_change_nothing() {
    let daemon = Daemon::start("[limits]\nseries_max = 1000\n");
    let shown = |daemon: &Daemon| get(daemon, "/api/v1/admin/settings");
    let before = shown(&daemon);
    assert_eq!(before["settings"]["limits"]["series_max"], 1000);
    for (text, part) in [
        ("[limits]\nseries_maxx = 5", "series_maxx"),
        ("[limits]\nseries_max = 0", "series_max"),
        ("[limits\n", "granary.toml"),
        ("[limits]\nseries_max = 9\n[log]\nfilter = 'a=b=c'", "log.filter"),
        ("[limits]\nseries_max = 9\n[alerts]\nrules = ['/nowhere/a.yml']", "/nowhere/a.yml"),
    ] {
        write_settings(&daemon, text);
        let (status, answer) = reload(&daemon);
        assert_eq!(status, 500, "{text}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains(part), "{part} in {answer}");
        assert_eq!(shown(&daemon), before, "{text}");
    }
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_config_last_reload_successful 0"));
    assert!(metrics.contains("granary_config_reload_failures_total 5"));
    assert_eq!(limit_in_status(&daemon, "limits.series_max"), 1000);
}

#[test]
fn the_difference_to_a_file_hides_secrets_and_ignores_settings_of_flags() {
    let alertmanager = |password: &str| {
        format!("[alerts]\nalertmanagers = ['http://ann:{password}@127.0.0.1:1']\n")
    };
    let daemon = Daemon::start(&alertmanager("first"));
    let other = daemon.dir.path().join("other.toml");
    let diff = |text: &str| {
        fs::write(&other, text).unwrap();
        config_diff(&daemon, &["--config", other.to_str().unwrap()])
    };
    assert_eq!(diff(&alertmanager("first")), "a reload would change no setting\n");
    let found = diff("[server]\nlisten = '127.0.0.1:9'\n[storage]\ncheckpoint_interval = '20m'\n");
    assert!(found.contains("storage.checkpoint_interval") && found.contains("20m"), "{found}");
    assert!(!found.contains("server.listen") && !found.contains("first"), "{found}");
    assert!(found.contains("http://***@127.0.0.1:1"), "{found}");
    // The daemon reports that a hidden part differs without printing it.
    write_settings(&daemon, &alertmanager("second"));
    let found = config_diff(&daemon, &[]);
    assert!(found.contains("a hidden part differs") && !found.contains("second"), "{found}");
    let shown = get(&daemon, "/api/v1/admin/settings").to_string();
    assert!(!shown.contains("first") && shown.contains("checkpoint_interval"), "{shown}");
}

#[test]
fn a_longer_retention_applies_at_once_and_another_granularity_opens_the_store_again() {
    let granularities_with = |slot: &str, retention: &str| {
        format!(
            "[[granularity]]\nslot = '{slot}'\ndocument = '1m'\npartition = '1h'\n\
             retention = '{retention}'\n[[granularity]]\nslot = '1m'\ndocument = '1h'\n\
             partition = '6h'\nretention = '48h'\n"
        )
    };
    let mut daemon = Daemon::start(&granularities_with("1s", "6h"));
    let retentions = |daemon: &Daemon| {
        let stored = get(daemon, "/api/v1/storage")["granularities"].clone();
        let all = stored.as_array().unwrap().iter();
        all.map(|listed_setting| listed_setting["retention"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(retentions(&daemon), ["6h", "2d"]);
    write_settings(&daemon, &granularities_with("1s", "12h"));
    let (_, answer) = reload(&daemon);
    assert_eq!(keys_of(&answer["changed"]), ["granularity.1s.retention"], "{answer}");
    assert_eq!(retentions(&daemon), ["12h", "2d"]);
    let old = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(9)).to_string();
    daemon.accept(&json!([{ "metric": "load", "tags": {}, "value": 4.0, "time": old }]));
    let chart = ["chart", "--metric", "load", "--range", "10h", "--resolution", "1s"];
    let found = daemon.query(&chart).to_string();
    assert!(found.contains("4.0"), "the sample is stored at 1s: {found}");
    daemon.kill();
    daemon.restart();
    assert_eq!(retentions(&daemon), ["12h", "2d"]);
    assert!(daemon.query(&chart).to_string().contains("4.0"));
    // Another granularity: the old one keeps its files.
    write_settings(&daemon, &granularities_with("10s", "12h"));
    assert!(config_diff(&daemon, &[]).contains("opens the store again"));
    let (_, answer) = reload(&daemon);
    assert_eq!(keys_of(&answer["changed"]), ["granularity"], "{answer}");
    assert_eq!(answer["reopens"], true, "{answer}");
    assert_eq!(retentions(&daemon), ["12h", "2d", "12h"]);
    daemon.accept(&json!([{ "metric": "load", "tags": {}, "value": 5.0 }]));
    let chart = ["chart", "--metric", "load", "--range", "10h", "--resolution", "10s"];
    let found = daemon.query(&chart).to_string();
    assert!(found.contains("5.0"), "{found}");
    assert!(daemon.log().contains("the store is opened again"), "{}", daemon.log());
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn systemd_is_notified_of_the_beginning_and_the_end_of_a_reload() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let config = dir.path().join("granary.toml");
    fs::write(&config, "").unwrap();
    let mut child = granary()
        .args(["serve", "--listen", &address, "--data-dir"])
        .arg(dir.path().join("data"))
        .arg("--config")
        .arg(&config)
        .env("NOTIFY_SOCKET", &path)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let next_message = || {
        let mut bytes = [0; 4096];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
    };
    assert_eq!(next_message(), "READY=1");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let reloading = next_message();
    let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(since.parse::<u64>().unwrap() > 0, "{reloading}");
    assert_eq!(next_message(), "READY=1");
    // A reload that opens the store again ends when the store is open.
    fs::write(&config, "[server]\nworkers = 3\n").unwrap();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    for message in ["RELOADING=1", "READY=1"] {
        assert!(next_message().starts_with(message));
    }
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(next_message(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
}

#[test]
fn samples_that_arrive_during_reloads_count_once() {
    let mut daemon = Daemon::start("[limits]\nseries_max = 100\n");
    let is_finished = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let send = || {
            let mut sent = 0;
            while !is_finished.load(Ordering::Relaxed) {
                let sample = json!({ "metric": "load", "tags": {}, "value": 1.0 });
                daemon.accept(&json!([sample, sample]));
                sent += 2;
            }
            sent
        };
        let sender = scope.spawn(send);
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..60 {
            let max = rng.usize(100..200);
            let (interval, hours) = (rng.usize(1..9), 6 * rng.usize(1..9));
            let levels = crate::daemon::granularities(&[
                ["1m", "1h", "6h", &format!("{hours}h")],
                ["5m", "4h", "1d", "14d"],
                ["1h", "1d", "1w", "9w"],
                ["1d", "1mo", "1y", "5y"],
            ]);
            write_settings(
                &daemon,
                &format!(
                    "[limits]\nseries_max = {max}\n[storage]\n\
                     checkpoint_interval = '{interval}s'\n[promql]\nlookback = '{interval}m'\n\
                     [preallocation]\nenabled = {}\n{levels}",
                    rng.bool()
                ),
            );
            let (status, answer) = reload(&daemon);
            assert_eq!(status, 200, "{answer}");
        }
        is_finished.store(true, Ordering::Relaxed);
        sender.join().unwrap()
    });
    let count = |daemon: &Daemon| {
        let found = daemon.query(&["promql", "sum(count_over_time(load[1h]))"]);
        found["data"]["result"][0]["value"][1].as_str().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(count(&daemon), f64::from(sent));
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
    daemon.restart();
    assert_eq!(count(&daemon), f64::from(sent));
}

/// Returns settings whose rules and granularities differ from those of the previous turn.
fn rules_and_granularities(turn: usize) -> String {
    let rule = |name: &str, keep: &str| {
        format!(
            "[[retention.rule]]\nname = '{name}'\nselector = '{{__name__=~\"load_{name}\"}}'\n\
             keep = {{ {keep} }}\n"
        )
    };
    let rules = match turn % 4 {
        0 => rule("a", "1m = '12h'").replace("load_a", "load_0"),
        1 => rule("b", "1m = 'none'").replace("load_b", "load_[01]"),
        2 => rule("a", "5m = 'none'").replace("load_a", ".*") + &rule("b", ""),
        _ => String::new(),
    };
    let mut levels = vec![["1m", "1h", "6h", "2d"], ["5m", "4h", "1d", "14d"]];
    if !turn.is_multiple_of(3) {
        levels.push(["1h", "1d", "1w", "9w"]);
    }
    levels.push(["1d", "1mo", "1y", "5y"]);
    rules + &crate::daemon::granularities(&levels)
}

#[test]
fn rules_and_granularities_change_while_samples_arrive() {
    let mut daemon = Daemon::start("[limits]\nseries_max = 100\n");
    let is_finished = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let daemon = &daemon;
        // A batch with a number is repeated until it is answered, as agents do.
        let send = |sender: usize| {
            let mut sent = 0;
            while !is_finished.load(Ordering::Relaxed) {
                let time = jiff::Timestamp::now().to_string();
                let sample = json!({ "metric": format!("load_{sender}"), "tags": {},
                    "value": 1.0, "time": time });
                let batch = json!({ "agent": format!("sender {sender}"), "epoch": 1,
                    "seq": sent + 1, "samples": [sample] });
                let body = batch.to_string();
                let answer = loop {
                    let headers = [("Content-Type", "application/json")];
                    match request(&daemon.url, "POST", "/api/v1/ingest", &headers, &body) {
                        Ok((200, answer)) => break answer,
                        Ok((503, _)) => {}
                        Ok((status, answer)) => panic!("{status}: {answer}"),
                        Err(cause) => {
                            let cause = cause.to_string();
                            assert!(!cause.contains("refused"), "{cause}");
                        }
                    }
                };
                assert!(answer["accepted"] == 1 || answer["duplicates"] == 1, "{answer}");
                sent += 1;
            }
            sent
        };
        let senders: Vec<_> = (0..3).map(|sender| scope.spawn(move || send(sender))).collect();
        for turn in 0..8 {
            write_settings(daemon, &rules_and_granularities(turn));
            let (status, answer) = reload(daemon);
            assert_eq!((status, &answer["reopens"]), (200, &json!(true)), "{answer}");
            assert_eq!(request(&daemon.url, "GET", "/readyz", &[], "").unwrap().0, 200);
        }
        is_finished.store(true, Ordering::Relaxed);
        senders.into_iter().map(|sender| sender.join().unwrap()).collect::<Vec<u32>>()
    });
    let counts = |daemon: &Daemon| {
        let of = |sender: usize| {
            let count = format!("sum(count_over_time(load_{sender}[1d]))");
            let found = daemon.query(&["promql", &count]);
            found["data"]["result"][0]["value"][1].as_str().unwrap().parse::<f64>().unwrap()
        };
        [0, 1, 2].map(of)
    };
    let sent: Vec<_> = sent.into_iter().map(f64::from).collect();
    assert_eq!(counts(&daemon)[..], sent[..]);
    daemon.kill();
    daemon.restart();
    assert_eq!(counts(&daemon)[..], sent[..]);
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}
