//! What all groups share: the host's name, where /proc is, since when counters count.

use std::{fs::File, path::PathBuf};

use granary_agent_kit::{Readings, SourceError};
use procfs::FromRead;

use crate::stat::Stat;

/// The host that is sampled.
#[derive(Debug)]
pub(crate) struct Host {
    /// Value of the tag `host`.
    pub(crate) name: String,
    /// Normally `/proc`.
    pub(crate) proc: PathBuf,
    /// Normally `/sys`.
    pub(crate) sys: PathBuf,
    /// Boot time: the kernel's counters count since then.
    pub(crate) boot_ms: i64,
    /// The unit of CPU times.
    pub(crate) ticks_per_second: f64,
}

impl Host {
    /// The machine this runs on. Boot time is read once: the kernel computes it from the wall
    /// clock, so that a clock step would look like a reboot.
    pub(crate) fn of_this_machine(name: String) -> Result<Self, SourceError> {
        let ticks_per_second = procfs::ticks_per_second() as f64;
        let (proc, sys) = (PathBuf::from("/proc"), PathBuf::from("/sys"));
        let mut host = Self { name, proc, sys, boot_ms: 0, ticks_per_second };
        host.boot_ms = Stat::parse(&host.text("stat")?)?.boot_seconds.saturating_mul(1000);
        Ok(host)
    }

    /// A host of which only the boot time is known.
    #[cfg(test)]
    pub(crate) fn of_test() -> Self {
        let nowhere = PathBuf::from("/nonexistent");
        let (proc, sys) = (nowhere.clone(), nowhere);
        Self { name: "test".to_owned(), proc, sys, boot_ms: 5000, ticks_per_second: 100.0 }
    }

    /// The text of a file under /proc.
    pub(crate) fn text(&self, file: &str) -> Result<String, SourceError> {
        let path = self.proc.join(file);
        std::fs::read_to_string(&path)
            .map_err(|cause| format!("{}: {cause}", path.display()).into())
    }

    /// A file under /proc, parsed by procfs.
    pub(crate) fn parse<T: FromRead>(&self, file: &str) -> Result<T, SourceError> {
        let path = self.proc.join(file);
        let fault = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
        let open = File::open(&path).map_err(|cause| fault(&cause))?;
        T::from_read(open).map_err(|cause| fault(&cause).into())
    }

    /// Adds levels with the tag `host`.
    pub(crate) fn gauges<const N: usize>(
        &self,
        readings: &mut Readings,
        unit: &'static str,
        levels: [(&'static str, f64); N],
    ) {
        for (metric, value) in levels {
            readings.gauge(metric, unit, &[("host", &self.name)], value);
        }
    }

    /// Adds counters since boot with the tag `host`.
    pub(crate) fn counters<const N: usize>(
        &self,
        readings: &mut Readings,
        unit: &'static str,
        totals: [(&'static str, f64); N],
    ) {
        for (metric, value) in totals {
            readings.counter(metric, unit, &[("host", &self.name)], value, Some(self.boot_ms));
        }
    }

    /// Adds counters since boot with the tags `host` and one more.
    pub(crate) fn tagged_counters<const N: usize>(
        &self,
        readings: &mut Readings,
        tag: (&'static str, &str),
        unit: &'static str,
        totals: [(&'static str, f64); N],
    ) {
        for (metric, value) in totals {
            let tags = [("host", self.name.as_str()), tag];
            readings.counter(metric, unit, &tags, value, Some(self.boot_ms));
        }
    }
}
