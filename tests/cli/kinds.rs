//! Senders that change the kind of a series: a target of the real agent changes its `# TYPE`, and
//! requests of remote write and OTLP declare another kind.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, agent_program, client},
    protobuf::{bytes, int, message},
    remote_write::{V1, minute, points, request, series, write},
};

/// A target of scrapes with one metric, whose value grows by 1 with each response.
struct Target {
    address: String,
    is_counter: Arc<AtomicBool>,
    responses: Arc<AtomicU64>,
}

fn start_target() -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (is_counter, responses) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (sends_counter, read_count) = (is_counter.clone(), responses.clone());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let _head = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            let kind = if sends_counter.load(Ordering::SeqCst) { "counter" } else { "gauge" };
            let value = read_count.fetch_add(1, Ordering::SeqCst) + 1;
            let body = format!("# TYPE jobs_done {kind}\njobs_done {value}\n");
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n";
            let close = "Connection: close\r\n";
            write!(stream, "{head}{close}Content-Length: {length}\r\n\r\n{body}").unwrap();
        }
    });
    Target { address, is_counter, responses }
}

fn start_agent(daemon: &Daemon, target: &Target) -> Child {
    let config = daemon.dir.path().join("prometheus.yml");
    let yaml = format!(
        "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs:\n- job_name: j\n  \
         static_configs: [{{targets: ['{}']}}]\n",
        target.address
    );
    std::fs::write(&config, yaml).unwrap();
    let mut agent = Command::new(agent_program("granary-agent"));
    agent.arg("scrape");
    agent.args(["--url", &daemon.url, "--agent-id", "here", "--interval", "200ms"]);
    agent.arg("--scrape-config").arg(config);
    agent.arg("--spool-dir").arg(daemon.dir.path().join("spool"));
    agent.stderr(Stdio::null()).spawn().unwrap()
}

/// Returns the value of an expression, or `None` without a sample.
fn query_value(daemon: &Daemon, expression: &str) -> Option<f64> {
    let found: Value = daemon.query(&["promql", expression]);
    found["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

fn wait_until(mut is_done: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_done() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("the condition did not hold in time");
}

#[test]
fn a_target_that_changes_its_type_and_back_keeps_its_series() {
    let mut daemon = Daemon::start("");
    let target = start_target();
    let mut agent = start_agent(&daemon, &target);
    for is_counter in [false, true, false] {
        target.is_counter.store(is_counter, Ordering::SeqCst);
        let from = target.responses.load(Ordering::SeqCst) as f64 + 5.0;
        wait_until(|| query_value(&daemon, "jobs_done").is_some_and(|value| value >= from));
    }
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_series_kind_changed_total 2"), "{metrics}");
    assert_eq!(daemon.log().matches("the kind of a series changed").count(), 2);
    agent.kill().unwrap();
    agent.wait().unwrap();
    daemon.kill();
    daemon.restart();
    // The last responses may not have been stored when the agent was killed.
    let responses = target.responses.load(Ordering::SeqCst) as f64;
    let found = query_value(&daemon, "count_over_time(jobs_done[10m])").unwrap();
    assert!((responses - 2.0..=responses).contains(&found), "{found} of {responses}");
}

/// Returns the kind of a metric's only series.
fn kind(daemon: &Daemon, metric: &str) -> Value {
    daemon.query(&["series", "--metric", metric])["series"][0]["kind"].clone()
}

#[test]
fn metadata_of_remote_write_changes_the_kind_unless_it_flaps() {
    let daemon = Daemon::start("");
    let at = minute();
    // The kind alternates between counter and gauge; the last change is one too many for an hour.
    for (index, code) in [1, 2, 1, 2, 1, 2].into_iter().enumerate() {
        let metadata = message(|out| {
            int(1, code, out);
            bytes(2, b"odd", out);
        });
        let metadata = message(|out| bytes(3, &metadata, out));
        let sample = (at + 10_000 * index as i64, index as f64);
        let samples = request(&[series(&[("__name__", "odd")], &[sample])]);
        assert_eq!(write(&daemon, V1, &metadata).status, 204);
        let written = write(&daemon, V1, &samples);
        assert_eq!(written.status, 204, "{}", written.body);
        let expected = if index % 2 == 0 || index == 5 { "counter" } else { "gauge" };
        assert_eq!(kind(&daemon, "odd"), expected, "change {index}");
    }
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_series_kind_changed_total 4\n"), "{metrics}");
    assert!(metrics.contains("granary_series_kind_conflicts_total 1\n"), "{metrics}");
    assert_eq!(daemon.log().matches("a series keeps its kind").count(), 1);
    assert_eq!(query_value(&daemon, "count_over_time(odd[1h])"), Some(6.0));
    assert_eq!(points(&daemon, "odd", "total"), [5.0]);
}

#[test]
fn a_sum_of_otlp_that_was_a_gauge_changes_the_kind() {
    let daemon = Daemon::start("");
    let at = minute();
    for (index, data) in ["gauge", "sum", "sum"].into_iter().enumerate() {
        let nanos = ((at + 10_000 * index as i64) * 1_000_000).to_string();
        let points = json!([{"timeUnixNano": nanos, "asDouble": index}]);
        let data_of =
            json!({"dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true});
        let metric = json!({"name": "jobs", data: data_of});
        let body = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]});
        let request = client().post(format!("{}/v1/metrics", daemon.url));
        let response = request.content_type("application/json").send(body.to_string()).unwrap();
        assert_eq!(response.status(), 200);
    }
    assert_eq!(kind(&daemon, "jobs"), "counter");
    assert!(daemon.metrics().contains("granary_series_kind_changed_total 1\n"));
    assert_eq!(query_value(&daemon, "count_over_time(jobs[1h])"), Some(3.0));
}
