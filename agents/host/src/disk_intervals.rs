//! Latency, utilization and queue length of block devices between two rounds, as `iostat` computes
//! them.

use std::collections::HashMap;

use granary_agent_kit::Readings;
use procfs::DiskStat;

use crate::host::rounded;

/// The metric names of one family of devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivityNames {
    pub(crate) read_ms: &'static str,
    pub(crate) write_ms: &'static str,
    pub(crate) busy_percent: &'static str,
    pub(crate) queue_length: &'static str,
}

/// The totals of a device: operations, and times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Totals {
    reads: u64,
    writes: u64,
    reading_ms: u64,
    writing_ms: u64,
    busy_ms: u64,
    weighted_ms: u64,
}

/// The totals of the previous round, by device.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    now_ms: i64,
    before_ms: Option<i64>,
    before: HashMap<String, Totals>,
    now: HashMap<String, Totals>,
}

impl Intervals {
    /// Begins a round. Devices that were missing in the previous round are forgotten.
    pub(crate) fn begin(&mut self, now_ms: i64) {
        self.before_ms = (self.now_ms != 0).then_some(self.now_ms);
        self.now_ms = now_ms;
        self.before = std::mem::take(&mut self.now);
    }

    /// Adds the gauges of a device for the time since the previous round.
    pub(crate) fn add(
        &mut self,
        disk: &DiskStat,
        names: &ActivityNames,
        tags: &[(&'static str, &str)],
        readings: &mut Readings,
    ) {
        let now = Totals {
            reads: disk.reads,
            writes: disk.writes,
            reading_ms: disk.time_reading,
            writing_ms: disk.time_writing,
            busy_ms: disk.time_in_progress,
            weighted_ms: disk.weighted_time_in_progress,
        };
        self.now.insert(disk.name.clone(), now);
        let (Some(before_ms), Some(before)) = (self.before_ms, self.before.get(&disk.name)) else {
            return;
        };
        let Some(activity) = activity_between(*before, now, self.now_ms.saturating_sub(before_ms))
        else {
            return;
        };
        for (metric, unit, value) in [
            (names.read_ms, "milliseconds", activity.read_ms),
            (names.write_ms, "milliseconds", activity.write_ms),
            (names.busy_percent, "percent", Some(activity.busy_percent)),
            (names.queue_length, "operations", Some(activity.queue_length)),
        ] {
            if let Some(value) = value {
                readings.gauge(metric, unit, tags, rounded(value));
            }
        }
    }
}

/// The activity of a device between two rounds.
#[derive(Debug, PartialEq)]
struct Activity {
    /// `None` without reads.
    read_ms: Option<f64>,
    write_ms: Option<f64>,
    busy_percent: f64,
    queue_length: f64,
}

/// Returns the activity between two rounds, or `None` when no time has passed or the device was
/// replaced.
fn activity_between(before: Totals, now: Totals, elapsed_ms: i64) -> Option<Activity> {
    let growth = |now: u64, before: u64| now.checked_sub(before).map(|growth| growth as f64);
    let elapsed = (elapsed_ms > 0).then_some(elapsed_ms as f64)?;
    let mean = |millis: f64, operations: f64| (operations > 0.0).then(|| millis / operations);
    Some(Activity {
        read_ms: mean(growth(now.reading_ms, before.reading_ms)?, growth(now.reads, before.reads)?),
        write_ms: mean(
            growth(now.writing_ms, before.writing_ms)?,
            growth(now.writes, before.writes)?,
        ),
        busy_percent: (growth(now.busy_ms, before.busy_ms)? / elapsed * 100.0).min(100.0),
        queue_length: growth(now.weighted_ms, before.weighted_ms)? / elapsed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Totals = Totals {
        reads: 100,
        writes: 50,
        reading_ms: 900,
        writing_ms: 80,
        busy_ms: 700,
        weighted_ms: 1000,
    };

    #[test]
    fn values_cover_only_the_time_between_two_rounds() {
        let now = Totals {
            reads: 110,
            writes: 50,
            reading_ms: 935,
            writing_ms: 80,
            busy_ms: 1200,
            weighted_ms: 3500,
        };
        let expected =
            Activity { read_ms: Some(3.5), write_ms: None, busy_percent: 50.0, queue_length: 2.5 };
        assert_eq!(activity_between(BEFORE, now, 1000), Some(expected));
        assert_eq!(activity_between(BEFORE, now, 0), None);
        assert_eq!(activity_between(now, BEFORE, 1000), None, "the device was replaced");
        let overlong = Totals { busy_ms: 1703, ..BEFORE };
        assert_eq!(activity_between(BEFORE, overlong, 1000).unwrap().busy_percent, 100.0);
    }

    #[test]
    fn a_device_has_no_values_in_the_first_round_after_its_return() {
        let names =
            ActivityNames { read_ms: "r", write_ms: "w", busy_percent: "b", queue_length: "q" };
        let line = "8 0 sda 10 0 80 7 5 0 40 3 0 9 10";
        let disk = DiskStat::from_line(line).unwrap();
        let mut intervals = Intervals::default();
        let mut round = |now_ms, is_present| {
            let mut readings = Readings::default();
            intervals.begin(now_ms);
            if is_present {
                intervals.add(&disk, &names, &[], &mut readings);
            }
            readings.as_slice().len()
        };
        let counts = [round(1000, true), round(2000, true), round(3000, false), round(4000, true)];
        assert_eq!(counts, [0, 2, 0, 0]);
    }
}
