//! `granary export`: the tests read back every format.

use std::fmt::Write as _;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use parquet::{
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    record::RowAccessor,
    schema::types::ColumnDescPtr,
};
use serde_json::Value;

use crate::{
    daemon::{Daemon, granary},
    import::{import, points},
    peers::python,
    remote_write::minute,
};

const VALUES: [f64; 4] = [0.1, 2.5, 1e300, -0.300_000_000_000_000_04];

/// Imports a gauge with unusual numbers in two series, and a counter in one; returns the first
/// time.
fn import_samples(daemon: &Daemon, dir: &Path) -> i64 {
    let at = minute();
    let mut text = String::from("# TYPE heat gauge\n");
    for (room, index) in [("a,\"b\"", 0), ("c", 1)] {
        for (step, value) in VALUES.iter().enumerate() {
            let seconds = at as f64 / 1000.0 + step as f64 * 20.0 + f64::from(index);
            let room = room.replace('"', "\\\"");
            writeln!(text, "heat{{place=\"{room}\"}} {value} {seconds}").unwrap();
        }
    }
    text += "# TYPE steps counter\n";
    for step in 0..12 {
        writeln!(text, "steps_total{{host=\"h\"}} {} {}", step * 3, at / 1000 + step * 20).unwrap();
    }
    let path = dir.join("in.om");
    fs::write(&path, text + "# EOF\n").unwrap();
    let outcome = import(daemon, &[path.to_str().unwrap()]);
    assert_eq!((outcome.code, outcome.counts()), (Some(0), (20, 0, 0)), "{}", outcome.errors);
    at
}

fn export_command(daemon: &Daemon, format: &str, output: &Path, args: &[&str]) -> Command {
    let mut command = granary();
    command.args(["export", "--url", &daemon.url, "--format", format, "--output"]);
    command.arg(output).args(args);
    command
}

fn export(daemon: &Daemon, format: &str, output: &Path, args: &[&str]) -> Output {
    let output = export_command(daemon, format, output, args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

const MINUTES_OF_TWO_HOURS: [&str; 4] = ["--resolution", "1m", "--range", "2h"];

/// Converts a document through text, so that both sides of a comparison were parsed from text.
fn to_json(document: &bson::Document) -> Value {
    serde_json::from_str(&serde_json::to_string(document).unwrap()).unwrap()
}

fn read_documents(path: &Path) -> Vec<bson::Document> {
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
    import_samples(&daemon, dir.path());
    let (bson, jsonl) = (dir.path().join("a.bson"), dir.path().join("a.jsonl"));
    export(&daemon, "bson", &bson, &MINUTES_OF_TWO_HOURS);
    export(&daemon, "jsonl", &jsonl, &MINUTES_OF_TWO_HOURS);
    let mut count = 0;
    let exported = read_documents(&bson);
    for metric in ["heat", "steps_total"] {
        let args = [&["documents", "--metric", metric][..], &MINUTES_OF_TWO_HOURS].concat();
        let expected = daemon.query(&args);
        for expected in expected["documents"].as_array().unwrap() {
            let document = &exported[count];
            count += 1;
            let at: jiff::Timestamp = expected["timestamp_hour"].as_str().unwrap().parse().unwrap();
            let start = document.get_datetime("timestamp_hour").unwrap();
            assert_eq!(start.timestamp_millis(), at.as_millisecond());
            let json = to_json(document);
            for name in ["metric", "tags", "num_samples", "total_samples", "values"] {
                assert_eq!(json[name], expected[name], "{name}");
            }
        }
    }
    assert!(count >= 3);
    assert_eq!(count, exported.len());
    let text = fs::read_to_string(&jsonl).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected_lines: Vec<Value> = exported.iter().map(to_json).collect();
    assert_eq!(lines, expected_lines);
}

#[test]
#[ignore = "needs promtool, pymongo and pyarrow; .ci/run installs them and runs this"]
fn promtool_pymongo_and_pyarrow_read_exports() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    import_samples(&daemon, dir.path());
    let export_to_file = |format: &str| {
        let path = dir.path().join(format);
        export(&daemon, format, &path, &MINUTES_OF_TWO_HOURS);
        path
    };
    let blocks = dir.path().join("blocks");
    let output = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&export_to_file("openmetrics"), &blocks])
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_dir(blocks).unwrap().count() > 0);
    let bson = export_to_file("bson");
    read_by_pymongo(&bson, read_documents(&bson).len());
    read_by_pyarrow(&export_to_file("parquet"));
}

fn read_by_pymongo(path: &Path, count: usize) {
    let script = "import bson,sys,datetime\n\
        all = list(bson.decode_file_iter(open(sys.argv[1], 'rb')))\n\
        assert {type(d['timestamp_hour']) for d in all} == {datetime.datetime}\n\
        print(len(all), sum(d['num_samples'] for d in all))";
    assert_eq!(read_in_python(script, path), format!("{count} 20\n"));
}

#[test]
fn csv_has_a_row_for_each_slot_with_exact_numbers() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = import_samples(&daemon, dir.path());
    let args = [&["--metric", "heat"][..], &MINUTES_OF_TWO_HOURS].concat();
    let output = export(&daemon, "csv", Path::new("-"), &args);
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
fn parquet_has_the_rows_of_csv_in_typed_columns() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let at = import_samples(&daemon, dir.path());
    let path = dir.path().join("a.parquet");
    export(&daemon, "parquet", &path, &MINUTES_OF_TWO_HOURS);
    let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let name = |column: &ColumnDescPtr| column.name().to_owned();
    let names: Vec<_> =
        file.metadata().file_metadata().schema_descr().columns().iter().map(name).collect();
    assert_eq!(names.join(","), "date,metric,host,place,n,sum,min,max,first,last");
    assert_eq!(rows.len(), 8);
    let first = &rows[0];
    assert_eq!(first.get_timestamp_millis(0).unwrap(), at);
    assert_eq!(first.get_string(1).unwrap(), "heat");
    assert!(first.get_string(2).is_err(), "the tag is null: {first}");
    assert_eq!(first.get_string(3).unwrap(), "a,\"b\"");
    let doubles: Vec<_> = (5..10).map(|column| first.get_double(column).unwrap()).collect();
    let sum = VALUES[0] + VALUES[1] + VALUES[2];
    assert_eq!(doubles, [sum, VALUES[0], VALUES[2], VALUES[0], VALUES[2]]);
    let counts: i64 = rows.iter().map(|row| row.get_long(4).unwrap()).sum();
    assert_eq!(counts, 20);
    let refused =
        export_command(&daemon, "parquet", Path::new("-"), &MINUTES_OF_TWO_HOURS).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--output"));
}

fn read_by_pyarrow(path: &Path) {
    let script = "import sys, pyarrow.parquet as pq\n\
        t = pq.read_table(sys.argv[1])\n\
        print(t.num_rows, sum(t['n'].to_pylist()), t['date'].type, t['host'].null_count)";
    assert_eq!(read_in_python(script, path), "8 20 timestamp[ms, tz=UTC] 4\n");
}

/// Returns the output of a Python script that reads a file.
fn read_in_python(script: &str, path: &Path) -> String {
    let output = python().args(["-c", script]).arg(path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn openmetrics_is_read_by_import() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    import_samples(&daemon, dir.path());
    let path = dir.path().join("a.om");
    export(&daemon, "openmetrics", &path, &MINUTES_OF_TWO_HOURS);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("# EOF\n") && text.contains("# TYPE steps counter\n"), "{text}");
    let second = Daemon::start("");
    let outcome = import(&second, &[path.to_str().unwrap()]);
    assert_eq!(
        (outcome.code, outcome.counts()),
        (Some(0), (8, 0, 0)),
        "{}\n{text}",
        outcome.errors
    );
    let last = |daemon| points(daemon, "steps_total", "1m", "2h", "last");
    assert_eq!(last(&daemon), last(&second));
    assert_eq!(last(&second).len(), 4);
}

/// Starts a daemon with 600 series, which are exported in pages of five.
fn start_with_many_series(dir: &Path) -> Daemon {
    let daemon = Daemon::start("limits.query_points_max = 1000");
    let at = minute();
    let line = |series: i64| format!("many{{s=\"{series:04}\"}} {series} {}\n", at / 1000);
    let lines: String = (0..600).map(line).collect();
    let input = dir.join("in.om");
    fs::write(&input, lines).unwrap();
    let outcome = import(&daemon, &[input.to_str().unwrap()]);
    assert_eq!(outcome.counts(), (600, 0, 0), "{}", outcome.errors);
    daemon
}

const MANY_SERIES: [&str; 6] = ["--metric", "many", "--resolution", "1m", "--range", "2h"];

/// Starts an export to `path`, kills it, and appends half a row to the unfinished file, whose path
/// is returned.
fn kill_export(daemon: &Daemon, format: &str, path: &Path) -> PathBuf {
    let partial = PathBuf::from(format!("{}.partial", path.display()));
    let state = PathBuf::from(format!("{}.state", partial.display()));
    let mut child =
        export_command(daemon, format, path, &MANY_SERIES).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..3000 {
        if state.exists() {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!path.exists() && state.exists(), "the export was killed in the middle");
    // The next export truncates bytes that were written after the state.
    let mut bytes = fs::read(&partial).unwrap();
    bytes.extend_from_slice(b"half a ro");
    fs::write(&partial, bytes).unwrap();
    partial
}

#[test]
fn a_killed_export_continues_without_duplicate_or_missing_rows() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = start_with_many_series(dir.path());
    let expected: Vec<_> = (0..600).map(|series| format!("{series:04}")).collect();
    let path = dir.path().join("out.csv");
    let partial = kill_export(&daemon, "csv", &path);
    let other = export_command(&daemon, "jsonl", &path, &MANY_SERIES).output().unwrap();
    assert!(!other.status.success(), "an export in another format does not continue it");
    let state = fs::read(dir.path().join("out.csv.partial.state")).unwrap();
    let rest = export(&daemon, "csv", &path, &MANY_SERIES);
    assert!(String::from_utf8_lossy(&rest.stderr).contains("continuing after"));
    let text = fs::read_to_string(&path).unwrap();
    let names: Vec<_> = text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    assert_eq!(names, expected);
    let state_file = dir.path().join("out.csv.partial.state");
    assert!(!partial.exists() && !state_file.exists());

    let path = dir.path().join("out.parquet");
    let partial = kill_export(&daemon, "parquet", &path);
    export(&daemon, "parquet", &path, &MANY_SERIES);
    let file = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let rows = file.get_row_iter(None).unwrap().map(Result::unwrap);
    let names: Vec<_> = rows.map(|row| row.get_string(2).unwrap().clone()).collect();
    assert_eq!(names, expected);
    assert_eq!(file.num_row_groups(), 120);
    assert!(!partial.exists());

    // After a kill between the renaming of the file and the end, only the state file remains, which
    // says that the export is complete.
    let mut outcome: Value = serde_json::from_slice(&state).unwrap();
    outcome["complete"] = Value::Bool(true);
    fs::write(&state_file, outcome.to_string()).unwrap();
    export(&daemon, "csv", &dir.path().join("out.csv"), &MANY_SERIES);
    assert!(!state_file.exists());
}

#[test]
fn names_with_characters_that_reorder_are_escaped_in_text_formats() {
    let daemon = Daemon::start("");
    let unusual_tag = "a\u{feff}b c\u{202e}\u{2066}d,\"e\"\\";
    let sample =
        serde_json::json!({"metric": "heat", "tags": {"place": unusual_tag}, "value": 1.5});
    let answer = daemon.post_json(&serde_json::json!({ "samples": [sample] }));
    assert_eq!(
        (answer.status, &answer.body["accepted"]),
        (200, &Value::from(1)),
        "{}",
        answer.body
    );
    let text = |format: &str| {
        let args = [&["--metric", "heat"][..], &MINUTES_OF_TWO_HOURS].concat();
        String::from_utf8(export(&daemon, format, Path::new("-"), &args).stdout).unwrap()
    };
    let (csv, metrics, jsonl) = (text("csv"), text("openmetrics"), text("jsonl"));
    for text in [&csv, &metrics, &jsonl] {
        let is_raw = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.chars().any(is_raw), "{text:?}");
    }
    assert_eq!(csv.lines().count(), 2);
    assert!(csv.contains(r#","a\u{feff}b c\u{202e}\u{2066}d,""e""\","#), "{csv}");
    let quoted = r#"heat{place="a\\u{feff}b c\\u{202e}\\u{2066}d,\"e\"\\"} 1.5"#;
    assert!(metrics.contains(quoted), "{metrics}");
    let line: Value = serde_json::from_str(&jsonl).unwrap();
    assert_eq!(line["tags"]["place"], unusual_tag, "JSON keeps every character");
}
