//! `granary diagnose`: the archive of a running daemon and of a data directory, without secrets.

use std::{collections::BTreeMap, fs, io::Read, path::Path, process::Output};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::daemon::{Daemon, granary, request};

/// Writes files with secrets of every kind and returns settings that name them.
fn settings_with_secrets(daemon_dir: &Path) -> String {
    let receivers = daemon_dir.join("receivers.yml");
    let settings = "route: { receiver: team }\nreceivers:\n- name: team\n  webhook_configs:\n  \
        - url: http://bob:hidden-1@127.0.0.1:1/hook\n    http_config:\n      \
        authorization: { credentials: hidden-2 }\n";
    fs::write(&receivers, settings).unwrap();
    fs::write(
        daemon_dir.join("rules.yml"),
        "groups:\n- name: all\n  interval: 1s\n  rules:\n  - alert: Always\n    expr: vector(1)\n",
    )
    .unwrap();
    format!(
        "[alerts]\nrules = ['{}']\nnotifications = '{}'\nalertmanagers = \
         ['http://ann:hidden-3@127.0.0.1:1', {{ url = 'http://127.0.0.1:2', http_config = \
         {{ authorization = {{ credentials = 'hidden-4' }}, http_headers = {{ X-Key = {{ secrets = \
         ['hidden-5'] }} }} }} }}]\n",
        daemon_dir.join("rules.yml").display(),
        receivers.display()
    )
}

fn run_diagnose(args: &[&str]) -> Output {
    granary().arg("diagnose").args(args).output().unwrap()
}

/// Returns the texts of an archive's files by name.
fn files_of_archive(archive: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(fs::File::open(archive).unwrap()));
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let mut settings = String::new();
        entry.read_to_string(&mut settings).unwrap();
        (name, settings)
    };
    archive.entries().unwrap().map(read).collect()
}

fn json_of(files: &BTreeMap<String, String>, name: &str) -> Value {
    serde_json::from_str(&files[name]).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

#[test]
fn an_archive_of_a_running_daemon_and_of_its_data_has_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings_with_secrets(dir.path());
    let mut daemon = Daemon::start_in(dir, &settings);
    daemon.accept(&json!([{ "metric": "load", "tags": { "host": "a" }, "value": 1.0 }]));
    // The log contains failed notifications, and a failed reload.
    let config = daemon.dir.path().join("granary.toml");
    fs::write(&config, format!("{settings}\n[log]\nfilter = 'x=http://eve:hidden-6@h'\n")).unwrap();
    assert_eq!(request(&daemon.url, "POST", "/-/reload", &[], "").unwrap().0, 500);
    fs::write(&config, &settings).unwrap();
    let output = daemon.dir.path().join("running.tar.gz");
    let path = output.to_str().unwrap().to_owned();
    let outcome = run_diagnose(&["--url", &daemon.url, "--output", &path]);
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    let found = files_of_archive(&output);
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    let expected = [
        "log.json",
        "metrics.txt",
        "plan.json",
        "settings.json",
        "status.json",
        "storage.json",
        "versions.json",
    ];
    assert_eq!(names, expected);
    for (name, settings) in &found {
        assert!(!settings.contains("hidden-"), "{name}: {settings}");
    }
    assert_eq!(json_of(&found, "versions.json")["daemon"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json_of(&found, "settings.json")["settings"]["server"]["connections_max"], 10_000);
    let lines = json_of(&found, "log.json")["lines"].to_string();
    assert!(lines.contains("the reload failed") && lines.contains("ready"), "{lines}");
    assert!(json_of(&found, "plan.json")["series"].as_u64() >= Some(1));
    assert!(found["metrics.txt"].contains("granary_samples_accepted_total"));
    // The command never overwrites an archive, and refuses to read the files of a running daemon.
    let second_outcome = run_diagnose(&["--url", &daemon.url, "--output", &path]);
    assert!(String::from_utf8_lossy(&second_outcome.stderr).contains("--output"));
    let data = daemon.data("");
    let data = data.to_str().unwrap();
    let refused = run_diagnose(&["--data-dir", data, "--output", &format!("{path}.2")]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("leave out --data-dir"));

    assert_eq!(daemon.stop(), Some(0));
    let output = daemon.dir.path().join("stopped.tar.gz");
    let outcome = run_diagnose(&[
        "--data-dir",
        data,
        "--config",
        config.to_str().unwrap(),
        "--output",
        output.to_str().unwrap(),
    ]);
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    let found = files_of_archive(&output);
    assert_eq!(json_of(&found, "verify.json")["fault_count"], 0);
    assert!(json_of(&found, "files.json").to_string().contains("head.redb"));
    assert!(found["settings.json"].contains("http://***@127.0.0.1:1"));
    for (name, settings) in &found {
        assert!(!settings.contains("hidden-"), "{name}: {settings}");
    }
}

#[test]
fn without_a_daemon_there_is_no_archive() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("none.tar.gz");
    let outcome =
        run_diagnose(&["--url", "http://127.0.0.1:1", "--output", output.to_str().unwrap()]);
    assert!(!outcome.status.success() && !output.exists());
    assert!(String::from_utf8_lossy(&outcome.stderr).contains("is the daemon running?"));
}
