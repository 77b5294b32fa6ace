//! https of commands and agents: the servers that they trust, and the errors about others.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::{
    alerts::poll_until,
    daemon::{Daemon, granary, request},
    printed::host_agent,
    tls_proxy::{TlsProxy, make_certificates},
};

/// A daemon behind TLS, and a folder of certificates for it.
struct Scene {
    daemon: Daemon,
    folder: tempfile::TempDir,
    proxy: TlsProxy,
}

impl Scene {
    /// Starts a daemon whose certificate has these names.
    fn start(hosts: &str) -> Self {
        let (daemon, folder) = (Daemon::start(""), tempfile::tempdir().unwrap());
        make_certificates(folder.path(), hosts);
        let proxy = TlsProxy::start(folder.path(), address(&daemon), None);
        Self { daemon, folder, proxy }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn ca(&self) -> String {
        self.file("ca.pem").display().to_string()
    }

    fn pin(&self) -> String {
        pin(&self.file("server.pem"))
    }
}

fn address(daemon: &Daemon) -> SocketAddr {
    daemon.url.trim_start_matches("http://").parse().unwrap()
}

/// Returns the pin of a certificate, as the command prints it.
fn pin(file: &Path) -> String {
    let output = granary().args(["cert", "show"]).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("pin      ")).unwrap().to_owned()
}

/// Asks whether a daemon is ready, with these options and environment.
fn ready(url: &str, args: &[&str], vars: &[(&str, &str)]) -> Output {
    let mut command = granary();
    command.args(["ready", "--url", url]).args(args).envs(vars.iter().copied());
    command.output().unwrap()
}

#[track_caller]
fn accepts(url: &str, args: &[&str], vars: &[(&str, &str)]) {
    let output = ready(url, args, vars);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Asserts that the command fails and that its error contains these texts.
#[track_caller]
fn refuses(url: &str, args: &[&str], expected: &[&str]) {
    let output = ready(url, args, &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{args:?}");
    for text in expected {
        assert!(error.contains(text), "{text:?} is not in: {error}");
    }
}

#[test]
fn commands_trust_the_system_a_ca_or_a_pin() {
    let scene = Scene::start("localhost");
    let (url, ca, pin) = (scene.proxy.url("localhost"), scene.ca(), scene.pin());
    refuses(&url, &[], &["not from a trusted authority", "--ca-file", "--pin"]);
    accepts(&url, &[], &[("SSL_CERT_FILE", &ca)]);
    accepts(&url, &["--ca-file", &ca], &[]);
    accepts(&url, &[], &[("GRANARY_CA_FILE", &ca)]);
    accepts(&url, &["--pin", &pin], &[]);
    let other = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    accepts(&url, &[], &[("GRANARY_PIN", &format!("{other},{pin}"))]);
    let is_not_pinned = format!("the server's key has the pin {pin}");
    refuses(&url, &["--pin", other], &[&is_not_pinned, "not among those of --pin"]);
    refuses(&url, &["--pin", "sha256//abc"], &["granary cert show"]);
    refuses(&url, &["--pin", &pin, "--ca-file", &ca], &["cannot be used with"]);
    refuses(&scene.daemon.url, &["--pin", &pin], &["--pin needs an address", "https://"]);
    let missing = scene.file("missing.pem").display().to_string();
    refuses(&url, &["--ca-file", &missing], &["missing.pem: No such file"]);
    // The certificate of a running server.
    let shown = granary().args(["cert", "show", &url]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("names    localhost\n") && shown.contains(&pin), "{shown}");
    // With a pin, the host name is not checked; with a CA, it is.
    let by_address = scene.proxy.url("127.0.0.1");
    let names = "is for localhost, not for 127.0.0.1";
    refuses(&by_address, &["--ca-file", &ca], &[names, "use a name of the certificate"]);
    accepts(&by_address, &["--pin", &pin], &[]);
    // The options are also accepted after a subcommand.
    let expired = ["silence", "list", "--url", &url, "--pin", &pin];
    assert!(granary().args(expired).output().unwrap().status.success());
}

#[test]
fn errors_of_https_say_what_to_do() {
    let scene = Scene::start("localhost");
    let plain = format!("https://{}", address(&scene.daemon));
    refuses(&plain, &[], &["does not speak TLS on this port", "http://"]);
    let mixed_up = scene.proxy.url("localhost").replace("https://", "http://");
    refuses(&mixed_up, &[], &["https://"]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refuses(&format!("https://{closed}"), &[], &["is the daemon running?"]);
    // One certificate has expired, and one is not valid yet.
    for (from, to, expected) in [
        (2020, 2021, ["expired at 2021-01-01T00:00:00Z", "renew it"]),
        (2100, 2101, ["valid from 2100-01-01T00:00:00Z on", "clock"]),
    ] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let made = params.self_signed(&key).unwrap();
        write_pem(&scene.file("server.pem"), "CERTIFICATE", made.der());
        write_pem(&scene.file("server.key"), "PRIVATE KEY", key.serialized_der());
        scene.proxy.exchange(scene.folder.path());
        let file = scene.file("server.pem").display().to_string();
        refuses(&scene.proxy.url("localhost"), &["--ca-file", &file], &expected);
        // A pin replaces the check.
        accepts(&scene.proxy.url("localhost"), &["--pin", &scene.pin()], &[]);
    }
}

fn write_pem(file: &Path, label: &str, der: &[u8]) {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let text = BASE64_STANDARD.encode(der);
    fs::write(file, format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")).unwrap();
}

#[test]
fn a_client_certificate_is_shown_to_servers_that_require_one() {
    let scene = Scene::start("localhost");
    let ca = scene.ca();
    let client = granary()
        .args(["cert", "client", "web1.example.org", "--dir"])
        .arg(scene.folder.path())
        .output()
        .unwrap();
    assert!(client.status.success(), "{client:?}");
    let upstream = address(&scene.daemon);
    let proxy = TlsProxy::start(scene.folder.path(), upstream, Some(Path::new(&ca)));
    let (url, pin) = (proxy.url("localhost"), scene.pin());
    let [cert, key, wrong] = ["web1.example.org.pem", "web1.example.org.key", "server.key"]
        .map(|name| scene.file(name).display().to_string());
    for trust in [["--ca-file", &*ca], ["--pin", &*pin]] {
        refuses(&url, &trust, &["requires a certificate of the client"]);
        let files = ["--client-cert-file", &cert, "--client-key-file", &key];
        accepts(&url, &[&trust[..], &files].concat(), &[]);
        let files = ["--client-cert-file", &cert, "--client-key-file", &wrong];
        let expected = ["server.key: not the key of the certificate in"];
        refuses(&url, &[&trust[..], &files].concat(), &expected);
    }
    refuses(&url, &["--client-cert-file", &cert], &["--client-key-file"]);
}

#[test]
fn imports_and_queries_work_over_https() {
    let scene = Scene::start("localhost");
    let (url, pin) = (scene.proxy.url("localhost"), scene.pin());
    let file = scene.file("samples.csv");
    fs::write(&file, "time,metric,value\n2026-11-01,a,1\n").unwrap();
    for trust in [["--ca-file", &*scene.ca()], ["--pin", &*pin]] {
        let import = ["import", "--overlap", "--url", &url];
        let output = granary().args(import).args(trust).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let query = ["query", "chart", "--metric", "a", "--start", "2026-10-31", "--url", &url];
        let output = granary().args(query).args(trust).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A host agent that samples ten times a second.
struct Agent {
    child: Child,
    metrics_url: String,
    log: PathBuf,
}

impl Agent {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log = folder.join("agent.log");
        let mut command = Command::new(host_agent());
        command.args(["--interval", "100ms", "--agent-id", "web1"]);
        command.args(["--metrics-listen", &port.to_string()]).args(args);
        command.arg("--spool-dir").arg(folder.join("spool"));
        command.arg("--report").arg(folder.join("report.json"));
        let child = command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null()).spawn();
        Self { child: child.unwrap(), metrics_url: format!("http://{port}"), log }
    }

    /// Returns one of the agent's totals, or `None` before its port is open.
    fn total(&self, name: &str) -> Option<u64> {
        let (_, text) = request(&self.metrics_url, "GET", "/metrics", &[], "").ok()?;
        let prefix = format!("granary_agent_{name} ");
        text.as_str()?.lines().find_map(|line| line.strip_prefix(&prefix))?.parse().ok()
    }

    /// Waits until a total is larger than `floor`, and returns it.
    fn wait_above(&self, daemon: &Daemon, name: &str, floor: u64) -> u64 {
        poll_until(daemon, name, || self.total(name).filter(|total| *total > floor))
    }

    fn log(&self) -> String {
        let file = BufReader::new(fs::File::open(&self.log).unwrap());
        file.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
    }

    /// Stops the agent cleanly, and returns its report.
    fn stop(mut self, folder: &Path) -> serde_json::Value {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
        let report = fs::read(folder.join("report.json")).unwrap();
        serde_json::from_slice(&report).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The agent has ended already, unless the test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Asserts that every collected sample was delivered once.
fn assert_nothing_lost(report: &serde_json::Value) {
    assert_eq!(report["samples_collected"], report["samples_acknowledged"], "{report:#}");
    for name in ["samples_duplicate", "batches_dropped", "batches_rejected", "samples_refused"] {
        assert_eq!(report[name], 0, "{name}: {report:#}");
    }
}

/// The certificate is renewed, and then replaced by one of another CA, which the agent trusts only
/// after its file was replaced.
#[test]
fn an_agent_follows_an_exchanged_ca_without_a_restart_and_loses_nothing() {
    let scene = Scene::start("localhost");
    let (daemon, work) = (&scene.daemon, tempfile::tempdir().unwrap());
    let agent = Agent::start(
        work.path(),
        &["--url", &scene.proxy.url("localhost"), "--ca-file", &scene.ca()],
    );
    let delivered = agent.wait_above(daemon, "samples_acknowledged_total", 0);
    let renew = ["cert", "server", "--renew", "--dir"];
    assert!(granary().args(renew).arg(scene.folder.path()).output().unwrap().status.success());
    scene.proxy.exchange(scene.folder.path());
    agent.wait_above(daemon, "samples_acknowledged_total", delivered);
    assert_eq!(agent.total("requests_failed_total"), Some(0), "{}", agent.log());
    // While another CA signed the certificate, the agent keeps its samples.
    let other = tempfile::tempdir().unwrap();
    make_certificates(other.path(), "localhost");
    scene.proxy.exchange(other.path());
    agent.wait_above(daemon, "requests_failed_tls_total", 1);
    let delivered = agent.total("samples_acknowledged_total").unwrap();
    assert!(agent.wait_above(daemon, "spool_batches", 1) > 1);
    assert!(agent.log().contains("not from a trusted authority"), "{}", agent.log());
    // A half-written file changes nothing.
    fs::write(scene.file("ca.pem"), "-----BEGIN CERT").unwrap();
    let failed = agent.total("requests_failed_tls_total").unwrap();
    agent.wait_above(daemon, "requests_failed_tls_total", failed);
    fs::copy(other.path().join("ca.pem"), scene.file("ca.pem")).unwrap();
    agent.wait_above(daemon, "samples_acknowledged_total", delivered);
    let log = agent.log();
    assert!(log.contains("cannot use the files of https; the earlier ones stay in use"), "{log}");
    assert!(log.contains("the files of https have changed and are in use"), "{log}");
    let report = agent.stop(work.path());
    assert_nothing_lost(&report);
    let reasons = ["connect", "tls", "timeout", "connection", "answer"]
        .map(|reason| report[format!("requests_failed_{reason}")].as_u64().unwrap());
    assert_eq!(report["requests_failed"], reasons.iter().sum::<u64>(), "{report:#}");
}

/// The pin of the next key is known before the key is exchanged.
#[test]
fn an_agent_with_two_pins_survives_the_exchange_of_the_key() {
    let scene = Scene::start("localhost");
    let (daemon, work, next) = (&scene.daemon, tempfile::tempdir().unwrap(), tempfile::tempdir());
    let next = next.unwrap();
    make_certificates(next.path(), "other.example.org");
    let pins = format!("{},{}", scene.pin(), pin(&next.path().join("server.pem")));
    let url = scene.proxy.url("localhost");
    let agent = Agent::start(work.path(), &["--url", &url, "--pin", &pins]);
    let delivered = agent.wait_above(daemon, "samples_acknowledged_total", 0);
    scene.proxy.exchange(next.path());
    agent.wait_above(daemon, "samples_acknowledged_total", delivered);
    let report = agent.stop(work.path());
    assert_nothing_lost(&report);
    assert_eq!(report["requests_failed"], 0, "{report:#}");
}

/// Regression: when a daemon turned TLS on, agents with the old address got 400 for each batch,
/// which they set aside.
#[test]
fn an_agent_that_speaks_plain_http_to_a_port_of_https_keeps_its_samples() {
    let scene = Scene::start("localhost");
    let (daemon, work) = (&scene.daemon, tempfile::tempdir().unwrap());
    let mixed_up = scene.proxy.url("localhost").replace("https://", "http://");
    let agent = Agent::start(work.path(), &["--url", &mixed_up]);
    agent.wait_above(daemon, "requests_failed_total", 1);
    assert!(agent.wait_above(daemon, "spool_batches", 1) > 1);
    assert!(agent.log().contains("https://"), "{}", agent.log());
    drop(agent);
    let arguments = ["--url", &scene.proxy.url("localhost"), "--ca-file", &scene.ca()];
    let agent = Agent::start(work.path(), &arguments);
    agent.wait_above(daemon, "samples_acknowledged_total", 0);
    let report = agent.stop(work.path());
    assert_eq!((&report["batches_rejected"], &report["spool_batches"]), (&0.into(), &0.into()));
    assert!(report["samples_acknowledged"].as_u64() > report["samples_collected"].as_u64());
    // Plain HTTP is refused at once when a pin is set.
    let arguments = ["--url", &mixed_up, "--pin", &scene.pin()];
    let output = Command::new(host_agent()).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("does not begin with https://"), "{error}");
}
