//! TCP connections by state.
//!
//! The kernel walks through its whole hash table for its lists, and the table grows with the
//! memory: on a machine with 24 GB, a walk takes 4 ms for four connections. At the default
//! interval, walks were more than half of the agent's CPU time.

use std::{
    fs::File,
    io::{BufRead, BufReader, ErrorKind},
    sync::Arc,
};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The interval of this source.
pub(crate) const INTERVAL_MS: u64 = 60_000;

/// The states in the order of the kernel's codes, which start at 1.
const STATES: [&str; 12] = [
    "established",
    "syn_sent",
    "syn_recv",
    "fin_wait1",
    "fin_wait2",
    "time_wait",
    "close",
    "close_wait",
    "last_ack",
    "listen",
    "closing",
    "new_syn_recv",
];

/// The source of connections.
#[derive(Debug)]
pub(crate) struct Connections(pub(crate) Arc<Host>);

impl Source for Connections {
    fn name(&self) -> &'static str {
        "connections"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        for (state, count) in STATES.into_iter().zip(self.count()?) {
            let tags = [("host", self.0.name.as_str()), ("state", state)];
            readings.gauge("tcp_connections", "connections", &tags, count as f64);
        }
        Ok(())
    }
}

impl Connections {
    /// Counts the connections by state line by line, because a busy host has a hundred thousand
    /// connections.
    fn count(&self) -> Result<[u64; STATES.len()], SourceError> {
        let mut counts = [0; STATES.len()];
        for file in ["net/tcp", "net/tcp6"] {
            match File::open(self.0.proc.join(file)) {
                Ok(open) => count_lines(BufReader::new(open), &mut counts)?,
                // A host without IPv6 has no tcp6.
                Err(cause) if cause.kind() == ErrorKind::NotFound => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(counts)
    }
}

fn count_lines(
    mut lines: impl BufRead,
    counts: &mut [u64; STATES.len()],
) -> Result<(), std::io::Error> {
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        let code = line.split_ascii_whitespace().nth(3).map(|word| usize::from_str_radix(word, 16));
        // The heading has no code.
        if let Some(Ok(code)) = code
            && let Some(count) = code.checked_sub(1).and_then(|index| counts.get_mut(index))
        {
            *count += 1;
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_state() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
            0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 0 0\n\
            1: 0100007F:07E8 0100007F:9999 01 00000000:00000000 00:00000000 0 0\n\
            2: 0100007F:07E8 0100007F:9998 01 00000000:00000000 00:00000000 0 0\n\
            3: 0100007F:07E8 0100007F:9997 FF 00000000:00000000 00:00000000 0 0\n";
        let mut counts = [0; STATES.len()];
        count_lines(text.as_bytes(), &mut counts).unwrap();
        let named: Vec<_> = STATES.into_iter().zip(counts).filter(|(_, n)| *n > 0).collect();
        assert_eq!(named, [("established", 2), ("listen", 1)]);
    }
}
