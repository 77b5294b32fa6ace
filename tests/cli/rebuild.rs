//! `granary rebuild` on the command line, after the loss of partitions.

use std::{fs, process::Output};

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary, partition_files, yesterday};

fn run_rebuild(daemon: &Daemon, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        granary().arg("rebuild").arg(daemon.data("")).args(args).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn sum_without_notes(daemon: &Daemon, resolution: &str) -> f64 {
    let args = ["chart", "--metric", "m", "--display", "total", "--range", "40h"];
    let answer = daemon.query(&[&args[..], &["--resolution", resolution]].concat());
    assert_eq!(answer["notes"].as_array().map_or(0, Vec::len), 0, "{}", answer["notes"]);
    let points = answer["series"][0]["points"].as_array().unwrap();
    points.iter().filter_map(|point| point[1].as_f64()).sum()
}

#[test]
fn lost_partitions_are_rebuilt_and_the_summary_fits_80_columns() {
    let mut daemon = Daemon::start("storage.checkpoint_interval = '50ms'");
    let sample =
        |value: u32| json!({"metric": "m", "kind": "delta", "value": value, "time": yesterday()});
    daemon.accept(&json!([sample(3), sample(4)]));
    daemon.accept(&json!([{"metric": "m", "kind": "delta", "value": 5}]));
    let (code, text) = run_rebuild(&daemon, &[]);
    assert!(code == Some(1) && text.contains("uses this data directory; stop it"), "{text}");
    assert_eq!(daemon.stop(), Some(0));
    let data = daemon.data("");
    for level in ["5m", "1h"] {
        let files = partition_files(&data, level);
        assert!(!files.is_empty());
        for file in files {
            fs::remove_file(file).unwrap();
        }
    }
    let (code, text) = run_rebuild(&daemon, &["--dry-run"]);
    assert!(code == Some(0) && text.contains("5m: can be rebuilt from 1m"), "{text}");
    assert!(!daemon.data("damaged").exists(), "a dry run changes nothing");
    let (code, text) = run_rebuild(&daemon, &[]);
    assert!(code == Some(0) && text.contains("1h: rebuilt from 5m"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, text) = run_rebuild(&daemon, &["--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["levels"][0]["rebuilt"], json!([]), "{report}");
    let (code, text) = run_rebuild(&daemon, &["--granularity", "1m"]);
    assert!(code == Some(1) && text.contains("1m cannot be rebuilt"), "{text}");
    let verified = daemon.verify();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    daemon.restart();
    for resolution in ["1m", "5m", "1h", "1d"] {
        assert_eq!(sum_without_notes(&daemon, resolution), 12.0, "{resolution}");
    }
}
