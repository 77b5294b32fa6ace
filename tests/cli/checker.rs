//! The checker of a running daemon: its metrics, its log and its answer.

use serde_json::json;

use crate::{
    daemon::{Daemon, partition_files, request, yesterday},
    document_damage::damage_document,
    peers::wait_until,
};

fn checker_status(daemon: &Daemon) -> serde_json::Value {
    let answer = request(&daemon.url, "GET", "/api/v1/storage", &[], "").unwrap().1;
    answer["checker"].clone()
}

#[test]
fn damage_is_found_by_the_checker_and_reported() {
    let mut daemon =
        Daemon::start("storage.checkpoint_interval = '50ms'\nstorage.check_interval = '500ms'\n");
    daemon.accept(&json!([{"metric": "m", "kind": "delta", "value": 3, "time": yesterday()}]));
    wait_until("a pass ends", || checker_status(&daemon)["passes"].as_u64() >= Some(1));
    assert_eq!(checker_status(&daemon)["faults"], 0);
    assert_eq!(daemon.stop(), Some(0));
    damage_document(&partition_files(&daemon.data(""), "1h")[0]);
    daemon.restart();
    wait_until("the damage is found", || checker_status(&daemon)["faults"] == 1);
    assert!(daemon.metrics().contains("granary_checker_faults_total 1"));
    assert!(daemon.log().contains("the checker found damage"), "{}", daemon.log());
    assert!(
        request(&daemon.url, "GET", "/readyz", &[], "").unwrap().1.to_string().contains("damaged")
    );
}
