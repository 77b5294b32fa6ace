//! The first hour of a new user: starting twice, typed addresses, a benchmark that cleans up.

use std::{fs, net::TcpListener, process::Output};

use clap::Parser;
use serde_json::json;

use crate::daemon::{Daemon, granary};

/// Starts a daemon that must refuse to run; returns its last output.
fn serve(data: &std::path::Path, listen: &str) -> String {
    let mut command = granary();
    let output =
        command.arg("serve").arg("--data-dir").arg(data).args(["--listen", listen]).output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    message.lines().last().unwrap().to_owned()
}

/// Runs a synthetic fleet against a daemon.
pub(crate) fn bench(daemon: &Daemon, words: &[&str]) {
    let words = [&["granary-bench", "--json", "--url", &daemon.url], words].concat();
    granary_bench::run(&granary_bench::Args::parse_from(words)).unwrap();
}

fn ready(url: &str, words: &[&str]) -> Output {
    granary().args(["ready", "--url", url]).args(words).output().unwrap()
}

#[test]
fn an_address_in_use_is_reported_before_any_file_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let message = serve(&data, &address);
    assert!(message.contains("another process listens there"), "{message}");
    assert!(message.contains("--listen"), "{message}");
    assert!(!data.exists());
}

#[test]
fn a_data_directory_in_use_is_refused_with_the_process() {
    let daemon = Daemon::start("");
    let message = serve(&daemon.data(""), "127.0.0.1:0");
    let by = format!("is in use by process {}", daemon.pid());
    assert!(message.contains(&by) && message.contains("--data-dir"), "{message}");
    let file = daemon.dir.path().join("file");
    fs::write(&file, "").unwrap();
    let message = serve(&file, "127.0.0.1:0");
    assert!(message.contains("cannot be written") && message.contains("--data-dir"), "{message}");
}

#[test]
fn another_daemon_at_the_address_is_not_the_one_that_was_started() {
    let daemon = Daemon::start("");
    let pid = daemon.pid().to_string();
    let output = ready(&daemon.url, &["--pid", &pid]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let other = ready(&daemon.url, &["--pid", &std::process::id().to_string()]);
    let message = String::from_utf8(other.stderr).unwrap();
    assert!(!other.status.success() && message.contains("another process"), "{message}");
    let unreachable = ready("127.0.0.1:9", &["--pid", "4000000", "--wait", "1h"]);
    assert!(!unreachable.status.success(), "a process that has ended is not waited for");
}

#[test]
fn addresses_are_accepted_as_they_are_typed() {
    let daemon = Daemon::start("");
    let bare = daemon.url.trim_start_matches("http://");
    for typed in [bare.to_owned(), format!("{bare}/"), format!("{}//", daemon.url)] {
        let output = granary().args(["query", "series", "--url", &typed]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{typed}: {message}");
    }
    for wrong in ["ftp://127.0.0.1:7117", "http://", "a b"] {
        let output = granary().args(["query", "series", "--url", wrong]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success()
                && message.contains("use an address such as http://127.0.0.1:7117"),
            "{message}"
        );
    }
}

#[test]
fn the_settings_are_shown_as_toml_with_one_line_per_section() {
    let output = granary().arg("check-config").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let read: toml::Table = shown.parse().unwrap();
    assert_eq!(read["server"]["listen"].as_str(), Some("127.0.0.1:7117"));
    let settings = shown.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(settings.count(), read.len(), "{shown}");
    let daemon = Daemon::start("");
    let log = daemon.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("settings")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("storage.data_dir = ") && !lines[0].contains("limits."), "{log}");
}

#[test]
fn a_benchmark_leaves_no_series() {
    let daemon = Daemon::start("");
    assert_eq!(daemon.post_json(&json!({"samples": [{"metric": "own", "value": 1}]})).status, 200);
    let series_after = |more: &[&str]| {
        bench(&daemon, &[&["--hosts", "3", "--metrics", "10", "--rounds", "2"], more].concat());
        daemon.query(&["series"])["total"].as_u64().unwrap()
    };
    assert_eq!(series_after(&[]), 1);
    assert_eq!(series_after(&["--protocol", "remote-write"]), 1);
    assert_eq!(series_after(&["--like", "host", "--history", "20m", "--interval", "1m"]), 1);
    assert_eq!(series_after(&["--keep"]), 31);
}
