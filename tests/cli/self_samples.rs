//! The daemon's own samples: each counts once, and counters start at 0 after a restart.

use std::time::{Duration, Instant};

use crate::daemon::Daemon;

/// The total of a metric.
fn total(daemon: &Daemon, metric: &str) -> Option<f64> {
    let words = ["chart", "--display", "total", "--range", "1h", "--resolution", "1m"];
    let output = daemon.run_query(&[&words[..], &["--metric", metric]].concat());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let points = answer["series"].get(0)?["points"].as_array()?.clone();
    Some(points.iter().filter_map(|point| point[1].as_f64()).sum())
}

#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn wait_for(daemon: &Daemon, metric: &str, least: f64) -> f64 {
    let since = Instant::now();
    loop {
        if let Some(total) = total(daemon, metric).filter(|total| *total >= least) {
            return total;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{metric}: {}", daemon.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The present value of a counter.
fn counter(daemon: &Daemon, name: &str) -> f64 {
    let metrics = daemon.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} in {metrics}")).trim().parse().unwrap()
}

#[test]
fn the_daemon_stores_its_own_metrics_and_counts_nothing_twice() {
    let mut daemon = Daemon::start("[telemetry]\ninterval = '200ms'");
    // Each round is a commit, which the next round counts.
    let before = wait_for(&daemon, "granary_commits_total", 3.0);
    assert!(before <= counter(&daemon, "granary_commits_total"));
    let series = daemon.query(&["series", "--metric", "granary_series"]);
    assert_eq!(series["total"], 1, "{series}");
    assert_eq!(series["series"][0]["kind"], "gauge");
    assert!(series["series"][0]["tags"]["host"].is_string(), "{series}");
    let buckets = daemon.query(&["series", "--metric", "granary_commit_duration_seconds_bucket"]);
    assert_eq!(buckets["total"], 0, "{buckets}");
    let all = daemon.query(&["series"])["total"].as_u64().unwrap();
    assert!((40..=120).contains(&all), "{all} series");
    let most = counter(&daemon, "granary_commits_total") + 20.0;
    daemon.kill();
    daemon.restart();
    // The counter begins at zero again: the earlier total stays, and the new value is added.
    let after = wait_for(&daemon, "granary_commits_total", before + 3.0);
    let now = counter(&daemon, "granary_commits_total");
    assert!(after <= most + now, "{before}, {after}, {now}");
    let metrics = daemon.metrics();
    let mut refused =
        metrics.lines().filter(|line| line.starts_with("granary_samples_refused_total"));
    assert!(refused.all(|line| line.ends_with(" 0")), "{metrics}");
    assert_eq!(counter(&daemon, "granary_samples_duplicate_total{protocol=\"json\"}"), 0.0);
    assert_eq!(daemon.stop(), Some(0));
}
