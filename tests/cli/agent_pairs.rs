//! Two real agents that scrape the same share of the targets: one counts, and the other one takes
//! over when it is away (`ingest.ha_senders`).

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::daemon::{Daemon, agent_program};

/// A target whose counter grows by 1 with each response.
fn start_target() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for (count, stream) in (1..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let _head = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            let body = format!("# TYPE responses_total counter\nresponses_total {count}\n");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
            write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    address
}

struct Agent(Child);

impl Agent {
    fn start(daemon: &Daemon, config: &Path, name: &str) -> Self {
        let mut agent = Command::new(agent_program("granary-agent"));
        agent.args(["scrape", "--shard", "1/2", "--agent-id", name, "--interval", "200ms"]);
        agent.args(["--url", &daemon.url]).arg("--scrape-config").arg(config);
        agent.arg("--spool-dir").arg(daemon.dir.path().join(name));
        Self(agent.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_done() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("not in time: {what}");
}

fn left_out(daemon: &Daemon) -> u64 {
    let metrics = daemon.metrics();
    let line = metrics.lines().find(|line| line.starts_with("granary_ha_samples_left_out_total "));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

/// Returns the number of samples of each target.
fn counted(daemon: &Daemon) -> BTreeMap<String, f64> {
    let found: Value = daemon.query(&["promql", "count_over_time(up[10m])"]);
    let series = found["data"]["result"].as_array().unwrap();
    let count = |series: &Value| {
        let value = series["value"][1].as_str().unwrap().parse().unwrap();
        (series["metric"]["instance"].as_str().unwrap().to_owned(), value)
    };
    let counts: BTreeMap<_, _> = series.iter().map(count).collect();
    assert_eq!(counts.len(), series.len(), "each target has one series");
    counts
}

/// Waits until each target has further samples.
fn wait_for_samples(daemon: &Daemon) {
    let before = counted(daemon);
    wait_until("further samples of each target", || {
        let now = counted(daemon);
        before.iter().all(|(target, count)| now[target] >= count + 10.0)
    });
}

#[test]
fn a_second_agent_takes_over_the_targets_of_a_share() {
    let daemon = Daemon::start("ingest.ha_senders = { scrape-1- = '2s' }");
    let targets: Vec<String> = (0..24).map(|_| start_target()).collect();
    let config = daemon.dir.path().join("prometheus.yml");
    let jobs = format!("[{{job_name: j, static_configs: [{{targets: {targets:?}}}]}}]");
    let global = "global: {scrape_interval: 200ms, scrape_timeout: 200ms}";
    let yaml = format!("{global}\nscrape_configs: {jobs}\n");
    std::fs::write(&config, yaml).unwrap();
    let first = Agent::start(&daemon, &config, "scrape-1-a");
    wait_until("the samples of the first agent", || !counted(&daemon).is_empty());
    wait_for_samples(&daemon);
    let second = Agent::start(&daemon, &config, "scrape-1-b");
    wait_until("samples that the second agent sends in vain", || left_out(&daemon) > 50);
    drop(first);
    // The daemon lets the second agent take over 2 s after the first agent's last sample.
    wait_for_samples(&daemon);
    let left_out_before = left_out(&daemon);
    wait_for_samples(&daemon);
    assert_eq!(left_out(&daemon), left_out_before, "all samples of the second agent count");
    drop(second);
    let share = counted(&daemon).len();
    assert!(share < targets.len(), "both agents scrape one share");
}
