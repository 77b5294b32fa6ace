//! CPU time by state, for the machine and each core.

use std::{collections::HashMap, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::{
    host::{Host, rounded},
    stat::{STATES, Stat, Ticks},
};

/// The metrics of the whole machine.
const METRICS: [&str; STATES] = [
    "system_cpu_user",
    "system_cpu_nice",
    "system_cpu_kernel",
    "system_cpu_idle",
    "system_cpu_iowait",
    "system_cpu_irq",
    "system_cpu_softirq",
    "system_cpu_steal",
    "system_cpu_guest",
];

/// The metrics of each core, with different names, so that the series of a host can be summed up.
const CORE_METRICS: [&str; STATES] = [
    "system_cpu_core_user",
    "system_cpu_core_nice",
    "system_cpu_core_kernel",
    "system_cpu_core_idle",
    "system_cpu_core_iowait",
    "system_cpu_core_irq",
    "system_cpu_core_softirq",
    "system_cpu_core_steal",
    "system_cpu_core_guest",
];

/// The metrics of the machine by state: in percent of one core, which may exceed 100, and in
/// percent of all cores.
const PERCENTS: [(&str, &str); STATES] = [
    ("system_cpu_user_percent", "system_normalized_cpu_user"),
    ("system_cpu_nice_percent", "system_normalized_cpu_nice"),
    ("system_cpu_kernel_percent", "system_normalized_cpu_kernel"),
    ("system_cpu_idle_percent", "system_normalized_cpu_idle"),
    ("system_cpu_iowait_percent", "system_normalized_cpu_iowait"),
    ("system_cpu_irq_percent", "system_normalized_cpu_irq"),
    ("system_cpu_softirq_percent", "system_normalized_cpu_softirq"),
    ("system_cpu_steal_percent", "system_normalized_cpu_steal"),
    ("system_cpu_guest_percent", "system_normalized_cpu_guest"),
];

/// The index of guest time, which user time includes.
const GUEST: usize = STATES - 1;

/// A decrease of a core's time by fewer ticks is ignored, because the kernel's idle and iowait
/// times sometimes decrease slightly. After a larger decrease, a core was taken offline and
/// restarted.
const STEP_BACK_TICKS_MAX: u64 = 1000;

/// The source of CPU metrics.
#[derive(Debug)]
pub(crate) struct Cpu {
    host: Arc<Host>,
    highest: HashMap<Option<String>, Ticks>,
}

impl Cpu {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, highest: HashMap::new() }
    }
}

impl Source for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let stat = Stat::parse(&self.host.read_text("stat")?)?;
        let cores = stat.cores.iter().filter(|(core, _)| core.is_some()).count();
        let before = self.highest.get(&None).copied();
        for (core, ticks) in stat.cores {
            let highest = self.highest.entry(core.clone()).or_default();
            for index in 0..STATES {
                highest[index] = without_small_decrease(highest[index], ticks[index]);
                let seconds = highest[index] as f64 / self.host.ticks_per_second;
                let host = &self.host;
                match &core {
                    None => host.counters(readings, "seconds", [(METRICS[index], seconds)]),
                    Some(core) => {
                        let total = [(CORE_METRICS[index], seconds)];
                        host.tagged_counters(readings, ("core", core), "seconds", total);
                    }
                }
            }
        }
        if let (Some(before), Some(now)) = (before, self.highest.get(&None)) {
            self.push_percents(shares(before, *now), cores, readings);
        }
        Ok(())
    }
}

impl Cpu {
    fn push_percents(&self, shares: Option<[f64; STATES]>, cores: usize, readings: &mut Readings) {
        let Some(shares) = shares else { return };
        for ((of_a_core, normalized), share) in PERCENTS.into_iter().zip(shares) {
            let percents = [share * cores as f64 * 100.0, share * 100.0].map(rounded);
            let gauges = [(of_a_core, percents[0]), (normalized, percents[1])];
            self.host.gauges(readings, "percent", gauges);
        }
    }
}

/// Returns the share of each state in the time between two rounds, or `None` when no time has
/// passed or a time has decreased.
fn shares(before: Ticks, now: Ticks) -> Option<[f64; STATES]> {
    let mut growths = [0.0; STATES];
    for (growth, (now, before)) in growths.iter_mut().zip(now.into_iter().zip(before)) {
        *growth = now.checked_sub(before)? as f64;
    }
    let total: f64 = growths.iter().take(GUEST).sum();
    (total > 0.0).then(|| growths.map(|ticks| ticks / total))
}

fn without_small_decrease(highest: u64, ticks: u64) -> u64 {
    if ticks < highest && highest - ticks < STEP_BACK_TICKS_MAX { highest } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_decrease_is_ignored_and_a_large_decrease_is_a_reset() {
        assert_eq!(without_small_decrease(5000, 5001), 5001);
        assert_eq!(without_small_decrease(5000, 4999), 5000);
        assert_eq!(without_small_decrease(5000, 20), 20);
    }

    #[test]
    fn shares_add_up_to_1_without_guest_time_which_is_part_of_user_time() {
        let before = [100; STATES];
        let now = [150, 100, 120, 125, 105, 100, 100, 100, 140];
        let found = shares(before, now).unwrap();
        assert_eq!(found, [0.5, 0.0, 0.2, 0.25, 0.05, 0.0, 0.0, 0.0, 0.4]);
        assert_eq!(shares(now, now), None, "no time has passed");
        assert_eq!(shares(now, before), None, "a core was taken offline");
    }
}
