//! Damaged, foreign and unwritable data directories: the daemon reports the fault, serves the rest,
//! and never panics.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use redb::{Builder, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::{Value, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::{
    daemon::{Daemon, partition_files, yesterday},
    prometheus_api::get,
    small_disk::SmallDisk,
};

/// Returns a batch with samples of yesterday, whose documents the next checkpoint writes.
fn batch(seq: u64) -> Value {
    let time = yesterday();
    let samples: Vec<_> = (0..100)
        .map(|i| json!({"metric": format!("m{}", i % 20), "kind": "delta", "value": 1, "time": time}))
        .collect();
    json!({"agent": "tester", "epoch": 7, "seq": seq, "samples": samples})
}

/// Returns a random seed, or the seed in `GRANARY_DAMAGE_SEED` to replay an earlier run.
fn any_seed() -> u64 {
    let chosen = std::env::var("GRANARY_DAMAGE_SEED").ok().and_then(|text| text.parse().ok());
    chosen.unwrap_or_else(|| fastrand::u64(..))
}

fn seeded(seed: u64) -> fastrand::Rng {
    eprintln!("GRANARY_DAMAGE_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Truncates a file in even rounds, and flips bits of it in odd rounds.
fn damage_file(file: &Path, round: usize, rng: &mut fastrand::Rng) {
    let mut bytes = fs::read(file).unwrap();
    if round.is_multiple_of(2) {
        bytes.truncate(rng.usize(0..bytes.len()));
    } else {
        // The tables are near the start of a file of this size.
        for _ in 0..200 {
            let at = rng.usize(0..bytes.len().min(200_000));
            bytes[at] ^= 1 << rng.u8(0..8);
        }
    }
    fs::write(file, bytes).unwrap();
}

/// Returns the sum of all metrics at a granularity, or `None` if a chart fails.
pub(crate) fn total(daemon: &Daemon, resolution: &str) -> Option<f64> {
    let mut sum = 0.0;
    for metric in 0..20 {
        let metric = format!("m{metric}");
        let words = ["chart", "--display", "total", "--range", "2d", "--metric", &metric];
        let output = daemon.run_query(&[&words[..], &["--resolution", resolution]].concat());
        if !output.status.success() {
            return None;
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let points = answer["series"][0]["points"].as_array().unwrap();
        sum += points.iter().filter_map(|point| point[1].as_f64()).sum::<f64>();
    }
    Some(sum)
}

/// Damages a file repeatedly: the daemon continues, even when it reads that file, and other
/// granularities keep their values.
fn assert_survives_damage(
    seed: u64,
    file: impl Fn(&Daemon) -> PathBuf,
    damaged_level: &str,
    other_levels: [&str; 3],
) {
    let mut rng = seeded(seed);
    let mut set_aside = 0;
    for round in 0..8 {
        let mut daemon = Daemon::start("storage.checkpoint_interval = '100ms'");
        assert_eq!(daemon.post_json(&batch(1)).status, 200);
        assert_eq!(daemon.stop(), Some(0));
        damage_file(&file(&daemon), round, &mut rng);
        daemon.restart();
        // Reads and checkpoints find the damage; neither may end the daemon.
        total(&daemon, damaged_level);
        assert_eq!(daemon.post_json(&batch(2)).body["accepted"], 100);
        for resolution in other_levels {
            assert_eq!(total(&daemon, resolution), Some(200.0), "{resolution}: {}", daemon.log());
        }
        assert_eq!(daemon.stop(), Some(0), "{}", daemon.log());
        set_aside += usize::from(daemon.data("damaged").exists());
        daemon.restart();
        for resolution in other_levels {
            assert_eq!(total(&daemon, resolution), Some(200.0), "{resolution}, restarted");
        }
    }
    assert!(set_aside > 0, "no damage was detected");
}

#[test]
fn a_damaged_partition_does_not_affect_others() {
    let partition = |daemon: &Daemon| partition_files(&daemon.data(""), "5m").remove(0);
    assert_survives_damage(any_seed(), partition, "5m", ["1m", "1h", "1d"]);
}

/// Redb 4.4 aborts the process with this seed: a commit reads a damaged list of freed pages, and a
/// destructor panics during the unwinding.
#[test]
fn a_damaged_list_of_freed_pages_does_not_end_the_daemon() {
    let partition = |daemon: &Daemon| partition_files(&daemon.data(""), "5m").remove(0);
    assert_survives_damage(6_599_742_703_952_296_356, partition, "5m", ["1m", "1h", "1d"]);
}

#[test]
fn a_damaged_head_is_set_aside_and_documents_are_served() {
    assert_survives_damage(any_seed(), |daemon| daemon.data("head.redb"), "1d", ["1m", "5m", "1h"]);
}

#[test]
fn the_first_query_that_reads_a_damaged_document_is_answered() {
    const VALUE: f64 = 12_345.678;
    let mut daemon = Daemon::start("storage.checkpoint_interval = '100ms'");
    let time = yesterday();
    let sample = json!({"metric": "m", "kind": "delta", "value": VALUE, "time": time});
    let sent = json!({"agent": "tester", "epoch": 7, "seq": 1, "samples": [sample]});
    assert_eq!(daemon.post_json(&sent).status, 200);
    assert_eq!(daemon.stop(), Some(0));
    let file = &partition_files(&daemon.data(""), "1m")[0];
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.windows(8).position(|window| window == VALUE.to_le_bytes()).unwrap();
    bytes[at + 6] ^= 0x10;
    fs::write(file, bytes).unwrap();

    daemon.restart();
    let words = ["chart", "--metric", "m", "--range", "2d", "--resolution", "1m"];
    let answer = daemon.query(&words);
    let points = answer["series"][0]["points"].as_array().unwrap();
    assert_eq!(points.iter().filter_map(|point| point[1].as_f64()).sum::<f64>(), VALUE);
    let notes = answer["notes"].as_array().unwrap();
    let is_noted =
        notes.iter().any(|note| note.as_str().unwrap().contains("are damaged or missing"));
    assert!(is_noted, "{notes:?}");

    assert_eq!(daemon.stop(), Some(0));
    daemon.restart();
    let (status, answer) = get(&daemon, "/api/v1/query?query=sum_over_time(m[2d])");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"]["result"][0]["value"][1], json!(VALUE.to_string()), "{answer}");
}

#[test]
fn a_damaged_journal_is_recovered_or_refused_but_never_misread() {
    let mut rng = seeded(any_seed());
    let mut daemon = Daemon::start("");
    for seq in 1..=20 {
        assert_eq!(daemon.post_json(&batch(seq)).status, 200);
    }
    daemon.kill();
    let files = ["journal.redb", "journal/1.log"];
    let intact = files.map(|file| fs::read(daemon.data(file)).unwrap());
    let (mut recovered, mut refused) = (0, 0);
    for round in 0..24 {
        let (file, intact) = (files[round / 3 % 2], &intact[round / 3 % 2]);
        let mut damaged = intact.clone();
        match round % 3 {
            0 => damaged.truncate(rng.usize(0..damaged.len())),
            // These are the bytes of an unfinished commit.
            1 => damaged.extend(std::iter::repeat_with(|| rng.u8(..)).take(4096)),
            // Synced bytes are destroyed.
            _ => {
                let at = rng.usize(0..damaged.len());
                let length = rng.usize(1..=(damaged.len() - at));
                damaged[at..at + length].fill(0xAB);
            }
        }
        fs::write(daemon.data(file), damaged).unwrap();
        daemon.spawn();
        if let Some(log) = daemon.wait_until_ready_or_ended() {
            assert!(log.contains("journal") && log.contains("granary restore"), "{log}");
            assert!(!log.contains("thread 'main' panicked"), "{log}");
            refused += 1;
        } else {
            // When synced bytes of the last record are destroyed, the record is treated as torn.
            let found = total(&daemon, "1m");
            let last_commit_lost = round % 3 == 2 && found == Some(1900.0);
            assert!(found == Some(2000.0) || last_commit_lost, "round {round}: {found:?}");
            recovered += 1;
            daemon.kill();
        }
        fs::write(daemon.data(file), intact).unwrap();
    }
    eprintln!("{recovered} recovered, {refused} refused");
    daemon.restart();
    assert_eq!(total(&daemon, "1d"), Some(2000.0));
}

/// Returns the format version stored in a partition.
fn version_of(partition: &Path) -> u8 {
    let db = Builder::new().open(partition).unwrap();
    let table: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
    let meta = db.begin_read().unwrap().open_table(table).unwrap();
    u8::try_from(meta.get("format").unwrap().unwrap().value()).unwrap()
}

#[test]
fn a_newer_format_is_refused_with_the_remedy() {
    let mut daemon = Daemon::start("");
    assert_eq!(daemon.post_json(&batch(1)).status, 200);
    assert_eq!(daemon.stop(), Some(0));
    let partition = partition_files(&daemon.data(""), "1h").remove(0);
    let set_version = |file: &Path, version: u8| {
        let db = Builder::new().open(file).unwrap();
        let txn = db.begin_write().unwrap();
        if file == partition {
            let table: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
            txn.open_table(table).unwrap().insert("format", i64::from(version)).unwrap();
        } else {
            let table: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
            let (mut table, version) = (txn.open_table(table).unwrap(), u64::from(version));
            table.insert("format", version).unwrap();
            if table.get("format_check").unwrap().is_some() {
                let check = xxh3_64_with_seed(&version.to_le_bytes(), xxh3_64(b"format"));
                table.insert("format_check", check).unwrap();
            }
        }
        txn.commit().unwrap();
    };
    let version = version_of(&partition);
    let newer = format!("format {} of a newer release", version + 1);
    set_version(&partition, version + 1);
    let log = daemon.expect_failed_start();
    assert!(log.contains("partitions/1h/") && log.contains(&newer), "{log}");
    set_version(&partition, version);
    for file in ["journal.redb", "head.redb"] {
        set_version(&daemon.data(file), version + 1);
        let log = daemon.expect_failed_start();
        let expected = format!("{file}: {newer}; this granary reads format {version}");
        assert!(log.contains(&expected), "{log}");
        set_version(&daemon.data(file), version);
    }
    daemon.restart();
    assert_eq!(total(&daemon, "1h"), Some(100.0));
}

#[test]
#[ignore = "needs to mount a file system; .ci/run runs this where mounting is permitted"]
fn a_read_only_data_directory_is_refused_and_can_be_verified() {
    let small = SmallDisk::tmpfs(32);
    let mut daemon = Daemon::start("");
    assert_eq!(daemon.post_json(&batch(1)).status, 200);
    assert_eq!(daemon.stop(), Some(0));
    let copy = small.path().join("data");
    let copied = Command::new("cp").arg("-r").args([&daemon.data(""), &copy]).status().unwrap();
    assert!(copied.success());
    fs::remove_dir_all(daemon.data("")).unwrap();
    std::os::unix::fs::symlink(&copy, daemon.dir.path().join("data")).unwrap();
    small.remount("ro");
    let log = daemon.expect_failed_start();
    assert!(log.contains("Read-only file system"), "{log}");
    let verified = daemon.verify();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    small.remount("rw");
    daemon.restart();
    assert_eq!(total(&daemon, "1d"), Some(100.0));
}
