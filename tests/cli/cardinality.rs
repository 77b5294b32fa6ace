//! `granary cardinality`: counts by metric, tag and sender, and the counts of earlier days.

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, granary},
    prometheus_api::get,
};

fn cardinality(daemon: &Daemon, args: &[&str]) -> String {
    let mut command = granary();
    command.args(["cardinality", "--url", &daemon.url]).args(args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn series_are_counted_by_metric_tag_and_sender_and_compared_after_a_restart() {
    let mut daemon = Daemon::start("storage.checkpoint_interval = '1s'");
    let send = |daemon: &Daemon, seq: u64, hosts: std::ops::Range<u32>| {
        let sample = |host: u32| {
            json!({ "metric": "load", "tags": { "host": host.to_string() },
            "value": 1 })
        };
        let samples: Vec<_> = hosts.map(sample).collect();
        let batch = json!({ "agent": "web", "epoch": 1, "seq": seq, "samples": samples });
        assert_eq!(daemon.post_json(&batch).status, 200);
    };
    // The counts of the previous day are 0 in a new daemon.
    send(&daemon, 1, 0..3);
    let answer = |daemon: &Daemon| -> Value {
        serde_json::from_str(&cardinality(daemon, &["--json"])).unwrap()
    };
    let expected = json!([{ "name": "load", "count": 3, "before": 0 }]);
    assert_eq!(answer(&daemon)["metrics"], expected);
    assert_eq!(answer(&daemon)["tags"][0]["name"], "host");
    assert_eq!(answer(&daemon)["senders"][0]["name"], "web");
    daemon.kill();
    daemon.restart();
    send(&daemon, 2, 3..5);
    assert_eq!(answer(&daemon)["metrics"][0]["before"], 0, "the stored counts are those of today");
    let table = cardinality(&daemon, &["--limit", "5"]);
    for part in ["load", "+5", "host", "web", "5 series, before: "] {
        assert!(table.contains(part), "{part} in {table}");
    }
    assert_eq!(get(&daemon, "/api/v1/cardinality?limit=0").0, 400);
}
