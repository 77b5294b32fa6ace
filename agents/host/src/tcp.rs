//! The TCP and UDP counters since boot.

use std::sync::Arc;

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

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
        let snmp = self.0.read_text("net/snmp")?;
        for (protocol, field, metric, unit) in COUNTERS {
            if let Some(value) = snmp_value(&snmp, protocol, field) {
                self.0.counters(readings, unit, [(metric, value)]);
            }
        }
        Ok(())
    }
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
    fn values_are_found_by_protocol_and_field() {
        let snmp = "Ip: Forwarding InSegs\nIp: 1 2\nTcp: MaxConn InSegs RetransSegs\nTcp: -1 7 3\n\
            TcpExt: InSegs\nTcpExt: 9\n";
        assert_eq!(snmp_value(snmp, "Tcp", "InSegs"), Some(7.0));
        assert_eq!(snmp_value(snmp, "Tcp", "RetransSegs"), Some(3.0));
        assert_eq!(snmp_value(snmp, "Tcp", "Missing"), None);
        assert_eq!(snmp_value(snmp, "Udp", "InErrors"), None);
    }
}
