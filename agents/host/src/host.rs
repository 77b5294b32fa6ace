//! The state that all sources of this agent share: the host's name, the paths of /proc and /sys,
//! and the start of counters.

use std::{fs::File, path::PathBuf};

use granary_agent_kit::{Readings, SourceError};
use procfs::FromRead;

use crate::stat::Stat;

/// The sampled host.
#[derive(Debug)]
pub(crate) struct Host {
    /// The value of the tag `host`.
    pub(crate) name: String,
    /// Normally `/proc`.
    pub(crate) proc: PathBuf,
    /// Normally `/sys`.
    pub(crate) sys: PathBuf,
    /// The boot time, at which the kernel's counters started.
    pub(crate) boot_ms: i64,
    /// The ticks per second of CPU times.
    pub(crate) ticks_per_second: f64,
}

impl Host {
    /// Returns the local machine. The boot time is read only once: the kernel computes it from the
    /// wall clock, so a clock step would look like a reboot.
    pub(crate) fn of_this_machine(name: String) -> Result<Self, SourceError> {
        let ticks_per_second = procfs::ticks_per_second() as f64;
        let (proc, sys) = (PathBuf::from("/proc"), PathBuf::from("/sys"));
        let mut host = Self { name, proc, sys, boot_ms: 0, ticks_per_second };
        host.boot_ms = Stat::parse(&host.read_text("stat")?)?.boot_seconds.saturating_mul(1000);
        Ok(host)
    }

    /// Creates a host with a known boot time, for tests.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        let nowhere = PathBuf::from("/nonexistent");
        let (proc, sys) = (nowhere.clone(), nowhere);
        Self { name: "test".to_owned(), proc, sys, boot_ms: 5000, ticks_per_second: 100.0 }
    }

    /// Reads a file under /proc as text.
    pub(crate) fn read_text(&self, file: &str) -> Result<String, SourceError> {
        let path = self.proc.join(file);
        std::fs::read_to_string(&path)
            .map_err(|cause| format!("{}: {cause}", path.display()).into())
    }

    /// Reads a file under /proc with procfs.
    pub(crate) fn parse<T: FromRead>(&self, file: &str) -> Result<T, SourceError> {
        let path = self.proc.join(file);
        let describe = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
        let open = File::open(&path).map_err(|cause| describe(&cause))?;
        T::from_read(open).map_err(|cause| describe(&cause).into())
    }

    /// Returns the time since boot in ticks, such as the kernel's start times of processes.
    pub(crate) fn ticks_since_boot(&self) -> Result<u64, SourceError> {
        let uptime: procfs::Uptime = self.parse("uptime")?;
        Ok((uptime.uptime * self.ticks_per_second).round() as u64)
    }

    /// Adds gauges with the tag `host`.
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

    /// Adds counters since boot with the tag `host` and another tag.
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

/// Returns the value with six significant digits, and at most nine decimals. A quotient of two
/// totals, such as a percentage, has no more digits of meaning; a short decimal takes three bytes
/// on the wire instead of eight.
pub(crate) fn rounded(value: f64) -> f64 {
    const DIGITS: f64 = 6.0;
    const DECIMALS_MAX: f64 = 9.0;
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let decimals = (DIGITS - 1.0 - value.abs().log10().floor()).clamp(0.0, DECIMALS_MAX);
    let scale = 10_f64.powi(decimals as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_rounded_to_six_digits_and_nine_decimals() {
        for (value, expected) in [
            (180.590_295_147_573_78, 180.590),
            (66.990_327_046_120_4, 66.9903),
            (99.999_97, 100.0),
            (0.004_764_200_436_718_374, 0.004_764_2),
            (0.067_567_567_567_567_57, 0.067_567_6),
            (1.0 / 3.0 * 1e-5, 3.333e-6),
            (-2.0 / 3.0, -0.666_667),
            (123_456_789.4, 123_456_789.0),
            (98.4504, 98.4504),
            (0.0, 0.0),
        ] {
            assert_eq!(rounded(value), expected, "{value}");
        }
        assert!(rounded(f64::NAN).is_nan());
    }
}
