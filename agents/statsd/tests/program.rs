//! The program as its user runs it.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, UdpSocket},
    process::{Command, Stdio},
};

use granary_protocol::{INGEST_PATH, decode_batch};

#[test]
fn the_error_names_a_port_in_use() {
    let occupied = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary-agent-statsd"));
    let output = command.args(["--statsd-listen", &address, "--print"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(message.contains(&address), "{message}");
}

/// Answers requests, including pings, until a request contains a batch, and returns its body.
fn receive_batch(listener: &TcpListener) -> Vec<u8> {
    loop {
        let (request, body) = answer_request(listener);
        if request.starts_with(&format!("POST {INGEST_PATH} ")) {
            return body;
        }
    }
}

/// Answers one request, and returns its first line and its body.
fn answer_request(listener: &TcpListener) -> (String, Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut request = String::new();
    reader.read_line(&mut request).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = r#"{"accepted":1,"duplicates":0}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
    (request, body)
}

/// Regression: a stopped agent dropped its current interval: up to ten seconds of every counter at
/// each restart.
#[test]
fn the_current_interval_is_delivered_at_sigterm() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let free_socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free_socket.local_addr().unwrap();
    drop(free_socket);
    let spool_folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary-agent-statsd"));
    command.args(["--url", &url, "--interval", "24h", "--statsd-listen", &address.to_string()]);
    command
        .arg("--spool-dir")
        .arg(spool_folder.path())
        .env("RUST_LOG", "info")
        .stderr(Stdio::piped());
    let mut agent = command.spawn().unwrap();
    let mut log = BufReader::new(agent.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("started") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "the agent ended before it started");
    }
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    (0..50).for_each(|_| assert_eq!(sender.send_to(b"orders:2|c", address).unwrap(), 10));
    assert!(Command::new("kill").arg(agent.id().to_string()).status().unwrap().success());

    let body = receive_batch(&listener);
    let plain = zstd::decode_all(body.as_slice()).unwrap_or(body);
    let batch = decode_batch(&plain).unwrap();
    let orders = batch.series.iter().find(|series| series.metric == "orders").unwrap().reference;
    let values = batch.refs().zip(batch.values()).filter(|(reference, _)| *reference == orders);
    assert_eq!(values.collect::<Vec<_>>(), [(orders, 100.0)]);
    std::io::copy(&mut log, &mut std::io::sink()).unwrap();
    assert!(agent.wait().unwrap().success());
}
