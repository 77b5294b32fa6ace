//! The program as its user runs it: one file, several collectors, reloaded settings.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod scrape;

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::Duration,
};

use granary_agent_kit::Stopwatch;
use granary_protocol::{INGEST_PATH, decode_batch, split_batches};
use rustix::process::{Pid, Signal, kill_process};

const BINARY: &str = env!("CARGO_BIN_EXE_granary-agent");
const DEADLINE: Duration = Duration::from_secs(30);

/// Returns the head and the body of a request.
fn read_request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    if lower.contains("content-encoding: zstd") {
        body = zstd::bulk::decompress(&body, 16 << 20).unwrap();
    }
    (head, body)
}

/// Starts a daemon that accepts everything; returns its URL and a channel that receives the metrics
/// of each batch.
fn start_daemon() -> (String, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (batch_sender, batches) = sync_channel(10_000);
    thread::spawn(move || {
        let mut names = HashMap::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (head, body) = read_request(&stream);
            let mut metrics = Vec::new();
            if head.starts_with(&format!("POST {INGEST_PATH} ")) {
                for batch_bytes in split_batches(&body).unwrap() {
                    let batch = decode_batch(batch_bytes).unwrap();
                    names.extend(
                        batch
                            .series
                            .iter()
                            .map(|series| (series.reference, series.metric.to_owned())),
                    );
                    metrics.extend(batch.refs().map(|reference| names[&reference].clone()));
                }
                batch_sender.send(metrics).unwrap();
            }
            let answer = r#"{"accepted":1,"duplicates":0,"refused":{}}"#;
            let answer = if head.contains("/ping ") { r#"{"accepted":1}"# } else { answer };
            let length = answer.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close");
            write!(stream, "{head}\r\n\r\n{answer}").unwrap();
        }
    });
    (url, batches)
}

/// Starts an exporter with one metric.
fn start_exporter(metric: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&stream);
            let body = format!("{metric} 5\n");
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close");
            write!(stream, "{head}\r\n\r\n{body}").unwrap();
        }
    });
    address
}

fn write_scrape_file(folder: &Path, target: &str) {
    let text = format!(
        "global: {{scrape_interval: 200ms}}\nscrape_configs:\n- job_name: j\n  static_configs: [{{targets: ['{target}']}}]\n"
    );
    fs::write(folder.join("prometheus.yml"), text).unwrap();
}

fn write_settings(folder: &Path, url: &str, sections: &str) {
    let spool = folder.join("spool");
    let text = format!(
        "[agent]\nurl = '{url}'\nagent_id = 'a'\ninterval = '100ms'\nspool_dir = '{}'\n{sections}",
        spool.display()
    );
    fs::write(folder.join("agent.toml"), text).unwrap();
}

fn start_agent(folder: &Path) -> Child {
    let mut command = Command::new(BINARY);
    command.arg("--config").arg(folder.join("agent.toml"));
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for a batch that contains all metrics of `present` and no metric of `absent`.
fn wait_for_batch(batches: &Receiver<Vec<String>>, present: &[&str], absent: &[&str]) {
    let contains = |metrics: &[String], name: &&str| metrics.iter().any(|metric| metric == name);
    loop {
        let metrics = batches.recv_timeout(DEADLINE).unwrap();
        if present.iter().all(|name| contains(&metrics, name))
            && !absent.iter().any(|name| contains(&metrics, name))
        {
            return;
        }
    }
}

/// Reads the agent's log until a line contains `expected`.
fn wait_for_log(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    expected: &str,
) -> String {
    lines.map(Result::unwrap).find(|line| line.contains(expected)).unwrap()
}

#[test]
fn one_file_runs_several_collectors_and_sighup_reloads_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (url, batches) = start_daemon();
    let statsd_address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    write_scrape_file(folder, &start_exporter("first"));
    let rules = "[[rules]]\nsource_labels = ['__name__']\nregex = 'system_(.*)'\ntarget_label = '__name__'\nreplacement = 'renamed_$1'\n";
    let sections = format!(
        "[host]\n[scrape]\nconfig = 'prometheus.yml'\n[statsd]\nlisten = '{statsd_address}'\n{rules}"
    );
    write_settings(folder, &url, &sections);
    let mut child = start_agent(folder);
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    wait_for_batch(&batches, &["renamed_load_1m", "statsd_lines_total"], &["system_load_1m"]);
    wait_for_batch(&batches, &["first", "up"], &[]);

    // The log names a bad file, and the collectors continue unchanged.
    fs::write(folder.join("prometheus.yml"), "scrape_configs: [{job_name: j, oauth2: {}}]\n")
        .unwrap();
    send_signal(&child, Signal::HUP);
    let line = wait_for_log(&mut log, "the settings are invalid");
    assert!(line.contains("prometheus.yml") && line.contains("oauth2"), "{line}");
    wait_for_batch(&batches, &["first"], &[]);

    // The new settings have another target, no host and no rules. StatsD keeps its port.
    write_scrape_file(folder, &start_exporter("second"));
    write_settings(
        folder,
        &url,
        &format!("[scrape]\nconfig = 'prometheus.yml'\n[statsd]\nlisten = '{statsd_address}'\n"),
    );
    send_signal(&child, Signal::HUP);
    wait_for_log(&mut log, "applied the new settings");
    wait_for_batch(
        &batches,
        &["second", "statsd_lines_total"],
        &["first", "renamed_load_1m", "system_load_1m"],
    );
    send_signal(&child, Signal::TERM);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_test_command_prints_a_round_and_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_scrape_file(folder, &start_exporter("shown"));
    let nagios = "command = ['sh', '-c', 'echo \"OK | free=5%;1\"']\nformat = 'nagios'";
    let parts = [
        "[host]\nprocesses = ['granary-agent']",
        "[scrape]\nconfig = 'prometheus.yml'",
        "[mongodb]\ntargets = 'mongodb.toml'",
        &format!("[exec]\n[[exec.script]]\nname = 'disk'\n{nagios}"),
        "[[redis]]\naddress = '127.0.0.1:1'",
        "[[postgres]]\naddress = '127.0.0.1:1'",
        "[[mysql]]\naddress = '127.0.0.1:1'",
        "[[nginx]]\naddress = 'http://127.0.0.1:1/'",
    ];
    let mongodb = "timeout = '2s'\n[[target]]\nuri = 'mongodb://u:s3cret@127.0.0.1:1'\n";
    fs::write(folder.join("mongodb.toml"), mongodb).unwrap();
    let test = |url: &str| {
        write_settings(folder, url, &parts.join("\n"));
        let mut command = Command::new(BINARY);
        command.arg("test").arg("--config").arg(folder.join("agent.toml")).output().unwrap()
    };
    // Without a daemon, the command fails and names the address.
    let unreachable = test("http://127.0.0.1:1");
    let fault = String::from_utf8_lossy(&unreachable.stderr);
    assert!(
        !unreachable.status.success() && fault.contains("daemon http://127.0.0.1:1: "),
        "{fault}"
    );
    let (url, batches) = start_daemon();
    let output = test(&url);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains(&format!("daemon {url}: answers")), "{text}");
    assert!(batches.try_recv().is_err(), "nothing is sent");
    let assert_line = |start: &str, end: &str| {
        let matches = |line: &str| line.starts_with(start) && line.ends_with(end);
        assert!(text.lines().any(matches), "{start} {end} in {text}");
    };
    for name in ["system_load_1m ", "shown ", "up ", "process_memory_resident ", "process_count "] {
        assert_line(name, "");
    }
    assert_line("exec_up ", " 1");
    assert_line("nagios_value ", " 5");
    for kind in ["mongodb", "redis", "postgres", "mysql", "nginx"] {
        assert_line(&format!("{kind}_up "), " 0");
        assert_line(&format!("cannot read {kind} "), "");
    }
    assert!(!text.contains("s3cret"));
    assert!(!folder.join("spool").exists());
}

#[test]
fn an_interrupted_test_command_leaves_no_script_running() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pid_file = folder.join("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", pid_file.display());
    let script_settings = "format = 'nagios'\ntimeout = '600s'";
    let exec = format!(
        "[exec]\n[[exec.script]]\nname = 'long'\ncommand = ['sh', '-c', '{script}']\n{script_settings}"
    );
    write_settings(folder, "http://127.0.0.1:1", &exec);
    let mut command = Command::new(BINARY);
    let command = command.arg("test").arg("--config").arg(folder.join("agent.toml"));
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let watch = Stopwatch::start();
    let pid = loop {
        let pid = fs::read_to_string(&pid_file).unwrap_or_default();
        if pid.ends_with('\n') {
            break pid;
        }
        assert!(!watch.left_of(DEADLINE).is_zero());
        thread::yield_now();
    };
    send_signal(&child, Signal::INT);
    child.wait().unwrap();
    assert!(!fs::exists(format!("/proc/{}", pid.trim())).unwrap(), "process {pid} still exists");
}
