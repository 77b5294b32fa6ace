//! `granary verify --repair` on the command line.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary, partition_files, yesterday};

fn run_verify(daemon: &Daemon, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        granary().arg("verify").arg(daemon.data("")).args(args).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// Returns a stopped daemon with samples of yesterday.
fn stopped_daemon_with_samples() -> Daemon {
    let mut daemon = Daemon::start("storage.checkpoint_interval = '50ms'");
    let sample =
        |name: &str| json!({"metric": name, "kind": "delta", "value": 3, "time": yesterday()});
    daemon.accept(&json!([sample("a"), sample("b")]));
    assert_eq!(daemon.stop(), Some(0));
    daemon
}

fn overwrite(file: &Path) {
    fs::write(file, "nonsense").unwrap();
}

#[test]
fn a_directory_with_several_faults_is_sound_after_a_repair() {
    let mut daemon = stopped_daemon_with_samples();
    let data = daemon.data("");
    fs::remove_file(&partition_files(&data, "5m")[0]).unwrap();
    overwrite(&partition_files(&data, "1h")[0]);
    overwrite(&data.join("partitions/1m/2026-01-01.redb.new"));
    overwrite(&data.join("partitions/1m/2026-01-01.7.sealed"));
    let (code, text) = run_verify(&daemon, &[]);
    assert!(code == Some(2) && !data.join("damaged").exists(), "{text}");
    let (code, text) = run_verify(&daemon, &["--repair"]);
    assert_eq!(code, Some(0), "{text}");
    for expected in [
        "missing, marked as damaged/5m-",
        "damaged, set aside as damaged/1h-",
        "removed partitions/1m/2026-01-01.redb.new, which nothing used",
        "removed partitions/1m/2026-01-01.7.sealed, which nothing used",
        "5m: rebuilt from 1m",
        "1h: rebuilt from 5m",
        "after: no faults",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (code, text) = run_verify(&daemon, &["--repair", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &report["after"]["fault_count"]), (Some(0), &json!(0)), "{text}");
    assert_eq!(report["repair"]["dropped"], json!([]), "a second repair finds nothing");
    daemon.restart();
    let (code, text) = run_verify(&daemon, &["--repair"]);
    assert!(code == Some(1) && text.contains("uses this data directory"), "{text}");
    for resolution in ["1m", "5m", "1h", "1d"] {
        let args = ["chart", "--metric", "a", "--display", "total", "--range", "40h"];
        let answer = daemon.query(&[&args[..], &["--resolution", resolution]].concat());
        let points = answer["series"][0]["points"].as_array().unwrap();
        let total: f64 = points.iter().filter_map(|point| point[1].as_f64()).sum();
        assert_eq!(total, 3.0, "{resolution}");
    }
}

#[test]
fn a_damaged_journal_is_not_repaired_and_the_remedy_is_named() {
    let daemon = stopped_daemon_with_samples();
    overwrite(&daemon.data("journal.redb"));
    let (code, text) = run_verify(&daemon, &["--repair"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("granary restore") && text.contains("journal.redb"), "{text}");
}
