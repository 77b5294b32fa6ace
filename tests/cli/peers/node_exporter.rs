//! Prometheus scrapes the real node exporter and writes to the daemon, which is killed in between:
//! the daemon has every sample of Prometheus, and every series of node exporter.

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::Value;

use super::{Sender, need, wait_until};
use crate::{
    daemon::{Daemon, SECONDS, granularities},
    ports::free_port,
};

/// The maximum number of comparisons; samples that are missing in the last one are lost.
const COMPARISONS_MAX: usize = 50;

/// Samples of a series by their time in milliseconds.
type Samples = BTreeMap<i64, f64>;
/// Series by metric and by tags as JSON.
type Series = BTreeMap<String, BTreeMap<String, Samples>>;

fn get(url: &str, params: &[(&str, &str)]) -> String {
    let request = ureq::get(url).query_pairs(params.iter().copied());
    request.call().map_or_else(
        |_| String::new(),
        |mut response| response.body_mut().read_to_string().unwrap(),
    )
}

/// Returns all series of the job in Prometheus.
fn prometheus_series(url: &str) -> Series {
    let text = get(&format!("{url}/api/v1/query"), &[("query", "{job=\"node\"}[10m]")]);
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut all = Series::new();
    for series in answer["data"]["result"].as_array().into_iter().flatten() {
        let mut labels = series["metric"].as_object().unwrap().clone();
        let metric = labels.remove("__name__").unwrap().as_str().unwrap().to_owned();
        let tags = Value::Object(labels).to_string();
        let samples = series["values"].as_array().unwrap().iter().map(|sample| {
            let millis = (sample[0].as_f64().unwrap() * 1000.0).round() as i64;
            (millis, sample[1].as_str().unwrap().parse::<f64>().unwrap())
        });
        let samples = samples.filter(|(_, value)| value.is_finite()).collect();
        all.entry(metric).or_default().insert(tags, samples);
    }
    all
}

/// Returns the daemon's values of a metric, one per slot of 1s.
fn daemon_series(daemon: &Daemon, metric: &str, display: &str) -> BTreeMap<String, Samples> {
    let params = [("resolution", "1s"), ("range", "15m"), ("display", display)];
    let text = get(
        &format!("{}/api/v1/chart", daemon.url),
        &[&params[..], &[("metric", metric)]].concat(),
    );
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    let series = answer["series"].as_array().cloned().unwrap_or_default();
    let series = series.iter().map(|series| {
        let points = series["points"].as_array().unwrap().iter();
        let samples = points.filter_map(|p| Some((p[0].as_i64()?, p[1].as_f64()?))).collect();
        (series["tags"].to_string(), samples)
    });
    series.collect()
}

/// Returns the samples that the daemon lacks or stores with another value.
fn missing_samples(daemon: &Daemon, expected: &Series) -> Vec<String> {
    let mut missing = Vec::new();
    for (metric, series) in expected {
        let found = daemon_series(daemon, metric, "last");
        for (tags, samples) in series {
            let empty = Samples::new();
            let cells = found.get(tags).unwrap_or(&empty);
            let lost = samples
                .iter()
                .filter(|(at, value)| cells.get(&(*at - at.rem_euclid(1000))) != Some(*value));
            missing.extend(lost.map(|(at, value)| format!("{metric}{tags} {at} {value}")));
        }
    }
    missing
}

#[test]
#[ignore = "needs prometheus and prometheus-node-exporter; .ci/run installs it and runs this"]
fn every_sample_of_node_exporter_arrives_though_the_daemon_is_killed() {
    need("prometheus");
    need("prometheus-node-exporter");
    let mut daemon = Daemon::start(&granularities(&SECONDS));
    let dir = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = Command::new("prometheus-node-exporter");
    command.arg(format!("--web.listen-address={address}"));
    let _exporter = Sender::start(&mut command, &dir.path().join("exporter.log"));
    let config = dir.path().join("prometheus.yml");
    let text = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: node\n  static_configs:\n  \
         - targets: ['{address}']\nremote_write:\n- url: {}/api/v1/write\n  \
         queue_config: {{max_backoff: 500ms, batch_send_deadline: 200ms}}\n",
        daemon.url
    );
    fs::write(&config, text).unwrap();
    let prometheus = format!("127.0.0.1:{}", free_port());
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", dir.path().join("prometheus").display()));
    command.arg(format!("--web.listen-address={prometheus}"));
    let _prometheus = Sender::start(&mut command, &dir.path().join("log"));
    let url = format!("http://{prometheus}");
    let scrapes = || {
        let all = prometheus_series(&url);
        all.get("node_boot_time_seconds").map_or(0, |series| series.values().next().unwrap().len())
    };
    let boot_time_series = || daemon_series(&daemon, "node_boot_time_seconds", "last");
    wait_until("the first samples", || !boot_time_series().is_empty());
    daemon.kill();
    let before = scrapes();
    wait_until("scrapes while the daemon is down", || scrapes() > before + 2);
    daemon.restart();
    let before = scrapes();
    wait_until("scrapes after the restart", || scrapes() > before + 2);
    let expected = prometheus_series(&url);
    let count: usize = expected.values().map(BTreeMap::len).sum();
    assert!(count > 200, "{count} series");
    let mut lost = Vec::new();
    // Prometheus may still have samples to send.
    for _ in 0..COMPARISONS_MAX {
        lost = missing_samples(&daemon, &expected);
        if lost.is_empty() {
            break;
        }
    }
    assert!(lost.is_empty(), "{} samples: {:?}", lost.len(), &lost[..lost.len().min(5)]);
    check_counter(&daemon, &expected, "node_cpu_seconds_total");
    check_against_exporter(&daemon, &get(&format!("http://{address}/metrics"), &[]));
}

/// Checks that the growth of a counter equals the growth of Prometheus' samples.
fn check_counter(daemon: &Daemon, expected: &Series, metric: &str) {
    let (totals, counts) =
        (daemon_series(daemon, metric, "total"), daemon_series(daemon, metric, "count"));
    for (tags, samples) in &expected[metric] {
        let last_slot = samples.keys().last().unwrap() / 1000 * 1000;
        let total: f64 = totals[tags].range(..=last_slot).map(|(_, total)| total).sum();
        let increase = samples.values().last().unwrap() - samples.values().next().unwrap();
        assert!((total - increase).abs() < 1e-6, "{tags}: {total} and {increase}");
        let count: f64 = counts[tags].range(..=last_slot).map(|(_, count)| count).sum();
        assert_eq!(count, samples.len() as f64, "{tags}");
    }
    let series = daemon.query(&["series", "--metric", metric]);
    assert_eq!(series["series"][0]["kind"], "counter");
}

/// Checks that constant gauges equal the output of node exporter.
fn check_against_exporter(daemon: &Daemon, page: &str) {
    for metric in ["node_memory_MemTotal_bytes", "node_boot_time_seconds"] {
        let line = page.lines().find_map(|line| line.strip_prefix(metric)).unwrap();
        let value: f64 = line.trim().parse().unwrap();
        let found = daemon_series(daemon, metric, "last");
        assert_eq!(found.len(), 1, "{metric}");
        assert!(found.values().all(|samples| samples.values().all(|found| *found == value)));
    }
}
