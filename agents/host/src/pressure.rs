//! Pressure stall information: the time that tasks waited for CPU, memory, disks and interrupts.

use std::{collections::HashMap, io, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::{Host, rounded};

/// The resource, its line, and the metrics of its total and of its percentage since the previous
/// round.
const LINES: [(&str, &str, &str, &str); 7] = [
    ("cpu", "some", "system_pressure_cpu_some", "system_pressure_cpu_some_percent"),
    ("cpu", "full", "system_pressure_cpu_full", "system_pressure_cpu_full_percent"),
    ("memory", "some", "system_pressure_memory_some", "system_pressure_memory_some_percent"),
    ("memory", "full", "system_pressure_memory_full", "system_pressure_memory_full_percent"),
    ("io", "some", "system_pressure_io_some", "system_pressure_io_some_percent"),
    ("io", "full", "system_pressure_io_full", "system_pressure_io_full_percent"),
    ("irq", "full", "system_pressure_irq_full", "system_pressure_irq_full_percent"),
];

/// The source of pressure metrics.
#[derive(Debug)]
pub(crate) struct Pressure {
    host: Arc<Host>,
    /// The time of the previous round and its total in microseconds, by metric.
    previous: HashMap<&'static str, (i64, u64)>,
}

impl Pressure {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, previous: HashMap::new() }
    }
}

impl Source for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let mut file = ("", String::new());
        for (resource, line, metric, percent) in LINES {
            if file.0 != resource {
                let path = self.host.proc.join("pressure").join(resource);
                file = match std::fs::read_to_string(&path) {
                    Ok(text) => (resource, text),
                    // Older kernels have fewer files, or none.
                    Err(cause) if is_unsupported(&cause) => (resource, String::new()),
                    Err(cause) => return Err(format!("{}: {cause}", path.display()).into()),
                };
            }
            let Some(micros) = total_in_line(&file.1, line) else { continue };
            self.host.counters(readings, "seconds", [(metric, micros as f64 / 1e6)]);
            if let Some((before_ms, previous)) = self.previous.insert(metric, (now_ms, micros))
                && let Some(value) = percent_of(now_ms - before_ms, previous, micros)
            {
                self.host.gauges(readings, "percent", [(percent, rounded(value))]);
            }
        }
        Ok(())
    }
}

/// Returns true when the kernel lacks the feature, or was started without it.
fn is_unsupported(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported)
        || cause.raw_os_error() == Some(95)
}

/// Returns the total of a line, in microseconds.
fn total_in_line(text: &str, line: &str) -> Option<u64> {
    let words =
        text.lines().find_map(|line_of_file| line_of_file.strip_prefix(line)?.strip_prefix(' '))?;
    words.split(' ').find_map(|word| word.strip_prefix("total="))?.trim().parse().ok()
}

fn percent_of(elapsed_ms: i64, previous: u64, micros: u64) -> Option<f64> {
    let growth = micros.checked_sub(previous)? as f64;
    (elapsed_ms > 0).then(|| (growth / 1000.0 / elapsed_ms as f64 * 100.0).min(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_found_by_its_line() {
        let text = "some avg10=97.52 avg60=92.34 avg300=90.15 total=10787\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(
            (total_in_line(text, "some"), total_in_line(text, "full")),
            (Some(10787), Some(7))
        );
        for other in ["", "some", "some total=", "some total=x", "something total=3"] {
            assert_eq!(total_in_line(other, "some"), None, "{other}");
        }
    }

    #[test]
    fn percent_refers_to_the_time_since_the_previous_round() {
        assert_eq!(percent_of(10_000, 1_000_000, 3_500_000), Some(25.0));
        assert_eq!(percent_of(10_000, 0, 10_020_000), Some(100.0), "a round may be late");
        assert_eq!(percent_of(0, 0, 5), None);
        assert_eq!(percent_of(10, 5, 0), None);
    }

    #[test]
    fn a_kernel_without_pressure_files_yields_no_readings() {
        let folder = tempfile::tempdir().unwrap();
        let host = Arc::new(Host { proc: folder.path().to_owned(), ..Host::for_tests() });
        let mut readings = Readings::default();
        Pressure::new(host).sample(1, &mut readings).unwrap();
        assert_eq!(readings.as_slice(), []);
    }
}
