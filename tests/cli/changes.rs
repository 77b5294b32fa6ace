//! Deleting and renaming series on the command line, with active senders and kill -9.

use serde_json::{Value, json};

use crate::daemon::{Answer, Daemon, client, granary};

fn send_request(daemon: &Daemon, method: &str, path: &str, body: &str) -> Answer {
    let request = ureq::http::Request::builder().method(method);
    let request = request.header("Content-Type", "application/json");
    let request = request.uri(format!("{}{path}", daemon.url)).body(body.to_owned()).unwrap();
    let mut response = client().run(request).unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status: response.status().as_u16(), body }
}

fn rename(daemon: &Daemon, from: &str, to: &str) -> Answer {
    let body = json!({"selector": {"tags": {"host": from}}, "set": {"tags": {"host": to}}});
    send_request(daemon, "POST", "/api/v1/admin/series/rename", &body.to_string())
}

/// Returns the number of samples of a metric on a host, or `None` if the series does not exist.
fn count_samples(daemon: &Daemon, metric: &str, host: &str) -> Option<f64> {
    let tags = format!("host={host}");
    let args = ["chart", "--metric", metric, "--tags", &tags, "--display", "count"];
    let answer = daemon.query(&[&args[..], &["--range", "1h", "--resolution", "1m"]].concat());
    let points = answer["series"].get(0)?["points"].as_array().unwrap().clone();
    Some(points.iter().filter_map(|point| point[1].as_f64()).sum())
}

fn send(daemon: &Daemon, host: &str) {
    let sample = |metric| json!({"metric": metric, "tags": {"host": host}, "value": 1});
    let body = json!({"samples": [sample("cpu"), sample("mem")]});
    assert_eq!(daemon.post_json(&body).status, 200);
}

fn run_series(daemon: &Daemon, args: &[&str]) -> (bool, String) {
    let mut command = granary();
    let output = command.arg("series").args(args).args(["--url", &daemon.url]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn a_deleted_series_stays_deleted_after_a_kill_and_can_begin_anew() {
    let mut daemon = Daemon::start("");
    send(&daemon, "web1");
    send(&daemon, "web2");
    for path in ["/api/v1/series", "/api/v1/series?dry_run=true", "/api/v1/series?tags=web1"] {
        assert_eq!(send_request(&daemon, "DELETE", path, "").status, 400, "{path}");
    }
    let dry_run =
        send_request(&daemon, "DELETE", "/api/v1/series?tags=host%3Dweb1&dry_run=true", "");
    assert_eq!((dry_run.status, dry_run.body["total"].as_u64()), (200, Some(2)));
    assert_eq!(dry_run.body["series"][0]["metric"], "cpu");
    assert_eq!(count_samples(&daemon, "cpu", "web1"), Some(1.0));

    let deleted = send_request(&daemon, "DELETE", "/api/v1/series?tags=host%3Dweb1", "");
    daemon.kill();
    assert_eq!((deleted.status, deleted.body), (200, json!({"total": 2, "dry_run": false})));
    daemon.restart();
    assert_eq!(count_samples(&daemon, "cpu", "web1"), None);
    assert_eq!(count_samples(&daemon, "cpu", "web2"), Some(1.0));
    send(&daemon, "web1");
    assert_eq!(count_samples(&daemon, "cpu", "web1"), Some(1.0));

    let body = json!({"selector": {"metric": "mem", "tags": {"host": "web1"}}}).to_string();
    let deleted = send_request(&daemon, "POST", "/api/v1/admin/series/delete", &body);
    assert_eq!(deleted.body["total"], 1);
    assert_eq!(count_samples(&daemon, "mem", "web1"), None);
    assert!(daemon.metrics().contains("\ngranary_series 3\n"));
    daemon.kill();
    assert!(daemon.verify().status.success());
}

#[test]
fn a_renamed_host_keeps_its_history_after_a_kill() {
    let mut daemon = Daemon::start("");
    send(&daemon, "web1");
    let renamed = rename(&daemon, "web1", "db1");
    daemon.kill();
    assert_eq!((renamed.status, renamed.body["total"].as_u64()), (200, Some(2)));
    daemon.restart();
    assert_eq!(count_samples(&daemon, "cpu", "web1"), None);
    assert_eq!(count_samples(&daemon, "cpu", "db1"), Some(1.0));
    send(&daemon, "db1");
    assert_eq!(count_samples(&daemon, "cpu", "db1"), Some(2.0));
    // A sender that continues under the old name begins a new series, which cannot be renamed over
    // the first series.
    send(&daemon, "web1");
    assert_eq!(count_samples(&daemon, "cpu", "web1"), Some(1.0));
    let refused = rename(&daemon, "web1", "db1");
    assert_eq!((refused.status, &refused.body["error"]), (409, &json!("conflict")));
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.starts_with("2 of the new names are taken, first cpu{host=\"db1\"}"));
    assert_eq!(count_samples(&daemon, "cpu", "web1"), Some(1.0));
    for bad in ["", "[]", "{\"selector\": {}}", "{\"selector\": {}, \"set\": {\"metric\": \"x\"}}"]
    {
        let refused = send_request(&daemon, "POST", "/api/v1/admin/series/rename", bad);
        assert_eq!((refused.status, &refused.body["error"]), (400, &json!("invalid")), "{bad}");
    }
}

#[test]
fn senders_with_cached_series_begin_a_new_series_after_a_deletion_or_renaming() {
    let daemon = Daemon::start("");
    // A batch without definitions uses refs of an earlier batch on the same connection, whose
    // requests one collector handles.
    let send_numbered = |seq: u64, defines: bool| {
        let series = json!([{"ref": 0, "metric": "cpu", "tags": {"host": "a"}},
                            {"ref": 1, "metric": "cpu", "tags": {"host": "b"}}]);
        let series = if defines { series } else { json!([]) };
        let now = jiff::Timestamp::now().as_millisecond();
        let samples = json!({"refs": [0, 1], "times": [now], "values": [1, 1]});
        let batch = json!({"agent": "x", "epoch": 1, "seq": seq, "series": series,
                           "samples": samples});
        daemon.post_json(&batch)
    };
    let first = send_numbered(1, true);
    assert_eq!(first.status, 200, "{}", first.body);
    assert_eq!(send_numbered(2, false).status, 200);
    assert_eq!(
        send_request(&daemon, "DELETE", "/api/v1/series?tags=host%3Da", "").body["total"],
        1
    );
    let refused = send_numbered(3, false);
    assert_eq!((refused.status, &refused.body["error"]), (409, &json!("unknown_refs")));
    assert_eq!(send_numbered(3, true).body["accepted"], 2);
    assert_eq!(send_numbered(4, false).status, 200);
    assert_eq!(count_samples(&daemon, "cpu", "a"), Some(2.0));
    assert_eq!(count_samples(&daemon, "cpu", "b"), Some(4.0));
    assert_eq!(rename(&daemon, "b", "c").status, 200);
    assert_eq!(send_numbered(5, false).status, 409);
    assert_eq!(send_numbered(5, true).status, 200);
    assert_eq!(count_samples(&daemon, "cpu", "b"), Some(1.0));
    assert_eq!(count_samples(&daemon, "cpu", "c"), Some(4.0));

    // The collector of a connection caches the series of a line by the bytes that name it.
    let connection = client();
    let line = |body: &str| {
        let written = connection.post(format!("{}/write", daemon.url)).send(body).unwrap();
        assert_eq!(written.status(), 204);
    };
    let at = || jiff::Timestamp::now().as_nanosecond();
    line(&format!("load,host=a value=1 {}", at()));
    line(&format!("load,host=a value=1 {}", at()));
    assert_eq!(count_samples(&daemon, "load_value", "a"), Some(2.0));
    let deleted = send_request(&daemon, "DELETE", "/api/v1/series?metric=load_value", "");
    assert_eq!(deleted.body["total"], 1);
    line(&format!("load,host=a value=1 {}", at()));
    assert_eq!(count_samples(&daemon, "load_value", "a"), Some(1.0));
}

#[test]
fn the_command_line_lists_deletes_and_renames() {
    let daemon = Daemon::start("");
    send(&daemon, "web1");
    send(&daemon, "web2");
    let (succeeds, text) = run_series(&daemon, &["list", "--tags", "host=web1"]);
    assert!(
        succeeds && text.contains("cpu{host=web1}") && text.contains("2 of 2 series"),
        "{text}"
    );
    let args = ["rename", "--tags", "host=web1", "--set", "host=db1"];
    let (succeeds, text) = run_series(&daemon, &[&args[..], &["--dry-run"]].concat());
    assert!(succeeds && text.contains("mem{host=web1} -> mem{host=db1}"), "{text}");
    assert!(text.contains("2 series would be renamed; nothing was changed"), "{text}");
    let (succeeds, text) = run_series(&daemon, &args);
    assert!(succeeds && text.trim() == "renamed 2 series", "{text}");
    let (succeeds, text) =
        run_series(&daemon, &["rename", "--tags", "host=db1", "--set", "host=web2", "--dry-run"]);
    assert!(!succeeds && text.contains("2 of the new names are taken"), "{text}");
    let (succeeds, text) = run_series(&daemon, &["delete", "--tags", "host=db1", "--dry-run"]);
    assert!(succeeds && text.contains("2 series would be deleted"), "{text}");
    let (succeeds, text) = run_series(&daemon, &["delete", "--tags", "host=db1"]);
    assert!(succeeds && text.trim() == "deleted 2 series", "{text}");
    let (succeeds, text) = run_series(&daemon, &["delete"]);
    assert!(!succeeds && text.contains("give a metric or at least one tag"), "{text}");
    let (_, text) = run_series(&daemon, &["list", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["total"], 2, "{text}");
}

/// Returns four samples: two without the tag `role`, and two with the tag, as after a change of the
/// sender's settings.
fn split_samples(round: usize, metric: &str, kind: &str, values: [f64; 4]) -> Value {
    let at = crate::remote_write::minute();
    let sample = |(index, value): (i64, f64)| {
        let tags = if index < 2 {
            json!({"host": "web1", "round": round})
        } else {
            json!({"host": "web1", "round": round, "role": "web"})
        };
        json!({"metric": metric, "kind": kind, "tags": tags, "time": at + index * 60_000,
               "value": value})
    };
    (0..).zip(values).map(sample).collect()
}

#[test]
fn a_merge_that_is_killed_and_repeated_loses_nothing_and_counts_nothing_twice() {
    let rounds = 12;
    let mut daemon = Daemon::start("");
    let mut rng = fastrand::Rng::with_seed(28);
    for round in 0..rounds {
        daemon.accept(&split_samples(round, "load", "gauge", [1.0, 2.0, 3.0, 4.0]));
        daemon.accept(&split_samples(round, "hits_total", "counter", [10.0, 20.0, 5.0, 9.0]));
        let tags = format!("round={round}");
        let args = ["merge", "--tags", &tags, "--set", "role=web"];
        let mut merge_process = granary();
        merge_process.arg("series").args(args).args(["--url", &daemon.url]);
        let mut merge_process = merge_process.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(rng.u64(0..60_000)));
        daemon.kill();
        merge_process.wait().unwrap();
        daemon.restart();
        let (succeeds, text) = run_series(&daemon, &args);
        assert!(succeeds, "{text}");
        assert_eq!(run_series(&daemon, &args), (true, "merged 0 series\n".to_owned()));
        let (_, text) = run_series(&daemon, &["list", "--tags", &tags]);
        assert_eq!(text.matches("role=web").count(), 2, "{text}");
    }
    let sums = |metric: &str, display: &str, resolution: &str| -> Vec<f64> {
        let args = ["chart", "--metric", metric, "--display", display, "--range", "2d"];
        let answer = daemon.query(&[&args[..], &["--resolution", resolution]].concat());
        let series = answer["series"].as_array().unwrap().iter();
        let points = series.map(|line| line["points"].as_array().unwrap().iter());
        points.map(|points| points.filter_map(|point| point[1].as_f64()).sum()).collect()
    };
    assert_eq!(sums("load", "avg", "1m"), vec![10.0; rounds]);
    for resolution in ["1m", "5m", "1h", "1d"] {
        assert_eq!(sums("load", "count", resolution), vec![4.0; rounds], "{resolution}");
        // The growth is 10, then 5 after a reset between the series, then 4.
        assert_eq!(sums("hits_total", "total", resolution), vec![19.0; rounds], "{resolution}");
    }
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}
