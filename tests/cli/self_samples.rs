//! The daemon's samples of its own metrics: each counts once, and counters start at 0 after a
//! restart.

use std::time::{Duration, Instant};

use crate::daemon::Daemon;

/// Returns the sum of a metric's points.
fn sum_of_metric(daemon: &Daemon, metric: &str) -> Option<f64> {
    let args = ["chart", "--display", "total", "--range", "1h", "--resolution", "1m"];
    let output = daemon.run_query(&[&args[..], &["--metric", metric]].concat());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let points = answer["series"].get(0)?["points"].as_array()?.clone();
    Some(points.iter().filter_map(|point| point[1].as_f64()).sum())
}

#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn wait_for(daemon: &Daemon, metric: &str, minimum: f64) -> f64 {
    let since = Instant::now();
    loop {
        if let Some(total) = sum_of_metric(daemon, metric).filter(|total| *total >= minimum) {
            return total;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{metric}: {}", daemon.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the current value of a metric in `/metrics`.
fn metric_value(daemon: &Daemon, name: &str) -> f64 {
    let metrics = daemon.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} in {metrics}")).trim().parse().unwrap()
}

#[test]
fn the_daemon_stores_its_own_metrics_and_counts_nothing_twice() {
    let mut daemon = Daemon::start("[telemetry]\ninterval = '200ms'");
    // Each round commits a batch, which the next round counts.
    let before = wait_for(&daemon, "granary_commits_total", 3.0);
    assert!(before <= metric_value(&daemon, "granary_commits_total"));
    let series = daemon.query(&["series", "--metric", "granary_series"]);
    assert_eq!(series["total"], 1, "{series}");
    assert_eq!(series["series"][0]["kind"], "gauge");
    assert!(series["series"][0]["tags"]["host"].is_string(), "{series}");
    let buckets = daemon.query(&["series", "--metric", "granary_commit_duration_seconds_bucket"]);
    assert_eq!(buckets["total"], 0, "{buckets}");
    let all = daemon.query(&["series"])["total"].as_u64().unwrap();
    assert!((40..=130).contains(&all), "{all} series");
    let maximum_before_kill = metric_value(&daemon, "granary_commits_total") + 20.0;
    daemon.kill();
    daemon.restart();
    // After the restart, the counter begins at zero; its growth is added to the earlier total.
    let after = wait_for(&daemon, "granary_commits_total", before + 3.0);
    let now = metric_value(&daemon, "granary_commits_total");
    assert!(after <= maximum_before_kill + now, "{before}, {after}, {now}");
    let metrics = daemon.metrics();
    let mut refused =
        metrics.lines().filter(|line| line.starts_with("granary_samples_refused_total"));
    assert!(refused.all(|line| line.ends_with(" 0")), "{metrics}");
    assert_eq!(metric_value(&daemon, "granary_samples_duplicate_total{protocol=\"json\"}"), 0.0);
    assert_eq!(daemon.stop(), Some(0));
}
