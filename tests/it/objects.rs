//! Stored objects across restarts, in snapshots, and in `verify`.

use std::path::Path;

use granary::{
    model::{AgentRecord, HostChanges, HostRecord, ListeningSpan, StoredHosts},
    store::{ObjectKind, Store, restore, verify},
};

use crate::setup::{self, NOW};

fn open(dir: &Path) -> Store {
    setup::open(dir, NOW).0
}

fn put_object(store: &Store, name: &str, expected: Option<u64>, text: &str) -> u64 {
    let version = store.put_object(ObjectKind::Dashboard, name, expected, text.as_bytes(), NOW);
    version.unwrap().unwrap()
}

fn object_text(store: &Store, name: &str) -> Option<String> {
    let object = store.object(ObjectKind::Dashboard, name).unwrap()?;
    Some(String::from_utf8(object.bytes).unwrap())
}

#[test]
fn objects_are_in_snapshots_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (dir.path().join("data"), dir.path().join("copy"), dir.path().join("back"));
    let store = open(&data);
    // A store without objects has no file for them.
    let before = store.snapshot(&dir.path().join("before"), NOW, &mut |_| {}).unwrap();
    assert!(!data.join("objects.redb").exists());
    let version = put_object(&store, "hosts", None, "one");
    put_object(&store, "disks", None, "two");
    let snapshot = store.snapshot(&copy, NOW, &mut |_| {}).unwrap();
    assert_eq!(snapshot.files, before.files + 1);
    put_object(&store, "hosts", Some(version), "three");
    drop(store);
    let store = open(&data);
    assert_eq!(object_text(&store, "hosts").unwrap(), "three");
    drop(store);
    restore(&copy, &restored, &mut |_| {}).unwrap();
    let store = open(&restored);
    assert_eq!(object_text(&store, "hosts").unwrap(), "one");
    let names = store.objects(ObjectKind::Dashboard).unwrap().into_iter().map(|object| object.name);
    assert_eq!(names.collect::<Vec<_>>(), ["disks", "hosts"]);
    drop(store);
    for folder in [&data, &copy, &restored] {
        let report = verify(folder, NOW, &mut |_| {}).unwrap();
        assert_eq!((report.faults, report.files), (vec![], 3));
    }
    // A lost file is reported as missing.
    std::fs::remove_file(data.join("objects.redb")).unwrap();
    let report = verify(&data, NOW, &mut |_| {}).unwrap();
    let missing = report.faults.iter().any(|fault| fault.file == "objects.redb");
    assert!(missing, "{:?}", report.faults);
    assert_eq!(open(&data).damaged_partitions(), ["objects.redb.missing"]);
}

/// Returns the changes for a host whose agent sent a ping at `pinged`.
fn host_with_ping(name: &str, pinged: i64) -> HostChanges {
    let agent = AgentRecord { agent: name.to_owned(), pinged, ..AgentRecord::default() };
    let record = HostRecord { agents: vec![agent], ..HostRecord::default() };
    HostChanges {
        changed: vec![(name.into(), record)],
        removed: Vec::new(),
        listening: ListeningSpan { since: 1, until: pinged, listened_ms: 5 },
    }
}

fn last_pings(store: &Store) -> Vec<(String, i64)> {
    let records = store.hosts().unwrap().records.into_iter();
    records.map(|(name, record)| (name.to_string(), record.agents[0].pinged)).collect()
}

#[test]
fn hosts_are_in_snapshots_and_checked_beside_objects() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (dir.path().join("data"), dir.path().join("copy"), dir.path().join("back"));
    let store = open(&data);
    assert_eq!(store.hosts().unwrap(), StoredHosts::default());
    let version = put_object(&store, "hosts", None, "one");
    store.keep_hosts(&host_with_ping("web1", 10)).unwrap();
    store.keep_hosts(&host_with_ping("web2", 20)).unwrap();
    store.snapshot(&copy, NOW, &mut |_| {}).unwrap();
    put_object(&store, "hosts", Some(version), "two");
    let removed = HostChanges { removed: vec!["web2".into()], ..host_with_ping("web1", 30) };
    store.keep_hosts(&removed).unwrap();
    drop(store);
    restore(&copy, &restored, &mut |_| {}).unwrap();
    let (now, before) = (open(&data), open(&restored));
    assert_eq!(last_pings(&now), [("web1".to_owned(), 30)]);
    assert_eq!(last_pings(&before), [("web1".to_owned(), 10), ("web2".to_owned(), 20)]);
    assert_eq!(now.hosts().unwrap().listening.until, 30);
    assert_eq!(object_text(&now, "hosts").unwrap(), "two");
    drop((now, before));
    for folder in [&data, &copy, &restored] {
        assert_eq!(verify(folder, NOW, &mut |_| {}).unwrap().faults, []);
    }
}
