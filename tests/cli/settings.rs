//! Settings, help texts and metrics on the command line and over HTTP.

use std::fs;

use granary::telemetry::METRIC_NAMES;

use crate::daemon::{Daemon, granary};

fn config_error(settings: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("granary.toml");
    fs::write(&path, settings).unwrap();
    let output = granary().args(["check-config", "--config"]).arg(&path).output().unwrap();
    assert!(!output.status.success(), "{settings} was accepted");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_remedy() {
    assert!(config_error("server.lisen = '127.0.0.1:1'").contains("lisen"));
    assert!(config_error("promql.lookback = 'now and then'").contains("promql.lookback"));
    let short = "[[granularity]]\nslot='1m'\ndocument='1h'\npartition='6h'\nretention='1h'";
    assert!(config_error(short).contains("use 6h or more"), "{}", config_error(short));
}

#[test]
fn limits_that_follow_from_settings_are_shown() {
    let output = granary()
        .arg("check-config")
        .env("GRANARY__LIMITS__SERIES_MAX", "20000")
        .env("GRANARY__INGEST__BODY_MEMORY_MAX", "16777216")
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    for line in [
        "# series of one sender: at most 4000 (from limits.series_max)",
        "# senders of a project: at most 10000 (from limits.series_max)",
        "# bytes of a request: at most 1048576 (from ingest.body_memory_max)",
        "# concurrent queries: at most 16 (from limits.query_memory_max)",
    ] {
        assert!(shown.lines().any(|shown_line| shown_line == line), "{line} in {shown}");
    }
    assert!(shown.parse::<toml::Table>().is_ok(), "{shown}");
    let warnings = String::from_utf8(output.stderr).unwrap();
    let warning = "ingest.body_memory_max = 16777216: packed requests of agents above 262144 bytes";
    assert!(warnings.contains(warning), "{warnings}");
}

#[test]
fn the_environment_overrides_the_file_and_flags_override_both() {
    let output = granary()
        .args(["check-config", "--listen", "127.0.0.1:3"])
        .env("GRANARY__SERVER__LISTEN", "127.0.0.1:2")
        .env("GRANARY__STORAGE__CHECKPOINT_INTERVAL", "7m")
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("127.0.0.1:3") && shown.contains("checkpoint_interval = \"7m\""),
        "{shown}"
    );
}

#[test]
fn commands_have_a_help_text() {
    for args in [&["--help"][..], &["serve", "--help"], &["query", "--help"]] {
        let output = granary().args(args).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && shown.contains("Usage: granary"), "{args:?}: {shown}");
    }
}

#[test]
fn every_metric_is_served_and_a_sample_is_counted() {
    let daemon = Daemon::start("");
    let body = serde_json::json!({"samples": [{"metric": "m", "value": 1}]});
    assert_eq!(daemon.post_json(&body).status, 200);
    let text = daemon.metrics();
    // Metrics of receivers exist only with a receiver.
    let (receiver_metrics, names): (Vec<_>, Vec<_>) =
        METRIC_NAMES.iter().partition(|(name, _)| name.starts_with("granary_receiver_"));
    assert_eq!(receiver_metrics.len(), 3);
    for (name, help) in names {
        // Metrics of partitions have values only after the first checkpoint, so only the help line
        // is compared.
        assert!(text.contains(&format!("# HELP {name} {help}")), "{name} in {text}");
    }
    for line in [
        "granary_samples_accepted_total{protocol=\"json\"} 1",
        "granary_ingest_requests_total{outcome=\"acknowledged\"} 1",
        "granary_series 1",
    ] {
        assert!(text.lines().any(|text_line| text_line == line), "{line} in {text}");
    }
}

#[test]
fn an_unreachable_daemon_is_named_with_the_remedy() {
    let output =
        granary().args(["query", "series", "--url", "http://127.0.0.1:9"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot reach granary at http://127.0.0.1:9"), "{message}");
}
