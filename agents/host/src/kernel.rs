//! Connection tracking, sockets, and dropped packets.

use std::sync::Arc;

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The maximum number of cores.
const CORES_MAX: usize = 4096;

/// The source of the metrics of connections, sockets and packets.
#[derive(Debug)]
pub(crate) struct Kernel(pub(crate) Arc<Host>);

impl Source for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        // The files are missing when the conntrack module is not loaded.
        for (file, metric) in [
            ("sys/net/netfilter/nf_conntrack_count", "system_conntrack_entries"),
            ("sys/net/netfilter/nf_conntrack_max", "system_conntrack_entries_max"),
        ] {
            if let Some(value) =
                self.0.read_text(file).ok().and_then(|text| text.trim().parse().ok())
            {
                self.0.gauges(readings, "entries", [(metric, value)]);
            }
        }
        let sockets = self.0.read_text("net/sockstat")?;
        for (line, field, metric) in [
            ("sockets", "used", "system_sockets_used"),
            ("TCP", "orphan", "tcp_sockets_orphaned"),
            ("TCP", "alloc", "tcp_sockets_allocated"),
            ("UDP", "inuse", "udp_sockets_used"),
        ] {
            if let Some(value) = field_in_line(&sockets, line, field) {
                self.0.gauges(readings, "sockets", [(metric, value)]);
            }
        }
        let [dropped, squeezed] = sum_softnet(&self.0.read_text("net/softnet_stat")?);
        self.0.counters(readings, "packets", [("system_softnet_dropped", dropped)]);
        self.0.counters(readings, "rounds", [("system_softnet_squeezed", squeezed)]);
        Ok(())
    }
}

/// Returns the number after a name in the line of a protocol.
fn field_in_line(text: &str, line: &str, field: &str) -> Option<f64> {
    let rest = text.lines().find_map(|rest| rest.strip_prefix(line)?.strip_prefix(": "))?;
    let mut words = rest.split_ascii_whitespace();
    words.find(|word| *word == field)?;
    words.next()?.parse().ok()
}

/// Returns the packets dropped due to full queues, and how often a core ran out of time with
/// packets left, over all cores.
fn sum_softnet(text: &str) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for line in text.lines().take(CORES_MAX) {
        let words = line.split_ascii_whitespace().skip(1);
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum += u64::from_str_radix(word, 16).map_or(0.0, |count| count as f64);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_become_metrics_and_conntrack_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("net/sockstat", "sockets: used 50\nTCP: inuse 13 orphan 2 tw 103 alloc 14 mem 22\n");
        write("net/softnet_stat", "00101786 0000000a 00000003 00000000\n");
        let host = Host { proc: folder.path().to_owned(), ..Host::for_tests() };
        let mut kernel = Kernel(Arc::new(host));
        let mut sample = || {
            let mut readings = Readings::default();
            kernel.sample(0, &mut readings).unwrap();
            readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect::<Vec<_>>()
        };
        let always = [
            ("system_sockets_used", 50.0),
            ("tcp_sockets_orphaned", 2.0),
            ("tcp_sockets_allocated", 14.0),
            ("system_softnet_dropped", 10.0),
            ("system_softnet_squeezed", 3.0),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(sample(), always);
        write("sys/net/netfilter/nf_conntrack_count", "37\n");
        write("sys/net/netfilter/nf_conntrack_max", "262144\n");
        let conntrack = [
            ("system_conntrack_entries".to_owned(), 37.0),
            ("system_conntrack_entries_max".to_owned(), 262_144.0),
        ];
        assert_eq!(sample(), [&conntrack[..], &always].concat());
    }

    #[test]
    fn a_number_follows_its_name() {
        let text =
            "sockets: used 50\nTCP: inuse 13 orphan 2 tw 103 alloc 14 mem 22\nUDP: inuse x\n";
        assert_eq!(field_in_line(text, "sockets", "used"), Some(50.0));
        assert_eq!(field_in_line(text, "TCP", "alloc"), Some(14.0));
        for (line, field) in [("TCP", "none"), ("UDP", "inuse"), ("RAW", "inuse"), ("TCP", "22")] {
            assert_eq!(field_in_line(text, line, field), None, "{line} {field}");
        }
    }

    #[test]
    fn the_counts_of_all_cores_are_summed() {
        let text = "00101786 0000000a 00000003 00000000\n0011ceff 00000001 00000006 00000000\nx\n";
        assert_eq!(sum_softnet(text), [11.0, 9.0]);
        assert_eq!(sum_softnet(""), [0.0, 0.0]);
    }
}
