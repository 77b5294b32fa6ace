//! A program that fills the daemon's disk in the middle of a document period, and takes every byte
//! that becomes free.

use std::{
    fs,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    alerts::poll_until,
    daemon::{Daemon, granularities},
    prometheus_api::get,
    small_disk::SmallDisk,
};

/// Documents of 20 seconds, a minute and an hour.
const LEVELS: [[&str; 4]; 3] =
    [["1s", "20s", "10m", "1h"], ["10s", "1m", "1h", "6h"], ["1m", "1h", "6h", "48h"]];

/// A rule of retention for half of the series, whose levels have files of their own.
const RULE_OF_HALF: &str = "[[retention.rule]]\nname = 'half'\nselector = '{n=~\".*[02468]\"}'\n\
    keep = { 1m = '96h' }\n";

/// A writer that appends to a file until the disk is full, and takes every byte that becomes free.
struct Runaway {
    ends: Arc<AtomicBool>,
    /// True when a write found the disk full.
    is_full: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Runaway {
    fn start(disk: &SmallDisk) -> Self {
        let [ends, is_full] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let mut file = fs::File::create(disk.path().join("ballast")).unwrap();
        let (ended, found_full) = (ends.clone(), is_full.clone());
        let thread = std::thread::spawn(move || {
            let bytes = vec![1; 1 << 16];
            while !ended.load(Ordering::Relaxed) {
                let is_full =
                    |file: &mut fs::File, length| file.write_all(&bytes[..length]).is_err();
                if is_full(&mut file, bytes.len()) && is_full(&mut file, 512) {
                    found_full.store(true, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self { ends, is_full, thread: Some(thread) }
    }
}

impl Drop for Runaway {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// The daemon and what it acknowledged.
struct Scene {
    daemon: Daemon,
    random: fastrand::Rng,
    seq: u64,
    sum: u64,
    /// The time of the last samples.
    second: i64,
    series: u64,
}

impl Scene {
    /// Sends a random value of each series for the next second; the daemon must accept them.
    fn send(&mut self) {
        self.second += 1;
        let now = jiff::Timestamp::from_second(self.second).unwrap().to_string();
        let values: Vec<u64> = (0..self.series).map(|_| self.random.u64(0..1 << 20)).collect();
        let sample = |(n, value): (usize, &u64)| json!({"metric": "m", "kind": "delta", "tags": {"n": n}, "time": now, "value": value});
        let samples: Vec<_> = values.iter().enumerate().map(sample).collect();
        self.seq += 1;
        let batch = json!({"agent": "tester", "epoch": 7, "seq": self.seq, "samples": samples});
        let answer = self.daemon.post_json(&batch);
        assert_eq!(answer.status, 200, "{} {}", answer.body, self.daemon.log());
        self.sum += values.iter().sum::<u64>();
    }

    /// Sends a batch for each second until `look` returns something.
    fn send_until<T>(&mut self, what: &str, mut look: impl FnMut(&Daemon) -> Option<T>) -> T {
        let until = self.second + 200;
        while self.second < until {
            while self.second < jiff::Timestamp::now().as_second() {
                self.send();
            }
            if let Some(found) = look(&self.daemon) {
                return found;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what}: {}", self.daemon.log());
    }

    fn storage(&self) -> Value {
        get(&self.daemon, "/api/v1/storage").1
    }

    /// Asserts that every granularity has all acknowledged samples.
    fn check(&self) {
        for level in LEVELS {
            let path = format!(
                "/api/v1/chart?metric=m&merge=true&display=total&range=30m&resolution={}",
                level[0]
            );
            let (status, answer) = get(&self.daemon, &path);
            assert_eq!(status, 200, "{answer}");
            let points = answer["series"][0]["points"].as_array().unwrap();
            let sum: f64 = points.iter().filter_map(|point| point[1].as_f64()).sum();
            assert_eq!(sum, self.sum as f64, "{}", level[0]);
        }
    }
}

fn metric(daemon: &Daemon, name: &str) -> u64 {
    let metrics = daemon.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}")).parse::<f64>().unwrap() as u64
}

/// Fills the disk between two turns of a store with this number of series and these retention
/// rules.
fn survives(disk: &SmallDisk, series: u64, rules: &str) {
    let levels = granularities(&LEVELS);
    let settings = format!("[storage]\ncheckpoint_interval = '2s'\n{rules}{levels}");
    let daemon = Daemon::start_in(disk.data_dir(), &settings);
    let second = jiff::Timestamp::now().as_second();
    let mut scene = Scene { daemon, random: fastrand::Rng::new(), seq: 0, sum: 0, second, series };
    let written = |daemon: &Daemon| metric(daemon, "granary_documents_created_total");
    let reserved = |daemon: &Daemon| {
        let turns = get(daemon, "/api/v1/storage").1["forecast"].clone();
        let is_reserved = turns.as_array().unwrap().iter().all(|turn| {
            turn["bytes"].as_u64() > Some(0) && turn["reserved"].as_u64() >= turn["bytes"].as_u64()
        });
        // After the checkpoint of the last turn, and before that of the next one.
        let ahead = turns[0]["at"].as_i64().unwrap() - jiff::Timestamp::now().as_millisecond();
        let is_between = (4_000..14_000).contains(&ahead);
        (is_reserved && is_between && written(daemon) > 2 * series).then_some(())
    };
    scene.send_until("the next documents have reserved space", reserved);
    let runaway = Runaway::start(disk);
    poll_until(&scene.daemon, "the disk is full", || {
        runaway.is_full.load(Ordering::Relaxed).then_some(())
    });
    let (before, errors) =
        (written(&scene.daemon), metric(&scene.daemon, "granary_checkpoint_errors_total"));
    // The turn succeeds, and batches are accepted during it.
    scene.send_until("documents are written", |daemon| (written(daemon) > before).then_some(()));
    assert_eq!(metric(&scene.daemon, "granary_checkpoint_errors_total"), errors);
    // There is no space for the turn after that, which the daemon reports before it comes.
    let reason = scene.send_until("the daemon is degraded", |daemon| {
        get(daemon, "/readyz").1["reasons"]["disk"].as_str().map(str::to_owned)
    });
    let turn = scene.storage()["forecast"][0].clone();
    assert!(reason.contains(" bytes will be written at 2"), "{reason}");
    let at = turn["at"].as_i64().unwrap();
    assert!(at > jiff::Timestamp::now().as_millisecond(), "{turn}");
    scene.daemon.kill();
    scene.daemon.restart();
    scene.check();
    drop(runaway);
    fs::remove_file(disk.path().join("ballast")).unwrap();
    poll_until(&scene.daemon, "the daemon is ready", || {
        (get(&scene.daemon, "/readyz").1["status"] == "ready").then_some(())
    });
    scene.send_until("the next documents have reserved space again", reserved);
    scene.check();
    assert_eq!(scene.daemon.stop(), Some(0));
    let verified = scene.daemon.verify();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// Runs the scene on a new file system of a kind, with sealed and with open documents.
fn survives_on(kind: &str, mib: u64) {
    for series in [2000, 300] {
        match SmallDisk::loop_mounted(kind, mib) {
            Ok(disk) => survives(&disk, series, ""),
            Err(cause) => eprintln!("skipped: {kind} cannot be mounted here: {cause}"),
        }
    }
}

#[test]
#[ignore = "needs to mount a file system, and an otherwise idle machine; run it by hand"]
fn in_memory_the_turn_and_ingest_survive_a_program_that_fills_the_disk() {
    for rules in ["", RULE_OF_HALF] {
        survives(&SmallDisk::tmpfs(64), 2000, rules);
        survives(&SmallDisk::tmpfs(64), 300, rules);
    }
}

#[test]
#[ignore = "needs to mount a file system, and an otherwise idle machine; run it by hand"]
fn on_ext4_the_turn_and_ingest_survive_a_program_that_fills_the_disk() {
    survives_on("ext4", 64);
}

#[test]
#[ignore = "needs to mount a file system, and an otherwise idle machine; run it by hand"]
fn on_xfs_the_turn_and_ingest_survive_a_program_that_fills_the_disk() {
    // The smallest file system that mkfs.xfs makes has 300 MiB.
    survives_on("xfs", 304);
}
