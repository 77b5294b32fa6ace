//! The output on a terminal of 80 columns: charts, unknown names, odd names.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary};

fn on_80_columns(daemon: &Daemon, words: &[&str]) -> Command {
    let mut command = granary();
    command.args(words).env("GRANARY_URL", &daemon.url).env("COLUMNS", "80");
    command
}

/// The output, with nothing on standard error.
fn shown(daemon: &Daemon, words: &[&str]) -> String {
    let output = on_80_columns(daemon, words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn send(daemon: &Daemon, samples: &Value) {
    let answer = daemon.post_json(&json!({ "samples": samples }));
    assert_eq!(answer.body["accepted"], samples.as_array().unwrap().len(), "{}", answer.body);
}

/// The start of the present hour.
fn hour() -> i64 {
    let now = jiff::Timestamp::now().as_millisecond();
    now - now.rem_euclid(3_600_000)
}

#[test]
fn a_chart_omits_empty_slots_rounds_numbers_and_fits() {
    let daemon = Daemon::start("");
    let start = hour() - 2 * 3_600_000;
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
    let words = ["query", "chart", "--metric", "cpu", "--resolution", "1m", "--start"];
    let (from, to) = (time(0).to_string(), time(60).to_string());
    let range = [&words[..], &[&from, "--end", &to]].concat();
    let text = shown(&daemon, &range);
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

    let merged = shown(&daemon, &[&range[..], &["--merge"]].concat());
    assert!(merged.starts_with("cpu{host=web1}, avg, percent, of 16 series\n"), "{merged}");
    let none = [&words[..], &["2026-01-01", "--end", "2026-01-01T01:00:00Z"]].concat();
    assert!(shown(&daemon, &none).contains("no samples from"), "{}", shown(&daemon, &none));
}

#[test]
fn a_rate_of_the_current_slot_uses_the_elapsed_time() {
    let daemon = Daemon::start("");
    let now = jiff::Timestamp::now().as_millisecond();
    // Ten per second for an hour, a reading every 10 s; one line of a day that is not over.
    let reading = |i: i64| {
        json!({"metric": "steps", "kind": "counter", "time": now - (360 - i) * 10_000,
               "value": 100 * i})
    };
    send(&daemon, &(0..=360).map(reading).collect());
    let rate = |words: &[&str]| {
        let chart = ["chart", "--metric", "steps", "--range", "10m", "--display", "avg_per_sec"];
        let answer = daemon.query(&[&chart[..], words].concat());
        let points = answer["series"][0]["points"].as_array().unwrap().clone();
        let from = answer["incomplete_from"].as_i64().unwrap();
        let point = points.iter().find(|point| point[0] == from).unwrap().clone();
        (points.len(), point[1].as_f64())
    };
    for words in
        [&["--resolution", "1h"][..], &["--resolution", "5m"], &["--resolution", "1h", "--merge"]]
    {
        let (slots, Some(rate)) = rate(words) else {
            // The slot began after the last reading.
            continue;
        };
        // A slot may have just begun; until then the rate is no higher than between two readings.
        assert!(rate <= 10.0 + 1e-9, "{words:?}: {slots} {rate}");
        assert!(rate > 10.0 * 0.3, "{words:?}: {rate}");
    }
}

#[test]
fn unknown_names_are_reported_with_suggestions() {
    let daemon = Daemon::start("");
    let empty = shown(&daemon, &["query", "series"]);
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
    let usr = "no metric is called system_cpu_usr; the nearest are system_cpu_user, \
               system_cpu_system";
    let web9 = "no series of system_cpu_user has host=web9; the nearest is web1";
    let hots = "no series of system_cpu_user has the tag hots; the nearest is host";
    let both = "no series has all of host=";
    for (words, expected) in [
        (&["query", "chart", "--metric", "system_cpu_usr"][..], usr),
        (&["query", "chart", "--metric", "system_cpu_user", "--tags", "host=web9"], web9),
        (&["query", "chart", "--metric", "system_cpu_user", "--tags", "hots=web1"], hots),
        (&["query", "documents", "--metric", "system_cpu_usr"], usr),
        (&["query", "documents", "--metric", "system_cpu_usr", "--unfold"], usr),
        (&["query", "series", "--metric", "system_cpu_usr"], usr),
        (&["series", "list", "--tags", "host=web7"], "no series has host=web7; the nearest are"),
        (&["query", "aggregate", "{metric: 'system_cpu_usr', pipeline: []}"], usr),
    ] {
        let text = shown(&daemon, words);
        let text = text.replace('\n', " ");
        assert!(text.contains(expected), "{words:?}: {text}");
        assert!(!text.contains(both), "{text}");
    }
    let mut tail = on_80_columns(&daemon, &["tail", "--metric", "system_cpu_usr"]);
    let mut child = tail.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains(usr) && line.contains("waiting"), "{line}");
}

#[test]
fn an_expression_is_evaluated_at_one_time_or_over_a_range() {
    let daemon = Daemon::start("");
    let start = hour() - 2 * 3_600_000;
    let sample = |host: &str, minute: i64, value: f64| {
        json!({"metric": "load", "tags": {"host": host}, "time": start + minute * 60_000,
               "value": value})
    };
    send(
        &daemon,
        &(0..30).flat_map(|m| [sample("a", m, 1.0 / 3.0), sample("b", m, m as f64)]).collect(),
    );
    let at = (start / 1000 + 20 * 60).to_string();
    let text = shown(&daemon, &["query", "promql", "load * 2", "--at", &at]);
    assert!(
        text.contains("{host=a}") && text.contains("0.6667") && text.contains("  40 │"),
        "{text}"
    );
    let range = ["query", "promql", "sum(load)", "--range", "10m", "--step", "1m", "--at", &at];
    let text = shown(&daemon, &range);
    assert!(text.contains("time (UTC), 1m") && text.contains("20.33"), "{text}");
    let text = shown(&daemon, &[&range[..], &["--tz", "+05:30"]].concat());
    assert!(text.contains("time (+05:30), 1m"), "{text}");
    let json = daemon.query(&range[1..]);
    assert_eq!(json["data"]["resultType"], "matrix");
    assert_eq!(json["data"]["result"][0]["values"].as_array().unwrap().len(), 11);
    assert!(shown(&daemon, &["query", "promql", "1 + 1"]).contains('2'));
    let wrong = on_80_columns(&daemon, &["query", "promql", "sum("]).output().unwrap();
    assert!(!wrong.status.success());
    let message = String::from_utf8(wrong.stderr).unwrap();
    assert!(message.contains("parse error"), "{message}");
}

#[test]
fn names_cannot_command_the_terminal() {
    let daemon = Daemon::start("");
    let odd = "a\u{feff}[2Jb c\u{202e}\u{2066}31md";
    let sample =
        json!({"metric": "load", "tags": {"host": odd, "n": "1"}, "unit": odd, "value": 1});
    let other = json!({"metric": "load", "tags": {"host": "plain"}, "value": 1});
    send(&daemon, &json!([sample, other]));
    let plain =
        |text: &str| !text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}'));
    let metric = ["--metric", "load"];
    for words in [
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
        let text = shown(&daemon, &[words, &metric].concat());
        assert!(plain(&text), "{words:?}: {text:?}");
    }
    let text = shown(&daemon, &["query", "promql", "load"]);
    assert!(plain(&text) && text.contains("u{202e}"), "{text:?}");
    let tags = format!("host={odd}x");
    let text = shown(&daemon, &["query", "chart", "--metric", "load", "--tags", &tags]);
    assert!(plain(&text) && text.contains("no series of load has"), "{text:?}");
    let wrong = on_80_columns(&daemon, &["query", "chart", "--metric", "load", "--display", odd]);
    let wrong = { wrong }.output().unwrap();
    assert!(!wrong.status.success() && plain(&String::from_utf8_lossy(&wrong.stderr)));
    let mut tail = on_80_columns(&daemon, &["tail", "--metric", "load"]);
    let mut child = tail.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // A line longer than the screen wraps.
    let line = (0..3).map(|_| lines.next().unwrap().unwrap()).collect::<Vec<_>>().join("|");
    assert_eq!(line.matches("load{host=").count(), 2, "{line:?}");
    assert!(plain(&line), "{line:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
