//! The samples of a host agent: the metrics of `agents/host/METRICS.md` that charts of hosts show,
//! with daily waves that differ from host to host.
//!
//! A counter's total is the integral of its rate, so that rates follow the waves at any interval.

use granary_protocol::{Kind, SeriesDefinition};

const DAY_S: f64 = 86_400.0;
/// The number of hosts for each host with a daily gap.
const HOSTS_PER_GAP: usize = 17;
/// The length of the gap, in seconds.
const GAP_S: i64 = 2400;

/// The roles of hosts.
const ROLES: [&str; 4] = ["web", "db", "cache", "batch"];
const MOUNTS: [(&str, f64); 3] = [("/", 40e9), ("/var", 100e9), ("/data", 900e9)];
const INTERFACES: [&str; 2] = ["eth0", "eth1"];
const DISKS: [&str; 2] = ["nvme0n1", "sda"];
/// The shares of the busy CPU time by state.
const BUSY_SHARES: [(&str, f64); 5] =
    [("user", 0.66), ("kernel", 0.2), ("nice", 0.04), ("irq", 0.02), ("softirq", 0.08)];

/// A series of a host with its value at a time.
struct SeriesValue {
    metric: String,
    tag: Option<(&'static str, &'static str)>,
    kind: Kind,
    unit: &'static str,
    value: f64,
}

/// Returns a pseudo-random number between 0 and 1 that depends on the host and the salt.
fn random(host: usize, salt: u64) -> f64 {
    let bits = (host as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A rate that oscillates around `base` with three periods: a day, about an hour, minutes.
#[derive(Debug, Clone, Copy)]
struct Wave {
    base: f64,
    /// The share of the base, the period in seconds and the phase of each swing; the shares add up
    /// to less than 1.
    swings: [(f64, f64, f64); 3],
}

impl Wave {
    fn new(base: f64, host: usize, salt: u64) -> Self {
        let phase = |more| random(host, salt * 7 + more) * std::f64::consts::TAU;
        let day = 0.2 + 0.35 * random(host, salt * 7 + 1);
        // Most hosts are busy at the same time of the day.
        let day_phase = -std::f64::consts::FRAC_PI_2 + phase(2) * 0.15;
        let swings = [(day, DAY_S, day_phase), (0.2, 5_820.0, phase(3)), (0.12, 780.0, phase(4))];
        Self { base, swings }
    }

    /// Returns the rate at a time in seconds.
    fn at(&self, seconds: f64) -> f64 {
        let swing = |(share, period, phase): (f64, f64, f64)| {
            share * (seconds * std::f64::consts::TAU / period + phase).sin()
        };
        self.base * (1.0 + self.swings.into_iter().map(swing).sum::<f64>())
    }

    /// Returns the integral of the rate between two times in seconds.
    fn total(&self, from: f64, to: f64) -> f64 {
        let swing = |(share, period, phase): (f64, f64, f64)| {
            let angular_speed = std::f64::consts::TAU / period;
            let cos = |seconds: f64| (seconds * angular_speed + phase).cos();
            share * (cos(from) - cos(to)) / angular_speed
        };
        self.base * (to - from + self.swings.into_iter().map(swing).sum::<f64>())
    }
}

/// A host of the fleet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyntheticHost {
    host: usize,
    /// The boot time, in Unix seconds.
    booted: f64,
}

impl SyntheticHost {
    /// Creates a host of a fleet whose run started at a time in Unix milliseconds.
    pub(crate) fn new(host: usize, started_ms: i64) -> Self {
        let days = 1.0 + random(host, 1).powi(3) * 400.0;
        Self { host, booted: (started_ms as f64 / 1000.0 - days * DAY_S).floor() }
    }

    /// Returns the name of the host.
    pub(crate) fn name(&self) -> String {
        format!("{}-{:05}", self.role(), self.host)
    }

    pub(crate) fn role(&self) -> &'static str {
        ROLES[self.host % ROLES.len()]
    }

    /// Returns the boot time, in Unix milliseconds.
    pub(crate) fn booted_ms(&self) -> i64 {
        self.booted as i64 * 1000
    }

    /// Returns true when the host sends nothing at a time: some hosts have a daily gap.
    pub(crate) fn is_silent(&self, at_ms: i64) -> bool {
        let begin_s = (random(self.host, 2) * DAY_S) as i64;
        let since = (at_ms.div_euclid(1000) - begin_s).rem_euclid(DAY_S as i64);
        self.host % HOSTS_PER_GAP == 3 && since < GAP_S
    }

    /// Returns the number of series of each host.
    pub(crate) fn series_per_host() -> usize {
        Self::new(0, 0).lines(0).len()
    }

    pub(crate) fn definitions(&self, tags: &[(String, String)]) -> Vec<SeriesDefinition> {
        let definition = |(reference, line): (u32, SeriesValue)| {
            let tag = line.tag.map(|(name, value)| (name.to_owned(), value.to_owned()));
            SeriesDefinition {
                reference,
                metric: line.metric,
                tags: tags.iter().cloned().chain(tag).collect(),
                kind: line.kind,
                unit: line.unit.to_owned(),
            }
        };
        (0..).zip(self.lines(0)).map(definition).collect()
    }

    /// Returns the values of the series at a time, and the start times of counters (0 for gauges).
    pub(crate) fn values(&self, at_ms: i64) -> (Vec<f64>, Vec<i64>) {
        let start = |kind| if kind == Kind::Counter { self.booted_ms() } else { 0 };
        self.lines(at_ms).into_iter().map(|line| (line.value, start(line.kind))).unzip()
    }

    fn lines(&self, at_ms: i64) -> Vec<SeriesValue> {
        let now = at_ms as f64 / 1000.0;
        let mut lines = Vec::with_capacity(48);
        self.push_cpu(now, &mut lines);
        self.push_memory(now, &mut lines);
        self.push_disks(now, &mut lines);
        self.push_network(now, &mut lines);
        let up = ("system_uptime", "seconds", now - self.booted);
        let boot = ("system_boot_time", "seconds", self.booted);
        lines.extend([up, boot].map(|(metric, unit, value)| gauge(metric, None, unit, value)));
        lines
    }

    fn push_cpu(&self, now: f64, lines: &mut Vec<SeriesValue>) {
        let cores = f64::from(1_u32 << (1 + (random(self.host, 3) * 4.0) as u32));
        let busy = Wave::new(cores * (0.04 + 0.42 * random(self.host, 4).powi(2)), self.host, 5);
        let waiting = Wave::new(cores * 0.01 * random(self.host, 6), self.host, 6);
        let all_core_seconds = cores * (now - self.booted);
        let (busy_s, waiting_s) = (busy.total(self.booted, now), waiting.total(self.booted, now));
        let mut counter = |state: &str, seconds: f64| {
            lines.push(counter(&format!("system_cpu_{state}"), None, "seconds", seconds));
        };
        for (state, share) in BUSY_SHARES {
            counter(state, busy_s * share);
        }
        counter("iowait", waiting_s);
        counter("steal", 0.0);
        counter("idle", all_core_seconds - busy_s - waiting_s);
        let load = busy.at(now) * 1.1;
        for (metric, delay_s) in [("system_load_1m", 30.0), ("system_load_5m", 150.0)] {
            let value = f64::midpoint(load, busy.at(now - delay_s) * 1.1);
            lines.push(gauge(metric, None, "", (value * 100.0).floor() / 100.0));
        }
    }

    fn push_memory(&self, now: f64, lines: &mut Vec<SeriesValue>) {
        let total =
            f64::from(1_u32 << (2 + (random(self.host, 8) * 6.0) as u32)) * f64::from(1 << 30);
        let used = Wave::new(total * (0.2 + 0.3 * random(self.host, 9)), self.host, 9).at(now);
        let cached = (total - used) * (0.3 + 0.4 * random(self.host, 10));
        for (metric, bytes) in [
            ("system_memory_total", total),
            ("system_memory_used", used),
            ("system_memory_available", total - used),
            ("system_memory_cached", cached),
            ("system_memory_free", total - used - cached),
        ] {
            lines.push(gauge(metric, None, "bytes", round_down(bytes, 1024.0)));
        }
    }

    /// Adds disks and file systems, which fill up within weeks and are then emptied.
    fn push_disks(&self, now: f64, lines: &mut Vec<SeriesValue>) {
        for (salt, (mount, total)) in (11..).zip(MOUNTS) {
            let period = DAY_S * (6.0 + 30.0 * random(self.host, salt));
            let filled = (now / period + random(self.host, salt + 10)).fract();
            let fill_min = 0.1 + 0.35 * random(self.host, salt + 20);
            let used =
                total * (fill_min + filled * (0.97 - fill_min) * random(self.host, salt + 30));
            let used = round_down(used, 4096.0);
            let tag = Some(("mount", mount));
            for (name, unit, value) in [
                ("total", "bytes", total),
                ("used", "bytes", used),
                ("free", "bytes", total - used),
                ("percent_used", "percent", 100.0 * used / total),
            ] {
                lines.push(gauge(&format!("disk_partition_space_{name}"), tag, unit, value));
            }
        }
        for (salt, disk) in (51..).zip(DISKS) {
            let reads = Wave::new(5.0 + 400.0 * random(self.host, salt).powi(3), self.host, salt);
            let writes = Wave::new(
                10.0 + 300.0 * random(self.host, salt + 10).powi(3),
                self.host,
                salt + 10,
            );
            let (reads, writes) = (reads.total(self.booted, now), writes.total(self.booted, now));
            for (name, unit, value) in [
                ("iops_read", "operations", reads),
                ("iops_write", "operations", writes),
                ("bytes_read", "bytes", round_down(reads * 16_384.0, 512.0)),
                ("bytes_written", "bytes", round_down(writes * 12_288.0, 512.0)),
                ("utilization", "seconds", (reads + writes) * 0.000_4),
            ] {
                let metric = format!("system_disk_{name}");
                lines.push(counter(&metric, Some(("disk", disk)), unit, value));
            }
        }
    }

    fn push_network(&self, now: f64, lines: &mut Vec<SeriesValue>) {
        for (salt, interface) in (71..).zip(INTERFACES) {
            let base = 2e3 + 30e6 * random(self.host, salt).powi(4);
            let bytes_in = Wave::new(base, self.host, salt).total(self.booted, now);
            let bytes_out = Wave::new(base * 0.6, self.host, salt + 10).total(self.booted, now);
            for (name, value) in [("in", bytes_in), ("out", bytes_out)] {
                let tag = Some(("interface", interface));
                let bytes = format!("system_network_bytes_{name}");
                lines.push(counter(&bytes, tag, "bytes", value));
                let packets = format!("system_network_packets_{name}");
                lines.push(counter(&packets, tag, "packets", value / 900.0));
            }
        }
    }
}

fn gauge(
    metric: &str,
    tag: Option<(&'static str, &'static str)>,
    unit: &'static str,
    value: f64,
) -> SeriesValue {
    SeriesValue { metric: metric.to_owned(), tag, kind: Kind::Gauge, unit, value }
}

/// Rounds bytes down to a multiple of a block, as the kernel counts memory and disk space.
fn round_down(bytes: f64, block: f64) -> f64 {
    (bytes / block).floor() * block
}

fn counter(
    metric: &str,
    tag: Option<(&'static str, &'static str)>,
    unit: &'static str,
    value: f64,
) -> SeriesValue {
    // Counters are integers, except CPU times, which have hundredths of a second.
    let pieces = if unit == "seconds" { 100.0 } else { 1.0 };
    let value = (value * pieces).floor() / pieces;
    SeriesValue { kind: Kind::Counter, ..gauge(metric, tag, unit, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_264_496_000;

    #[test]
    fn counters_count_up_and_gauges_stay_in_their_bounds() {
        for host in 0..50 {
            let host = SyntheticHost::new(host, NOW);
            let mut before = host.values(NOW - 86_400_000).0;
            for minute in 0..1440 {
                let at_ms = NOW - 86_400_000 + minute * 60_000;
                let values = host.values(at_ms).0;
                for (line, (value, before)) in
                    host.lines(at_ms).iter().zip(values.iter().zip(&before))
                {
                    let name = &line.metric;
                    assert!(value.is_finite() && *value >= 0.0, "{name}: {value}");
                    assert!(line.kind != Kind::Counter || value >= before, "{name}");
                    assert!(!name.contains("percent") || *value <= 100.0, "{name}: {value}");
                }
                before = values;
            }
        }
    }

    #[test]
    fn busy_and_idle_times_add_up_to_the_time_of_the_cores() {
        let host = SyntheticHost::new(7, NOW);
        let cpu = |at_ms: i64| {
            let lines = host.lines(at_ms);
            let seconds = lines.iter().filter(|line| line.metric.starts_with("system_cpu_"));
            seconds.map(|line| line.value).sum::<f64>()
        };
        let cores = (cpu(NOW) - cpu(NOW - 3_600_000)) / 3600.0;
        assert!((cores - cores.round()).abs() < 0.01 && cores >= 2.0, "{cores}");
    }

    #[test]
    fn a_total_is_the_integral_of_the_wave() {
        let wave = Wave::new(100.0, 3, 4);
        let sum: f64 = (0..36_000).map(|second| wave.at(f64::from(second) + 0.5)).sum();
        assert!((wave.total(0.0, 36_000.0) - sum).abs() < 1.0);
    }

    #[test]
    fn some_hosts_have_a_gap_each_day() {
        let minutes = |host: usize| {
            let host = SyntheticHost::new(host, NOW);
            (0..1440).filter(|at| host.is_silent(NOW + at * 60_000)).count()
        };
        assert_eq!((minutes(3), minutes(20), minutes(4)), (40, 40, 0));
    }
}
