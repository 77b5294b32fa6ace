//! `granary downgrade` of a real daemon's directory, and its start afterwards.

use std::process::Output;

use serde_json::json;

use crate::daemon::{Daemon, granary, yesterday};

fn run_downgrade(daemon: &Daemon, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        granary().arg("downgrade").arg(daemon.data("")).args(args).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

#[test]
fn a_stopped_directory_is_converted_and_a_daemon_upgrades_it_again() {
    let mut daemon = Daemon::start("");
    daemon.accept(&json!([
        {"metric": "m", "kind": "delta", "value": 3, "time": yesterday()},
        {"metric": "m", "kind": "delta", "value": 4},
    ]));
    let (code, text) = run_downgrade(&daemon, &[]);
    assert!(code == Some(1) && text.contains("uses this data directory; stop it"), "{text}");
    assert_eq!(daemon.stop(), Some(0));
    let (code, text) = run_downgrade(&daemon, &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, report["lowered"] == report["files"]), (Some(0), true), "{text}");
    let (code, text) = run_downgrade(&daemon, &[]);
    assert_eq!((code, text.trim()), (Some(0), "all files already have format 1"));
    daemon.restart();
    let args = ["chart", "--metric", "m", "--display", "total", "--range", "2d"];
    let answer = daemon.query(&[&args[..], &["--resolution", "1h"]].concat());
    let points = answer["series"][0]["points"].as_array().unwrap();
    assert_eq!(points.iter().filter_map(|point| point[1].as_f64()).sum::<f64>(), 7.0);
}
