//! Software RAID: the disks and the progress of each array, from /proc/mdstat.

use std::{io, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The maximum number of arrays.
const ARRAYS_MAX: usize = 256;

/// The source of metrics about arrays.
#[derive(Debug)]
pub(crate) struct Raid(pub(crate) Arc<Host>);

/// An array of /proc/mdstat.
#[derive(Debug, Default, PartialEq)]
struct Array {
    name: String,
    is_active: bool,
    failed: f64,
    spare: f64,
    /// The disks that the array needs, and those that work.
    required: Option<f64>,
    working: Option<f64>,
    /// The progress of a resync, recovery, reshape or check, in percent.
    progress: Option<f64>,
}

impl Source for Raid {
    fn name(&self) -> &'static str {
        "raid"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let path = self.0.proc.join("mdstat");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // The kernel has no software RAID.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(cause) => return Err(format!("{}: {cause}", path.display()).into()),
        };
        for array in parse(&text) {
            let tags = [("host", self.0.name.as_str()), ("array", array.name.as_str())];
            let mut gauge = |metric, unit, value: Option<f64>| {
                if let Some(value) = value {
                    readings.gauge(metric, unit, &tags, value);
                }
            };
            gauge("system_raid_active", "", Some(f64::from(u8::from(array.is_active))));
            gauge("system_raid_disks_required", "disks", array.required);
            gauge("system_raid_disks_working", "disks", array.working);
            gauge("system_raid_disks_failed", "disks", Some(array.failed));
            gauge("system_raid_disks_spare", "disks", Some(array.spare));
            gauge("system_raid_sync_progress", "percent", array.progress);
        }
        Ok(())
    }
}

/// Parses /proc/mdstat. The lines of an array follow the line with its name.
fn parse(text: &str) -> Vec<Array> {
    let mut arrays: Vec<Array> = Vec::new();
    for line in text.lines() {
        let is_indented = line.starts_with(' ');
        if let Some((name, rest)) = line.split_once(" : ").filter(|_| !is_indented) {
            if name.starts_with("md") && arrays.len() < ARRAYS_MAX {
                arrays.push(Array::of(name.trim(), rest));
            }
        } else if let Some(array) = arrays.last_mut().filter(|_| is_indented) {
            array.note_line(line);
        }
    }
    arrays
}

impl Array {
    /// Parses the first line, such as `active raid1 sdb1[2](S) sda1[0]`.
    fn of(name: &str, rest: &str) -> Self {
        let words = || rest.split_whitespace();
        let disks = |mark: &str| words().filter(|word| word.ends_with(mark)).count() as f64;
        let is_active = words().next() == Some("active");
        let (failed, spare) = (disks("(F)"), disks("(S)"));
        Self { name: name.to_owned(), is_active, failed, spare, ..Self::default() }
    }

    /// Parses a further line, with `[2/1]` for the disks or `recovery = 12.6%` for the progress.
    fn note_line(&mut self, line: &str) {
        for word in line.split_whitespace() {
            let disks = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
            let disks = disks.and_then(|disks| disks.split_once('/'));
            if let Some((Ok(required), Ok(working))) = disks.map(|(a, b)| (a.parse(), b.parse())) {
                (self.required, self.working) = (Some(required), Some(working));
            }
            if let Some(Ok(percent)) = word.strip_suffix('%').map(str::parse) {
                self.progress = Some(percent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MDSTAT: &str = "\
Personalities : [raid1] [raid6] [raid5] [raid4] [raid0]
md1 : active raid1 sdb2[2](F) sda2[0] sdc2[3](S)
      975319000 blocks super 1.2 [2/1] [U_]
      [==>..................]  recovery = 12.6% (123456/975319000) finish=127.5min speed=33440K/sec
      bitmap: 1/8 pages [4KB], 65536KB chunk

md0 : active raid0 sdd[1] sde[0]
      1953260544 blocks super 1.2 512k chunks

md127 : inactive sdf[0](S)
      1048576 blocks super 1.2

unused devices: <none>
";

    #[test]
    fn arrays_report_their_disks_and_their_progress() {
        let arrays = parse(MDSTAT);
        let degraded = Array {
            name: "md1".to_owned(),
            is_active: true,
            failed: 1.0,
            spare: 1.0,
            required: Some(2.0),
            working: Some(1.0),
            progress: Some(12.6),
        };
        assert_eq!(arrays[0], degraded);
        let names: Vec<_> = arrays.iter().map(|a| (a.name.as_str(), a.is_active)).collect();
        assert_eq!(names, [("md1", true), ("md0", true), ("md127", false)]);
        assert_eq!((arrays[1].required, arrays[1].progress, arrays[2].spare), (None, None, 1.0));
    }

    #[test]
    fn each_array_has_series_and_a_host_without_arrays_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host { proc: folder.path().to_owned(), ..Host::for_tests() };
        let mut raid = Raid(Arc::new(host));
        let mut sample = || {
            let mut readings = Readings::default();
            raid.sample(0, &mut readings).unwrap();
            readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect::<Vec<_>>()
        };
        assert_eq!(sample(), vec![]);
        std::fs::write(folder.path().join("mdstat"), MDSTAT).unwrap();
        let values = sample();
        assert_eq!(values.len(), 6 + 3 + 3, "{values:?}");
        assert!(values.contains(&("system_raid_disks_failed".to_owned(), 1.0)));
    }
}
