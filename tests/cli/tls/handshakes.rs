//! Protocols, ciphers, and clients that never finish a handshake.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use super::{TlsDaemon, now, run};

#[test]
fn tls_1_2_and_1_3_are_spoken_with_strong_ciphers_only() {
    let served = TlsDaemon::start("");
    let check = |args: &[&str], expected: &str| {
        let (accepted, text) = served.s_client(args);
        assert!(accepted && text.contains(expected), "{args:?}: {text}");
    };
    check(&["-tls1_3"], "New, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384");
    check(&["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"], "TLSv1.3");
    check(&["-tls1_2"], "New, TLSv1.2, Cipher is ECDHE-ECDSA-AES256-GCM-SHA384");
    check(&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], "TLSv1.2");
    check(&["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"], "TLSv1.2");
    // HTTP/2 is not offered.
    check(&["-alpn", "h2,http/1.1"], "ALPN protocol: http/1.1");
    // The client offers the versions and ciphers that the daemon refuses.
    let weak = ["-cipher", "ALL:@SECLEVEL=0"];
    for args in [
        vec!["-tls1_1", weak[0], weak[1]],
        vec!["-tls1", weak[0], weak[1]],
        vec!["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"],
        vec!["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
        vec!["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
    ] {
        let (accepted, text) = served.s_client(&args);
        // Handshake failure, or protocol version (RFC 8446, section 6).
        let is_refused = ["alert number 40", "alert number 70"].iter().any(|c| text.contains(c));
        assert!(!accepted && is_refused, "{args:?}: {text}");
    }
    assert_eq!(served.metric("granary_tls_handshakes_total{outcome=\"failed\"}"), 5.0);
    assert!(served.metric("granary_tls_handshakes_total{outcome=\"accepted\"}") > 6.0);
    let expires = served.metric("granary_tls_certificate_expires_timestamp_seconds");
    let days = (expires - jiff::Timestamp::now().as_second() as f64) / 86400.0;
    assert!((29.9..30.1).contains(&days), "{days}");
}

#[test]
fn a_client_without_tls_learns_that_the_port_speaks_https() {
    let served = TlsDaemon::start("");
    let url = format!("http://{}/api/v1/status", served.address());
    let mut curl = Command::new("curl");
    let output = curl.args(["--silent", "--max-time", "20", "--write-out", " %{http_code}", &url]);
    let answer = run(output);
    assert!(answer.contains("use https://") && answer.ends_with(" 400"), "{answer}");
    // A large body is not read, and the answer arrives nevertheless.
    let body = "x".repeat(1 << 20);
    let answer = ureq::Agent::new_with_config(
        ureq::Agent::config_builder().http_status_as_error(false).build(),
    )
    .get(&url)
    .call()
    .unwrap();
    assert_eq!(answer.status().as_u16(), 400);
    let answer = answer.into_body().read_to_string().unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["error"], "tls_required");
    let mut stream = TcpStream::connect(served.address()).unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
    assert!(served.metric("granary_tls_handshakes_total{outcome=\"plain\"}") >= 3.0);
}

/// Opens connections that send the beginning of a handshake, or nothing.
fn silent_clients(served: &TlsDaemon, count: usize) -> Vec<TcpStream> {
    // A record that announces a ClientHello of 512 bytes, but contains only its first 5 bytes.
    let half_a_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3];
    let open = |number: usize| {
        let mut stream = TcpStream::connect(served.address()).unwrap();
        if number.is_multiple_of(2) {
            stream.write_all(&half_a_hello).unwrap();
        }
        stream
    };
    (0..count).map(open).collect()
}

#[test]
fn silent_clients_delay_neither_others_nor_the_stop() {
    let mut served = TlsDaemon::start("[server]\nclient_timeout = '20s'\n");
    let silent = silent_clients(&served, 500);
    for _ in 0..10 {
        let since = now();
        run(&mut served.curl("/healthz"));
        assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    }
    let since = now();
    assert_eq!(served.daemon.stop(), Some(0));
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    drop(silent);
}

#[test]
fn a_slow_handshake_ends_and_too_many_are_closed() {
    // The workers, one for each core, share the connections evenly.
    let workers = std::thread::available_parallelism().unwrap().get();
    let connections_max = 20 * workers;
    let settings =
        format!("[server]\nclient_timeout = '1s'\nconnections_max = {connections_max}\n");
    let served = TlsDaemon::start(&settings);
    // The daemon closes the connection after the time limit.
    let mut slow = silent_clients(&served, 1).remove(0);
    let since = now();
    let mut rest = Vec::new();
    drop(slow.read_to_end(&mut rest));
    let elapsed = since.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_secs(5)).contains(&elapsed), "{elapsed:?}");
    // Half of the connections may be in handshakes, and these end soon.
    let silent = silent_clients(&served, 15 * workers);
    served.wait_until("refused", || served.curl("/healthz").output().unwrap().status.success());
    drop(silent);
    assert!(served.metric("granary_tls_handshakes_total{outcome=\"slow\"}") >= 1.0);
    assert!(served.metric("granary_tls_handshakes_total{outcome=\"too_many\"}") >= 1.0);
}

#[test]
fn browsers_learn_to_use_https_for_the_external_name_only() {
    let served = TlsDaemon::start("[server]\nexternal_url = 'https://granary.example.org/'\n");
    let head = |host: &str, path: &str| {
        let mut command = served.curl(path);
        super::run(command.args(["--include", "--header", &format!("Host: {host}")])).to_lowercase()
    };
    let strict = "strict-transport-security: max-age=31536000\r\n";
    for path in ["/", "/healthz", "/api/v1/series"] {
        let answer = head("granary.example.org:7117", path);
        assert_eq!(answer.matches(strict).count(), 1, "{path}: {answer}");
    }
    for host in ["localhost", "127.0.0.1"] {
        assert!(!head(host, "/").contains("strict-transport"), "{host}");
    }
}
