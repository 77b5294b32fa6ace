//! `granary export` of the real daemon, each format read back.

use std::fmt::Write as _;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    daemon::{Daemon, granary},
    import::{import, points},
    remote_write::minute,
};

const VALUES: [f64; 4] = [0.1, 2.5, 1e300, -0.300_000_000_000_000_04];

/// A gauge with odd numbers and a counter, each in two series.
fn fill(daemon: &Daemon, dir: &Path) -> i64 {
    let at = minute();
    let mut text = String::from("# TYPE heat gauge\n");
    for (place, index) in [("a,\"b\"", 0), ("c", 1)] {
        for (step, value) in VALUES.iter().enumerate() {
            let seconds = at as f64 / 1000.0 + step as f64 * 20.0 + f64::from(index);
            let place = place.replace('"', "\\\"");
            writeln!(text, "heat{{place=\"{place}\"}} {value} {seconds}").unwrap();
        }
    }
    text += "# TYPE steps counter\n";
    for step in 0..12 {
        writeln!(text, "steps_total{{host=\"h\"}} {} {}", step * 3, at / 1000 + step * 20).unwrap();
    }
    let path = dir.join("in.om");
    fs::write(&path, text + "# EOF\n").unwrap();
    let done = import(daemon, &[path.to_str().unwrap()]);
    assert_eq!((done.code, done.counts()), (Some(0), (20, 0, 0)), "{}", done.errors);
    at
}

fn command(daemon: &Daemon, format: &str, output: &Path, words: &[&str]) -> Command {
    let mut command = granary();
    command.args(["export", "--url", &daemon.url, "--format", format, "--output"]);
    command.arg(output).args(words);
    command
}

fn export(daemon: &Daemon, format: &str, output: &Path, words: &[&str]) -> Output {
    let output = command(daemon, format, output, words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

const MINUTES: [&str; 4] = ["--resolution", "1m", "--range", "2h"];

/// The way over text, so that both sides of a comparison have been parsed.
fn as_json(document: &bson::Document) -> Value {
    serde_json::from_str(&serde_json::to_string(document).unwrap()).unwrap()
}

fn documents(path: &Path) -> Vec<bson::Document> {
    let bytes = fs::read(path).unwrap();
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        found.push(bson::Document::from_reader(&mut rest).unwrap());
    }
    found
}

#[test]
fn bson_and_json_lines_have_the_documents_of_the_api() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    fill(&daemon, dir.path());
    let (bson, jsonl) = (dir.path().join("a.bson"), dir.path().join("a.jsonl"));
    export(&daemon, "bson", &bson, &MINUTES);
    export(&daemon, "jsonl", &jsonl, &MINUTES);
    let mut count = 0;
    let read = documents(&bson);
    for metric in ["heat", "steps_total"] {
        let words = [&["documents", "--metric", metric][..], &MINUTES].concat();
        let expected = daemon.query(&words);
        for expected in expected["documents"].as_array().unwrap() {
            let own = &read[count];
            count += 1;
            let at: jiff::Timestamp = expected["timestamp_hour"].as_str().unwrap().parse().unwrap();
            let start = own.get_datetime("timestamp_hour").unwrap();
            assert_eq!(start.timestamp_millis(), at.as_millisecond());
            let json = as_json(own);
            for name in ["metric", "tags", "num_samples", "total_samples", "values"] {
                assert_eq!(json[name], expected[name], "{name}");
            }
        }
    }
    assert!(count >= 3);
    assert_eq!(count, read.len());
    let text = fs::read_to_string(&jsonl).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let same: Vec<Value> = read.iter().map(as_json).collect();
    assert_eq!(lines, same);
    read_by_pymongo(&bson, count);
}

fn read_by_pymongo(path: &Path, count: usize) {
    let python = std::env::var("GRANARY_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let run = |script: &str| Command::new(&python).args(["-c", script]).arg(path).output();
    if !run("import bson; bson.decode_file_iter").is_ok_and(|own| own.status.success()) {
        eprintln!("not read by pymongo: install it where GRANARY_TEST_PYTHON says");
        return;
    }
    let script = "import bson,sys,datetime\n\
        all = list(bson.decode_file_iter(open(sys.argv[1], 'rb')))\n\
        assert {type(d['timestamp_hour']) for d in all} == {datetime.datetime}\n\
        print(len(all), sum(d['num_samples'] for d in all))";
    let output = run(script).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{count} 20\n"), "{errors}");
}

#[test]
fn csv_has_a_row_for_each_slot_with_exact_numbers() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = fill(&daemon, dir.path());
    let words = [&["--metric", "heat"][..], &MINUTES].concat();
    let output = export(&daemon, "csv", Path::new("-"), &words);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "date,metric,place,n,sum,min,max,first,last");
    assert_eq!(lines.len(), 5);
    let date = jiff::Timestamp::from_millisecond(at).unwrap();
    assert!(lines[1].contains("heat,\"a,\"\"b\"\"\",3,"), "{}", lines[1]);
    assert_eq!(lines[1].get(..16), date.to_string().get(..16));
    assert!(lines[1].ends_with(&format!(",{},{},{}", VALUES[2], VALUES[0], VALUES[2])));
    assert!(lines[2].ends_with(",-0.30000000000000004"), "{}", lines[2]);
}

#[test]
fn openmetrics_is_read_by_import_and_promtool() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    fill(&daemon, dir.path());
    let path = dir.path().join("a.om");
    export(&daemon, "openmetrics", &path, &MINUTES);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("# EOF\n") && text.contains("# TYPE steps counter\n"), "{text}");
    let second = Daemon::start("");
    let done = import(&second, &[path.to_str().unwrap()]);
    assert_eq!((done.code, done.counts()), (Some(0), (8, 0, 0)), "{}\n{text}", done.errors);
    let last = |daemon| points(daemon, "steps_total", "1m", "2h", "last");
    assert_eq!(last(&daemon), last(&second));
    assert_eq!(last(&second).len(), 4);
    let blocks = dir.path().join("blocks");
    let promtool = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&path, &blocks])
        .output();
    match promtool {
        Err(_) => eprintln!("not read by promtool: it is not installed"),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(fs::read_dir(blocks).unwrap().count() > 0);
        }
    }
}

#[test]
fn an_export_that_is_killed_goes_on_with_no_row_twice_and_none_missing() {
    // Pages of five series.
    let daemon = Daemon::start("limits.query_points_max = 1000");
    let at = minute();
    let line = |series: i64| format!("many{{s=\"{series:04}\"}} {series} {}\n", at / 1000);
    let lines: String = (0..600).map(line).collect();
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.om");
    fs::write(&input, lines).unwrap();
    let done = import(&daemon, &[input.to_str().unwrap()]);
    assert_eq!(done.counts(), (600, 0, 0), "{}", done.errors);
    let path = dir.path().join("out.csv");
    let state: PathBuf = dir.path().join("out.csv.partial.state");
    let words = ["--metric", "many", "--resolution", "1m", "--range", "2h"];
    let mut child = command(&daemon, "csv", &path, &words).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..3000 {
        if state.exists() {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!path.exists() && state.exists(), "it was killed in the middle");
    // What was written behind the state is cut off.
    let partial = dir.path().join("out.csv.partial");
    let mut bytes = fs::read(&partial).unwrap();
    bytes.extend_from_slice(b"half a ro");
    fs::write(&partial, bytes).unwrap();
    let other = command(&daemon, "jsonl", &path, &words).output().unwrap();
    assert!(!other.status.success(), "another export does not go on with it");
    let rest = export(&daemon, "csv", &path, &words);
    assert!(String::from_utf8_lossy(&rest.stderr).contains("going on after"));
    let text = fs::read_to_string(&path).unwrap();
    let names: Vec<_> = text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    let expected: Vec<_> = (0..600).map(|series| format!("{series:04}")).collect();
    assert_eq!(names, expected);
    assert!(!partial.exists() && !state.exists());
}
