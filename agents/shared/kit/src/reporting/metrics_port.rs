//! The agent's own totals as Prometheus text, served on a local port.
//!
//! The server handles one connection at a time, bounded in bytes and time. Must never know: what
//! the agent measures.

use std::{
    fmt::Write as _,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tracing::error;

use crate::{
    clock::{Stopwatch, skew::DaemonClock, wall_base_ms},
    reporting::totals::Totals,
    spool::Spool,
};

/// The maximum size of a request's head.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The maximum time of a connection, from request to response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The values that the server reads for each request.
#[derive(Debug)]
pub(crate) struct ServedMetrics {
    pub(crate) totals: Arc<Totals>,
    pub(crate) spool: Arc<Spool>,
    pub(crate) clock: Arc<DaemonClock>,
}

/// The server thread, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    address: SocketAddr,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Starts to serve at the address.
    ///
    /// # Errors
    /// The address cannot be opened.
    pub(crate) fn listen(address: SocketAddr, metrics: ServedMetrics) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let is_stopping = Arc::new(AtomicBool::new(false));
        let is_stopping_now = Arc::clone(&is_stopping);
        let thread = thread::Builder::new().name("own-metrics".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if is_stopping_now.load(Ordering::Relaxed) {
                    return;
                }
                // An error only affects the client.
                let bounded =
                    stream.map(|stream| DeadlineStream { stream, since: Stopwatch::start() });
                let _answered = bounded.and_then(|peer| answer(peer, &metrics));
            }
        })?;
        Ok(Self { address, is_stopping, thread: Some(thread) })
    }

    /// Returns the address of the server.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        // This connection wakes the thread.
        drop(TcpStream::connect_timeout(&self.address, ANSWER_TIMEOUT));
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            error!("the thread of the agent's own metrics has panicked");
        }
    }
}

/// A connection with one deadline for all reads and writes.
struct DeadlineStream {
    stream: TcpStream,
    since: Stopwatch,
}

impl DeadlineStream {
    fn time_left(&self) -> io::Result<Option<Duration>> {
        let left = self.since.left_of(ANSWER_TIMEOUT);
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.time_left()?)?;
        self.stream.read(part)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.time_left()?)?;
        self.stream.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn answer(mut peer: DeadlineStream, metrics: &ServedMetrics) -> io::Result<()> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let length = peer.read(&mut part)?;
        if length == 0 || head.len() + length > HEAD_BYTES_MAX {
            return Ok(());
        }
        head.extend_from_slice(&part[..length]);
    }
    let (status, body) = if head.starts_with(b"GET /metrics ") {
        ("200 OK", text(metrics))
    } else {
        ("404 Not Found", "GET /metrics\n".to_owned())
    };
    let length = body.len();
    write!(
        peer,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

fn text(ServedMetrics { totals, spool, clock }: &ServedMetrics) -> String {
    let mut out = String::new();
    let mut add = |name: &str, kind: &str, value: u64| {
        // Writing to a String cannot fail.
        let _ok = writeln!(out, "# TYPE granary_agent_{name} {kind}\ngranary_agent_{name} {value}");
    };
    for (name, value) in totals.list() {
        add(&format!("{name}_total"), "counter", value);
    }
    let waiting = spool.usage();
    add("spool_batches", "gauge", waiting.batches);
    add("spool_bytes", "gauge", waiting.bytes);
    if let Some(ahead_ms) = clock.ahead_ms(wall_base_ms()) {
        let (name, ahead) = ("granary_agent_clock_ahead_seconds", ahead_ms as f64 / 1000.0);
        let _ok = writeln!(out, "# TYPE {name} gauge\n{name} {ahead}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_slow_peer_blocks_neither_other_requests_nor_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::open(folder.path(), "a", 1 << 20, 5).unwrap());
        let metrics = ServedMetrics { totals: Arc::default(), spool, clock: Arc::default() };
        let metrics = MetricsServer::listen(([127, 0, 0, 1], 0).into(), metrics).unwrap();
        let address = metrics.address();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"G").unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sending = thread::spawn(move || {
            let mut sent = 0;
            let pace = Duration::from_millis(100);
            while ended.recv_timeout(pace).is_err() && slow.write_all(b"G").is_ok() {
                sent += 1;
                assert!(sent < 100, "the slow peer blocked the port for ten seconds");
            }
        });
        let watch = Stopwatch::start();
        assert!(ask(address, "GET /metrics HTTP/1.1\r\n\r\n").contains("200 OK"));
        drop(metrics);
        assert!(watch.elapsed() < 3 * ANSWER_TIMEOUT, "{:?}", watch.elapsed());
        // The thread may have ended already.
        let _heard = end.send(());
        sending.join().unwrap();
    }

    #[test]
    fn totals_are_served_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::open(folder.path(), "a", 1 << 20, 5).unwrap());
        let totals = Arc::new(Totals::default());
        totals.rounds.add(7);
        let metrics = ServedMetrics { totals, spool, clock: Arc::default() };
        let metrics = MetricsServer::listen(([127, 0, 0, 1], 0).into(), metrics).unwrap();
        let address = metrics.address();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(
            "\n# TYPE granary_agent_rounds_total counter\ngranary_agent_rounds_total 7\n"
        ));
        assert!(answer.contains("\ngranary_agent_spool_batches 0\n"));
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
        // The server may refuse the request before it is sent completely.
        let mut stream = TcpStream::connect(address).unwrap();
        let _sent = stream.write_all(long.as_bytes());
        drop(metrics);
        assert!(TcpStream::connect(address).is_err());
    }
}
