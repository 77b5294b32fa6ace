//! Documents in a server of MongoDB's protocol: pipelines of published examples, kills of both
//! sides, late samples, erasure and retention.

use std::fs;

use serde_json::{Value, json};

use super::{mongodb::Server, run_script, wait_until};
use crate::daemon::{Daemon, HOURS_AND_DAYS, granularities, request};

/// All granularities of published examples, with a retention of twenty years.
const LEVELS: [[&str; 4]; 4] = [
    ["1s", "1m", "1h", "7280d"],
    ["1m", "1h", "6h", "7280d"],
    HOURS_AND_DAYS[0],
    HOURS_AND_DAYS[1],
];

impl Server {
    fn settings(&self, collections: &str) -> String {
        format!(
            "[publish]\nuri = 'mongodb://127.0.0.1:{}/?directConnection=true'\n\
             collections = {collections}\n[storage]\ncheckpoint_interval = '1s'\n",
            self.port
        )
    }

    /// Runs a step of the script that compares the documents in MongoDB with the daemon's answers.
    fn check(&self, daemon: &Daemon, step: &str) {
        run_script("clients/published.py", &[&daemon.url, &self.port.to_string(), step]);
    }
}

fn sample(metric: &str, tags: &Value, kind: &str, time: &str, value: f64) -> Value {
    json!({"metric": metric, "tags": tags, "kind": kind, "time": time, "value": value})
}

/// Butterflies and honeybees, 42 temperatures of an hour, and views of a page in a minute.
fn published_examples() -> Value {
    let mut samples = Vec::new();
    for (time, butterflies, bees, location, scientist) in [
        ("00:00", 12, 23, "1", "langstroth"),
        ("00:00", 1, 30, "1", "perpetua"),
        ("00:06", 11, 28, "1", "langstroth"),
        ("00:06", 3, 28, "1", "perpetua"),
        ("05:54", 2, 11, "2", "langstroth"),
        ("06:00", 1, 10, "2", "langstroth"),
        ("06:06", 8, 23, "2", "perpetua"),
        ("06:12", 7, 22, "2", "perpetua"),
    ] {
        let tags = json!({"location": location, "scientist": scientist});
        let time = format!("2015-08-18T{time}:00Z");
        samples.push(sample("butterflies", &tags, "delta", &time, f64::from(butterflies)));
        samples.push(sample("honeybees", &tags, "delta", &time, f64::from(bees)));
    }
    // 41 readings from 22 to 62, and one more, so that the sum is 1783.
    for minute in 0..42 {
        let value = if minute < 41 { f64::from(22 + minute) } else { 61.0 };
        let time = format!("2019-01-31T10:{minute:02}:00Z");
        samples.push(sample("temperature", &json!({"sensor_id": "12345"}), "gauge", &time, value));
    }
    for (second, views) in [(0, 1), (25, 2), (26, 1), (59, 3)] {
        let time = format!("2019-01-31T10:05:{second:02}Z");
        let page = json!({"page": "/index.htm"});
        samples.push(sample("views", &page, "delta", &time, f64::from(views)));
    }
    Value::Array(samples)
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn published_pipelines_have_the_answers_of_the_daemon() {
    let server = Server::start();
    let forms = "{ 1s = 'slots', 1m = 'bucket', 1h = 'nested', 1d = 'levels' }";
    let daemon = Daemon::start(&(server.settings(forms) + &granularities(&LEVELS)));
    daemon.accept(&published_examples());
    server.check(&daemon, "pipelines");
    server.check(&daemon, "erased");
}

/// Returns the samples of a round. They also change documents of other rounds.
fn round(number: i64) -> Value {
    let samples = (0..60).map(|index: i64| {
        let day = 17 + (number + index) % 9;
        let time = format!("2015-08-{day}T{:02}:{:02}:00Z", index % 24, number % 60);
        let tags = json!({"host": format!("web{}", index % 5)});
        let metric = if index % 2 == 0 { "kept" } else { "load" };
        sample(metric, &tags, "delta", &time, (number * 100 + index) as f64)
    });
    samples.collect()
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn every_finished_document_is_published_once_with_equal_values_whatever_is_killed() {
    let mut server = Server::start();
    let settings = server.settings("{}") + &granularities(&HOURS_AND_DAYS);
    let mut daemon = Daemon::start(&settings);
    let published = |daemon: &Daemon| {
        let metrics = daemon.metrics();
        let line = metrics.lines().find(|line| line.starts_with("granary_published_documents"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap()
    };
    for number in 0..12 {
        let before = published(&daemon);
        daemon.accept(&round(number));
        // Kills happen before, during and after writes.
        if number % 3 > 0 {
            wait_until("documents", || published(&daemon) > before);
        }
        match number % 4 {
            0 => daemon.kill(),
            1 => server.kill(),
            2 => {
                server.kill();
                daemon.kill();
            }
            _ => {}
        }
        if !server.is_running() && number % 4 == 1 {
            daemon.accept(&round(number + 100));
            wait_until("a report", || {
                let (status, answer) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
                assert_eq!(status, 200, "{answer}");
                let reason = answer["reasons"]["publish"].as_str().unwrap_or_default();
                answer["status"] == "degraded" && reason.contains("MongoDB is not available")
            });
        }
        if !server.is_running() {
            server.restart();
        }
        if number % 2 == 0 {
            daemon.restart();
        }
    }
    server.check(&daemon, "equal");
    wait_until("the end of the report", || {
        let (_, answer) = request(&daemon.url, "GET", "/readyz", &[], "").unwrap();
        answer["reasons"]["publish"].is_null()
    });
    // Late samples change one document.
    daemon.accept(&round(50));
    server.check(&daemon, "equal");
    // A clean stop loses nothing either.
    daemon.accept(&round(51));
    assert_eq!(daemon.stop(), Some(0));
    daemon.restart();
    server.check(&daemon, "equal");
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn expired_collections_are_dropped_and_newer_documents_stay() {
    let server = Server::start();
    let settings =
        |hours: [&str; 4]| server.settings("{}") + &granularities(&[hours, HOURS_AND_DAYS[1]]);
    let mut daemon = Daemon::start(&settings(HOURS_AND_DAYS[0]));
    daemon.accept(&round(1));
    server.check(&daemon, "equal");
    server.check(&daemon, "superseded");
    daemon.accept(&round(2));
    let count = |name: &str| {
        let metrics = daemon.metrics();
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    wait_until("the report", || daemon.log().contains("MongoDB has newer documents"));
    assert!(count("granary_published_superseded_total") > 0);
    assert_eq!(daemon.stop(), Some(0));
    let path = daemon.dir.path().join("granary.toml");
    fs::write(path, settings(["1h", "1d", "1w", "9w"])).unwrap();
    daemon.restart();
    server.check(&daemon, "dropped");
}
