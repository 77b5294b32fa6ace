//! The state of the storage over HTTP: partitions, checkpoints, and one document with its bytes.

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, partition_files, yesterday},
    peers::wait_until,
    prometheus_api::get,
};

fn get_storage(daemon: &Daemon) -> Value {
    let (status, body) = get(daemon, "/api/v1/storage");
    assert_eq!(status, 200, "{body}");
    body
}

#[test]
fn the_storage_over_http_equals_the_files_on_disk() {
    let mut daemon = Daemon::start("");
    let sample = |time: &str, value: f64| json!({"metric": "m", "tags": {"host": "a"}, "time": time, "value": value});
    daemon.accept(&json!([sample(&yesterday(), 1.0), sample(&yesterday(), 2.0)]));
    let before = get_storage(&daemon);
    assert_eq!((&before["series"], &before["journal"]["records"]), (&json!(1), &json!(2)));
    assert!(before["catalog"]["bytes"].as_u64() > Some(0), "{before}");
    assert_eq!(before["checkpoints"], json!([]));
    // The last checkpoint before the stop writes the documents of yesterday.
    assert_eq!(daemon.stop(), Some(0));
    daemon.restart();
    daemon.accept(&json!([sample(&yesterday(), 4.0)]));
    let after = get_storage(&daemon);
    assert_eq!(after["data_dir"], json!(daemon.data("").to_str().unwrap()));
    assert!(after["disk"]["free"].as_u64() <= after["disk"]["total"].as_u64());
    let minutes = &after["granularities"][0];
    assert_eq!((&minutes["name"], &minutes["retention"]), (&json!("1m"), &json!("2d")));
    let files = partition_files(&daemon.data(""), "1m");
    let partitions = minutes["partitions"].as_array().unwrap();
    // Other partitions, of the current and the next hours, exist for reserved space and shells.
    let over: Vec<_> = partitions.iter().filter(|each| each["state"] == "over").collect();
    assert_eq!(over.len(), 1, "{partitions:?}");
    let partition = over[0];
    let name = partition["file"].as_str().unwrap();
    assert!(files.iter().any(|file| file.ends_with(name)), "{partition}");
    assert_eq!(partition["documents"], json!(1));
    let dropped_at = partition["end"].as_i64().unwrap() + 48 * 3_600_000;
    assert_eq!(partition["dropped_at"], json!(dropped_at));
    assert!(after["bytes"].as_u64() > partition["bytes"].as_u64());

    let time = yesterday();
    let path = format!("/api/v1/storage/document?metric=m&resolution=1m&time={time}");
    let (status, document_answer) = get(&daemon, &path);
    assert_eq!(status, 200, "{document_answer}");
    assert_eq!(
        (&document_answer["state"], &document_answer["series"]["tags"]["host"]),
        (&json!("memory"), &json!("a"))
    );
    assert_eq!(document_answer["memory"][0]["sum"], json!(4.0));
    assert_eq!(document_answer["document"]["nested"]["num_samples"], json!(2));
    assert_eq!(document_answer["partition"]["file"], partition["file"]);

    daemon.accept(&json!([{"metric": "m", "tags": {"host": "b"}, "value": 1}]));
    for (query, expected) in [
        ("metric=m", "2 series match"),
        ("metric=x", "no metric is called x"),
        ("metric=m&tags=host=a&resolution=2m", "use one of 1m, 5m, 1h, 1d"),
        ("metric=m&tags=host=a&time=never", "time="),
        ("metric=m&tags=host=a&range=1h", "this query has no parameter range"),
    ] {
        let (status, body) = get(&daemon, &format!("/api/v1/storage/document?{query}"));
        assert_eq!((status, &body["error"]), (400, &json!("invalid")), "{query}");
        assert!(body["message"].as_str().unwrap().contains(expected), "{body}");
    }
}

#[test]
fn recent_checkpoints_are_listed_with_their_moved_cells() {
    let daemon = Daemon::start("storage.checkpoint_interval = '1s'\n");
    daemon.accept(&json!([{"metric": "m", "value": 1}, {"metric": "n", "value": 2}]));
    let moved_cells = |checkpoints: &Value| -> u64 {
        checkpoints
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|checkpoint| checkpoint["cells"].as_u64())
            .sum()
    };
    let mut checkpoints = Value::Null;
    wait_until("two checkpoints are listed, one of which moved cells", || {
        checkpoints = get_storage(&daemon)["checkpoints"].clone();
        moved_cells(&checkpoints) > 0 && checkpoints.as_array().unwrap().len() >= 2
    });
    // Two series have a cell in each of the four granularities.
    assert_eq!(moved_cells(&checkpoints), 8);
    let written_bytes: Vec<_> = checkpoints
        .as_array()
        .unwrap()
        .iter()
        .filter(|checkpoint| checkpoint["cells"] != 0)
        .map(|checkpoint| checkpoint["bytes_written"].as_u64().unwrap())
        .collect();
    // The checkpoint writes at least a page of the head for each granularity, and less than 4 MiB.
    assert!(written_bytes.iter().all(|bytes| (4 * 4096..4 << 20).contains(bytes)), "{checkpoints}");
    let times: Vec<_> = checkpoints
        .as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| checkpoint["at"].as_i64())
        .collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{checkpoints}");
}
