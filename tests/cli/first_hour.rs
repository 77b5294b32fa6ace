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
    let said = String::from_utf8(output.stderr).unwrap();
    said.lines().last().unwrap().to_owned()
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
    let said = serve(&data, &address);
    assert!(said.contains("another process listens there"), "{said}");
    assert!(said.contains("--listen"), "{said}");
    assert!(!data.exists());
}

#[test]
fn a_data_directory_in_use_is_refused_with_the_process() {
    let daemon = Daemon::start("");
    let said = serve(&daemon.data(""), "127.0.0.1:0");
    let by = format!("is in use by process {}", daemon.pid());
    assert!(said.contains(&by) && said.contains("--data-dir"), "{said}");
    let file = daemon.dir.path().join("file");
    fs::write(&file, "").unwrap();
    let said = serve(&file, "127.0.0.1:0");
    assert!(said.contains("cannot be written") && said.contains("--data-dir"), "{said}");
}

#[test]
fn another_daemon_at_the_address_is_not_the_one_that_was_started() {
    let daemon = Daemon::start("");
    let pid = daemon.pid().to_string();
    let output = ready(&daemon.url, &["--pid", &pid]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let other = ready(&daemon.url, &["--pid", &std::process::id().to_string()]);
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(!other.status.success() && said.contains("another process"), "{said}");
    let nobody = ready("127.0.0.1:9", &["--pid", "4000000", "--wait", "1h"]);
    assert!(!nobody.status.success(), "a process that has ended is not waited for");
}

#[test]
fn addresses_are_accepted_as_they_are_typed() {
    let daemon = Daemon::start("");
    let bare = daemon.url.trim_start_matches("http://");
    for typed in [bare.to_owned(), format!("{bare}/"), format!("{}//", daemon.url)] {
        let output = granary().args(["query", "series", "--url", &typed]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{typed}: {said}");
    }
    for wrong in ["ftp://127.0.0.1:7117", "http://", "a b"] {
        let output = granary().args(["query", "series", "--url", wrong]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success()
                && said.contains("use an address such as http://127.0.0.1:7117"),
            "{said}"
        );
    }
}

#[test]
fn the_settings_are_shown_as_toml_a_line_a_section() {
    let output = granary().arg("check-config").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let read: toml::Table = shown.parse().unwrap();
    assert_eq!(read["server"]["listen"].as_str(), Some("127.0.0.1:7117"));
    assert_eq!(shown.lines().count(), read.len(), "{shown}");
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
