//! Prometheus and Granary's agent scrape the same native histogram, and Prometheus scrapes it again
//! from `/federate`: all three have the same buckets.

use std::{fs, process::Command};

use serde_json::Value;

use super::{Sender, need, wait_until};
use crate::{
    daemon::Daemon,
    ports::free_port,
    scraped_histograms::{expected_histogram, newest_histogram, start_agent, start_target},
};

/// Returns the newest histogram of a query in Prometheus.
fn in_prometheus(url: &str, query: &str) -> Value {
    let request = ureq::get(format!("{url}/api/v1/query")).query("query", query);
    let text = request.call().map_or_else(
        |_| String::new(),
        |mut response| response.body_mut().read_to_string().unwrap(),
    );
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    answer["data"]["result"][0]["histogram"][1].clone()
}

/// Returns the count, the sum, and the numbers of each bucket.
fn numbers_of(histogram: &Value) -> Vec<f64> {
    let buckets = histogram["buckets"].as_array();
    let numbers = buckets.into_iter().flatten().filter_map(Value::as_array).flatten();
    let all = [&histogram["count"], &histogram["sum"]].into_iter().chain(numbers);
    all.filter_map(|number| number.as_f64().or_else(|| number.as_str()?.parse().ok())).collect()
}

#[test]
#[ignore = "needs prometheus; .ci/run installs it and runs this"]
fn prometheus_and_the_agent_scrape_the_same_buckets_also_from_federate() {
    need("prometheus");
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let target = start_target();
    let _agent = start_agent(&daemon, &target, "scrape_native_histograms: true,", dir.path());
    let address = daemon.url.strip_prefix("http://").unwrap();
    let config = dir.path().join("peer.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n\
         - {{job_name: direct, static_configs: [{{targets: ['{target}']}}]}}\n\
         - {{job_name: federate, honor_labels: true, metrics_path: /federate, \
         params: {{'match[]': [wait_seconds, hits_total]}}, \
         static_configs: [{{targets: ['{address}']}}]}}\n"
    );
    fs::write(&config, text).unwrap();
    let prometheus = format!("127.0.0.1:{}", free_port());
    let mut command = Command::new("prometheus");
    command.arg("--enable-feature=native-histograms");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", dir.path().join("prometheus").display()));
    command.arg(format!("--web.listen-address={prometheus}"));
    let _prometheus = Sender::start(&mut command, &dir.path().join("log"));
    let url = format!("http://{prometheus}");
    let expected = numbers_of(&expected_histogram());
    let is_expected = |found: &Value| {
        let found = numbers_of(found);
        // Prometheus computes the bounds in another way.
        let is_same = |(found, expected): (&f64, &f64)| (found - expected).abs() < 1e-12;
        found.len() == expected.len() && found.iter().zip(&expected).all(is_same)
    };
    let scraped = "wait_seconds{job='j'}";
    wait_until("Prometheus", || is_expected(&in_prometheus(&url, "wait_seconds{job='direct'}")));
    wait_until("the agent", || is_expected(&newest_histogram(&daemon, scraped)));
    wait_until("federate", || is_expected(&in_prometheus(&url, scraped)));
}
