//! The agent's own totals as Prometheus text, for whoever looks at a port of this machine.
//!
//! One connection at a time, bounded in bytes and time. Must never know: what the agent measures.

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

use crate::{report::Totals, spool::Spool};

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Nobody holds the port for longer.
const IO_TIMEOUT: Duration = Duration::from_secs(2);

/// The thread that answers, until it is dropped.
#[derive(Debug)]
pub(crate) struct OwnMetrics {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OwnMetrics {
    /// Begins to answer at the address.
    ///
    /// # Errors
    /// When it cannot be listened on.
    pub(crate) fn listen(
        address: SocketAddr,
        totals: Arc<Totals>,
        spool: Arc<Spool>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&ends);
        let thread = thread::Builder::new().name("own-metrics".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if own.load(Ordering::Relaxed) {
                    return;
                }
                // Whoever hangs up early misses the answer.
                let _answered = stream.and_then(|stream| answer(stream, &totals, &spool));
            }
        })?;
        Ok(Self { address, ends, thread: Some(thread) })
    }

    /// Where it answers.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for OwnMetrics {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // The thread waits for a connection: this is one.
        drop(TcpStream::connect_timeout(&self.address, IO_TIMEOUT));
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            error!("the thread of the agent's own metrics has panicked");
        }
    }
}

fn answer(mut stream: TcpStream, totals: &Totals, spool: &Spool) -> io::Result<()> {
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let length = stream.read(&mut part)?;
        if length == 0 || head.len() + length > HEAD_BYTES_MAX {
            return Ok(());
        }
        head.extend_from_slice(&part[..length]);
    }
    let (status, body) = if head.starts_with(b"GET /metrics ") {
        ("200 OK", text(totals, spool))
    } else {
        ("404 Not Found", "GET /metrics\n".to_owned())
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

fn text(totals: &Totals, spool: &Spool) -> String {
    let mut out = String::new();
    let mut add = |name: &str, kind: &str, value: u64| {
        // Writing to a String cannot fail.
        let _ok = writeln!(out, "# TYPE granary_agent_{name} {kind}\ngranary_agent_{name} {value}");
    };
    for (name, value) in totals.list() {
        add(&format!("{name}_total"), "counter", value);
    }
    if let Ok(waiting) = spool.usage() {
        add("spool_batches", "gauge", waiting.batches);
        add("spool_bytes", "gauge", waiting.bytes);
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
    fn totals_are_shown_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::open(folder.path(), "a", 1 << 20, 5).unwrap());
        let totals = Arc::new(Totals::default());
        totals.rounds.add(7);
        let own = OwnMetrics::listen(([127, 0, 0, 1], 0).into(), totals, spool).unwrap();
        let address = own.address();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(
            "\n# TYPE granary_agent_rounds_total counter\ngranary_agent_rounds_total 7\n"
        ));
        assert!(answer.contains("\ngranary_agent_spool_batches 0\n"));
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
        // It may be refused in the middle of being sent.
        let mut stream = TcpStream::connect(address).unwrap();
        let _sent = stream.write_all(long.as_bytes());
        drop(own);
        assert!(TcpStream::connect(address).is_err());
    }
}
