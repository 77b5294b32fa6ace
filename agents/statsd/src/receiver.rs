//! The socket: a thread that takes datagrams in, and the source that hands out each interval.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::{aggregate::Aggregate, line};

/// Largest datagram.
const DATAGRAM_BYTES: usize = 64 << 10;
/// After a failed receive.
const PAUSE: Duration = Duration::from_millis(100);

/// StatsD metrics over UDP.
#[derive(Debug)]
pub struct StatsD(Arc<Mutex<Aggregate>>);

impl StatsD {
    /// Begins to receive; no more than `series_max` series are aggregated in an interval.
    ///
    /// # Errors
    /// When the address cannot be listened on; the error names it.
    pub fn listen(address: SocketAddr, series_max: usize) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)
            .map_err(|cause| io::Error::new(cause.kind(), format!("{address}: {cause}")))?;
        let aggregate = Arc::new(Mutex::new(Aggregate::new(series_max)));
        let own = aggregate.clone();
        thread::Builder::new().name("statsd".to_owned()).spawn(move || receive(&socket, &own))?;
        Ok(Self(aggregate))
    }
}

fn lock(aggregate: &Mutex<Aggregate>) -> MutexGuard<'_, Aggregate> {
    // What a panic left is still whole lines.
    aggregate.lock().unwrap_or_else(PoisonError::into_inner)
}

fn receive(socket: &UdpSocket, aggregate: &Mutex<Aggregate>) {
    let mut datagram = vec![0; DATAGRAM_BYTES];
    loop {
        match socket.recv(&mut datagram) {
            Ok(length) => take(&datagram[..length], &mut lock(aggregate)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Takes in the lines of a datagram; a bad one spoils no other. Events and service checks of
/// DogStatsD are passed over.
fn take(datagram: &[u8], aggregate: &mut Aggregate) {
    for bytes in datagram.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if bytes.is_empty() || bytes.starts_with(b"_e{") || bytes.starts_with(b"_sc|") {
            continue;
        }
        aggregate.lines += 1;
        match std::str::from_utf8(bytes).map(line::parse) {
            Ok(Ok(line)) => aggregate.add(&line),
            Ok(Err(_)) | Err(_) => aggregate.bad_lines += 1,
        }
    }
}

/// For fuzzing: two intervals of a datagram each. Any bytes in, readings that are numbers out.
#[expect(clippy::missing_panics_doc, reason = "a panic is what fuzzing looks for")]
pub fn fuzz_datagrams(bytes: &[u8]) {
    const SERIES_MAX: usize = 8;
    let mut aggregate = Aggregate::new(SERIES_MAX);
    for datagram in bytes.splitn(2, |byte| *byte == 0) {
        take(datagram, &mut aggregate);
        let mut readings = Readings::new(Vec::new());
        aggregate.drain(&mut readings);
        assert!(aggregate.bad_lines + aggregate.dropped <= bytes.len() as u64);
        for reading in readings.as_slice() {
            assert!(reading.value.is_finite(), "{reading:?}");
        }
    }
}

impl Source for StatsD {
    fn name(&self) -> &'static str {
        "statsd"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let mut aggregate = lock(&self.0);
        aggregate.drain(readings);
        let totals = [
            ("statsd_lines_total", aggregate.lines),
            ("statsd_bad_lines_total", aggregate.bad_lines),
            ("statsd_dropped_lines_total", aggregate.dropped),
        ];
        for (metric, total) in totals {
            readings.counter(metric, "lines", &[], total as f64, None);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_taken_apart_and_sampled() {
        let mut statsd = StatsD::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 10).unwrap();
        let datagram = b"hits:3|c\nnonsense\r\n_e{1,1}:a|b\n\nhits:4|c\n\xff:1|c";
        take(datagram, &mut lock(&statsd.0));
        let mut readings = Readings::new(Vec::new());
        statsd.sample(0, &mut readings).unwrap();
        let values: Vec<_> =
            readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect();
        let expected =
            [("hits", 7.0), ("statsd_lines_total", 4.0), ("statsd_bad_lines_total", 2.0)];
        for (metric, value) in expected {
            assert!(values.contains(&(metric.to_owned(), value)), "{metric} in {values:?}");
        }
    }
}
