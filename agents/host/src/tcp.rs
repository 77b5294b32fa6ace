//! TCP connections by state, and the TCP and UDP counters since boot.

use std::{
    fs::File,
    io::{BufRead, BufReader, ErrorKind},
    sync::Arc,
};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

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

/// The protocol and field of `/proc/net/snmp`, the metric, and the unit.
const COUNTERS: [(&str, &str, &str, &str); 11] = [
    ("Tcp", "ActiveOpens", "tcp_active_opens", "connections"),
    ("Tcp", "PassiveOpens", "tcp_passive_opens", "connections"),
    ("Tcp", "AttemptFails", "tcp_attempt_fails", "connections"),
    ("Tcp", "EstabResets", "tcp_established_resets", "connections"),
    ("Tcp", "InSegs", "tcp_segments_in", "segments"),
    ("Tcp", "OutSegs", "tcp_segments_out", "segments"),
    ("Tcp", "RetransSegs", "tcp_segments_retransmitted", "segments"),
    ("Tcp", "InErrs", "tcp_errors_in", "segments"),
    ("Udp", "InDatagrams", "udp_datagrams_in", "datagrams"),
    ("Udp", "OutDatagrams", "udp_datagrams_out", "datagrams"),
    ("Udp", "InErrors", "udp_errors_in", "datagrams"),
];

/// The source of TCP and UDP metrics.
#[derive(Debug)]
pub(crate) struct Tcp(pub(crate) Arc<Host>);

impl Source for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        match self.count_connections() {
            Ok(counts) => {
                for (state, count) in STATES.into_iter().zip(counts) {
                    let tags = [("host", self.0.name.as_str()), ("state", state)];
                    readings.gauge("tcp_connections", "connections", &tags, count as f64);
                }
            }
            Err(cause) => readings.problem("tcp: states", cause),
        }
        let snmp = self.0.read_text("net/snmp")?;
        for (protocol, field, metric, unit) in COUNTERS {
            if let Some(value) = snmp_value(&snmp, protocol, field) {
                self.0.counters(readings, unit, [(metric, value)]);
            }
        }
        Ok(())
    }
}

impl Tcp {
    /// Counts the connections by state line by line, because a busy host has a hundred thousand
    /// connections.
    fn count_connections(&self) -> Result<[u64; STATES.len()], SourceError> {
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

/// Finds a field in a line of names and a line of values, which both begin with the protocol.
fn snmp_value(snmp: &str, protocol: &str, field: &str) -> Option<f64> {
    let mut lines = snmp
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| *name == protocol)
        .map(|(_, words)| words);
    let position = lines.next()?.split(' ').position(|name| name == field)?;
    lines.next()?.split(' ').nth(position)?.parse().ok()
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

    #[test]
    fn values_are_found_by_protocol_and_field() {
        let snmp = "Ip: Forwarding InSegs\nIp: 1 2\nTcp: MaxConn InSegs RetransSegs\nTcp: -1 7 3\n\
            TcpExt: InSegs\nTcpExt: 9\n";
        assert_eq!(snmp_value(snmp, "Tcp", "InSegs"), Some(7.0));
        assert_eq!(snmp_value(snmp, "Tcp", "RetransSegs"), Some(3.0));
        assert_eq!(snmp_value(snmp, "Tcp", "Missing"), None);
        assert_eq!(snmp_value(snmp, "Udp", "InErrors"), None);
    }
}
