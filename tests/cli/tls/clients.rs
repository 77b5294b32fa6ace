//! Clients over TLS, with and without certificates of their own.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{Authority, TlsDaemon, run, text_of};

#[test]
fn samples_and_queries_pass_over_https() {
    let served = TlsDaemon::start("");
    let samples = json!({ "samples": [{ "metric": "load", "value": 1.5 }] }).to_string();
    let mut curl = served.curl("/api/v1/ingest");
    let answer = run(curl.args(["--header", "Content-Type: application/json", "--data", &samples]));
    assert!(answer.contains("\"accepted\":1"), "{answer}");
    let answer = run(&mut served.curl("/api/v1/query?query=load"));
    assert!(answer.contains("1.5"), "{answer}");
    // Several requests on one connection, and a large answer.
    let page = format!("{}/", served.daemon.url);
    let metrics = format!("{}/metrics", served.daemon.url);
    let output = run(served.curl("/metrics").args([&page, &metrics, "--verbose"]));
    assert!(output.contains("granary_connections_total"), "{output}");
    assert_eq!(output.matches("Re-using existing connection").count(), 2, "{output}");
    // The page's own origin begins with https.
    let mut own = served.curl("/api/v1/status");
    run(own.args(["--header", &format!("Origin: {}", served.daemon.url)]));
}

#[test]
fn graphite_lines_pass_over_tls() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let served = TlsDaemon::start(&format!("[graphite]\ntls_listen = '{port}'\n"));
    let mut client = Command::new("openssl");
    client.args(["s_client", "-quiet", "-verify_return_error", "-connect", &port.to_string()]);
    client.arg("-CAfile").arg(served.authority.file("pem"));
    client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = client.spawn().unwrap();
    let mut lines = client.stdin.take().unwrap();
    writeln!(lines, "over.tls 4 -1\nover.tls.too 5 -1").unwrap();
    let total = || {
        let answer = run(&mut served.curl("/api/v1/series"));
        serde_json::from_str::<Value>(&answer).unwrap()["total"].as_u64().unwrap()
    };
    served.wait_until("no lines", || total() == 2);
    // A client without TLS, and one that leaves.
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
