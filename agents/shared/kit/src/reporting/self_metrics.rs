//! The agent's metrics about itself, sent as ordinary series in each batch.

use std::time::Duration;

use procfs::process::Process;

use crate::{Readings, reporting::totals::Totals, spool::SpoolUsage};

/// The metrics that every agent sends about itself; each agent lists them in its METRICS.md.
pub const SELF_METRICS: [&str; 8] = [
    "agent_spool_batches",
    "agent_spool_bytes",
    "agent_samples_collected_total",
    "agent_samples_acknowledged_total",
    "agent_batches_dropped_total",
    "agent_sample_duration_seconds",
    "agent_resident_bytes",
    "agent_cpu_seconds_total",
];

/// Adds this round's self-metrics; counters count since `started_ms`.
pub(crate) fn add(
    readings: &mut Readings,
    host: &str,
    totals: &Totals,
    spool_usage: SpoolUsage,
    sampling_time: Duration,
    started_ms: i64,
) {
    let tags = [("host", host)];
    let start = Some(started_ms);
    let duration = sampling_time.as_secs_f64();
    readings.gauge("agent_spool_batches", "batches", &tags, spool_usage.batches as f64);
    readings.gauge("agent_spool_bytes", "bytes", &tags, spool_usage.bytes as f64);
    readings.gauge("agent_sample_duration_seconds", "seconds", &tags, duration);
    for (metric, unit, total) in [
        ("agent_samples_collected_total", "samples", &totals.samples_collected),
        ("agent_samples_acknowledged_total", "samples", &totals.samples_acknowledged),
        ("agent_batches_dropped_total", "batches", &totals.batches_dropped),
    ] {
        readings.counter(metric, unit, &tags, total.get() as f64, start);
    }
    match Process::myself().and_then(|process| process.stat()) {
        Ok(stat) => {
            let resident = stat.rss.saturating_mul(procfs::page_size());
            let cpu = (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
            readings.gauge("agent_resident_bytes", "bytes", &tags, resident as f64);
            readings.counter("agent_cpu_seconds_total", "seconds", &tags, cpu, start);
        }
        Err(cause) => readings.problem("self: /proc/self/stat", cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_self_metric_is_emitted_and_plausible() {
        let mut readings = Readings::default();
        let totals = Totals::default();
        totals.samples_collected.add(3);
        add(&mut readings, "a", &totals, SpoolUsage::default(), Duration::from_millis(2), 5);
        let mut names: Vec<_> = readings.as_slice().iter().map(|r| r.metric.to_string()).collect();
        let mut expected = SELF_METRICS.map(str::to_owned).to_vec();
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
        let value = |name| readings.as_slice().iter().find(|r| r.metric == name).unwrap().value;
        assert!((1e6..1e9).contains(&value("agent_resident_bytes")));
        assert_eq!(value("agent_samples_collected_total"), 3.0);
    }
}
