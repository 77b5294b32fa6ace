//! The command `scrape` with targets on real sockets.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Command, Output},
    thread,
};

use flate2::{Compression, write::GzEncoder};

/// Starts a target with one response, and returns its address. A request whose head lacks
/// `expected` is refused.
fn start_target(head: &'static str, body: Vec<u8>, expected: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut request = String::new();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    break;
                }
                request.push_str(&line);
                request.push('\n');
            }
            let status =
                if request.to_lowercase().contains(expected) { "200 OK" } else { "401 No" };
            let length = body.len();
            write!(stream, "HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n").unwrap();
            stream.write_all(&body).unwrap();
        }
    });
    address
}

fn print_round(yaml: &str, files: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().join("prometheus.yml");
    fs::write(&path, yaml).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary-agent"));
    command
        .args(["scrape", "--agent-id", "here", "--print", "--scrape-config"])
        .arg(&path)
        .output()
        .unwrap()
}

#[test]
fn targets_of_settings_and_files_are_scraped_and_a_dead_target_is_reported() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(b"# TYPE reads counter\nreads{disk=\"a\"} 7\n").unwrap();
    let head = "Content-Encoding: gzip\r\nContent-Type: text/plain\r\n";
    let gzip_target =
        start_target(head, gzip.finish().unwrap(), "authorization: basic dtpzm2nyzxq=");
    let openmetrics_head = "Content-Type: application/openmetrics-text; version=1.0.0\r\n";
    let text_target = start_target(openmetrics_head, b"depth 3\n# EOF\n".to_vec(), "get /m?a=b ");
    let dead_target = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let yaml = format!(
        "scrape_configs:
- job_name: packed
  basic_auth: {{username: u, password_file: pw}}
  static_configs: [{{targets: ['{gzip_target}']}}]
- job_name: listed
  metrics_path: /m
  params: {{a: [b]}}
  file_sd_configs: [{{files: ['*.json']}}]
- job_name: dead
  static_configs: [{{targets: ['{dead_target}']}}]
"
    );
    let list = format!(r#"[{{"targets": ["{text_target}"], "labels": {{"rack": "r1"}}}}]"#);
    let output = print_round(&yaml, &[("pw", "s3cret\n"), ("list.json", &list)]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let assert_line = |words: &[&str]| {
        let found = text.lines().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?} in {text}");
    };
    assert_line(&["reads ", "disk=a", "job=packed", " counter ", " 7"]);
    assert_line(&["depth ", "rack=r1", "job=listed", " gauge ", " 3"]);
    assert_line(&["up ", "job=listed", " 1"]);
    assert_line(&["up ", "job=dead", " 0"]);
    assert_line(&["cannot read target", &dead_target]);
    // Without a host, all agents of a fleet would write into the same series.
    assert_line(&["agent_scrape_targets ", "host=here", "state=up", " 2"]);
    assert_line(&["agent_scrapes_missed_total ", "host=here"]);
}

/// The size at which writes to the spool's file fail, as on a full disk.
const FILE_KIB: u32 = 2048;

/// Regression: a full disk ended the agent while the daemon was unreachable, with `No space left on
/// device` and exit code 1.
#[test]
fn on_a_full_disk_the_agent_continues_and_keeps_the_newest_batches() {
    let lines: Vec<String> =
        (0..6_000).map(|n| format!("some_metric{{number=\"{n}\"}} {n}\n")).collect();
    let big =
        start_target("Content-Type: text/plain\r\n", lines.concat().into_bytes(), "get /metrics ");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let yaml = format!(
        "global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\nscrape_configs:\n\
         - {{job_name: big, static_configs: [{{targets: ['{big}']}}]}}\n"
    );
    fs::write(path("prometheus.yml"), yaml).unwrap();
    // The daemon is unreachable: no process listens on a port that was just free.
    let unreachable = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new("/bin/bash");
    command.arg("-c").arg(format!(
        "trap '' XFSZ; ulimit -f {FILE_KIB}; exec \"$@\"", // bash counts in KiB
    ));
    command.arg("-").arg(env!("CARGO_BIN_EXE_granary-agent")).args(["scrape", "--scrape-config"]);
    command.arg(path("prometheus.yml")).arg("--url").arg(format!("http://{unreachable}"));
    command.args(["--agent-id", "a", "--interval", "100ms", "--rounds", "60", "--spool-dir"]);
    command.arg(path("spool")).arg("--report").arg(path("report.json"));
    let output = command.output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(path("report.json")).unwrap()).unwrap();
    assert_eq!(report["rounds"], 60, "{report}");
    let count = |name: &str| report[name].as_u64().unwrap();
    assert!(log.contains("the spool cannot be written; batches wait in memory"), "{log}");
    assert!(count("spool_batches") > 5, "the newest are kept: {report}");
    assert_eq!(
        count("batches_dropped") + count("spool_batches"),
        expected_batches(&report),
        "{report}"
    );
}

/// Returns the number of batches: one per round, and one more per 5,000 new series.
fn expected_batches(report: &serde_json::Value) -> u64 {
    report["rounds"].as_u64().unwrap() + 1
}

#[test]
fn unsupported_settings_end_the_agent_with_their_name_and_line() {
    let output = print_round("scrape_configs:\n- job_name: a\n  oauth2: {}\n", &[]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(message.contains("oauth2") && message.contains("line 3"), "{message}");
}

#[test]
fn agents_with_equal_settings_share_the_targets() {
    let targets: Vec<String> = (0..12)
        .map(|_| start_target("Content-Type: text/plain\r\n", b"depth 3\n".to_vec(), "get "))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prometheus.yml");
    let yaml =
        format!("scrape_configs: [{{job_name: a, static_configs: [{{targets: {targets:?}}}]}}]");
    fs::write(&path, yaml).unwrap();
    let mut scraped = Vec::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_granary-agent"));
        command.args(["scrape", "--shard", shard, "--print", "--scrape-config"]);
        let output = command.arg(&path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let depths = text.lines().filter(|line| line.starts_with("depth "));
        let found = depths.filter_map(|line| targets.iter().find(|target| line.contains(*target)));
        scraped.extend(found.cloned());
    }
    let mut expected = targets.clone();
    expected.sort_unstable();
    scraped.sort_unstable();
    assert_eq!(scraped, expected, "each target is scraped by one agent");
}
