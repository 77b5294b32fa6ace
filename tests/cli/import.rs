//! Imports of each format into the real daemon, whose values are read back.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, granary},
    remote_write::{minute, request, series},
};

/// The output of `granary import`.
pub(crate) struct ImportOutput {
    pub(crate) code: Option<i32>,
    pub(crate) summary: Value,
    pub(crate) errors: String,
}

/// Runs `granary import` to its end.
pub(crate) fn import(daemon: &Daemon, args: &[&str]) -> ImportOutput {
    let mut command = granary();
    let output =
        command.args(["import", "--json", "--url", &daemon.url]).args(args).output().unwrap();
    ImportOutput {
        code: output.status.code(),
        summary: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

impl ImportOutput {
    /// Returns the numbers of accepted, duplicate, and refused samples.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let refused =
            self.summary["refused"].as_object().unwrap_or_else(|| panic!("{}", self.errors));
        let refused = refused.values().filter_map(Value::as_u64).sum();
        let count = |name: &str| self.summary[name].as_u64().unwrap();
        (count("accepted"), count("duplicates"), refused)
    }
}

/// Returns the points with values of a metric's only series.
pub(crate) fn points(
    daemon: &Daemon,
    metric: &str,
    resolution: &str,
    range: &str,
    display: &str,
) -> Vec<(i64, f64)> {
    let args = ["chart", "--metric", metric, "--resolution", resolution, "--range", range];
    let answer = daemon.query(&[&args[..], &["--display", display]].concat());
    assert_eq!(answer["series"].as_array().unwrap().len(), 1, "{metric}: {answer}");
    let points = answer["series"][0]["points"].as_array().unwrap();
    points.iter().filter_map(|point| Some((point[0].as_i64()?, point[1].as_f64()?))).collect()
}

fn write_file(dir: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Imports a file twice; the second time, all samples must be duplicates.
fn import_twice(daemon: &Daemon, args: &[&str], samples: u64) {
    let first = import(daemon, args);
    assert_eq!((first.code, first.counts()), (Some(0), (samples, 0, 0)), "{}", first.errors);
    let second = import(daemon, args);
    assert_eq!((second.code, second.counts()), (Some(0), (0, samples, 0)), "{}", second.errors);
}

/// Checks that `metric` has a sample every 15 s for four minutes, with the values 0.5, 1.5 and so
/// on.
fn check_four_minutes(daemon: &Daemon, metric: &str, at: i64) {
    let expected = |value: fn(f64) -> f64| -> Vec<_> {
        (0..4).map(|index| (at + index * 60_000, value(index as f64 * 4.0))).collect()
    };
    let read = |display| points(daemon, metric, "1m", "1h", display);
    assert_eq!(read("count"), expected(|_| 4.0), "{metric}");
    assert_eq!(read("first"), expected(|first| first + 0.5), "{metric}");
    assert_eq!(read("last"), expected(|first| first + 3.5), "{metric}");
    assert_eq!(read("avg"), expected(|first| first + 2.0), "{metric}");
}

fn sixteen_lines(at: i64, line: impl Fn(i64, f64) -> String) -> String {
    (0..16).map(|index| line(at + index * 15_000, index as f64 + 0.5) + "\n").collect()
}

#[test]
fn each_format_is_read_back_as_it_was_written_and_counts_once() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    let file = |name: &str, bytes: &[u8]| write_file(&dir, name, bytes);

    let plain =
        sixteen_lines(at, |at, value| format!("om{{a=\"b\"}} {value} {}", at as f64 / 1000.0));
    let open = file("a.om", format!("# TYPE om gauge\n{plain}# EOF\n").as_bytes());
    import_twice(&daemon, &[path_text(&open)], 16);
    check_four_minutes(&daemon, "om", at);

    let plain = sixteen_lines(at, |at, value| format!("influx,host=a value={value} {at}"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    let influx = file("a.lp.gz", &gzip.finish().unwrap());
    import_twice(&daemon, &["--precision", "ms", path_text(&influx)], 16);
    check_four_minutes(&daemon, "influx_value", at);

    let plain = "time,metric,value,host\n".to_owned()
        + &sixteen_lines(at, |at, value| format!("{at},csv,{value},a"));
    let csv = file("a.csv.zst", &zstd::bulk::compress(plain.as_bytes(), 1).unwrap());
    import_twice(&daemon, &[path_text(&csv)], 16);
    check_four_minutes(&daemon, "csv", at);
    // A file with the same content and another name is the same import.
    let again = import(&daemon, &[path_text(&file("b.csv", &fs::read(&csv).unwrap()))]);
    assert_eq!(again.counts(), (0, 16, 0));

    let samples: Vec<_> = (0..16).map(|i| (at + i * 15_000, i as f64 + 0.5)).collect();
    for (name, part) in [("bodies/1", &samples[..8]), ("bodies/2", &samples[8..])] {
        let plain = request(&[series(&[("__name__", "rw"), ("job", "x")], part)]);
        file(name, &snap::raw::Encoder::new().compress_vec(&plain).unwrap());
    }
    let bodies = dir.path().join("bodies");
    import_twice(&daemon, &["--format", "remote-write", path_text(&bodies)], 16);
    check_four_minutes(&daemon, "rw", at);

    let answer = daemon.query(&["series", "--metric", "csv", "--tags", "host=a"]);
    assert_eq!((&answer["total"], &answer["series"][0]["kind"]), (&json!(1), &json!("gauge")));
}

#[test]
fn bad_lines_and_damaged_files_are_named_and_do_not_affect_others() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    let (next, future) = (at + 1, at + 86_400_000);
    let bad = format!(
        "good 1 {at}\nno value\ngood 2 {next}\nnan_total NaN {at}\nold_one 5 1000\nfuture 1 {future}\n"
    );
    let again = "again\n".repeat(20);
    let bad = write_file(&dir, "a.om", bad.as_bytes());
    let outcome = import(&daemon, &[path_text(&bad)]);
    assert_eq!((outcome.code, outcome.counts()), (Some(2), (2, 0, 4)), "{}", outcome.errors);
    let expected = json!({"bad_sample": 1, "not_finite": 1, "too_new": 1, "too_old": 1});
    assert_eq!(outcome.summary["refused"], expected);
    assert!(outcome.errors.contains("a.om:2: bad_sample: not `series value timestamp`"));
    assert!(outcome.errors.contains("a.om:4: not_finite"), "{}", outcome.errors);
    assert!(outcome.errors.contains("a.om:1-6: too_new: future: time 2"), "{}", outcome.errors);
    // Only the first ten errors are printed, but all are counted.
    let outcome = import(&daemon, &[path_text(&write_file(&dir, "again.om", again.as_bytes()))]);
    assert_eq!(
        (outcome.counts(), outcome.errors.lines().count()),
        ((0, 0, 20), 10),
        "{}",
        outcome.errors
    );

    write_file(&dir, "tree/a/b.wsp", b"nothing of whisper");
    let good = write_file(&dir, "tree/c.csv", format!("time,value\n{at},7\n").as_bytes());
    let outcome = import(&daemon, &[path_text(good.parent().unwrap())]);
    assert_eq!((outcome.code, outcome.counts()), (Some(1), (1, 0, 0)), "{}", outcome.errors);
    assert!(outcome.errors.contains("a/b.wsp: not a whisper file"), "{}", outcome.errors);
    assert_eq!(points(&daemon, "value", "1m", "1h", "last"), [(at, 7.0)]);

    let outcome = import(&daemon, &["--dry-run", path_text(&good)]);
    assert_eq!((outcome.code, outcome.counts()), (Some(0), (0, 0, 0)));
    assert_eq!(outcome.summary["samples"], 1);
    let mut offline = granary();
    offline.args(["import", "--url", "http://127.0.0.1:1", path_text(&good)]);
    let output = offline.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is the daemon running?"));
}

#[test]
fn history_is_stored_in_the_granularities_that_still_keep_its_time() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let day = 86_400_000;
    let at = minute();
    let ages = [0, 5, 30, 700];
    let line_of_age = |age: &i64| format!("aged 1 {}\n", at - age * day);
    let all: Vec<_> = ages.iter().chain(&[3000]).map(line_of_age).collect();
    let file = write_file(&dir, "a.om", all.concat().as_bytes());
    let outcome = import(&daemon, &[path_text(&file)]);
    assert_eq!((outcome.code, outcome.counts()), (Some(2), (4, 0, 1)), "{}", outcome.errors);
    assert_eq!(outcome.summary["refused"], json!({"too_old": 1}));
    assert!(outcome.errors.contains("too_old: aged: time 2"), "{}", outcome.errors);
    let counted = |resolution, range| -> f64 {
        points(&daemon, "aged", resolution, range, "count").iter().map(|point| point.1).sum()
    };
    assert_eq!(counted("1m", "1h"), 1.0);
    assert_eq!(counted("5m", "13d"), 2.0);
    assert_eq!(counted("1h", "60d"), 3.0);
    assert_eq!(counted("1d", "3y"), 4.0);
}

#[test]
fn a_counters_history_behind_live_readings_joins_them_without_a_jump() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    let reading = |index: i64| (at + index * 15_000, 1000.0 + index as f64);
    let live: Vec<_> = (40..48)
        .map(|index| {
            let (at, value) = reading(index);
            json!({"metric": "jobs_total", "kind": "counter", "time": at, "value": value})
        })
        .collect();
    let batch = json!({"agent": "live", "epoch": 1, "seq": 1, "samples": live});
    assert_eq!(daemon.post_json(&batch).status, 200);
    let line = |(at, value)| format!("jobs_total {value} {at}\n");
    let history =
        |range: std::ops::Range<i64>| range.map(reading).map(line).collect::<Vec<_>>().concat();
    let file = write_file(&dir, "a.om", history(0..40).as_bytes());
    import_twice(&daemon, &[path_text(&file)], 40);
    let total = || -> f64 {
        points(&daemon, "jobs_total", "1m", "1h", "total").iter().map(|point| point.1).sum()
    };
    assert_eq!(total(), 47.0);
    let rates = points(&daemon, "jobs_total", "1m", "1h", "total");
    assert!(rates[1..].iter().all(|rate| rate.1 == 4.0), "{rates:?}");
    // Repeated readings count again as samples, but add nothing to the growth.
    let overlap = write_file(&dir, "b.om", history(38..48).as_bytes());
    assert_eq!(import(&daemon, &["--overlap", path_text(&overlap)]).counts(), (10, 0, 0));
    assert_eq!(total(), 47.0);
}

#[test]
#[ignore = "needs promtool; .ci/run installs it and runs this"]
fn a_dump_of_promtool_is_imported() {
    crate::peers::need("promtool");
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = minute();
    let plain = sixteen_lines(at, |at, value| {
        format!("dumped{{job=\"a \\\"b\\\" c\"}} {value} {:.3}", at as f64 / 1000.0)
    });
    let openmetrics_file =
        write_file(&dir, "made.om", format!("# TYPE dumped gauge\n{plain}# EOF\n").as_bytes());
    let blocks = dir.path().join("blocks");
    let promtool = |args: &[&str]| {
        let output = Command::new("promtool").arg("tsdb").args(args).output().unwrap();
        (
            output.status.success(),
            output.stdout,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let created = promtool(&[
        "create-blocks-from",
        "openmetrics",
        path_text(&openmetrics_file),
        path_text(&blocks),
    ]);
    assert!(created.0, "{}", created.2);
    // `promtool` only dumps a database with a write-ahead log.
    fs::create_dir(blocks.join("wal")).unwrap();
    let (newer, openmetrics, _) = promtool(&["dump-openmetrics", path_text(&blocks)]);
    if newer {
        import_twice(&daemon, &[path_text(&write_file(&dir, "newer.om", &openmetrics))], 16);
    } else {
        let (dumped, text_form, problem) = promtool(&["dump", path_text(&blocks)]);
        assert!(dumped, "{problem}");
        import_twice(&daemon, &[path_text(&write_file(&dir, "dump.prom", &text_form))], 16);
    }
    check_four_minutes(&daemon, "dumped", at);
    let series = daemon.query(&["series", "--metric", "dumped"]);
    assert_eq!(series["series"][0]["tags"]["job"], "a \"b\" c");
}

/// Returns a Python that has Graphite's library whisper; Debian installs the library for its own
/// Python.
fn python_with_whisper() -> &'static str {
    let found = ["/usr/bin/python3", "python3"].into_iter().find(|python| {
        let code = "import whisper; whisper.create";
        let output = Command::new(python).args(["-c", code]).output();
        output.is_ok_and(|output| output.status.success())
    });
    found.expect("no python3-whisper; .ci/run installs it")
}

#[test]
#[ignore = "needs python3-whisper; .ci/run installs it and runs this"]
fn whisper_files_of_graphite_are_imported_and_each_time_counts_once() {
    let python = python_with_whisper();
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let now = minute() / 1000;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/senders/whisper_file.py");
    for (name, aggregation, kind) in [("load", "average", "gauge"), ("hits", "sum", "delta")] {
        let file = write_file(&dir, &format!("tree/servers/web1/{name}.wsp"), b"");
        fs::remove_file(&file).unwrap();
        let mut command = Command::new(python);
        command.arg(&script).args([path_text(&file), &now.to_string(), aggregation]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read: Value = serde_json::from_slice(&output.stdout).unwrap();
        let read = read.as_object().unwrap();
        let mut expected: Vec<(i64, f64)> = read
            .iter()
            .map(|(at, value)| (at.parse::<i64>().unwrap() * 1000, value.as_f64().unwrap()))
            .collect();
        expected.sort_by_key(|sample| sample.0);
        let args = ["--root", path_text(dir.path()), "--template", "tree.servers _._.host.metric*"];
        import_twice(&daemon, &[&args[..], &[path_text(&file)]].concat(), expected.len() as u64);
        let cutoff = now * 1000 - 46 * 3_600_000;
        let kept: Vec<_> = points(&daemon, name, "1m", "47h", "last");
        expected.retain(|sample| sample.0 >= cutoff);
        let kept: Vec<_> = kept.into_iter().filter(|sample| sample.0 >= cutoff).collect();
        assert_eq!(kept.len(), expected.len(), "{name}");
        let differs = kept.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert_eq!(differs, None, "{name}: read back, and as Graphite reads it");
        let answer = daemon.query(&["series", "--metric", name, "--tags", "host=web1"]);
        assert_eq!(answer["series"][0]["kind"], kind);
    }
}
