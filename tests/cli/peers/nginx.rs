//! Requests through a real nginx that keeps its connections to the daemon: whatever a stranger
//! sends, the next client's request with a key is answered alone, and the stranger gets no data.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use serde_json::Value;

use super::{Sender, need, wait_until};
use crate::{access::Guarded, ports::free_port};

/// The time without an answer after which the test leaves a stranger's connection.
const SILENCE: Duration = Duration::from_millis(100);
/// The time in which a client's request must be answered.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns settings of an nginx with one connection to the daemon, in two ways: bodies read before
/// they are forwarded, and bodies forwarded as they arrive.
fn settings(folder: &Path, ports: [u16; 2], daemon: &str) -> String {
    let folder = folder.display();
    let server = |port: u16, buffering: &str| {
        format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://granary; \
             proxy_http_version 1.1; proxy_set_header Connection ''; \
             proxy_request_buffering {buffering}; proxy_set_header Host {daemon}; }} }}\n"
        )
    };
    format!(
        "daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log info;\n\
         events {{ worker_connections 64; }}\nhttp {{ access_log off; ignore_invalid_headers off; \
         underscores_in_headers on;\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; \
         scgi_temp_path {folder}/scgi;\n\
         upstream granary {{ server {daemon}; keepalive 1; }}\n{}{}}}\n",
        server(ports[0], "on"),
        server(ports[1], "off"),
    )
}

/// Sends bytes on a new connection, and returns the answer until the connection is closed or
/// silent.
fn exchange(port: u16, bytes: &[u8], silence: Duration) -> String {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(silence)).unwrap();
    // A server that refuses the head may close before the rest is written.
    drop(stream.write_all(bytes));
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut part) {
        answer.extend_from_slice(&part[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns attacks. Each is a request whose end two servers may see in different places, followed
/// by the start of a request for the settings, which the key in another client's request would
/// complete.
fn attacks() -> Vec<Vec<u8>> {
    let hidden = "GET /api/v1/admin/settings HTTP/1.1\r\nHost: x\r\nX-Rest: ";
    let chunk = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    let ended = format!("0\r\n\r\n{hidden}");
    let length = |extra: usize| format!("Content-Length: {extra}");
    let heads = [
        // Heads with both kinds of length, in each order, and with doubtful spellings of the second
        // one.
        (format!("{}\r\nTransfer-Encoding: chunked", length(ended.len())), &ended),
        (format!("Transfer-Encoding: chunked\r\n{}", length(ended.len())), &ended),
        (format!("{}\r\nTransfer-Encoding: xchunked", length(ended.len())), &ended),
        (format!("{}\r\nTransfer-Encoding : chunked", length(ended.len())), &ended),
        (format!("{}\r\nTransfer-Encoding:\tchunked", length(ended.len())), &ended),
        (format!("{}\r\nTransfer-Encoding: \u{b}chunked", length(ended.len())), &ended),
        (format!("{}\r\nTransfer_Encoding: chunked", length(ended.len())), &ended),
        (format!("{}\r\nTransfer-Encoding: identity, chunked", length(ended.len())), &ended),
        (format!("{}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity", length(4)), &ended),
        (format!("{}\r\nX: a\nTransfer-Encoding: chunked", length(ended.len())), &ended),
        (format!("{}\r\n Transfer-Encoding: chunked", length(ended.len())), &ended),
        (format!("{}\r\nTransfer-Encoding: chunked", length(4)), &chunk),
        // Heads with lengths that are too small, repeated, signed or not numbers.
        (length(0), &hidden.to_owned()),
        (format!("{}\r\n{}", length(0), length(hidden.len())), &hidden.to_owned()),
        (format!("{}\r\n{}", length(hidden.len()), length(0)), &hidden.to_owned()),
        (format!("Content-Length: +{}", hidden.len()), &hidden.to_owned()),
        (format!("Content-Length: 0, {}", hidden.len()), &hidden.to_owned()),
        (format!("Content-Length: 0x{:x}", hidden.len()), &hidden.to_owned()),
        (format!("Content_Length: {}", hidden.len()), &hidden.to_owned()),
        (format!("Content-Length : {}", hidden.len()), &hidden.to_owned()),
        // Heads without a length, as for GET, and with a `Connection` header that names other
        // headers as hop-by-hop.
        ("X-Nothing: 1".to_owned(), &hidden.to_owned()),
        ("Connection: Content-Length, Authorization\r\nContent-Length: 0".to_owned(), &hidden.to_owned()),
        ("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__".to_owned(), &hidden.to_owned()),
    ]
    .map(|(head, body)| (head, body.clone()));
    let methods = ["POST /api/v1/ingest", "GET /healthz", "POST /healthz", "HEAD /healthz"];
    let mut attacks: Vec<_> = methods
        .iter()
        .flat_map(|method| {
            heads.iter().map(move |(head, body)| {
                format!("{method} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{body}").into_bytes()
            })
        })
        .collect();
    // Heads with line ends in the target and in values, and bodies in chunks with doubtful sizes.
    for head in
        ["GET /healthz%0d%0aX:%20y", "GET /healthz\r HTTP/1.1\r\nX: y", "GET http://y/healthz"]
    {
        attacks.push(format!("{head} HTTP/1.1\r\nHost: x\r\n\r\n{hidden}").into_bytes());
    }
    for size in ["1;a=\r\n", "0x1", "+1", "1 ", "00000000000000001", "1\n", "ffffffffffffffff1"] {
        let body = format!("{size}\r\nZ\r\n0\r\n\r\n{hidden}");
        let head = "POST /api/v1/ingest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked";
        attacks.push(format!("{head}\r\n\r\n{body}").into_bytes());
    }
    attacks
}

/// Starts an nginx with these settings, and waits until it forwards requests at these ports.
fn start_nginx(folder: &Path, settings: &str, ports: &[u16]) -> Sender {
    let file = folder.join("nginx.conf");
    fs::write(&file, settings).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&file).arg("-p").arg(folder);
    let nginx = Sender::start(&mut command, &folder.join("log"));
    let health = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    wait_until("nginx", || {
        ports.iter().all(|port| {
            TcpStream::connect(("127.0.0.1", *port)).is_ok()
                && exchange(*port, health, TIMEOUT).starts_with("HTTP/1.1 200")
        })
    });
    nginx
}

#[test]
#[ignore = "needs nginx; .ci/run installs it and runs this"]
fn no_stranger_reaches_another_clients_answer_through_nginx() {
    need("nginx");
    let guarded = Guarded::start();
    let dir = tempfile::tempdir().unwrap();
    let ports = [free_port(), free_port()];
    let address = guarded.daemon.url.trim_start_matches("http://");
    let _nginx = start_nginx(dir.path(), &settings(dir.path(), ports, address), &ports);
    let mut number = 0;
    for attack in attacks() {
        for port in ports {
            let text = String::from_utf8_lossy(&attack).into_owned();
            let stranger = exchange(port, &attack, SILENCE);
            assert!(!stranger.contains("data_dir"), "{text}\n---\n{stranger}");
            // The next requests use the same connection to the daemon.
            for _ in 0..3 {
                number += 1;
                let request = format!(
                    "GET /api/v1/query?query={number} HTTP/1.1\r\nHost: x\r\n\
                     Authorization: Bearer {}\r\nConnection: close\r\n\r\n",
                    guarded.admin
                );
                let answer = exchange(port, request.as_bytes(), TIMEOUT);
                let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
                assert!(head.starts_with("HTTP/1.1 200"), "{text}\n---\n{answer}");
                let body = body.split_once('{').map(|(_, rest)| format!("{{{rest}"));
                let body = body.unwrap().rsplit_once('}').map(|(text, _)| format!("{text}}}"));
                let answer: Value = serde_json::from_str(&body.unwrap()).unwrap();
                assert_eq!(answer["data"]["result"][1], number.to_string(), "{text}");
            }
        }
    }
    assert!(number > 600, "only {number} requests");
}

/// Clients have 127.0.0.1, and nginx has 127.0.0.2 towards the daemon.
#[test]
#[ignore = "needs nginx; .ci/run installs it and runs this"]
fn a_client_of_a_real_nginx_cannot_forge_its_address() {
    need("nginx");
    let guarded =
        Guarded::start_with("security.access = true\nserver.trusted_proxies = ['127.0.0.2']");
    let dir = tempfile::tempdir().unwrap();
    let ports = [free_port(), free_port()];
    let address = guarded.daemon.url.trim_start_matches("http://");
    let forwarding = "location / { proxy_bind 127.0.0.2; \
                      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;";
    let text = settings(dir.path(), ports, address).replace("location / {", forwarding);
    let _nginx = start_nginx(dir.path(), &text, &ports);
    let direct: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    // More wrong keys than one address may send. If each had another address, none would be
    // limited.
    let mut limited = 0;
    for number in 0..20 {
        for port in [ports[0], ports[1], direct] {
            let request = format!(
                "GET /api/v1/series HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.{number}\r\n\
                 X-Forwarded-For: 127.0.0.2\r\nX-Real-IP: 198.51.100.1\r\nForwarded: for=198.51.100.1\r\n\
                 Authorization: Bearer gry_wrong\r\nConnection: close\r\n\r\n"
            );
            let answer = exchange(port, request.as_bytes(), TIMEOUT);
            let is_limited = answer.starts_with("HTTP/1.1 429");
            assert!(is_limited || answer.starts_with("HTTP/1.1 401"), "{port}: {answer}");
            limited += usize::from(is_limited);
        }
    }
    assert_eq!(limited, 60 - 30);
    let (_, all) = guarded.send("GET", "/api/v1/admin/audit", &guarded.admin, "");
    let refused = all["records"].as_array().unwrap().iter();
    let refused: Vec<_> = refused.filter(|record| record["outcome"] == "refused").collect();
    let count: u64 = refused.iter().filter_map(|record| record["count"].as_u64()).sum();
    assert_eq!(count, 60, "{refused:?}");
    assert!(refused.iter().all(|record| record["address"] == "127.0.0.1"), "{refused:?}");
    assert!(!guarded.daemon.log().contains("198.51.100"), "the log names a forged address");
}
