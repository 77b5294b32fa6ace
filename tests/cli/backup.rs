//! Snapshots of a daemon under load, which are verified and restored.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary, yesterday};

const SETTINGS: &str = "storage.checkpoint_interval = '50ms'";

fn batch(seq: u64) -> Value {
    let samples: Vec<_> = (0..50)
        .map(|i| json!({"metric": "events", "tags": {"n": i.to_string()}, "kind": "delta", "value": 1}))
        .collect();
    json!({"agent": "writer", "epoch": 1, "seq": seq, "samples": samples})
}

/// Returns a batch whose samples are in documents after the next checkpoint.
fn old_batch(seq: u64) -> Value {
    let mut batch = batch(seq);
    for sample in batch["samples"].as_array_mut().unwrap() {
        sample["time"] = yesterday().into();
    }
    batch
}

fn count_batches(daemon: &Daemon, resolution: &str) -> f64 {
    let args = ["chart", "--metric", "events", "--display", "total", "--range", "1h"];
    let answer = daemon.query(&[&args[..], &["--resolution", resolution]].concat());
    let series = answer["series"].as_array().unwrap();
    let points = series.iter().flat_map(|line| line["points"].as_array().unwrap());
    points.filter_map(|point| point[1].as_f64()).sum::<f64>() / 50.0
}

#[test]
fn snapshots_under_load_verify_and_restore_all_acknowledged_batches() {
    let daemon = Daemon::start(SETTINGS);
    let (acknowledged, is_done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (acknowledged, is_done, url) =
            (acknowledged.clone(), is_done.clone(), daemon.url.clone());
        thread::spawn(move || {
            let mut seq = 1;
            while !is_done.load(Ordering::Relaxed) {
                let request = ureq::post(format!("{url}/api/v1/ingest"));
                let sent = request.content_type("application/json").send(batch(seq).to_string());
                assert_eq!(sent.unwrap().status(), 200);
                acknowledged.store(seq, Ordering::Relaxed);
                seq += 1;
            }
        })
    };
    let mut snapshots = Vec::new();
    while snapshots.len() < 5 {
        let acknowledged_before = acknowledged.load(Ordering::Relaxed);
        let output = granary().args(["snapshot", "--url", &daemon.url]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        // The snapshot may also contain the batch in flight.
        let acknowledged_after = acknowledged.load(Ordering::Relaxed) + 1;
        snapshots.push((path, acknowledged_before, acknowledged_after));
    }
    is_done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let last = acknowledged.load(Ordering::Relaxed);
    for (path, acknowledged_before, acknowledged_after) in snapshots {
        let verified = granary().arg("verify").arg(&path).output().unwrap();
        let text = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert!(verified.status.success() && text.contains("no faults"), "{text}");
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let restored =
            granary().arg("restore").arg(&path).arg("--data-dir").arg(&data).output().unwrap();
        assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
        let copy = Daemon::start_in(dir, SETTINGS);
        let found = count_batches(&copy, "1m");
        assert!(
            (acknowledged_before as f64..=acknowledged_after as f64).contains(&found),
            "{acknowledged_before} <= {found} <= {acknowledged_after}"
        );
        for resolution in ["5m", "1h", "1d"] {
            assert_eq!(count_batches(&copy, resolution), found, "{resolution}");
        }
        // The sender continues where the snapshot ends: batches in the snapshot are duplicates,
        // later batches are new.
        let from = (found as u64).saturating_sub(2).max(1);
        for seq in from..=last.min(from + 20) {
            let answer = copy.post_json(&batch(seq));
            let expected = if seq as f64 <= found { "duplicates" } else { "accepted" };
            assert_eq!(answer.body[expected], 50, "batch {seq} of {found}: {}", answer.body);
        }
    }
    assert_eq!(count_batches(&daemon, "1d"), last as f64);
}

#[test]
fn a_restore_never_overwrites_and_refuses_a_damaged_snapshot() {
    let mut daemon = Daemon::start("");
    assert_eq!(daemon.post_json(&old_batch(1)).status, 200);
    assert_eq!(daemon.stop(), Some(0));
    let data = daemon.data("");
    let restore = |from: &PathBuf, to: &PathBuf| {
        let output = granary().arg("restore").arg(from).arg("--data-dir").arg(to).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (succeeds, text) = restore(&data, &data);
    assert!(!succeeds && text.contains("not empty"), "{text}");
    let copy = daemon.dir.path().join("copy");
    assert!(restore(&data, &copy).0);
    let partition = std::fs::read_dir(copy.join("partitions/1h")).unwrap().next().unwrap();
    std::fs::write(partition.unwrap().path(), b"not a partition").unwrap();
    let target = daemon.dir.path().join("target");
    let (succeeds, text) = restore(&copy, &target);
    assert!(!succeeds && text.contains("granary verify") && !target.exists(), "{text}");
}
