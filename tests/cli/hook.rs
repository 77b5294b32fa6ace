//! A server of the test's own that takes JSON, as Alertmanagers and webhooks do, and remembers it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;

pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    /// Paths and bodies.
    taken: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Hook {
    /// At an address of before, or at any.
    pub(crate) fn start(address: Option<SocketAddr>) -> Self {
        Self::start_failing(address, None)
    }

    /// It answers by an error, each time, where this text is in a body.
    pub(crate) fn start_failing(address: Option<SocketAddr>, text: Option<&'static str>) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(address.unwrap_or(any)).unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let all = taken.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                // Who was killed sends half of it, which is nothing.
                take(stream.unwrap(), text, &all);
            }
        });
        Self { address, taken }
    }

    /// Where nobody listens yet.
    pub(crate) fn free_address() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    /// What was sent, in order.
    pub(crate) fn taken(&self) -> Vec<(String, Value)> {
        self.taken.lock().unwrap().clone()
    }

    /// What was sent to a path.
    pub(crate) fn taken_at(&self, path: &str) -> Vec<Value> {
        self.taken().into_iter().filter(|(own, _)| own == path).map(|(_, body)| body).collect()
    }
}

/// Answers one request, after it is remembered; one with a text in its body by an error.
fn take(
    mut stream: TcpStream,
    failing: Option<&str>,
    all: &Mutex<Vec<(String, Value)>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).ok()?;
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let lower = line.to_lowercase();
        if let Some(text) = lower.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    if failing.is_some_and(|text| body.contains(text)) {
        let answer = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(answer.as_bytes()).ok();
    }
    let path = first.split(' ').nth(1)?.to_owned();
    all.lock().unwrap().push((path, serde_json::from_str(&body).ok()?));
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answer.as_bytes()).ok()
}
