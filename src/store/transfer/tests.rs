//! Tests of copies of a replica: a replica that leads, its archive, and a receiver with faults.

#[path = "../../../tests/support/memory_log.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the simulation needs more of it")]
mod memory_log;

use std::{
    collections::BTreeMap,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tempfile::TempDir;

use super::{
    CopyLimits, ReceivedCopy, TransferError,
    incoming::receive_copy,
    replacing::{finish_by_steps, finish_transfer},
};
use crate::{
    model::{GranularitySet, Kind, SeriesId, UnixMillis},
    setup::{HOUR, MINUTE, NOW, define, granularities, samples, send, series},
    store::{Appender, Folder, RecordLog, RecordSink, Replica, Store},
};
use memory_log::MemoryLog;

const LIMITS: CopyLimits = CopyLimits { least_through: 1, bytes_max: 1 << 30 };

fn levels() -> GranularitySet {
    granularities(&[["1m", "1h", "2h", "6h"], ["1h", "1d", "1d", "30d"]])
}

fn open(data_dir: &Path, first: &[u8], now: UnixMillis) -> (Store, Replica) {
    Replica::open(Arc::new(Folder::new(data_dir).unwrap()), Some(first), now).unwrap()
}

/// A node that leads, with samples of three hours in files and later ones in memory.
struct Sender {
    dir: TempDir,
    log: MemoryLog,
    first: Vec<u8>,
    store: Store,
    appender: Appender,
}

impl Sender {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let first = Replica::first_record(&levels(), &[], NOW);
        let mut log = MemoryLog::default();
        log.append(1, &first).unwrap();
        let (store, mut replica) = open(dir.path(), &first, NOW);
        replica.follow(&mut log.clone()).unwrap();
        let mut appender = replica.lead(Box::new(log.clone()));
        store.set_segment_documents_min(1);
        define(&mut appender, &[series("m", &[("host", "a")], Kind::Gauge)], NOW);
        let mut this = Self { dir, log, first, store, appender };
        this.send(NOW.minus(3 * HOUR), NOW);
        this.store.checkpoint(NOW).unwrap();
        this.store.seal(NOW, 0, &|_| true).unwrap();
        this.send(NOW, NOW.plus(10 * MINUTE));
        this
    }

    fn send(&mut self, from: UnixMillis, to: UnixMillis) {
        let times = (from.0..to.0).step_by(MINUTE as usize);
        let batch = samples(SeriesId(0), times.map(|at| (at, at as f64)));
        send(&mut self.appender, batch, to);
    }

    /// Returns the archive of a copy.
    fn archive(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.store
            .prepare_copy(self.dir.path(), NOW, &|| false)
            .unwrap()
            .write_to(&mut bytes)
            .unwrap();
        bytes
    }
}

/// Returns the content of all files below a folder, by path.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(content(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

/// Returns the content of all files below a folder, by path below it.
fn relative_content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = content(folder).into_iter();
    files.map(|(path, bytes)| (path.strip_prefix(folder).unwrap().to_owned(), bytes)).collect()
}

/// A closed node with a replica of its own, which has other samples.
fn receiver() -> TempDir {
    let other = Sender::new();
    let Sender { dir, store, appender, .. } = other;
    drop((store, appender));
    fs::create_dir_all(dir.path().join("audit")).unwrap();
    fs::write(dir.path().join("audit/1"), "logins").unwrap();
    dir
}

fn receive(folder: &Path, mut archive: &[u8]) -> Result<ReceivedCopy, TransferError> {
    receive_copy(folder, &mut archive, LIMITS, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn a_copy_of_a_replica_in_use_follows_the_log_to_an_equal_state() {
    let mut sender = Sender::new();
    let copy = sender.store.prepare_copy(sender.dir.path(), NOW, &|| false).unwrap();
    // Later records, checkpoints and retention change the files before they are sent.
    let later = NOW.plus(9 * HOUR);
    sender.send(NOW.plus(HOUR), NOW.plus(2 * HOUR));
    sender.send(later.minus(MINUTE), later);
    sender.store.checkpoint(later).unwrap();
    let partitions = sender.store.partitions();
    // The others are within their retention.
    let is_dropped = |found| matches!(sender.store.drop_partition(found), Ok(true));
    assert!(partitions.iter().filter(|found| is_dropped(found.id)).count() > 0);
    let mut archive = Vec::new();
    copy.write_to(&mut archive).unwrap();
    let through = copy.through();
    drop(copy);
    let left = fs::read_dir(sender.dir.path().join("transfer")).unwrap().count();
    assert_eq!(left, 0, "the files of a dropped copy are removed");

    let node = receiver();
    let received = receive(node.path(), &archive).unwrap();
    assert_eq!(received.through, through);
    assert_eq!(fs::read(node.path().join("audit/1")).unwrap(), b"logins");
    let (store, mut replica) = open(node.path(), &sender.first, later);
    assert_eq!((replica.applied(), replica.durable_floor().unwrap()), (through, through));
    assert_eq!(replica.follow(&mut sender.log.clone()).unwrap(), sender.log.last() - through);
    let digests = [&sender.store, &store].map(|store| store.digest(later).unwrap());
    digests[0].compare(&digests[1]).unwrap();
}

#[test]
fn copies_that_are_made_while_the_store_changes_all_lead_to_its_state() {
    let mut sender = Sender::new();
    let (store, data_dir, log) =
        (sender.store.clone(), sender.dir.path().to_owned(), sender.log.clone());
    let is_over = AtomicBool::new(false);
    let end = NOW.plus(40 * HOUR);
    let archives = std::thread::scope(|scope| {
        let copying = scope.spawn(|| {
            let mut archives = Vec::new();
            while !is_over.load(Ordering::Relaxed) || archives.len() < 2 {
                let mut archive = Vec::new();
                let copy = store.prepare_copy(&data_dir, NOW, &|| false).unwrap();
                copy.write_to(&mut archive).unwrap();
                archives.push(archive);
            }
            archives
        });
        for hour in (0..40).step_by(2) {
            let now = NOW.plus((hour + 2) * HOUR);
            sender.send(NOW.plus(hour * HOUR), now);
            sender.store.checkpoint(now).unwrap();
            sender.store.seal(now, 0, &|_| true).unwrap();
            for partition in sender.store.partitions() {
                // The others are within their retention.
                sender.store.drop_partition(partition.id).ok();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        copying.join().unwrap()
    });
    let expected = sender.store.digest(end).unwrap();
    for archive in archives {
        let node = tempfile::tempdir().unwrap();
        let received = receive(node.path(), &archive).unwrap();
        let (store, mut replica) = open(node.path(), &sender.first, end);
        assert_eq!(replica.applied(), received.through);
        replica.follow(&mut log.clone()).unwrap();
        store.digest(end).unwrap().compare(&expected).unwrap();
    }
}

#[test]
fn an_empty_node_is_seeded_after_its_log_was_cut() {
    let mut sender = Sender::new();
    let mut log = sender.log.clone();
    sender.store.checkpoint(NOW.plus(HOUR)).unwrap();
    let last = log.last();
    log.cut(last).unwrap();
    let node = tempfile::tempdir().unwrap();
    receive(node.path(), &sender.archive()).unwrap();
    sender.send(NOW.plus(HOUR), NOW.plus(2 * HOUR));
    let medium = Arc::new(Folder::new(node.path()).unwrap());
    let (store, mut replica) = Replica::open(medium, None, NOW).unwrap();
    assert_eq!(replica.follow(&mut log).unwrap(), 1);
    let digests = [&sender.store, &store].map(|store| store.digest(NOW.plus(HOUR)).unwrap());
    digests[0].compare(&digests[1]).unwrap();
}

#[test]
fn an_archive_that_is_cut_or_changed_leaves_the_old_replica() {
    let archive = Sender::new().archive();
    let whole = tempfile::tempdir().unwrap();
    receive(whole.path(), &archive).unwrap();
    let whole = relative_content(whole.path());
    let mut node = receiver();
    let mut before = content(node.path());
    // The blocks at the end have nothing that a receiver needs.
    let positions = (0..archive.len() - 1536).step_by(archive.len() / 40);
    let mut refused = 0;
    for at in positions.chain([1, 511, 512, 1024, archive.len() - 1530]) {
        let fault = receive(node.path(), &archive[..at]).unwrap_err();
        assert!(matches!(fault, TransferError::Broken(_)), "cut at {at}: {fault}");
        assert!(content(node.path()) == before, "cut at {at}");
        let mut changed = archive.clone();
        changed[at] ^= 0x10;
        if receive(node.path(), &changed).is_err() {
            refused += 1;
            assert!(content(node.path()) == before, "changed at {at}");
            continue;
        }
        // The byte fills up a block.
        let mut received = relative_content(node.path());
        received.retain(|path, _| !path.starts_with("audit"));
        assert!(received == whole, "changed at {at}");
        node = receiver();
        before = content(node.path());
    }
    assert!(refused > 30, "{refused}");
    let mut left = 5;
    let mut ends = |_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let fault = receive_copy(node.path(), &mut &archive[..], LIMITS, &mut ends).unwrap_err();
    assert!(matches!(fault, TransferError::Ended), "{fault}");
    assert!(content(node.path()) == before);
}

#[test]
fn a_replacement_that_is_killed_at_any_step_is_finished_by_the_next_start() {
    let archive = Sender::new().archive();
    let whole = tempfile::tempdir().unwrap();
    receive(whole.path(), &archive).unwrap();
    let expected = relative_content(whole.path());
    for kill_at in 0.. {
        let node = receiver();
        fs::remove_dir_all(node.path().join("audit")).unwrap();
        // The copy is complete, and the replacement begins.
        let complete = node.path().join("transfer/incoming");
        let files = tempfile::tempdir().unwrap();
        receive(files.path(), &archive).unwrap();
        fs::remove_dir(files.path().join("transfer")).unwrap();
        fs::create_dir_all(complete.parent().unwrap()).unwrap();
        fs::rename(files.path(), &complete).unwrap();
        let mut steps = 0;
        let mut step = || {
            steps += 1;
            if steps > kill_at { Err(std::io::Error::other("killed")) } else { Ok(()) }
        };
        let is_finished = finish_by_steps(node.path(), &mut step).is_ok();
        finish_transfer(node.path()).unwrap();
        assert!(relative_content(node.path()) == expected, "killed at step {kill_at}");
        if is_finished {
            assert!(kill_at > 12, "{kill_at} steps");
            return;
        }
    }
}

#[test]
fn a_start_removes_what_killed_transfers_left() {
    let node = receiver();
    let before = content(node.path());
    for folder in ["incoming.partial/partitions", "outgoing-0-x/store/journal"] {
        let folder = node.path().join("transfer").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("1"), "part").unwrap();
    }
    finish_transfer(node.path()).unwrap();
    assert!(content(node.path()) == before);
}

/// Returns an archive with these entries.
fn archive_of(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, kind, bytes) in entries {
        let mut header = tar::Header::new_ustar();
        // The library refuses some of these names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        archive.append(&header, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

#[test]
fn foreign_archives_are_refused_before_a_file_is_written() {
    use tar::EntryType::{GNULongName, Regular, Symlink};
    let begin = |format: u64, through: u64, files: u64, bytes: u64| {
        format!(r#"{{"format":{format},"through":{through},"files":{files},"bytes":{bytes}}}"#)
    };
    let format = granary::store::FORMAT_VERSION;
    let fit = begin(format, 1, 1, 1);
    let node = receiver();
    let before = content(node.path());
    let check = |entries: &[(&str, tar::EntryType, &[u8])], expected: &str| {
        let fault = receive(node.path(), &archive_of(entries)).unwrap_err().to_string();
        assert!(fault.contains(expected), "{expected}: {fault}");
        assert!(content(node.path()) == before, "{expected}");
    };
    let begins = |text: &str, expected: &str| {
        check(&[("begin.json", Regular, text.as_bytes())], expected);
    };
    begins(&begin(format + 1, 1, 1, 1), "run the same release on both nodes");
    begins(&begin(format, 0, 1, 1), "the log was cut up to record 1");
    begins(&begin(format, 1, 1, 1 << 31), "at most");
    begins(&begin(format, 1, 1 << 21, 1), "at most");
    begins("{}", "begin.json of the copy is damaged");
    check(&[("head.redb", Regular, b"x")], "in place of begin.json");
    for name in ["../head.redb", "/etc/passwd", "granary.pid", "partitions/../../x", "journal//1"] {
        check(&[("begin.json", Regular, fit.as_bytes()), (name, Regular, b"x")], "not one of");
    }
    for kind in [Symlink, GNULongName] {
        let entries = [("begin.json", Regular, fit.as_bytes()), ("head.redb", kind, b"x")];
        check(&entries, "no file");
    }
    let larger = [("begin.json", Regular, fit.as_bytes()), ("head.redb", Regular, b"xy")];
    check(&larger, "larger than announced");
}

#[test]
fn a_copy_that_is_not_needed_any_more_ends_and_leaves_nothing() {
    let sender = Sender::new();
    let fault = sender.store.prepare_copy(sender.dir.path(), NOW, &|| true).unwrap_err();
    assert!(matches!(fault, TransferError::Store(_)), "{fault}");
    assert_eq!(fs::read_dir(sender.dir.path().join("transfer")).unwrap().count(), 0);
}

#[test]
fn an_embedded_store_has_no_copy_for_a_node() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _appender) = crate::setup::open(dir.path(), NOW);
    let fault = store.prepare_copy(dir.path(), NOW, &|| false).unwrap_err();
    assert!(fault.to_string().contains("no member of a cluster"), "{fault}");
}
