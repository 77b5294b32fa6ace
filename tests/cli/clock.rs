//! A clock far ahead of or behind the expected time: no data is lost, and the daemon trusts the
//! clock again when senders or an operator confirm it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use granary::{
    clock::{Clock, SystemClock},
    model::{Kind, UnixMillis},
};
use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, granary, partition_files},
    setup::{self, DAY, HOUR, MINUTE, samples, series},
};

const MONTH: i64 = 30 * DAY;
const DEADLINE: Duration = Duration::from_secs(30);
const SETTINGS: &str =
    "storage.checkpoint_interval = '1s'\nlog.filter = 'info,granary::actors=debug'\n";

/// Returns a data directory that was last used at this time, with an hour of samples in each
/// granularity.
fn data_last_used_at(last: UnixMillis) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let begin = last.minus(4 * HOUR);
    let (store, mut appender) = setup::open(&data, begin);
    let views = series("page_views", &[], Kind::Delta);
    let id = setup::define(&mut appender, &[views], begin)[0];
    let samples_by_time = (0..60).map(|minute| (begin.0 + minute * MINUTE, 1.0));
    setup::send(&mut appender, samples(id, samples_by_time), last);
    store.checkpoint(last).unwrap();
    dir
}

#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn wait_until(daemon: &Daemon, what: &str, is_done: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_done() {
        assert!(since.elapsed() < DEADLINE, "{what}: {}", daemon.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for two more runs of retention.
fn let_retention_run(daemon: &Daemon) {
    let runs = || daemon.log().matches("looked for expired").count();
    let before = runs();
    wait_until(daemon, "retention runs", || runs() >= before + 2);
}

fn send(daemon: &Daemon, agent: &str, seq: u64, at: UnixMillis) -> Value {
    let sample = json!({"metric": "load", "tags": {"host": agent}, "value": 1, "time": at.0});
    let batch = json!({"agent": agent, "epoch": 1, "seq": seq, "samples": [sample]});
    daemon.post_json(&batch).body
}

fn readiness(daemon: &Daemon) -> Value {
    let mut response = ureq::get(format!("{}/readyz", daemon.url)).call().unwrap();
    serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
}

fn run_clock(daemon: &Daemon, args: &[&str]) -> String {
    let output = granary().args(["clock", "--url", &daemon.url]).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn count_partition_files(data: &Path) -> usize {
    let folders = fs::read_dir(data.join("partitions")).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    folders.map(|folder| partition_files(data, &name(folder.unwrap())).len()).sum()
}

#[test]
fn a_clock_far_ahead_drops_nothing_until_several_senders_confirm_it() {
    let now = SystemClock.now();
    let last = now.minus(MONTH);
    let dir = data_last_used_at(last);
    let old = partition_files(&dir.path().join("data"), "1m");
    assert!(!old.is_empty());
    let daemon = Daemon::start_in(dir, SETTINGS);
    let before = count_partition_files(&daemon.data(""));
    // The hour of samples is in one or two partitions.
    assert!(before > 0, "{before}");
    let_retention_run(&daemon);
    assert!(count_partition_files(&daemon.data("")) >= before, "{}", daemon.log());
    let state = readiness(&daemon);
    assert_eq!(state["status"], "degraded");
    let reason = state["reasons"]["clock"].as_str().unwrap();
    assert!(reason.contains("granary clock confirm"), "{reason}");
    assert!(daemon.log().contains("the clock is doubted"));
    assert!(daemon.metrics().contains("granary_clock_doubted 1"));
    // Samples of either time are accepted, and undated samples too. The second time is a
    // millisecond in the past: the daemon itself may have dated a sample with its exact time.
    for (seq, at) in [(1, last), (2, SystemClock.now().minus(1))] {
        assert_eq!(send(&daemon, "web1", seq, at)["accepted"], 1);
    }
    let undated = json!({"agent": "script", "epoch": 1, "seq": 1,
                         "samples": [{"metric": "load", "value": 1}]});
    assert_eq!(daemon.post_json(&undated).body["accepted"], 1);
    // The clock of a single sender proves nothing, and neither does the daemon's clock.
    let_retention_run(&daemon);
    assert_eq!(readiness(&daemon)["status"], "degraded");
    assert!(run_clock(&daemon, &["--json"]).contains("\"senders_agree\":1"));
    assert!(count_partition_files(&daemon.data("")) >= before, "{}", daemon.log());
    assert_eq!(send(&daemon, "web2", 1, SystemClock.now().minus(1))["accepted"], 1);
    // Partitions of the current and of the next hour exist for reserved space and shells.
    let is_old = |file: &PathBuf| old.contains(file);
    let expired = || !partition_files(&daemon.data(""), "1m").iter().any(is_old);
    wait_until(&daemon, "the clock is confirmed", expired);
    assert_eq!(readiness(&daemon)["status"], "ready");
    assert!(daemon.metrics().contains("granary_clock_doubted 0"));
}

#[test]
fn a_clock_far_behind_refuses_nothing_until_an_operator_confirms_it() {
    let now = SystemClock.now();
    let last = now.plus(MONTH);
    let mut daemon = Daemon::start_in(data_last_used_at(last), SETTINGS);
    assert_eq!(readiness(&daemon)["status"], "degraded");
    assert_eq!(send(&daemon, "web1", 1, last)["accepted"], 1);
    assert_eq!(send(&daemon, "web1", 2, now)["accepted"], 1);
    let reason = run_clock(&daemon, &[]);
    assert!(reason.contains("was expected"), "{reason}");
    let report = run_clock(&daemon, &["confirm"]);
    assert!(report.contains("is trusted"), "{report}");
    assert_eq!(readiness(&daemon)["status"], "ready");
    // The confirmation also holds for the next start, even after a kill.
    daemon.kill();
    daemon.restart();
    assert_eq!(readiness(&daemon)["status"], "ready");
    assert_eq!(send(&daemon, "web1", 3, last)["refused"]["too_new"], 1);
}
