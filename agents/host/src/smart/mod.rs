//! The health of disks (SMART), as smartctl of smartmontools reports it.
//!
//! smartctl opens the devices, so it needs root. Each round queries at most one disk, because a
//! query takes up to a second; other rounds repeat the last values. `report` knows the JSON.

mod report;

use std::{
    cmp::Reverse, collections::BTreeMap, path::PathBuf, process::Command, sync::Arc, time::Duration,
};

use granary_agent_kit::{Readings, Source, SourceError, run_program};

use self::report::{Device, Health, Reason, parse_devices, parse_report};
use crate::host::Host;

/// The places of the program.
const PROGRAMS: [&str; 2] = ["/usr/sbin/smartctl", "/usr/bin/smartctl"];
/// The interval between two queries of a disk.
const QUERY_INTERVAL_MS: i64 = 600_000;
/// The maximum age of values while the list of disks cannot be read.
const AGE_MAX_MS: u64 = 2 * QUERY_INTERVAL_MS.unsigned_abs();
/// The maximum number of disks.
const DISKS_MAX: usize = 64;
/// The maximum length of the name of a disk.
const NAME_CHARS_MAX: usize = 64;
/// The time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a report; the report of an ATA disk has about 20 kB.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// The source of the health of disks.
#[derive(Debug)]
pub(crate) struct Smart {
    host: Arc<Host>,
    programs: Vec<PathBuf>,
    disks: Vec<Disk>,
    /// The number of disks beyond the maximum.
    omitted: usize,
    scanned_ms: Option<i64>,
    /// The reason why the list of disks cannot be read.
    scan_fault: Option<String>,
    /// The time of the first round, at which the counters start.
    started_ms: Option<i64>,
    failures: BTreeMap<Reason, u64>,
}

#[derive(Debug)]
struct Disk {
    device: Device,
    /// The value of the tag `disk`.
    name: String,
    queried_ms: Option<i64>,
    health: Health,
    /// The time of the values, except those that a sleeping disk keeps.
    reported_ms: Option<i64>,
    fault: Option<String>,
}

impl Smart {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self {
            host,
            programs: PROGRAMS.map(PathBuf::from).to_vec(),
            disks: Vec::new(),
            omitted: 0,
            scanned_ms: None,
            scan_fault: None,
            started_ms: None,
            failures: BTreeMap::new(),
        }
    }

    /// Returns a command, or `None` when smartctl is not installed.
    fn smartctl(&self) -> Option<Command> {
        let program = self.programs.iter().find(|program| program.exists())?;
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg("--json=c");
        Some(command)
    }

    /// Reads the list of disks. Known disks keep their values.
    fn scan(&mut self, command: &mut Command) -> Result<(), String> {
        let finished = run_program(command.arg("--scan"), TIMEOUT, OUTPUT_BYTES_MAX, None)?;
        let devices = parse_devices(&finished.output)?;
        self.omitted = devices.len().saturating_sub(DISKS_MAX);
        let mut known = std::mem::take(&mut self.disks);
        for device in devices.into_iter().take(DISKS_MAX) {
            let last = known.iter().position(|disk| disk.device == device);
            let last = last.map(|index| known.swap_remove(index));
            self.disks.push(last.unwrap_or_else(|| Disk::of(device)));
        }
        Ok(())
    }

    /// Queries the disk whose last query is the oldest. Returns false when no disk is due.
    fn query_next(&mut self, now_ms: i64) -> bool {
        let command = self.smartctl();
        let due = self.disks.iter_mut().filter(|disk| is_due(disk.queried_ms, now_ms));
        let disk = due.min_by_key(|disk| Reverse(age_ms(disk.queried_ms, now_ms)));
        let (Some(mut command), Some(disk)) = (command, disk) else { return false };
        disk.queried_ms = Some(now_ms);
        if let Some(reason) = disk.query(&mut command, now_ms) {
            *self.failures.entry(reason).or_default() += 1;
        }
        true
    }

    /// Begins a round: reads the list of disks if it is old. Returns false without smartctl.
    fn begin(&mut self, now_ms: i64) -> bool {
        let Some(mut command) = self.smartctl() else {
            self.disks.clear();
            (self.scanned_ms, self.scan_fault) = (None, None);
            return false;
        };
        self.started_ms.get_or_insert(now_ms);
        if is_due(self.scanned_ms, now_ms) {
            self.scanned_ms = Some(now_ms);
            self.scan_fault = self.scan(&mut command).err();
            if self.scan_fault.is_some() {
                *self.failures.entry(Reason::Failed).or_default() += 1;
            }
        }
        true
    }

    /// Adds the values of the disks. While the list cannot be read, a disk may be gone, so that old
    /// values do not count.
    fn push(&self, now_ms: i64, readings: &mut Readings) {
        let is_current = |disk: &&Disk| {
            self.scan_fault.is_none() || age_ms(disk.reported_ms, now_ms) <= AGE_MAX_MS
        };
        for disk in self.disks.iter().filter(is_current) {
            let tags = [("disk", disk.name.as_str()), ("host", self.host.name.as_str())];
            let Health { is_healthy, temperature, .. } = disk.health;
            let Health { reallocated_sectors, pending_sectors, .. } = disk.health;
            let Health { media_errors, percentage_used, .. } = disk.health;
            let is_healthy = is_healthy.map(|is_healthy| f64::from(u8::from(is_healthy)));
            for (metric, unit, value) in [
                ("system_disk_smart_healthy", "", is_healthy),
                ("system_disk_smart_temperature", "celsius", temperature),
                ("system_disk_smart_reallocated_sectors", "sectors", reallocated_sectors),
                ("system_disk_smart_pending_sectors", "sectors", pending_sectors),
                ("system_disk_smart_media_errors", "errors", media_errors),
                ("system_disk_smart_percentage_used", "percent", percentage_used),
            ] {
                if let Some(value) = value {
                    readings.gauge(metric, unit, &tags, value);
                }
            }
        }
        for (reason, name) in [
            (Reason::Permission, "permission"),
            (Reason::Unsupported, "unsupported"),
            (Reason::Failed, "failed"),
        ] {
            let count = self.failures.get(&reason).copied().unwrap_or_default() as f64;
            let tags = [("host", self.host.name.as_str()), ("reason", name)];
            let metric = "system_disk_smart_failures";
            readings.counter(metric, "failures", &tags, count, self.started_ms);
        }
    }

    /// Returns the first fault, and the number of disks with one.
    fn outcome(&self) -> Result<(), SourceError> {
        if let Some(fault) = &self.scan_fault {
            return Err(format!("smartctl --scan: {fault}").into());
        }
        let faults: Vec<&str> =
            self.disks.iter().filter_map(|disk| disk.fault.as_deref()).collect();
        if let Some(first) = faults.first() {
            let (failed, all) = (faults.len(), self.disks.len());
            let cause = format!("{failed} of {all} disks have no report of smartctl: {first}");
            return Err(cause.into());
        }
        if self.omitted > 0 {
            let (omitted, all) = (self.omitted, self.disks.len() + self.omitted);
            return Err(format!("{omitted} of {all} disks are omitted").into());
        }
        Ok(())
    }
}

impl Disk {
    fn of(device: Device) -> Self {
        let short = device.name.strip_prefix("/dev/").unwrap_or(&device.name);
        // Disks behind a controller share its device.
        let name = if device.is_behind_controller() {
            format!("{short} {}", device.kind)
        } else {
            short.to_owned()
        };
        let name = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        Self {
            device,
            name,
            queried_ms: None,
            health: Health::default(),
            reported_ms: None,
            fault: None,
        }
    }

    /// Runs smartctl for this disk. Returns the reason when the disk has no report.
    fn query(&mut self, command: &mut Command, now_ms: i64) -> Option<Reason> {
        // A sleeping disk is not woken up.
        command.args(["--info", "--health", "--attributes", "--nocheck=standby,0"]);
        if self.device.is_behind_controller() {
            command.arg(format!("--device={}", self.device.kind));
        }
        command.arg("--").arg(&self.device.name);
        let report = run_program(command, TIMEOUT, OUTPUT_BYTES_MAX, None)
            .map_err(|cause| (Reason::Failed, format!("{}: {cause}", self.name)))
            .and_then(|finished| parse_report(&finished.output));
        match report {
            // A sleeping disk keeps its last values, except the temperature.
            Ok(health) => {
                if health == Health::default() {
                    self.health.temperature = None;
                } else {
                    (self.health, self.reported_ms) = (health, Some(now_ms));
                }
                self.fault = None;
                None
            }
            Err((reason, cause)) => {
                self.health = Health::default();
                let remedy = if reason == Reason::Permission { "; root may read it" } else { "" };
                let is_logged = reason != Reason::Unsupported;
                self.fault = is_logged.then(|| format!("{cause}{remedy}"));
                Some(reason)
            }
        }
    }
}

/// Returns the time since an event, or until it if the clock was set back.
fn age_ms(last_ms: Option<i64>, now_ms: i64) -> u64 {
    last_ms.map_or(u64::MAX, |last_ms| now_ms.abs_diff(last_ms))
}

fn is_due(last_ms: Option<i64>, now_ms: i64) -> bool {
    age_ms(last_ms, now_ms) >= QUERY_INTERVAL_MS.unsigned_abs()
}

impl Device {
    /// Returns true when smartctl does not recognize the disk by its path alone.
    fn is_behind_controller(&self) -> bool {
        self.kind.contains(',')
    }
}

impl Source for Smart {
    fn name(&self) -> &'static str {
        "smart"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        if !self.begin(now_ms) {
            return Ok(());
        }
        let _has_queried = self.query_next(now_ms);
        self.push(now_ms, readings);
        self.outcome()
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        if !self.begin(now_ms) {
            return Ok(());
        }
        while self.query_next(now_ms) {}
        self.push(now_ms, readings);
        self.outcome()
    }
}

#[cfg(test)]
mod tests;
