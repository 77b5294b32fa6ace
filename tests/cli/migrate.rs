//! `granary migrate`: embedded directories become those of nodes, and back.

use std::process::Output;

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary};

fn migrate(daemon: &Daemon, to: &str) -> Output {
    migrate_through(daemon, &["--to", to])
}

fn migrate_through(daemon: &Daemon, args: &[&str]) -> Output {
    granary().arg("migrate").args(args).arg(daemon.data("")).output().unwrap()
}

fn succeed(daemon: &Daemon, args: &[&str]) -> String {
    let output = migrate_through(daemon, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the points of all levels, without empty slots: the range moves with the time.
fn charts(daemon: &Daemon) -> Vec<Value> {
    let chart = |level| {
        let args =
            ["chart", "--metric", "load", "--display", "count,max", "--merge", "--range", "1d"];
        let answer = daemon.query(&[&args[..], &["--resolution", level]].concat());
        let mut series = answer["series"].clone();
        for line in series.as_array_mut().unwrap() {
            line["points"].as_array_mut().unwrap().retain(|point| !point[1].is_null());
        }
        series
    };
    ["1m", "5m", "1h", "1d"].map(chart).into()
}

#[test]
fn an_embedded_store_becomes_a_replica_and_embedded_again() {
    let mut daemon = Daemon::start("");
    let batch = |seq: u64| {
        let samples: Vec<_> = (0..30)
            .map(|index| json!({"metric": "load", "tags": {"host": format!("h{index}")}, "value": index}))
            .collect();
        json!({"agent": "a", "epoch": 1, "seq": seq, "samples": samples})
    };
    for seq in 1..=3 {
        assert_eq!(daemon.post_json(&batch(seq)).status, 200);
    }
    let before = charts(&daemon);
    assert!(before[0].to_string().contains("29"), "{before:?}");
    // A kill leaves records in the log.
    daemon.kill();
    let text = succeed(&daemon, &["--to", "cluster"]);
    assert!(text.contains("compared 1m, 5m, 1h, 1d"), "{text}");
    let refused = daemon.expect_failed_start();
    assert!(refused.contains("it belongs to a replica"), "{refused}");
    // A repetition changes nothing.
    let text = succeed(&daemon, &["--to", "cluster"]);
    assert!(text.contains("belonged to the first node"), "{text}");
    // A directory that may lack records of the log stays a replica.
    let last = text.split("records up to ").nth(1).unwrap().split(';').next().unwrap();
    let last: u64 = last.parse().unwrap();
    let refused = |args: &[&str]| {
        let output = migrate_through(&daemon, &[&["--to", "embedded"], args].concat());
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refused(&[]);
    assert!(text.contains("--through"), "{text}");
    let text = refused(&["--through", &(last + 2).to_string()]);
    assert!(text.contains(&format!("lacks {} to {}", last + 1, last + 2)), "{text}");
    let text = refused(&["--through", &(last - 1).to_string()]);
    assert!(text.contains("is not the last one"), "{text}");
    succeed(&daemon, &["--to", "embedded", "--through", &last.to_string()]);
    daemon.restart();
    assert_eq!(charts(&daemon), before);
    // Batches that were counted are known, and new ones count.
    for seq in 1..=4 {
        assert_eq!(daemon.post_json(&batch(seq)).status, 200);
    }
    let after = charts(&daemon);
    let count = |chart: &Value| {
        let points = chart[0]["points"].as_array().unwrap();
        points.iter().filter_map(|point| point[1].as_f64()).sum::<f64>()
    };
    assert_eq!(count(&after[3]), 120.0, "{after:?}");
    assert_eq!(daemon.stop(), Some(0));
    assert!(daemon.verify().status.success());
}

#[test]
fn a_directory_in_use_and_an_empty_one_are_refused() {
    let mut daemon = Daemon::start("");
    let text = String::from_utf8(migrate(&daemon, "cluster").stderr).unwrap();
    assert!(text.contains("stop it first"), "{text}");
    assert_eq!(daemon.stop(), Some(0));
    let text = String::from_utf8(migrate(&daemon, "cluster").stderr).unwrap();
    assert!(text.contains("it is empty"), "{text}");
}
