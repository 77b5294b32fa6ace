//! Clients of Prometheus' HTTP API and the real daemon; `.ci/run` installs them and runs the tests
//! that need them.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    peers::{need, run_script},
    prometheus_api::{filled_daemon, get, post},
};

#[test]
#[ignore = "needs promtool; .ci/run installs it and runs this"]
fn promtool_queries_the_daemon_and_lists_its_series() {
    need("promtool");
    let (daemon, start) = filled_daemon();
    let seconds = |offset: i64| (start / 1000 + offset).to_string();
    let run = |args: &[&str]| {
        let mut command = Command::new("promtool");
        command.arg("query").arg(args[0]).args(["--format", "json"]).args(&args[1..]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for url in [daemon.url.clone(), format!("{}/prometheus", daemon.url)] {
        let time = format!("--time={}", seconds(585));
        let text = run(&["instant", &time, &url, "sum(level)"]);
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found, json!([{"metric": {}, "value": [start / 1000 + 585, "2.5"]}]));
        let (from, to) = (format!("--start={}", seconds(300)), format!("--end={}", seconds(420)));
        let text = run(&["range", &from, &to, "--step=60s", &url, "sum(level)"]);
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found[0]["values"].as_array().unwrap().len(), 3, "{text}");
        let (from, to) = (format!("--start={}", seconds(0)), format!("--end={}", seconds(600)));
        let text = run(&["series", "--match=requests_total", &from, &to, &url]);
        assert!(text.contains("\"job\":\"db\"") && text.contains("\"job\":\"web\""), "{text}");
        assert_eq!(run(&["labels", &url, "job"]).trim(), r#"["db","web"]"#);
    }
    let fault = Command::new("promtool").args(["query", "instant", &daemon.url, "sum("]).output();
    let message = String::from_utf8(fault.unwrap().stderr).unwrap();
    assert!(message.contains("bad_data") && message.contains("parse error"), "{message}");
}

#[test]
#[ignore = "needs prometheus-api-client; .ci/run installs it and runs this"]
fn the_python_client_reads_written_samples() {
    let (daemon, start) = filled_daemon();
    let args = [daemon.url.as_str(), &(start / 1000).to_string()];
    run_script("clients/read_prometheus.py", &args);
}

#[test]
#[ignore = "needs node and prometheus-query; .ci/run installs it and runs this"]
fn the_javascript_client_reads_written_samples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules = std::env::var("GRANARY_TEST_NODE_PATH").unwrap_or_default();
    let (daemon, start) = filled_daemon();
    let script = root.join("tests/data/clients/read_prometheus.js");
    let output = Command::new("node")
        .arg(script)
        .args([daemon.url.as_str(), &(start / 1000).to_string()])
        .env("NODE_PATH", &modules)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The requests of Grafana's Prometheus data source, as it sends them by default.
#[test]
fn the_requests_of_grafanas_data_source_are_answered() {
    let (daemon, start) = filled_daemon();
    let (from, to) = ((start / 1000).to_string(), (start / 1000 + 600).to_string());
    let success = |(status, body): (u16, Value)| {
        assert_eq!((status, &body["status"]), (200, &json!("success")), "{body}");
        body["data"].clone()
    };
    // The button "Save & test" sends these requests.
    let test = [("query", "1+1"), ("time", &*to)];
    assert_eq!(success(post(&daemon, "/api/v1/query", &test))["resultType"], "scalar");
    assert!(success(get(&daemon, "/api/v1/status/buildinfo"))["version"].is_string());
    // A panel sends these requests.
    let panel = [
        ("query", r#"sum by (job) (rate(requests_total{job=~"web|db"}[1m0s]))"#),
        ("start", &*from),
        ("end", &*to),
        ("step", "15"),
    ];
    let data = success(post(&daemon, "/api/v1/query_range", &panel));
    assert_eq!(data["result"].as_array().unwrap().len(), 2, "{data}");
    let table = [("query", "topk(1, requests_total)"), ("time", &*to)];
    let data = success(post(&daemon, "/api/v1/query", &table));
    assert_eq!(data["result"][0]["metric"]["job"], "db", "{data}");
    let exemplars = [("query", "requests_total"), ("start", &*from), ("end", &*to)];
    assert_eq!(success(post(&daemon, "/api/v1/query_exemplars", &exemplars)), json!([]));
    // The query builder asks for metrics, the labels of a metric, their values, metadata, and
    // rules.
    let limits = [("start", &*from), ("end", &*to), ("limit", "40000")];
    assert!(success(post(&daemon, "/api/v1/labels", &limits)).as_array().unwrap().len() == 3);
    let metric_form = [("match[]", r#"{__name__="requests_total"}"#), ("start", &*from)];
    let names = success(post(&daemon, "/api/v1/labels", &metric_form));
    assert_eq!(names, json!(["__name__", "job"]));
    let series = success(post(&daemon, "/api/v1/series", &metric_form));
    assert_eq!(series.as_array().unwrap().len(), 2);
    let path = format!(
        "/api/v1/label/job/values?start={from}&end={to}&limit=40000&match%5B%5D=requests_total"
    );
    assert_eq!(success(get(&daemon, &path)), json!(["db", "web"]));
    let metadata = success(get(&daemon, "/api/v1/metadata?limit=40000"));
    assert_eq!(metadata["requests_total"][0]["type"], "counter");
    assert_eq!(success(get(&daemon, "/api/v1/rules"))["groups"], json!([]));
}
