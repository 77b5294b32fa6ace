//! Output on a terminal of 80 columns: charts, suggestions for unknown names, and names with
//! control characters.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary};

fn command_with_80_columns(daemon: &Daemon, args: &[&str]) -> Command {
    let mut command = granary();
    command.args(args).env("GRANARY_URL", &daemon.url).env("COLUMNS", "80");
    command
}

/// Returns the output of a command, which must print nothing to standard error.
fn output_of(daemon: &Daemon, args: &[&str]) -> String {
    let output = command_with_80_columns(daemon, args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn send(daemon: &Daemon, samples: &Value) {
    let answer = daemon.post_json(&json!({ "samples": samples }));
    assert_eq!(answer.body["accepted"], samples.as_array().unwrap().len(), "{}", answer.body);
}

/// Returns the start of the current hour.
fn current_hour_start() -> i64 {
    let now = jiff::Timestamp::now().as_millisecond();
    now - now.rem_euclid(3_600_000)
}

#[test]
fn a_chart_omits_empty_slots_rounds_numbers_and_fits() {
    let daemon = Daemon::start("");
    let start = current_hour_start() - 2 * 3_600_000;
    let at = |minute: i64| start + minute * 60_000;
    let sample = |core: i64, minute: i64, value: f64| {
        json!({"metric": "cpu", "tags": {"host": "web1", "core": core.to_string()},
               "unit": "percent", "time": at(minute), "value": value})
    };
    let cores = 0..16;
    let samples = cores.flat_map(|core| {
        [sample(core, 54, 100.0 / 3.0), sample(core, 56, 12.0), sample(core, 57, core as f64)]
    });
    send(&daemon, &samples.collect());
    let time = |minute: i64| jiff::Timestamp::from_millisecond(at(minute)).unwrap();
    let args = ["query", "chart", "--metric", "cpu", "--resolution", "1m", "--start"];
    let (from, to) = (time(0).to_string(), time(60).to_string());
    let range = [&args[..], &[&from, "--end", &to]].concat();
    let text = output_of(&daemon, &range);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.starts_with("cpu{host=web1}, avg, percent\n"), "{text}");
    let row = |minute: i64| {
        let start = time(minute).strftime("%Y-%m-%d %H:%M").to_string();
        let rows = text.lines().filter(|line| line.starts_with(&start));
        let cells = rows.flat_map(|row| row.split_whitespace().skip(2));
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row(54), ["33.33"; 16]);
    assert_eq!(row(55), ["-"; 16]);
    assert_eq!(row(57)[15], "9");
    assert!(row(53).is_empty() && row(58).is_empty(), "{text}");
    let first = time(54).strftime("%H:%M are not shown").to_string();
    assert!(text.contains("54 empty slots before") && text.contains(&first), "{text}");
    assert!(text.contains("2 empty slots after"), "{text}");
    let json = daemon.query(&range[1..]);
    assert_eq!(json["series"][0]["points"][54][1], 100.0 / 3.0, "JSON has all digits");

    let merged = output_of(&daemon, &[&range[..], &["--merge"]].concat());
    assert!(merged.starts_with("cpu{host=web1}, avg, percent, of 16 series\n"), "{merged}");
    let empty_range = [&args[..], &["2026-01-01", "--end", "2026-01-01T01:00:00Z"]].concat();
    assert!(
        output_of(&daemon, &empty_range).contains("no samples from"),
        "{}",
        output_of(&daemon, &empty_range)
    );
}

#[test]
fn a_rate_of_the_current_slot_uses_the_elapsed_time() {
    let daemon = Daemon::start("");
    let now = jiff::Timestamp::now().as_millisecond();
    // The counter grows by ten per second for an hour, with a reading every 10 s.
    let reading = |i: i64| {
        json!({"metric": "steps", "kind": "counter", "time": now - (360 - i) * 10_000,
               "value": 100 * i})
    };
    send(&daemon, &(0..=360).map(reading).collect());
    let rate = |args: &[&str]| {
        let chart = ["chart", "--metric", "steps", "--range", "10m", "--display", "avg_per_sec"];
        let answer = daemon.query(&[&chart[..], args].concat());
        let points = answer["series"][0]["points"].as_array().unwrap().clone();
        let from = answer["incomplete_from"].as_i64().unwrap();
        let point = points.iter().find(|point| point[0] == from).unwrap().clone();
        (points.len(), point[1].as_f64())
    };
    for args in
        [&["--resolution", "1h"][..], &["--resolution", "5m"], &["--resolution", "1h", "--merge"]]
    {
        let (slots, Some(rate)) = rate(args) else {
            // The slot began after the last reading.
            continue;
        };
        // A slot may have begun between two readings, so its rate may be lower than ten, but never
        // higher.
        assert!(rate <= 10.0 + 1e-9, "{args:?}: {slots} {rate}");
        assert!(rate > 10.0 * 0.3, "{args:?}: {rate}");
    }
}

#[test]
fn unknown_names_are_reported_with_suggestions() {
    let daemon = Daemon::start("");
    let empty = output_of(&daemon, &["query", "series"]);
    assert!(empty.contains("the daemon has no series yet"), "{empty}");
    let sample =
        |metric: &str, host: &str| json!({"metric": metric, "tags": {"host": host}, "value": 1});
    send(
        &daemon,
        &json!([
            sample("system_cpu_user", "web1"),
            sample("system_cpu_system", "web2"),
            sample("system_load_1m", "db1"),
        ]),
    );
    let unknown_metric = "no metric is called system_cpu_usr; the nearest are system_cpu_user, \
               system_cpu_system";
    let unknown_host = "no series of system_cpu_user has host=web9; the nearest is web1";
    let unknown_tag = "no series of system_cpu_user has the tag hots; the nearest is host";
    let unspecific_note = "no series has all of host=";
    for (args, expected) in [
        (&["query", "chart", "--metric", "system_cpu_usr"][..], unknown_metric),
        (&["query", "chart", "--metric", "system_cpu_user", "--tags", "host=web9"], unknown_host),
        (&["query", "chart", "--metric", "system_cpu_user", "--tags", "hots=web1"], unknown_tag),
        (&["query", "documents", "--metric", "system_cpu_usr"], unknown_metric),
        (&["query", "documents", "--metric", "system_cpu_usr", "--unfold"], unknown_metric),
        (&["query", "series", "--metric", "system_cpu_usr"], unknown_metric),
        (&["series", "list", "--tags", "host=web7"], "no series has host=web7; the nearest are"),
        (&["query", "aggregate", "{metric: 'system_cpu_usr', pipeline: []}"], unknown_metric),
    ] {
        let text = output_of(&daemon, args);
        let text = text.replace('\n', " ");
        assert!(text.contains(expected), "{args:?}: {text}");
        assert!(!text.contains(unspecific_note), "{text}");
    }
    let mut tail = command_with_80_columns(&daemon, &["tail", "--metric", "system_cpu_usr"]);
    let mut child = tail.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains(unknown_metric) && line.contains("waiting"), "{line}");
}

#[test]
fn an_expression_is_evaluated_at_one_time_or_over_a_range() {
    let daemon = Daemon::start("");
    let start = current_hour_start() - 2 * 3_600_000;
    let sample = |host: &str, minute: i64, value: f64| {
        json!({"metric": "load", "tags": {"host": host}, "time": start + minute * 60_000,
               "value": value})
    };
    send(
        &daemon,
        &(0..30).flat_map(|m| [sample("a", m, 1.0 / 3.0), sample("b", m, m as f64)]).collect(),
    );
    let at = (start / 1000 + 20 * 60).to_string();
    let text = output_of(&daemon, &["query", "promql", "load * 2", "--at", &at]);
    assert!(
        text.contains("{host=a}") && text.contains("0.6667") && text.contains("  40 │"),
        "{text}"
    );
    let range = ["query", "promql", "sum(load)", "--range", "10m", "--step", "1m", "--at", &at];
    let text = output_of(&daemon, &range);
    assert!(text.contains("time (UTC), 1m") && text.contains("20.33"), "{text}");
    let text = output_of(&daemon, &[&range[..], &["--tz", "+05:30"]].concat());
    assert!(text.contains("time (+05:30), 1m"), "{text}");
    let json = daemon.query(&range[1..]);
    assert_eq!(json["data"]["resultType"], "matrix");
    assert_eq!(json["data"]["result"][0]["values"].as_array().unwrap().len(), 11);
    assert!(output_of(&daemon, &["query", "promql", "1 + 1"]).contains('2'));
    let invalid = command_with_80_columns(&daemon, &["query", "promql", "sum("]).output().unwrap();
    assert!(!invalid.status.success());
    let message = String::from_utf8(invalid.stderr).unwrap();
    assert!(message.contains("parse error"), "{message}");
}

#[test]
fn names_cannot_control_the_terminal() {
    let daemon = Daemon::start("");
    let unusual_name = "a\u{feff}[2Jb c\u{202e}\u{2066}31md";
    let sample = json!({"metric": "load", "tags": {"host": unusual_name, "n": "1"}, "unit": unusual_name, "value": 1});
    let other = json!({"metric": "load", "tags": {"host": "plain"}, "value": 1});
    send(&daemon, &json!([sample, other]));
    let is_plain =
        |text: &str| !text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}'));
    let metric = ["--metric", "load"];
    for args in [
        &["query", "series"][..],
        &["query", "series", "--json"],
        &["query", "chart"],
        &["query", "chart", "--json"],
        &["query", "documents"],
        &["query", "documents", "--unfold"],
        &["query", "documents", "--form", "levels", "--range", "1d"],
        &["query", "documents", "--json"],
        &["series", "list"],
        &["series", "delete", "--dry-run"],
        &["series", "rename", "--set", "n=2", "--dry-run", "--tags", "n=1"],
    ] {
        let text = output_of(&daemon, &[args, &metric].concat());
        assert!(is_plain(&text), "{args:?}: {text:?}");
    }
    let text = output_of(&daemon, &["query", "promql", "load"]);
    assert!(is_plain(&text) && text.contains("u{202e}"), "{text:?}");
    let tags = format!("host={unusual_name}x");
    let text = output_of(&daemon, &["query", "chart", "--metric", "load", "--tags", &tags]);
    assert!(is_plain(&text) && text.contains("no series of load has"), "{text:?}");
    let invalid = command_with_80_columns(
        &daemon,
        &["query", "chart", "--metric", "load", "--display", unusual_name],
    );
    let invalid = { invalid }.output().unwrap();
    assert!(!invalid.status.success() && is_plain(&String::from_utf8_lossy(&invalid.stderr)));
    let mut tail = command_with_80_columns(&daemon, &["tail", "--metric", "load"]);
    let mut child = tail.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // A line longer than the screen wraps.
    let line = (0..3).map(|_| lines.next().unwrap().unwrap()).collect::<Vec<_>>().join("|");
    assert_eq!(line.matches("load{host=").count(), 2, "{line:?}");
    assert!(is_plain(&line), "{line:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
