//! Retries, kills and damage: every acknowledged sample is kept and counts once.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::{Daemon, granary, partition_files, yesterday};

fn batch(seq: u64) -> Value {
    json!({"agent": "tester", "epoch": 7, "seq": seq, "samples": [
        {"metric": "events", "kind": "delta", "value": 1},
        {"metric": "events", "kind": "delta", "value": 2}]})
}

fn sum_of_events(daemon: &Daemon, resolution: &str) -> f64 {
    let args = ["chart", "--metric", "events", "--display", "total", "--range", "2d"];
    let answer = daemon.query(&[&args[..], &["--resolution", resolution]].concat());
    let points = answer["series"][0]["points"].as_array().unwrap();
    points.iter().filter_map(|point| point[1].as_f64()).sum()
}

#[test]
fn kill_9_after_each_acknowledgement_loses_nothing_and_counts_nothing_twice() {
    let mut daemon = Daemon::start("");
    for seq in 1..=5 {
        let answer = daemon.post_json(&batch(seq));
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(2)));
        daemon.kill();
        daemon.restart();
        let retry = daemon.post_json(&batch(seq));
        assert_eq!((retry.status, &retry.body["duplicates"]), (200, &json!(2)));
        for resolution in ["1m", "5m", "1h", "1d"] {
            assert_eq!(sum_of_events(&daemon, resolution), 3.0 * seq as f64, "{resolution}");
        }
    }
    // The last checkpoint of a clean stop leaves nothing to replay.
    assert_eq!(daemon.stop(), Some(0));
    daemon.restart();
    assert!(daemon.log().contains("replayed_records=0"), "{}", daemon.log());
    assert_eq!(sum_of_events(&daemon, "1d"), 15.0);
}

#[test]
fn a_damaged_partition_is_set_aside_and_the_rest_is_served() {
    let mut daemon = Daemon::start("");
    let mut old = batch(1);
    for sample in old["samples"].as_array_mut().unwrap() {
        sample["time"] = yesterday().into();
    }
    assert_eq!(daemon.post_json(&old).status, 200);
    assert_eq!(daemon.stop(), Some(0));
    daemon.restart();
    // The next checkpoint removes cells from the head that are in documents.
    let other = json!({"samples": [{"metric": "other", "value": 1}]});
    assert_eq!(daemon.post_json(&other).status, 200);
    assert_eq!(daemon.stop(), Some(0));
    let files = partition_files(&daemon.data(""), "5m");
    fs::write(&files[0], b"this was a partition").unwrap();
    daemon.restart();
    let mut ready = ureq::get(format!("{}/readyz", daemon.url)).call().unwrap();
    assert!(ready.body_mut().read_to_string().unwrap().contains("degraded"));
    assert!(daemon.metrics().contains("granary_partitions_damaged 1"));
    assert_eq!(fs::read_dir(daemon.data("damaged")).unwrap().count(), 1);
    assert_eq!([sum_of_events(&daemon, "1m"), sum_of_events(&daemon, "1d")], [3.0, 3.0]);
    old["seq"] = 2.into();
    assert_eq!(daemon.post_json(&old).body["accepted"], 2);
    // The samples of the lost file come from the next finer granularity.
    assert_eq!([sum_of_events(&daemon, "5m"), sum_of_events(&daemon, "1d")], [6.0, 6.0]);
}

#[test]
fn a_second_daemon_on_the_same_data_is_refused() {
    let daemon = Daemon::start("");
    let data = daemon.dir.path().join("data");
    let output = granary()
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("is in use by process"), "{message}");
}

#[test]
fn an_error_names_its_location_and_affects_no_other_sample() {
    let daemon = Daemon::start("ingest.body_memory_max = 8_388_608");
    let check = |media_type: &str, body: &[u8], status: u16, part: &str| {
        let answer = daemon.post(media_type, body);
        let message = answer.body["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.status, status, "{message}");
        assert!(message.contains(part), "{part} in {message}");
    };
    check("application/json", b"{\"samples\": [", 400, "line 1 column");
    check("application/json", b"{\"samples\": 3}", 400, "an array of samples");
    check("application/bson", b"\x05\0\0\0\0", 400, "agent: missing");
    check("application/bson", b"\xff\xff\xff\x7f\0", 400, "batch 0 at byte 0");
    check("application/vnd.granary.packed", b"GP\x02\x01", 400, "packed body at byte 4");
    check("application/vnd.granary.packed", b"GP\x09\x01", 400, "version 9");
    check(
        "application/json",
        &vec![b' '; 1_048_577],
        413,
        "more than 1048576 bytes: send smaller requests or raise ingest.body_memory_max",
    );
    let unknown = json!({"agent": "a", "epoch": 1, "seq": 1, "samples": [{"ref": 3, "value": 1}]});
    check("application/json", unknown.to_string().as_bytes(), 409, "ref 3");
    // One bad sample does not affect the rest of the batch.
    let mixed = json!({"samples": [
        {"metric": "events", "kind": "delta", "value": 5},
        {"metric": "events", "kind": "delta", "time": "1999-01-01T00:00:00Z", "value": 1},
        {"metric": "events", "kind": "delta", "time": "2999-01-01T00:00:00Z", "value": 1},
        {"metric": "", "value": 1}]});
    let answer = daemon.post_json(&mixed);
    assert_eq!(answer.body["accepted"], 1);
    let refused = json!({"bad_series": 1, "too_new": 1, "too_old": 1});
    assert_eq!(answer.body["refused"], refused);
    assert_eq!(sum_of_events(&daemon, "1m"), 5.0);
}
