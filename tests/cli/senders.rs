//! Senders that number their batches: what forged ones cannot do, and how they are removed.

use std::process::Output;

use serde_json::{Value, json};

use crate::daemon::{Daemon, client, granary};

fn batch(agent: &str, epoch: i64, seq: u64) -> Value {
    json!({"agent": agent, "epoch": epoch, "seq": seq,
           "samples": [{"metric": "events", "kind": "delta", "value": 1}]})
}

fn senders(daemon: &Daemon, words: &[&str]) -> Output {
    granary().arg("senders").args(words).args(["--url", &daemon.url]).output().unwrap()
}

fn listed(daemon: &Daemon) -> Vec<String> {
    let output = senders(daemon, &["list", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = answer["senders"].as_array().unwrap().iter();
    all.map(|own| own["agent"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_forged_sender_locks_no_agent_out() {
    let daemon = Daemon::start("");
    assert_eq!(daemon.post_json(&batch("web1", 5, 1)).body["accepted"], 1);
    let mut empty = batch("web1", i64::MAX, 1);
    empty["samples"] = json!([]);
    for back in 0..4 {
        empty["epoch"] = json!(i64::MAX - back);
        assert_eq!(daemon.post_json(&empty).status, 200);
        let far = daemon.post_json(&batch("web1", i64::MAX - back, 1)).body;
        assert_eq!((&far["refused"], &far["renumber"]), (&json!({"far_number": 1}), &json!([1])));
    }
    let far = daemon.post_json(&batch("web1", 5, 1 << 62)).body;
    assert_eq!(
        (&far["refused"], &far["renumber"]),
        (&json!({"far_number": 1}), &json!([1_u64 << 62]))
    );
    let message = far["examples"][0]["message"].as_str().unwrap();
    assert!(message.contains("Unix milliseconds"), "{message}");
    assert_eq!(daemon.post_json(&batch("web1", 5, 2)).body["accepted"], 1);
    // What is behind the window says so, that its sender may begin a new epoch.
    assert_eq!(daemon.post_json(&batch("web1", 5, 5000)).body["accepted"], 1);
    let stale = daemon.post_json(&json!([batch("web1", 5, 3), batch("web1", 5, 5001)])).body;
    assert_eq!((&stale["accepted"], &stale["renumber"]), (&json!(1), &json!([3])));
    assert_eq!(stale["refused"], json!({"stale_number": 1}));
}

#[test]
fn a_full_store_asks_new_senders_to_wait_until_some_are_removed() {
    let mut daemon = Daemon::start("limits.senders_max = 3");
    for agent in ["a", "b", "c"] {
        assert_eq!(daemon.post_json(&batch(agent, 1, 1)).status, 200);
    }
    let refused = daemon.post_json(&json!([batch("new", 1, 1), batch("a", 1, 2)]));
    assert_eq!((refused.status, &refused.body["error"]), (503, &json!("sender_limit")));
    assert!(refused.body["message"].as_str().unwrap().contains("granary senders remove"));
    // What others of the request sent is accepted, once.
    assert_eq!(daemon.post_json(&batch("a", 1, 2)).body["duplicates"], 1);

    let table = String::from_utf8(senders(&daemon, &["list"]).stdout).unwrap();
    assert!(table.contains("3 senders") && table.contains("epoch"), "{table}");
    let dry = senders(&daemon, &["remove", "b", "nobody", "--dry-run"]).stdout;
    assert!(String::from_utf8(dry).unwrap().contains("1 senders would be removed"));
    assert_eq!(senders(&daemon, &["remove", "--idle", "1h"]).stdout, b"removed 0 senders\n");
    assert_eq!(listed(&daemon), ["a", "b", "c"]);
    assert_eq!(senders(&daemon, &["remove", "b", "nobody"]).stdout, b"removed 1 senders\n");
    daemon.kill();
    daemon.restart();
    assert_eq!(listed(&daemon), ["a", "c"]);
    assert_eq!(daemon.post_json(&batch("new", 1, 1)).body["accepted"], 1);
    assert_eq!(daemon.post_json(&batch("a", 1, 2)).body["duplicates"], 1);

    let delete = |query: &str| {
        let mut answer =
            client().delete(format!("{}/api/v1/senders{query}", daemon.url)).call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str::<Value>(&body).unwrap())
    };
    assert_eq!(delete("").0, 400, "all at once is asked for with idle=0ms");
    assert_eq!(delete("?agent=c").1["total"], 1);
    assert_eq!(listed(&daemon), ["a", "new"]);
}
