//! A server that records the JSON that it receives, in place of an Alertmanager or a webhook.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
};

use rustls::{
    ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::Value;

use crate::ports::free_port;

pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<ReceivedRequests>>,
}

#[derive(Default)]
struct ReceivedRequests {
    /// The paths and bodies of the requests.
    bodies: Vec<(String, Value)>,
    /// The headers of each request.
    heads: Vec<String>,
}

/// Returns the path of a file of TLS: a certificate for localhost, the certificate of its
/// authority, or its key.
pub(crate) fn tls_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

impl Hook {
    /// Starts a server on this address, or on any free address.
    pub(crate) fn start(address: Option<SocketAddr>) -> Self {
        Self::start_failing(address, None)
    }

    /// Starts a server that answers with an error whenever a body contains this text.
    pub(crate) fn start_failing(address: Option<SocketAddr>, text: Option<&'static str>) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(address.unwrap_or(any)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(ReceivedRequests::default()));
        let all = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                // A killed client sends half a request, which is ignored.
                receive_request(stream.unwrap(), text, &all);
            }
        });
        Self { address, received }
    }

    /// Starts a server with TLS; `tls_file("authority.pem")` signed its certificate.
    pub(crate) fn start_tls() -> Self {
        let certificates = CertificateDer::pem_file_iter(tls_file("server.pem")).unwrap();
        let certificates = certificates.map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(ReceivedRequests::default()));
        let all = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = ServerConnection::new(config.clone()).unwrap();
                // A client that does not trust the certificate sends nothing.
                receive_request(StreamOwned::new(connection, stream.unwrap()), None, &all);
            }
        });
        Self { address, received }
    }

    /// Returns an address on which no server listens yet.
    pub(crate) fn free_address() -> SocketAddr {
        ([127, 0, 0, 1], free_port()).into()
    }

    /// Returns the paths and bodies of the received requests, in order.
    pub(crate) fn received(&self) -> Vec<(String, Value)> {
        self.received.lock().unwrap().bodies.clone()
    }

    /// Returns the headers of the received requests, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.received.lock().unwrap().heads.clone()
    }

    /// Returns the bodies received at a path.
    pub(crate) fn received_at(&self, path: &str) -> Vec<Value> {
        self.received()
            .into_iter()
            .filter(|(sent_to, _)| sent_to == path)
            .map(|(_, body)| body)
            .collect()
    }
}

/// Records one request and answers it. If the body contains the text `failing`, the answer is an
/// error and the request is not recorded.
fn receive_request(
    stream: impl Read + Write,
    failing: Option<&str>,
    received: &Mutex<ReceivedRequests>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut head, mut line, mut length) =
        (String::new(), String::new(), String::new(), 0);
    reader.read_line(&mut first).ok()?;
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let lower = line.to_lowercase();
        if let Some(text) = lower.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        head += &line;
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let stream = reader.get_mut();
    if failing.is_some_and(|text| body.contains(text)) {
        let answer = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(answer.as_bytes()).ok();
    }
    let path = first.split(' ').nth(1)?.to_owned();
    let mut received = received.lock().unwrap();
    received.bodies.push((path, serde_json::from_str(&body).ok()?));
    received.heads.push(head);
    drop(received);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    stream.write_all(answer.as_bytes()).ok()?;
    stream.flush().ok()
}
