//! The receiver: a thread that reads datagrams, and the source that emits each interval.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use granary_agent_kit::{Readings, Source, SourceError};
use rustix::net::sockopt;
use tracing::{error, warn};

use crate::{
    aggregate::{Aggregate, Limits, ReceiverCounts},
    kernel_drops::KernelDrops,
    line,
};

/// The maximum size of a datagram.
const DATAGRAM_BYTES: usize = 64 << 10;
/// The requested size of the socket's receive buffer; the kernel may allow less.
const SOCKET_BYTES: usize = 4 << 20;
/// The interval at which an idle reader checks whether it must stop, and its pause after a failed
/// read.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of datagrams that are read at the stop: more than the socket buffers.
const LAST_DATAGRAMS_MAX: usize = 1 << 16;

/// StatsD metrics over UDP.
#[derive(Debug)]
pub struct StatsD {
    /// The agent's name, and the tag `host` of the series about the receiver.
    agent: String,
    shared: Arc<ReceiverState>,
    reader: Option<JoinHandle<()>>,
    /// The counts of dropped items at the last log line.
    last_logged: DropCounters,
}

#[derive(Debug)]
struct ReceiverState {
    socket: UdpSocket,
    drops: KernelDrops,
    aggregate: Mutex<Aggregate>,
    is_stopping: AtomicBool,
    limits: Limits,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct DropCounters {
    lines: u64,
    forgotten_gauges: u64,
    datagrams: u64,
}

impl StatsD {
    /// Starts to receive, within the limits of an interval.
    ///
    /// # Errors
    /// The address cannot be opened; the error names it.
    pub fn listen(agent: String, address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)
            .map_err(|cause| io::Error::new(cause.kind(), format!("{address}: {cause}")))?;
        socket.set_read_timeout(Some(CHECK_INTERVAL))?;
        // A size beyond the system's limit needs a privilege.
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BYTES)?;
        }
        let shared = Arc::new(ReceiverState {
            drops: KernelDrops::of(&socket),
            socket,
            aggregate: Mutex::new(Aggregate::new(limits)),
            is_stopping: AtomicBool::new(false),
            limits,
        });
        let reader = shared.clone();
        let reader =
            thread::Builder::new().name("statsd".to_owned()).spawn(move || reader.receive())?;
        Ok(Self { agent, shared, reader: Some(reader), last_logged: DropCounters::default() })
    }

    /// Logs the drops of an interval.
    fn log_drops(&mut self, counts: &ReceiverCounts, datagrams: u64) {
        let now = DropCounters {
            lines: counts.dropped,
            forgotten_gauges: counts.forgotten_gauges,
            datagrams,
        };
        let before = std::mem::replace(&mut self.last_logged, now);
        if now.lines > before.lines || now.forgotten_gauges > before.forgotten_gauges {
            let Limits { series_max, memory_max, .. } = self.shared.limits;
            warn!(
                lines = now.lines - before.lines,
                forgotten_gauges = now.forgotten_gauges - before.forgotten_gauges,
                series_max,
                memory_max,
                "lines were dropped or idle gauges removed; raise --statsd-series-max or \
                 --statsd-memory-max"
            );
        }
        if now.datagrams > before.datagrams {
            let datagrams = now.datagrams - before.datagrams;
            warn!(datagrams, "the kernel dropped datagrams that were not read in time");
        }
    }
}

impl ReceiverState {
    fn aggregate(&self) -> MutexGuard<'_, Aggregate> {
        // A panic leaves the state consistent.
        self.aggregate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads datagrams until the end, then the rest of the socket's buffer.
    fn receive(&self) {
        let mut datagram = vec![0; DATAGRAM_BYTES];
        while !self.is_stopping.load(Ordering::Relaxed) {
            match self.socket.recv(&mut datagram) {
                Ok(length) => add_datagram(&datagram[..length], &mut self.aggregate()),
                Err(cause) if is_expected(&cause) => {}
                Err(_) => thread::sleep(CHECK_INTERVAL),
            }
        }
        if self.socket.set_nonblocking(true).is_ok() {
            for _ in 0..LAST_DATAGRAMS_MAX {
                let Ok(length) = self.socket.recv(&mut datagram) else { return };
                add_datagram(&datagram[..length], &mut self.aggregate());
            }
        }
    }
}

fn is_expected(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Adds the lines of a datagram; a bad line does not affect the others. Events and service checks
/// of DogStatsD are skipped.
fn add_datagram(datagram: &[u8], aggregate: &mut Aggregate) {
    for bytes in datagram.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if bytes.is_empty() || bytes.starts_with(b"_e{") || bytes.starts_with(b"_sc|") {
            continue;
        }
        aggregate.counts.lines += 1;
        match std::str::from_utf8(bytes).map(line::parse) {
            Ok(Ok(line)) => aggregate.add(&line),
            Ok(Err(_)) | Err(_) => aggregate.counts.bad_lines += 1,
        }
    }
}

/// Aggregates two intervals with one datagram each, and asserts that all readings are finite, for
/// fuzz tests.
#[expect(clippy::missing_panics_doc, reason = "fuzz tests detect panics")]
pub fn fuzz_datagrams(bytes: &[u8]) {
    const LIMITS: Limits = Limits { series_max: 8, memory_max: 32 << 10, has_quantiles: false };
    let mut aggregate = Aggregate::new(LIMITS);
    for datagram in bytes.splitn(2, |byte| *byte == 0) {
        add_datagram(datagram, &mut aggregate);
        let mut readings = Readings::new(Vec::new());
        aggregate.drain(0, &mut readings);
        let ReceiverCounts { bad_lines, dropped, .. } = aggregate.counts;
        assert!(bad_lines + dropped <= bytes.len() as u64);
        for reading in readings.as_slice() {
            assert!(reading.value.is_finite(), "{reading:?}");
        }
    }
}

impl Source for StatsD {
    fn name(&self) -> &'static str {
        "statsd"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let counts = {
            let mut aggregate = self.shared.aggregate();
            aggregate.drain(now_ms, readings);
            aggregate.counts
        };
        let datagrams = self.shared.drops.total();
        let totals = [
            ("statsd_lines_total", "lines", counts.lines),
            ("statsd_bad_lines_total", "lines", counts.bad_lines),
            ("statsd_dropped_lines_total", "lines", counts.dropped),
            ("statsd_forgotten_gauges_total", "series", counts.forgotten_gauges),
            ("statsd_kernel_dropped_datagrams_total", "datagrams", datagrams),
        ];
        let host = ("host", &*self.agent);
        for (metric, unit, total) in totals {
            readings.counter(metric, unit, &[host], total as f64, None);
        }
        self.log_drops(&counts, datagrams);
        Ok(())
    }

    /// Ends the reader after it has read the rest of the socket's buffer.
    fn stop(&mut self) -> bool {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take()
            && reader.join().is_err()
        {
            error!("the reader of StatsD datagrams has panicked");
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { series_max: 10, memory_max: 1 << 20, has_quantiles: false };

    fn sample_values(statsd: &mut StatsD) -> Vec<(String, f64)> {
        let mut readings = Readings::new(Vec::new());
        statsd.sample(0, &mut readings).unwrap();
        readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect()
    }

    #[test]
    fn datagrams_are_split_into_lines_and_sampled() {
        let mut statsd =
            StatsD::listen("here".to_owned(), SocketAddr::from(([127, 0, 0, 1], 0)), LIMITS)
                .unwrap();
        let datagram = b"hits:3|c\nnonsense\r\n_e{1,1}:a|b\n\nhits:4|c\n\xff:1|c";
        add_datagram(datagram, &mut statsd.shared.aggregate());
        let values = sample_values(&mut statsd);
        let expected =
            [("hits", 7.0), ("statsd_lines_total", 4.0), ("statsd_bad_lines_total", 2.0)];
        for (metric, value) in expected {
            assert!(values.contains(&(metric.to_owned(), value)), "{metric} in {values:?}");
        }
    }

    /// Regression: all agents of a fleet wrote these counters into the same series.
    #[test]
    fn counters_about_the_receiver_have_the_tag_host() {
        let mut statsd =
            StatsD::listen("here".to_owned(), SocketAddr::from(([127, 0, 0, 1], 0)), LIMITS)
                .unwrap();
        let mut readings = Readings::new(Vec::new());
        statsd.sample(0, &mut readings).unwrap();
        let tags: Vec<_> = readings.as_slice().iter().map(|reading| &reading.tags).collect();
        assert_eq!(tags.len(), 5);
        assert!(tags.iter().all(|tags| **tags == [("host".into(), "here".to_owned())]), "{tags:?}");
    }

    #[test]
    fn lines_before_the_stop_are_in_the_last_round_once() {
        let mut statsd =
            StatsD::listen("here".to_owned(), SocketAddr::from(([127, 0, 0, 1], 0)), LIMITS)
                .unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = statsd.shared.socket.local_addr().unwrap();
        (0..100).for_each(|_| assert_eq!(sender.send_to(b"hits:1|c", address).unwrap(), 8));
        assert!(statsd.stop());
        assert!(sample_values(&mut statsd).contains(&("hits".to_owned(), 100.0)));
        assert!(sample_values(&mut statsd).iter().all(|(metric, _)| metric != "hits"));
    }
}
