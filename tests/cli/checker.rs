//! The checker of a running daemon: its metrics, its log and its answer.

use redb::{Database, ReadableTable, TableDefinition};
use serde_json::json;

use crate::{
    daemon::{Daemon, partition_files, request, yesterday},
    peers::wait_until,
};

const DOCUMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("documents");

fn checker(daemon: &Daemon) -> serde_json::Value {
    let answer = request(&daemon.url, "GET", "/api/v1/storage", &[], "").unwrap().1;
    answer["checker"].clone()
}

#[test]
fn damage_is_found_by_the_checker_and_reported() {
    let mut daemon =
        Daemon::start("storage.checkpoint_interval = '50ms'\nstorage.check_interval = '500ms'\n");
    daemon.accept(&json!([{"metric": "m", "kind": "delta", "value": 3, "time": yesterday()}]));
    wait_until("a pass ends", || checker(&daemon)["passes"].as_u64() >= Some(1));
    assert_eq!(checker(&daemon)["faults"], 0);
    assert_eq!(daemon.stop(), Some(0));
    let db = Database::open(&partition_files(&daemon.data(""), "1h")[0]).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut table = txn.open_table(DOCUMENTS).unwrap();
        let (key, mut doc) = {
            let (key, doc) = table.first().unwrap().unwrap();
            (key.value(), doc.value().to_vec())
        };
        doc[200] ^= 1;
        table.insert(key, &*doc).unwrap();
    }
    txn.commit().unwrap();
    drop(db);
    daemon.restart();
    wait_until("the damage is found", || checker(&daemon)["faults"] == 1);
    assert!(daemon.metrics().contains("granary_checker_faults_total 1"));
    assert!(daemon.log().contains("the checker found damage"), "{}", daemon.log());
    assert!(
        request(&daemon.url, "GET", "/readyz", &[], "").unwrap().1.to_string().contains("damaged")
    );
}
