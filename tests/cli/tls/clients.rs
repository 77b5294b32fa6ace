//! Clients over TLS, with and without client certificates.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use super::{Authority, TlsDaemon, run, text_of};
use crate::ports::free_port;

#[test]
fn samples_and_queries_pass_over_https() {
    let served = TlsDaemon::start("");
    let samples = json!({ "samples": [{ "metric": "load", "value": 1.5 }] }).to_string();
    let mut curl = served.curl("/api/v1/ingest");
    let answer = run(curl.args(["--header", "Content-Type: application/json", "--data", &samples]));
    assert!(answer.contains("\"accepted\":1"), "{answer}");
    let answer = run(&mut served.curl("/api/v1/query?query=load"));
    assert!(answer.contains("1.5"), "{answer}");
    // Several requests use one connection, and one answer is large.
    let page = format!("{}/", served.daemon.url);
    let metrics = format!("{}/metrics", served.daemon.url);
    let output = run(served.curl("/metrics").args([&page, &metrics, "--verbose"]));
    assert!(output.contains("granary_connections_total"), "{output}");
    assert_eq!(output.matches("Re-using existing connection").count(), 2, "{output}");
    // The page's own origin begins with https.
    let mut own = served.curl("/api/v1/status");
    run(own.args(["--header", &format!("Origin: {}", served.daemon.url)]));
}

/// Starts openssl's client, which sends what is written to its standard input.
fn line_client(served: &TlsDaemon, port: SocketAddr, args: &[&str]) -> Child {
    let mut client = Command::new("openssl");
    client.current_dir(served.folder()).args(["s_client", "-quiet", "-verify_return_error"]);
    client.args(["-connect", &port.to_string(), "-CAfile"]).arg(served.authority.file("pem"));
    client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    client.args(args).spawn().unwrap()
}

fn free_address() -> SocketAddr {
    ([127, 0, 0, 1], free_port()).into()
}

/// Returns the number of series in the store.
fn series(served: &TlsDaemon) -> u64 {
    let answer = run(&mut served.curl("/api/v1/series"));
    serde_json::from_str::<Value>(&answer).unwrap()["total"].as_u64().unwrap()
}

#[test]
fn with_an_authority_for_clients_graphite_requires_a_certificate() {
    let (port, dir) = (free_address(), tempfile::tempdir().unwrap());
    let clients = Authority::new(dir.path(), "clients");
    clients.sign("relay");
    let (ca, relay) = (clients.file("pem"), dir.path().join("relay").display().to_string());
    let settings = format!("client_ca_file = '{ca}'\n[graphite]\nlisten = ['tls://{port}']\n");
    let served = TlsDaemon::start(&settings);
    // The daemon ends the connection, so the client ends, too.
    let mut anonymous = line_client(&served, port, &[]);
    writeln!(anonymous.stdin.as_mut().unwrap(), "without.certificate 1 -1").unwrap();
    served.wait_until("not refused", || anonymous.try_wait().unwrap().is_some());
    assert_eq!(served.metric("granary_tls_handshakes_total{outcome=\"failed\"}"), 1.0);
    let (certificate, key) = (format!("{relay}.pem"), format!("{relay}.key"));
    let mut known = line_client(&served, port, &["-cert", &certificate, "-key", &key]);
    writeln!(known.stdin.as_mut().unwrap(), "with.certificate 1 -1").unwrap();
    served.wait_until("no line", || series(&served) == 1);
    known.kill().unwrap();
    known.wait().unwrap();
}

#[test]
fn with_access_control_a_graphite_client_needs_a_name_with_the_scope_ingest() {
    let (port, dir) = (free_address(), tempfile::tempdir().unwrap());
    let clients = Authority::new(dir.path(), "clients");
    let ca = clients.file("pem");
    for name in ["relay", "reader", "stranger"] {
        clients.sign(name);
    }
    let names = |relay: &str| {
        format!(
            "client_ca_file = '{ca}'\nclients = {{ 'Relay.example.org' = '{relay}', \
             'reader.example.org' = 'read,operate', 'other.example.org' = 'ingest' }}\n"
        )
    };
    let rest = format!("[security]\naccess = true\n[graphite]\nlisten = ['tls://{port}']\n");
    let served = TlsDaemon::start(&(names("ingest") + &rest));
    let file = |name: &str, end: &str| dir.path().join(name).with_extension(end);
    let client = |name: &str| {
        let (certificate, key) = (file(name, "pem"), file(name, "key"));
        let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
        line_client(&served, port, &["-cert", certificate, "-key", key])
    };
    let as_reader = |path: &str| {
        let mut curl = served.curl(path);
        run(curl.arg("--cert").arg(file("reader", "pem")).arg("--key").arg(file("reader", "key")))
    };
    let has = |metric: &str| as_reader("/api/v1/series").contains(metric);
    for name in ["reader", "stranger"] {
        let mut refused = client(name);
        // The daemon may end the connection before the line is written.
        drop(writeln!(refused.stdin.as_mut().unwrap(), "of.{name} 1 -1"));
        served.wait_until("not refused", || refused.try_wait().unwrap().is_some());
    }
    let mut relay = client("relay");
    let mut lines = relay.stdin.take().unwrap();
    writeln!(lines, "of.relay 1 -1").unwrap();
    served.wait_until("no line", || has("of.relay"));
    assert!(!has("of.reader") && !has("of.stranger"));
    let status = as_reader("/api/v1/status");
    assert!(status.contains("graphite relay.example.org"), "{status}");
    let refused = |reason: &str| {
        let metrics = as_reader("/metrics");
        let name = format!("granary_requests_refused_total{{reason=\"{reason}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().to_owned();
        line.parse::<u64>().unwrap()
    };
    assert_eq!(refused("scope"), 2);
    // A reload that takes the scope away ends the open connection at its next line.
    let settings = served.folder().join("granary.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replace(&names("ingest"), &names("read"))).unwrap();
    served.reload();
    writeln!(lines, "of.relay.later 1 -1").unwrap();
    served.wait_until("not ended", || relay.try_wait().unwrap().is_some());
    assert!(!has("of.relay.later"));
    assert_eq!(refused("scope"), 3);
}

#[test]
fn graphite_lines_pass_over_tls() {
    let port = free_address();
    let served = TlsDaemon::start(&format!("[graphite]\nlisten = ['tls://{port}']\n"));
    let mut client = line_client(&served, port, &[]);
    let mut lines = client.stdin.take().unwrap();
    writeln!(lines, "over.tls 4 -1\nover.tls.too 5 -1").unwrap();
    let total = || series(&served);
    served.wait_until("no lines", || total() == 2);
    // A client without TLS, and one that closes the connection at once, are only counted.
    let mut plain = TcpStream::connect(port).unwrap();
    plain.write_all(b"without.tls 6 -1\n").unwrap();
    assert_eq!(plain.read(&mut [0; 10]).unwrap_or(0), 0);
    drop(TcpStream::connect(port).unwrap());
    served.wait_until("not counted", || {
        served.metric("granary_tls_handshakes_total{outcome=\"plain\"}") == 1.0
            && served.metric("granary_tls_handshakes_total{outcome=\"failed\"}") == 1.0
    });
    assert_eq!(total(), 2);
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn clients_may_have_certificates_of_the_authority_and_of_no_other() {
    let served = TlsDaemon::start("");
    // Without an authority for clients, nobody is asked for a certificate.
    let (_, text) = served.s_client(&[]);
    assert!(text.contains("No client certificate CA names sent"), "{text}");
    served.authority.sign("client");
    Authority::new(served.folder(), "foreign").sign("stranger");
    let file = served.folder().join("granary.toml");
    let settings = fs::read_to_string(&file).unwrap();
    let ca = format!("client_ca_file = '{}'\n", served.authority.file("pem"));
    fs::write(&file, settings + &ca).unwrap();
    served.reload();
    let (_, text) = served.s_client(&[]);
    assert!(text.contains("Acceptable client certificate CA names\nCN = ca"), "{text}");
    let with = |name: &str| -> Command {
        let mut curl = served.curl("/healthz");
        curl.current_dir(served.folder());
        curl.args(["--cert", &format!("{name}.pem"), "--key", &format!("{name}.key")]);
        curl
    };
    run(&mut with("client"));
    run(&mut served.curl("/healthz"));
    let output = with("stranger").output().unwrap();
    assert!(!output.status.success(), "{}", text_of(&output));
    assert!(served.metric("granary_tls_handshakes_total{outcome=\"failed\"}") >= 1.0);
}
