//! Peers that send keys in the way in which they send other credentials: Prometheus, vmagent,
//! collectd and amtool.

use std::{fs, process::Command};

use serde_json::json;

use super::{Sender, Target, need, scrape_config, wait_until};
use crate::{access::Guarded, ports::free_port};

/// Returns the number of series of a metric.
fn series(guarded: &Guarded, metric: &str) -> u64 {
    let path = format!("/api/v1/series?metric={metric}");
    let (_, answer) = guarded.send("GET", &path, &guarded.admin, "");
    answer["total"].as_u64().unwrap_or(0)
}

#[test]
#[ignore = "needs prometheus; .ci/run installs it and runs this"]
fn prometheus_scrapes_the_daemon_and_writes_to_it_with_keys() {
    need("prometheus");
    let guarded = Guarded::start();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, scope: &str| {
        let path = dir.path().join(name);
        fs::write(&path, guarded.scoped(name, &[scope])).unwrap();
        path.display().to_string()
    };
    let (scrapes, writes) = (file("scrapes", "operate"), file("writes", "ingest"));
    let (url, address) = (&guarded.daemon.url, guarded.daemon.url.trim_start_matches("http://"));
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: granary\n  authorization: \
         {{credentials_file: {scrapes}}}\n  static_configs: [{{targets: ['{address}']}}]\n\
         remote_write:\n- url: {url}/api/v1/write\n  authorization: {{credentials_file: {writes}}}\n"
    );
    let config = dir.path().join("prometheus.yml");
    fs::write(&config, text).unwrap();
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{}", free_port()));
    let _prometheus = Sender::start(&mut command, &dir.path().join("log"));
    wait_until("the daemon's own metrics", || series(&guarded, "granary_series") == 1);
    let path = "/api/v1/query?query=up%7Bjob%3D%22granary%22%7D";
    wait_until("a successful scrape", || {
        let (_, answer) = guarded.send("GET", path, &guarded.admin, "");
        answer["data"]["result"][0]["value"][1] == "1"
    });
}

#[test]
#[ignore = "needs vmagent; .ci/run installs it and runs this"]
fn vmagent_writes_with_a_key() {
    need("vmagent");
    let (guarded, target) = (Guarded::start(), Target::start());
    let dir = tempfile::tempdir().unwrap();
    let (config, key) = (dir.path().join("scrape.yml"), dir.path().join("key"));
    fs::write(&config, scrape_config(&target)).unwrap();
    fs::write(&key, guarded.scoped("vmagent", &["ingest"])).unwrap();
    let mut command = Command::new("vmagent");
    command.arg(format!("-promscrape.config={}", config.display()));
    command.arg(format!("-remoteWrite.url={}/api/v1/write", guarded.daemon.url));
    command.arg(format!("-remoteWrite.bearerTokenFile={}", key.display()));
    command.arg("-remoteWrite.flushInterval=200ms");
    command.arg(format!("-remoteWrite.tmpDataPath={}", dir.path().join("vmagent").display()));
    command.arg(format!("-httpListenAddr=127.0.0.1:{}", free_port()));
    let _vmagent = Sender::start(&mut command, &dir.path().join("log"));
    wait_until("samples of vmagent", || series(&guarded, "test_scrapes_total") == 1);
}

#[test]
#[ignore = "needs collectd; .ci/run installs it and runs this"]
fn collectd_writes_with_a_key_as_its_password() {
    need("collectd");
    let guarded = Guarded::start();
    let dir = tempfile::Builder::new().prefix("collectd-").tempdir().unwrap();
    let (path, key) = (dir.path().display(), guarded.scoped("collectd", &["ingest"]));
    let text = format!(
        "Hostname \"web1\"\nBaseDir \"{path}\"\nPIDFile \"{path}/pid\"\nInterval 1\n\
         LoadPlugin load\nLoadPlugin memory\nLoadPlugin write_http\n<Plugin write_http>\n<Node granary>\n\
         URL \"{}/api/v1/collectd\"\nFormat JSON\nUser \"any\"\nPassword \"{key}\"\n\
         BufferSize 1024\n</Node>\n</Plugin>\n",
        guarded.daemon.url
    );
    let config = dir.path().join("collectd.conf");
    fs::write(&config, text).unwrap();
    let mut command = Command::new("collectd");
    command.arg("-f").arg("-C").arg(&config);
    let _collectd = Sender::start(&mut command, &dir.path().join("log"));
    wait_until("samples of collectd", || {
        let (_, answer) = guarded.send("GET", "/api/v1/series", &guarded.admin, "");
        answer.to_string().contains("web1")
    });
}

#[test]
#[ignore = "needs amtool; .ci/run installs it and runs this"]
fn amtool_silences_with_a_key() {
    need("amtool");
    let guarded = Guarded::start();
    let dir = tempfile::tempdir().unwrap();
    let run = |key: &str| {
        let config = dir.path().join("http.yml");
        fs::write(&config, format!("authorization: {{credentials: {key}}}\n")).unwrap();
        let mut command = Command::new("amtool");
        command.arg(format!("--alertmanager.url={}", guarded.daemon.url));
        command.arg(format!("--http.config.file={}", config.display()));
        command.args(["silence", "add", "alertname=Down", "--comment=c", "--author=a"]);
        command.output().unwrap()
    };
    assert!(!run(&guarded.scoped("reader", &["read"])).status.success());
    let output = run(&guarded.scoped("editor", &["objects"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, silences) = guarded.send("GET", "/api/v2/silences", &guarded.admin, "");
    assert_eq!(silences[0]["matchers"][0]["value"], json!("Down"), "{silences}");
}
