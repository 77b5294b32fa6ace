//! Native histograms in every format of `granary export`, and back by `granary import`.

use std::{fs, path::Path, time::Duration};

use granary_protocol::JsonHistogram;
use parquet::{
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    record::RowAccessor,
};
use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, granary, partition_files},
    import::import,
    prometheus_api::post,
};

const LEVELS: [&str; 4] = ["1m", "5m", "1h", "1d"];
const KINDS: [(&str, &str); 5] = [
    ("resets", "histogram"),
    ("schemas", "histogram"),
    ("level", "gaugehistogram"),
    ("grown", "deltahistogram"),
    ("bounds", "histogram"),
];
const STEP_MS: i64 = 20_000;
const HOUR: i64 = 3_600_000;

/// Returns the histogram of a series at a step.
fn histogram(metric: &str, step: i64) -> Value {
    let wave = step * 7 % 13;
    match metric {
        // A counter that is reset every 37 steps.
        "resets" => {
            let age = step % 37 + 1;
            json!({"schema": 3, "zero_threshold": 0.001, "sum": 7 * age, "zero_count": age / 9,
                "positive": [[-7, 3 * age], [2, age], [9, age / 5]]})
        }
        // A counter whose schema and zero bucket change.
        "schemas" => {
            let age = step % 50 + 1;
            let schema = [3, 1, 2][(step / 25 % 3) as usize];
            let threshold = if step % 120 < 60 { 0.001 } else { 0.5 };
            json!({"schema": schema, "zero_threshold": threshold, "sum": 5 * age,
                "zero_count": age, "positive": [[4, 2 * age], [7, age]], "negative": [[5, age]]})
        }
        "level" => json!({"schema": 1, "sum": wave, "positive": [[wave - 5, wave + 1], [9, 2]]}),
        "grown" => json!({"schema": 3 - step % 3, "sum": wave, "positive": [[wave, 3], [40, 1]]}),
        // A counter with custom bounds, which change.
        _ => {
            let age = step % 44 + 1;
            let bounds = if step % 90 < 60 { [0.5, 1.0, 2.5] } else { [0.5, 2.5, 10.0] };
            json!({"custom_bounds": bounds, "sum": 9 * age,
                "positive": [[0, age], [1, 2 * age], [3, age / 4]]})
        }
    }
}

/// Sends the histograms of all series from one time to another.
fn send(daemon: &Daemon, from: i64, to: i64) {
    for (metric, kind) in KINDS {
        let steps = (from + STEP_MS - 1) / STEP_MS..=to / STEP_MS;
        let sample = |step: i64| {
            json!({"metric": metric, "tags": {"job": "a\"b"}, "kind": kind, "unit": "seconds",
                "time": step * STEP_MS + 3, "histogram": histogram(metric, step)})
        };
        let samples: Vec<_> = steps.map(sample).collect();
        samples.chunks(500).for_each(|part| daemon.accept(&json!(part)));
    }
}

/// Starts a daemon with sealed documents of the day before, and open ones of the present time.
fn filled_daemon() -> Daemon {
    let mut daemon = Daemon::start("storage.checkpoint_interval = '200ms'");
    let now = jiff::Timestamp::now().as_millisecond();
    send(&daemon, now - 30 * HOUR, now - 26 * HOUR);
    send(&daemon, now - 4 * HOUR, now - HOUR);
    assert_eq!(daemon.stop(), Some(0));
    daemon.restart();
    let is_sealed = |level: &str| {
        let files = partition_files(&daemon.data(""), level);
        files.iter().any(|file| file.to_string_lossy().ends_with(".sealed"))
    };
    for _ in 0..3000 {
        if is_sealed("1m") && is_sealed("5m") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_sealed("1m") && is_sealed("5m"), "{}", daemon.log());
    send(&daemon, now - HOUR + STEP_MS, now - STEP_MS);
    daemon
}

/// Exports all series; returns the messages.
fn export(daemon: &Daemon, format: &str, resolution: &str, path: &Path) -> String {
    let mut command = granary();
    command.args(["export", "--url", &daemon.url, "--format", format, "--range", "2d"]);
    command.args(["--resolution", resolution, "--output"]).arg(path);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    errors
}

/// The histograms of a slot: metric, time of the document, slot, number of samples, and the first,
/// the last and the total histogram.
type StoredSlot = (String, String, String, f64, [Value; 3]);

/// Returns the histograms of all slots.
fn stored(daemon: &Daemon, resolution: &str, dir: &Path) -> Vec<StoredSlot> {
    let path = dir.join("stored.jsonl");
    export(daemon, "jsonl", resolution, &path);
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(path).unwrap();
    let mut slots = Vec::new();
    for line in text.lines() {
        let document: Value = serde_json::from_str(line).unwrap();
        let fields = document.as_object().unwrap();
        let time = fields.iter().find(|(name, _)| name.starts_with("timestamp")).unwrap().1;
        let mut values: Vec<_> = document["values"].as_object().unwrap().iter().collect();
        values.sort_by_key(|(slot, _)| slot.parse::<usize>().unwrap());
        for (slot, value) in values {
            if value["n"] != 0 {
                let histograms = ["first_histogram", "last_histogram", "histogram"];
                slots.push((
                    document["metric"].as_str().unwrap().to_owned(),
                    time.to_string(),
                    slot.clone(),
                    value["n"].as_f64().unwrap(),
                    histograms.map(|name| value[name].clone()),
                ));
            }
        }
    }
    slots
}

/// Checks that two values are equal but for the rounding of numbers.
fn assert_near(found: &Value, expected: &Value, context: &str) {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            let is_near = (found - expected).abs() <= 1e-9 * expected.abs();
            assert!(is_near, "{context}: {found} instead of {expected}");
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            found.iter().zip(expected).for_each(|(one, other)| assert_near(one, other, context));
        }
        (Value::Object(found), Value::Object(expected)) if found.len() == expected.len() => {
            for (name, expected) in expected {
                assert_near(found.get(name).unwrap_or(&Value::Null), expected, context);
            }
        }
        _ => assert_eq!(found, expected, "{context}"),
    }
}

/// Checks that a daemon has the histograms of another one, whose export it imported.
fn compare(daemon: &Daemon, source: &Daemon, exported: &str, dir: &Path) {
    let from = LEVELS.iter().position(|level| *level == exported).unwrap();
    for level in &LEVELS[from..] {
        let (found, expected) = (stored(daemon, level, dir), stored(source, level, dir));
        assert_eq!(found.len(), expected.len(), "{exported} {level}");
        for (found, expected) in found.iter().zip(&expected) {
            let context = format!("{exported} {level} {} {}", expected.0, expected.2);
            assert_eq!((&found.0, &found.1, &found.2), (&expected.0, &expected.1, &expected.2));
            // Of more than 64 levels in a slot of the file, 64 are exported.
            let is_whole = expected.0 != "level" || ["1m", "5m"].contains(&exported);
            let compared = if is_whole { 3 } else { 2 };
            for index in 0..compared {
                assert_near(&found.4[index], &expected.4[index], &context);
            }
            if expected.0 == "level" && is_whole {
                assert_eq!(found.3, expected.3, "{context}");
            }
        }
    }
    for (metric, kind) in KINDS {
        for level in &LEVELS[from..] {
            if kind != "gaugehistogram" || ["1m", "5m"].contains(&exported) {
                let [found, expected] = [daemon, source].map(|daemon| p99(daemon, metric, level));
                assert_near(&found, &expected, &format!("{exported} {level} p99 of {metric}"));
            }
        }
    }
    // Queries of windows read the finest resolution that has samples.
    let queries = [
        "histogram_quantile(0.9, increase(NAME[2h]))",
        "histogram_count(increase(NAME[2h]))",
        "histogram_sum(increase(NAME[2h]))",
    ];
    for (metric, query) in KINDS.iter().flat_map(|(metric, _)| queries.map(|query| (metric, query)))
    {
        if exported == "1m" && *metric != "level" {
            let query = query.replace("NAME", metric);
            let [found, expected] = [daemon, source].map(|daemon| at_full_hour(daemon, &query));
            assert_near(&found, &expected, &query);
        }
    }
}

/// Returns the 99th percentiles of a day.
fn p99(daemon: &Daemon, metric: &str, resolution: &str) -> Value {
    let args = ["chart", "--metric", metric, "--resolution", resolution, "--display", "p99"];
    let answer = daemon.query(&[&args[..], &["--range", "1d"]].concat());
    answer["series"][0]["points"].clone()
}

/// Returns the value of a query at the last full hour.
fn at_full_hour(daemon: &Daemon, query: &str) -> Value {
    let at = (jiff::Timestamp::now().as_second() / 3600 * 3600).to_string();
    let (status, body) = post(daemon, "/api/v1/query", &[("query", query), ("time", &at)]);
    assert_eq!(status, 200, "{body}");
    let value = body["data"]["result"][0]["value"][1].as_str();
    json!(value.unwrap_or_else(|| panic!("{query}: {body}")).parse::<f64>().unwrap())
}

#[test]
fn an_import_of_an_export_has_the_same_histograms_at_every_level() {
    let source = filled_daemon();
    let dir = tempfile::tempdir().unwrap();
    for level in LEVELS {
        let path = dir.path().join(format!("{level}.samples"));
        let messages = export(&source, "samples", level, &path);
        let has_fewer_levels = ["1h", "1d"].contains(&level);
        assert_eq!(messages.contains("not exactly"), has_fewer_levels, "{messages}");
        let copy = Daemon::start("");
        let lines = fs::read_to_string(&path).unwrap().lines().count() as u64;
        for expected in [(lines, 0, 0), (0, lines, 0)] {
            let outcome = import(&copy, &[path.to_str().unwrap()]);
            assert_eq!((outcome.code, outcome.counts()), (Some(0), expected), "{}", outcome.errors);
            compare(&copy, &source, level, dir.path());
        }
    }
}

#[test]
fn damaged_lines_are_refused_with_their_numbers_and_nothing_else_is_lost() {
    let source = Daemon::start("");
    let now = jiff::Timestamp::now().as_millisecond();
    send(&source, now - HOUR, now - STEP_MS);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.samples");
    export(&source, "samples", "1m", &path);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    let whole = lines.len() as u64;
    let cut = lines[5].trim_end_matches('}');
    let bad = r#"{"metric":"resets","kind":"histogram","time":7,"histogram":{"schema":42}}"#;
    lines.insert(3, cut);
    lines.insert(20, bad);
    lines.insert(40, "half a line");
    fs::write(&path, lines.join("\n")).unwrap();
    let copy = Daemon::start("");
    let outcome = import(&copy, &[path.to_str().unwrap()]);
    assert_eq!((outcome.code, outcome.counts()), (Some(2), (whole, 0, 3)), "{}", outcome.errors);
    for line in [4, 21, 41] {
        assert!(
            outcome.errors.contains(&format!("damaged.samples:{line}: ")),
            "{}",
            outcome.errors
        );
    }
    for level in LEVELS {
        let (found, expected) =
            (stored(&copy, level, dir.path()), stored(&source, level, dir.path()));
        for (found, expected) in found.iter().zip(&expected) {
            (0..3).for_each(|index| assert_near(&found.4[index], &expected.4[index], level));
        }
    }
}

#[test]
fn csv_and_parquet_have_the_total_of_a_slot_and_openmetrics_says_what_it_lacks() {
    let daemon = Daemon::start("");
    let now = jiff::Timestamp::now().as_millisecond();
    // A counter's only sample in the first slot would be no increase.
    send(&daemon, (now - HOUR) / 300_000 * 300_000, now - STEP_MS);
    daemon.accept(&json!([{"metric": "plain", "tags": {"histogram": "x"}, "value": 1}]));
    let dir = tempfile::tempdir().unwrap();
    let expected: Vec<_> = stored(&daemon, "5m", dir.path())
        .into_iter()
        .map(|(metric, _, _, _, [_, _, total])| (metric, total))
        .collect();
    let csv = dir.path().join("a.csv");
    export(&daemon, "csv", "5m", &csv);
    let text = fs::read_to_string(&csv).unwrap();
    let mut lines = text.lines();
    let header = "date,metric,tag_histogram,job,n,sum,min,max,first,last,histogram";
    assert_eq!(lines.next(), Some(header));
    let parquet = dir.path().join("a.parquet");
    export(&daemon, "parquet", "5m", &parquet);
    let file = SerializedFileReader::new(fs::File::open(&parquet).unwrap()).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), expected.len());
    for ((line, row), (metric, total)) in lines.zip(&rows).zip(&expected) {
        assert_eq!(row.get_string(1).unwrap(), metric);
        let Ok(text) = row.get_string(10) else {
            assert!(metric == "plain" && line.ends_with(','), "{line}");
            continue;
        };
        assert_eq!(&serde_json::from_str::<Value>(text).unwrap(), total);
        assert!(serde_json::from_str::<JsonHistogram>(text).unwrap().0.count > 0.0);
        let quoted = format!(",\"{}\"", text.replace('"', "\"\""));
        assert!(line.ends_with(&quoted), "{line} {quoted}");
    }
    let messages = export(&daemon, "openmetrics", "5m", &dir.path().join("a.om"));
    let expected = "5 series of native histograms without their buckets";
    assert!(messages.contains(expected) && messages.contains("--format samples"), "{messages}");
}

#[test]
fn histograms_in_json_are_checked_one_by_one() {
    let daemon = Daemon::start("");
    let sample = |fields: &str| {
        let text = format!(r#"{{"metric": "m", "tags": {{"n": "1"}}, {fields}}}"#);
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let good = r#""histogram": {"schema": 0, "sum": 3, "positive": [[1, 2]]}"#;
    let bad = [
        (
            r#""histogram": {"schema": 0, "sum": 3, "positive": [[1, -2]]}"#,
            "bad_sample",
            "a count is -2",
        ),
        (
            r#""histogram": {"schema": 0, "sum": 3, "count": 1}, "value": 2"#,
            "bad_sample",
            "histogram",
        ),
        (
            r#""kind": "counter", "histogram": {"schema": 0, "sum": 3}"#,
            "bad_sample",
            "use the kind histogram",
        ),
        (r#""kind": "histogram", "value": 3"#, "bad_sample", "give histogram instead"),
    ];
    for (fields, reason, message) in bad {
        let body = json!({"samples": [sample(fields), sample(good)]});
        let answer = daemon.post_json(&body);
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{}", answer.body);
        assert_eq!(answer.body["refused"][reason], json!(1), "{}", answer.body);
        let example = answer.body["examples"][0]["message"].as_str().unwrap();
        assert!(example.contains(message), "{example}");
    }
    let by_ref = json!({"series": [{"ref": 7, "metric": "numbers"}],
        "samples": [{"ref": 7, "histogram": {"schema": 0, "sum": 3, "positive": [[1, 2]]}}]});
    let answer = daemon.post_json(&by_ref);
    assert_eq!(answer.body["refused"]["bad_histogram"], json!(1), "{}", answer.body);
    let replaced = daemon.post_json(&json!({"replace": true, "samples": [sample(good)]}));
    assert_eq!(replaced.body["refused"]["bad_sample"], json!(1), "{}", replaced.body);
    let message = replaced.body["examples"][0]["message"].as_str().unwrap();
    assert!(message.contains("cannot be replaced"), "{message}");
}
