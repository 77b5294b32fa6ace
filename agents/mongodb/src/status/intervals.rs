//! Values computed from two responses of `serverStatus`: ratios, and percentages of the time
//! between them.
//!
//! The values are gauges, so that charts show them directly, and the maximum of a slot is its peak.

use granary_agent_kit::Readings;
use mongodb::bson::Document;

use crate::field::number;

/// The totals from which ratios and percentages are computed.
const TOTALS: [&str; 11] = [
    "metrics.queryExecutor.scanned",
    "metrics.queryExecutor.scannedObjects",
    "metrics.document.returned",
    "opLatencies.reads.latency",
    "opLatencies.reads.ops",
    "opLatencies.writes.latency",
    "opLatencies.writes.ops",
    "opLatencies.commands.latency",
    "opLatencies.commands.ops",
    "extra_info.user_time_us",
    "extra_info.system_time_us",
];

/// The totals of the previous response.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    previous: Option<(i64, [Option<f64>; TOTALS.len()])>,
}

/// The growth of each total, by path.
struct Growth {
    elapsed_ms: f64,
    by_total: [Option<f64>; TOTALS.len()],
}

impl Growth {
    fn total(&self, path: &str) -> Option<f64> {
        let index = TOTALS.iter().position(|known| *known == path)?;
        self.by_total[index]
    }
}

impl Intervals {
    /// Adds the ratios since the previous response.
    pub(super) fn read(
        &mut self,
        status: &Document,
        now_ms: i64,
        cores: Option<f64>,
        readings: &mut Readings,
    ) {
        let totals = TOTALS.map(|path| number(status, path));
        if let Some((previous_ms, previous)) = self.previous.replace((now_ms, totals))
            && now_ms > previous_ms
        {
            let mut by_total = [None; TOTALS.len()];
            for (growth, (now, then)) in by_total.iter_mut().zip(totals.into_iter().zip(previous)) {
                // A total that decreased was reset, and has no growth.
                *growth =
                    now.zip(then).map(|(now, then)| now - then).filter(|growth| *growth >= 0.0);
            }
            let growth = Growth { elapsed_ms: (now_ms - previous_ms) as f64, by_total };
            push_query_targeting(&growth, readings);
            push_execution_times(&growth, readings);
            push_process_cpu(&growth, cores, readings);
        }
    }
}

/// Adds the numbers of scanned keys and documents per returned document. Scans without a result
/// count as if they had returned one document, so that the ratio reveals them.
fn push_query_targeting(growth: &Growth, readings: &mut Readings) {
    let Some(returned) = growth.total("metrics.document.returned") else { return };
    for (metric, path) in [
        ("mongodb_query_targeting_scanned_per_returned", "metrics.queryExecutor.scanned"),
        (
            "mongodb_query_targeting_scanned_objects_per_returned",
            "metrics.queryExecutor.scannedObjects",
        ),
    ] {
        let Some(scanned) = growth.total(path) else { continue };
        // Without queries, there is no ratio.
        if scanned > 0.0 || returned > 0.0 {
            readings.gauge(metric, "", &[], scanned / returned.max(1.0));
        }
    }
}

fn push_execution_times(growth: &Growth, readings: &mut Readings) {
    for (metric, kind) in [
        ("mongodb_op_execution_time_reads", "reads"),
        ("mongodb_op_execution_time_writes", "writes"),
        ("mongodb_op_execution_time_commands", "commands"),
    ] {
        let part = |part: &str| growth.total(&format!("opLatencies.{kind}.{part}"));
        if let (Some(micros), Some(ops)) = (part("latency"), part("ops"))
            && ops > 0.0
        {
            readings.gauge(metric, "milliseconds", &[], micros / ops / 1000.0);
        }
    }
}

fn push_process_cpu(growth: &Growth, cores: Option<f64>, readings: &mut Readings) {
    for (percent, normalized, path) in [
        (
            "mongodb_process_cpu_user",
            "mongodb_process_normalized_cpu_user",
            "extra_info.user_time_us",
        ),
        (
            "mongodb_process_cpu_kernel",
            "mongodb_process_normalized_cpu_kernel",
            "extra_info.system_time_us",
        ),
    ] {
        let Some(micros) = growth.total(path) else { continue };
        let of_a_core = micros / 1000.0 / growth.elapsed_ms * 100.0;
        readings.gauge(percent, "percent", &[], of_a_core);
        if let Some(cores) = cores.filter(|cores| *cores >= 1.0) {
            readings.gauge(normalized, "percent", &[], of_a_core / cores);
        }
    }
}
