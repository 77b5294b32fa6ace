//! The first week of a new user: imports that are deleted, repeated, overlap with live samples or
//! are dry runs, and the output of the commands.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, granary},
    import::{ImportOutput, import, points},
    remote_write::minute,
};

fn run(daemon: &Daemon, words: &[&str]) -> Output {
    granary().args(words).args(["--url", &daemon.url]).output().unwrap()
}

fn write(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns four readings per room, a minute apart: 20 in the lab, 22 in the office.
fn rooms(at: i64) -> String {
    let line = |index: i64| {
        let at = at + index * 60_000;
        format!("{at},lab,20\n{at},office,22\n")
    };
    "time,room,celsius\n".to_owned() + &(0..4).map(line).collect::<String>()
}

const AS_ROOMS: [&str; 4] = ["--csv-metric", "room_celsius", "--csv-value", "celsius"];

fn import_rooms(daemon: &Daemon, file: &Path, more: &[&str]) -> ImportOutput {
    import(daemon, &[&AS_ROOMS, more, &[path(file)]].concat())
}

/// Returns the number of samples of each room, and their average.
fn stored_rooms(daemon: &Daemon) -> Vec<(String, f64, f64)> {
    let read = |display| {
        let words = ["chart", "--metric", "room_celsius", "--resolution", "1d", "--range", "2d"];
        daemon.query(&[&words[..], &["--display", display]].concat())
    };
    let (counts, averages) = (read("count"), read("avg"));
    let number = |series: &Value| {
        let points = series["points"].as_array().unwrap().iter();
        points.filter_map(|point| point[1].as_f64()).sum::<f64>()
    };
    let both =
        counts["series"].as_array().unwrap().iter().zip(averages["series"].as_array().unwrap());
    both.map(|(count, average)| {
        let room = count["tags"]["room"].as_str().unwrap().to_owned();
        let days = average["points"].as_array().unwrap().iter().filter(|point| !point[1].is_null());
        (room, number(count), number(average) / days.count().max(1) as f64)
    })
    .collect()
}

fn both(lab: f64, office: f64) -> Vec<(String, f64, f64)> {
    vec![("lab".to_owned(), lab, 20.0), ("office".to_owned(), office, 22.0)]
}

/// Returns the sender of a file in the output of `granary senders`.
fn sender_of(daemon: &Daemon, file: &str) -> String {
    let output = run(daemon, &["senders", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names =
        listed["senders"].as_array().unwrap().iter().filter_map(|sender| sender["agent"].as_str());
    let mut matching: Vec<_> = names.filter(|name| name.ends_with(file)).collect();
    assert_eq!(matching.len(), 1, "{listed}");
    matching.remove(0).to_owned()
}

#[test]
fn a_repeated_import_reports_deleted_series_and_can_restore_them_once() {
    let mut daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir, "rooms.csv", &rooms(minute()));
    assert_eq!(import_rooms(&daemon, &file, &[]).counts(), (8, 0, 0));
    assert_eq!(stored_rooms(&daemon), both(4.0, 4.0));

    // All series are deleted: a repeated import does not claim that they exist.
    assert!(run(&daemon, &["series", "delete", "--metric", "room_celsius"]).status.success());
    let sender = sender_of(&daemon, "rooms.csv");
    for restart in [true, false] {
        let again = import_rooms(&daemon, &file, &[]);
        assert_eq!((again.code, again.counts()), (Some(1), (0, 8, 0)), "{}", again.errors);
        assert_eq!(again.summary["emptied"], 8);
        let message = format!(
            "rooms.csv: 8 of 8 samples were accepted before but no longer exist: their series \
             were deleted, renamed or merged; to import the file again: granary \
             senders remove '{sender}', then repeat the import"
        );
        assert!(again.errors.contains(&message), "{}", again.errors);
        if restart {
            assert_eq!(daemon.stop(), Some(0));
            daemon.restart();
        }
    }
    assert!(run(&daemon, &["senders", "remove", &sender]).status.success());
    let again = import_rooms(&daemon, &file, &[]);
    assert_eq!((again.code, again.counts()), (Some(0), (8, 0, 0)), "{}", again.errors);
    assert_eq!(stored_rooms(&daemon), both(4.0, 4.0));

    // A part is deleted: that part is imported again, and the rest does not count twice.
    assert!(run(&daemon, &["series", "delete", "--tags", "room=lab"]).status.success());
    let again = import_rooms(&daemon, &file, &[]);
    assert_eq!((again.code, again.summary["emptied"].as_u64()), (Some(1), Some(4)));
    assert!(
        again.errors.contains("repeat the import with the --metric and --tags"),
        "{}",
        again.errors
    );
    let part = import_rooms(&daemon, &file, &["--tags", "room=lab"]);
    assert_eq!((part.code, part.counts()), (Some(0), (4, 0, 0)), "{}", part.errors);
    assert_eq!(part.summary["left_out"], 4);
    assert_eq!(stored_rooms(&daemon), both(4.0, 4.0));
    // After the numbers of the whole file are forgotten, an import of it would count twice: it is
    // refused before it sends anything.
    assert!(run(&daemon, &["senders", "remove", &sender]).status.success());
    let whole = import_rooms(&daemon, &file, &[]);
    assert_eq!(whole.code, Some(1), "{}", whole.errors);
    assert!(whole.errors.contains("nothing was sent"), "{}", whole.errors);
    assert_eq!(stored_rooms(&daemon), both(4.0, 4.0));
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn numbered_batches_with_deleted_series_are_reported() {
    let daemon = Daemon::start("");
    let batch = |seq: u64, metrics: &[&str]| {
        let samples: Vec<_> =
            metrics.iter().map(|metric| json!({"metric": metric, "value": 1})).collect();
        json!({"agent": "cron", "epoch": 1, "seq": seq, "samples": samples})
    };
    assert_eq!(daemon.post_json(&batch(1, &["a", "b"])).body["accepted"], 2);
    // A retry of existing samples has no such note.
    let retry =
        daemon.post_json(&json!([batch(1, &["a", "b"]), batch(2, &["a"]), batch(2, &["a"])]));
    assert_eq!((&retry.body["duplicates"], &retry.body["emptied"]), (&json!(3), &Value::Null));
    let renamed = ["series", "rename", "--metric", "a", "--set-metric", "c"];
    assert!(run(&daemon, &renamed).status.success());
    let retry = daemon.post_json(&batch(1, &["a", "b"]));
    assert_eq!(
        (&retry.body["duplicates"], &retry.body["emptied"]),
        (&json!(2), &json!({"cron": 1}))
    );
    // A batch number that is too old to be known also has the note.
    assert_eq!(daemon.post_json(&batch(5000, &["b"])).body["accepted"], 1);
    let stale = daemon.post_json(&batch(1, &["a", "b"])).body;
    assert_eq!(
        (&stale["refused"], &stale["emptied"]),
        (&json!({"stale_number": 2}), &json!({"cron": 1}))
    );
}

#[test]
fn a_dry_run_shows_metrics_kinds_times_and_tags() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    let file = write(&dir, "rooms.csv", &rooms(at));
    let dry = import_rooms(&daemon, &file, &["--dry-run"]);
    assert_eq!((dry.code, dry.counts()), (Some(0), (0, 0, 0)), "{}", dry.errors);
    let expected = json!([{
        "metric": "room_celsius", "kind": "gauge", "series": 2, "samples": 8,
        "start": at, "end": at + 180_000,
        "tags": {"room": {"values": 2, "first": ["lab", "office"]}},
    }]);
    assert_eq!(dry.summary["metrics"], expected);
    let words = [&["import", "--dry-run"], &AS_ROOMS[..], &[path(&file)]].concat();
    let shown = String::from_utf8(run(&daemon, &words).stdout).unwrap();
    for part in ["room_celsius", "gauge", "room (2): lab, office", "nothing was sent"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(daemon.query(&["series"])["total"], 0);
    // Without a daemon, the dry run says which comparisons are missing.
    let mut alone = granary();
    alone.args(["import", "--dry-run", "--json", "--url", "http://127.0.0.1:1"]);
    let output = alone.args(AS_ROOMS).arg(&file).output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &summary["metrics"]), (Some(0), &expected));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not compared with the daemon"));
}

#[test]
fn texts_in_line_protocol_are_counted_and_do_not_fail_an_import() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    let text = format!("m,host=a v=1,note=\"up\",state=\"a b\" {at}\nm,host=a v=2 {}\n", at + 1);
    let file = write(&dir, "a.lp", &text);
    let got = import(&daemon, &["--precision", "ms", path(&file)]);
    assert_eq!((got.code, got.counts()), (Some(0), (2, 0, 0)), "{}", got.errors);
    assert_eq!(got.summary["text_fields"], 2);
    assert!(got.errors.contains("field note of m is a text"), "{}", got.errors);
    let shown = run(&daemon, &["import", "--precision", "ms", path(&file)]).stdout;
    assert!(String::from_utf8(shown).unwrap().contains("text fields (not stored)"));
    // Other errors in the same file are still refused.
    let file = write(&dir, "b.lp", &format!("m v=1,note=\"up\" {at}\nm v= {at}\n"));
    let got = import(&daemon, &["--precision", "ms", path(&file)]);
    assert_eq!((got.code, got.counts()), (Some(2), (1, 0, 1)), "{}", got.errors);
}

#[test]
fn an_import_that_overlaps_live_samples_is_refused_until_its_range_is_limited() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    // Live samples of the last two minutes, of the lab only, equal to the samples of the file.
    let live: Vec<_> = (2..4)
        .map(|index| {
            json!({"metric": "room_celsius", "tags": {"room": "lab"}, "time": at + index * 60_000,
                   "value": 20.0})
        })
        .collect();
    daemon.accept(&json!(live));
    let file = write(&dir, "rooms.csv", &rooms(at));
    for words in [&[][..], &["--dry-run"]] {
        let got = import_rooms(&daemon, &file, words);
        assert_eq!(got.code, Some(i32::from(words.is_empty())), "{}", got.errors);
        assert!(got.errors.contains("samples of 1 series"), "{}", got.errors);
        assert!(got.errors.contains("room_celsius{room=lab}: the daemon has"), "{}", got.errors);
    }
    assert_eq!(stored_rooms(&daemon), [("lab".to_owned(), 2.0, 20.0)]);
    let message = import_rooms(&daemon, &file, &[]).errors;
    let cut = message.split("--max-time ").nth(1).unwrap().split_whitespace().next().unwrap();
    let got = import_rooms(&daemon, &file, &["--max-time", cut]);
    assert_eq!((got.code, got.counts()), (Some(0), (4, 0, 0)), "{}", got.errors);
    assert_eq!(got.summary["left_out"], 4);
    let expected = vec![("lab".to_owned(), 4.0, 20.0), ("office".to_owned(), 2.0, 22.0)];
    assert_eq!(stored_rooms(&daemon), expected);
    // The same file is the same import; the rest of the office does not overlap.
    assert_eq!(import_rooms(&daemon, &file, &["--max-time", cut]).counts(), (0, 4, 0));
    let rest = ["--min-time", cut, "--tags", "room=office"];
    assert_eq!(import_rooms(&daemon, &file, &rest).counts(), (2, 0, 0));
    assert_eq!(stored_rooms(&daemon), both(4.0, 4.0));
    // With `--overlap`, both count.
    assert_eq!(import_rooms(&daemon, &file, &["--overlap"]).counts(), (8, 0, 0));
    assert_eq!(stored_rooms(&daemon), both(8.0, 8.0));
}

#[test]
fn a_gap_between_live_samples_is_filled_without_a_note() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    let sample = |at: i64| json!({"metric": "m", "time": at, "value": 1.0});
    // The file's times are between two readings of one minute.
    daemon.accept(&json!([sample(at), sample(at + 150_000)]));
    let file = write(&dir, "a.om", &format!("m 1 {}\nm 1 {}\n", at + 60_000, at + 149_999));
    let got = import(&daemon, &[path(&file)]);
    assert_eq!((got.code, got.counts()), (Some(0), (2, 0, 0)), "{}", got.errors);
    let minutes: Vec<_> = points(&daemon, "m", "1m", "1h", "count")
        .iter()
        .map(|point| (point.0 - at, point.1))
        .collect();
    assert_eq!(minutes, [(0, 1.0), (60_000, 1.0), (120_000, 2.0)]);
}

#[test]
fn verify_names_a_running_daemon() {
    let mut daemon = Daemon::start("");
    let output = daemon.verify();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    let expected = format!("the daemon with process id {} uses this data directory", daemon.pid());
    assert!(message.contains(&expected) && message.contains("granary snapshot"), "{message}");
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn an_unreadable_request_is_not_logged_as_an_error_of_the_daemon() {
    for (filter, lines) in [("info", 0), ("debug", 1)] {
        let daemon = Daemon::start(&format!("log.filter = '{filter}'"));
        let address = daemon.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        let mut daemon = daemon;
        assert_eq!(daemon.stop(), Some(0));
        let log = daemon.log();
        assert!(!log.contains("ERROR"), "{log}");
        let logged = log.lines().filter(|line| line.contains("request cannot be read")).count();
        assert_eq!(logged, lines, "{log}");
    }
}

#[test]
fn settings_that_drop_granularities_cause_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let settings = "[[granularity]]\nslot='1m'\ndocument='1h'\npartition='6h'\nretention='48h'";
    let file = write(&dir, "granary.toml", settings);
    let output = granary().args(["check-config", "--config"]).arg(&file).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("but not at 5m, 1h, 1d"), "{message}");
    let daemon = Daemon::start(settings);
    let log = daemon.log();
    let logged = log.lines().find(|line| line.contains("but not at 5m, 1h, 1d"));
    assert!(logged.is_some_and(|line| line.contains("WARN")), "{log}");
}
