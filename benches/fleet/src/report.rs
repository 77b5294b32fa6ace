//! The report of a run, as JSON and as a table.

use std::io::Write;

use anyhow::Context;
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;

use crate::{
    daemon::Daemon,
    outcome::{AckQuantiles, Outcome, Tally},
};

/// The resources that the daemon used, by its own metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DaemonUse {
    cpu_seconds: f64,
    peak_bytes: f64,
}

impl DaemonUse {
    /// Reads `/metrics` of the daemon.
    pub(crate) fn read(daemon: &Daemon) -> anyhow::Result<Self> {
        let text = daemon.metrics()?;
        // Other stores name the metrics without the prefix.
        let value = |names: &[&str]| {
            let value_of = |name: &&str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                line.and_then(|value| value.trim().parse::<f64>().ok())
            };
            let first = names.iter().find_map(value_of);
            first.with_context(|| format!("{}/metrics has no {}", daemon.url, names.join(" or ")))
        };
        Ok(Self {
            cpu_seconds: value(&[
                "granary_process_cpu_seconds_total",
                "process_cpu_seconds_total",
            ])?,
            peak_bytes: value(&[
                "granary_process_resident_memory_peak_bytes",
                "process_resident_memory_peak_bytes",
                "process_resident_memory_bytes",
            ])?,
        })
    }
}

/// The figures.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    samples_accepted: u64,
    samples_duplicate: u64,
    samples_refused: u64,
    requests: u64,
    requests_refused_busy: u64,
    seconds: f64,
    samples_per_second: f64,
    #[serde(flatten)]
    ack: AckQuantiles,
    after_first_minute: Option<LaterFigures>,
    daemon_cpu_seconds: f64,
    daemon_cpu_seconds_per_million_samples: f64,
    daemon_peak_memory_bytes: f64,
}

/// The figures after the first minute.
#[derive(Debug, Serialize)]
struct LaterFigures {
    requests_refused_busy: u64,
    #[serde(flatten)]
    ack: AckQuantiles,
}

impl LaterFigures {
    fn new(tally: &Tally) -> Self {
        Self { requests_refused_busy: tally.busy, ack: tally.acknowledged() }
    }
}

impl Report {
    pub(crate) fn new(outcome: &Outcome, before: &DaemonUse, after: &DaemonUse) -> Self {
        let cpu = after.cpu_seconds - before.cpu_seconds;
        let total = outcome.total();
        let accepted = total.accepted as f64;
        Self {
            samples_accepted: total.accepted,
            samples_duplicate: total.duplicates,
            samples_refused: total.refused,
            requests: total.requests,
            requests_refused_busy: total.busy,
            seconds: outcome.seconds,
            samples_per_second: accepted / outcome.seconds,
            ack: total.acknowledged(),
            after_first_minute: outcome.after_first_minute().as_ref().map(LaterFigures::new),
            daemon_cpu_seconds: cpu,
            daemon_cpu_seconds_per_million_samples: cpu / (accepted / 1e6),
            daemon_peak_memory_bytes: after.peak_bytes,
        }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("samples acknowledged", self.samples_accepted.to_string()),
            ("refused, duplicate", format!("{}, {}", self.samples_refused, self.samples_duplicate)),
            (
                "requests, busy responses",
                format!("{}, {}", self.requests, self.requests_refused_busy),
            ),
            ("seconds", format!("{:.2}", self.seconds)),
            ("samples/s", format!("{:.0}", self.samples_per_second)),
            ("ack p50, p99, max", self.ack.to_string()),
        ];
        if let Some(rest) = &self.after_first_minute {
            let busy = rest.requests_refused_busy;
            rows.push(("after the first minute", format!("{}; {busy} busy", rest.ack)));
        }
        rows.extend([
            ("daemon CPU", format!("{:.2} s", self.daemon_cpu_seconds)),
            (
                "daemon CPU per million samples",
                format!("{:.3} s", self.daemon_cpu_seconds_per_million_samples),
            ),
            (
                "daemon peak memory",
                format!("{:.0} MiB", self.daemon_peak_memory_bytes / f64::from(1 << 20)),
            ),
        ]);
        rows
    }
}

/// Prints the report as a table, unless `json_only`, and as JSON.
pub(crate) fn print(report: &Report, json_only: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if !json_only {
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY);
        for (name, value) in report.rows() {
            table.add_row([name.to_owned(), value]);
        }
        writeln!(out, "{table}")?;
    }
    writeln!(out, "{}", serde_json::to_string(report)?)?;
    Ok(())
}
