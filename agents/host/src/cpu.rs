//! CPU time by state, of the machine and of each core.

use std::{collections::HashMap, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::{
    host::Host,
    stat::{STATES, Stat, Ticks},
};

/// Of the whole machine.
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

/// Of each core: under names of their own, so that those of a host may be added.
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

/// The kernel's idle and iowait times go back a little now and then; a larger step is a core
/// that was taken off line and begins again.
const STEP_BACK_TICKS_MAX: u64 = 1000;

/// The source.
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
        let stat = Stat::parse(&self.host.text("stat")?)?;
        for (core, ticks) in stat.cores {
            let highest = self.highest.entry(core.clone()).or_default();
            for index in 0..STATES {
                highest[index] = never_back(highest[index], ticks[index]);
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
        Ok(())
    }
}

fn never_back(highest: u64, ticks: u64) -> u64 {
    if ticks < highest && highest - ticks < STEP_BACK_TICKS_MAX { highest } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_step_back_is_held_and_a_large_one_is_a_new_beginning() {
        assert_eq!(never_back(5000, 5001), 5001);
        assert_eq!(never_back(5000, 4999), 5000);
        assert_eq!(never_back(5000, 20), 20);
    }
}
