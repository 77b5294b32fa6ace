//! Operations, bytes, times and utilization of block devices.

use std::{collections::BTreeSet, fs, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};
use procfs::{DiskStat, DiskStats};

use crate::{
    disk_intervals::{ActivityNames, Intervals},
    host::Host,
};

/// The size of a sector in `/proc/diskstats`, independent of the device's sector size.
const SECTOR_BYTES: f64 = 512.0;

/// Prefixes of loop, memory, floppy and optical devices, which are not sampled.
const SKIPPED_PREFIXES: [&str; 5] = ["loop", "ram", "zram", "fd", "sr"];

/// Prefixes of the names of volumes. A device whose name has such a prefix is a volume even when
/// /sys lists no devices below it (`slaves`).
const VOLUME_PREFIXES: [&str; 4] = ["dm-", "md", "bcache", "drbd"];

/// A unit, and the function that reads the value.
type DiskCounter = (&'static str, fn(&DiskStat) -> f64);

/// The counters, in the order of the names below.
const COUNTERS: [DiskCounter; 11] = [
    ("operations", |disk| disk.reads as f64),
    ("operations", |disk| disk.writes as f64),
    ("operations", |disk| (disk.reads + disk.writes) as f64),
    ("operations", |disk| disk.merged as f64),
    ("operations", |disk| disk.writes_merged as f64),
    ("bytes", |disk| disk.sectors_read as f64 * SECTOR_BYTES),
    ("bytes", |disk| disk.sectors_written as f64 * SECTOR_BYTES),
    ("seconds", |disk| disk.time_reading as f64 / 1000.0),
    ("seconds", |disk| disk.time_writing as f64 / 1000.0),
    ("seconds", |disk| disk.time_in_progress as f64 / 1000.0),
    ("seconds", |disk| disk.weighted_time_in_progress as f64 / 1000.0),
];

/// The metric names of one family: disks, partitions or volumes. Each operation is
/// counted by one device of a family, so the series of a metric can be added up.
struct FamilyNames {
    counters: [&'static str; COUNTERS.len()],
    in_progress: &'static str,
    /// The names of the gauges of activity since the previous round.
    activity: ActivityNames,
}

/// The family of whole disks.
const DISKS: FamilyNames = FamilyNames {
    counters: [
        "system_disk_iops_read",
        "system_disk_iops_write",
        "system_disk_iops_total",
        "system_disk_merged_read",
        "system_disk_merged_write",
        "system_disk_bytes_read",
        "system_disk_bytes_written",
        "system_disk_latency_read",
        "system_disk_latency_write",
        "system_disk_utilization",
        "system_disk_queue_time",
    ],
    in_progress: "system_disk_operations_in_progress",
    activity: ActivityNames {
        read_ms: "system_disk_latency_read_ms",
        write_ms: "system_disk_latency_write_ms",
        busy_percent: "system_disk_utilization_percent",
        queue_length: "system_disk_queue_length",
    },
};

/// The family of partitions.
const PARTITIONS: FamilyNames = FamilyNames {
    counters: [
        "disk_partition_iops_read",
        "disk_partition_iops_write",
        "disk_partition_iops_total",
        "disk_partition_merged_read",
        "disk_partition_merged_write",
        "disk_partition_bytes_read",
        "disk_partition_bytes_written",
        "disk_partition_latency_read",
        "disk_partition_latency_write",
        "disk_partition_utilization",
        "disk_partition_queue_time",
    ],
    in_progress: "disk_partition_operations_in_progress",
    activity: ActivityNames {
        read_ms: "disk_partition_latency_read_ms",
        write_ms: "disk_partition_latency_write_ms",
        busy_percent: "disk_partition_utilization_percent",
        queue_length: "disk_partition_queue_length",
    },
};

/// The family of volumes: RAID, logical volumes, encryption.
const VOLUMES: FamilyNames = FamilyNames {
    counters: [
        "system_volume_iops_read",
        "system_volume_iops_write",
        "system_volume_iops_total",
        "system_volume_merged_read",
        "system_volume_merged_write",
        "system_volume_bytes_read",
        "system_volume_bytes_written",
        "system_volume_latency_read",
        "system_volume_latency_write",
        "system_volume_utilization",
        "system_volume_queue_time",
    ],
    in_progress: "system_volume_operations_in_progress",
    activity: ActivityNames {
        read_ms: "system_volume_latency_read_ms",
        write_ms: "system_volume_latency_write_ms",
        busy_percent: "system_volume_utilization_percent",
        queue_length: "system_volume_queue_length",
    },
};

/// The type of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceKind<'a> {
    Disk,
    /// A partition, with the name of its disk.
    Partition(&'a str),
    Volume,
    /// A device that is not sampled: a loop, memory, floppy or optical device, one of its
    /// partitions, or a volume whose operations another volume counts.
    LeftOut,
}

/// The source of the metrics of disks.
#[derive(Debug)]
pub(crate) struct Disk {
    host: Arc<Host>,
    intervals: Intervals,
}

impl Source for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let stats: DiskStats = self.host.parse("diskstats")?;
        self.intervals.begin(now_ms);
        let names: BTreeSet<&str> = stats.0.iter().map(|disk| disk.name.as_str()).collect();
        for device in &stats.0 {
            let name = device.name.as_str();
            match self.device_kind(name, &names) {
                DeviceKind::Disk => {
                    self.add(device, &[("disk", name)], &DISKS, readings);
                    // A disk without a partition table, such as most data disks in clouds, is its
                    // own partition.
                    if !names.iter().any(|part| device_of_partition(part, &names) == Some(name)) {
                        let tags = [("disk", name), ("partition", name)];
                        self.add(device, &tags, &PARTITIONS, readings);
                    }
                }
                DeviceKind::Partition(whole) => {
                    self.add(
                        device,
                        &[("disk", whole), ("partition", name)],
                        &PARTITIONS,
                        readings,
                    );
                }
                DeviceKind::Volume => self.add(device, &[("volume", name)], &VOLUMES, readings),
                DeviceKind::LeftOut => {}
            }
        }
        Ok(())
    }
}

impl Disk {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, intervals: Intervals::default() }
    }

    fn device_kind<'a>(&self, name: &str, names: &BTreeSet<&'a str>) -> DeviceKind<'a> {
        if !has_sampled_name(name) {
            return DeviceKind::LeftOut;
        }
        if let Some(disk) = device_of_partition(name, names) {
            let is_of_disk = self.device_kind(disk, names) == DeviceKind::Disk;
            return if is_of_disk { DeviceKind::Partition(disk) } else { DeviceKind::LeftOut };
        }
        let has_entries = |folder: &str| {
            let path = self.host.sys.join("block").join(name).join(folder);
            fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        };
        let has_volume_prefix = VOLUME_PREFIXES.iter().any(|prefix| is_numbered(name, prefix));
        match has_volume_prefix || has_entries("slaves") {
            false => DeviceKind::Disk,
            // A volume that is built on this one (`holders`) counts the same operations.
            true if has_entries("holders") => DeviceKind::LeftOut,
            true => DeviceKind::Volume,
        }
    }

    fn add(
        &mut self,
        device: &DiskStat,
        device_tags: &[(&'static str, &str)],
        names: &FamilyNames,
        readings: &mut Readings,
    ) {
        let host = Arc::clone(&self.host);
        let mut tags = vec![("host", host.name.as_str())];
        tags.extend_from_slice(device_tags);
        for (metric, (unit, value)) in names.counters.into_iter().zip(COUNTERS) {
            readings.counter(metric, unit, &tags, value(device), Some(host.boot_ms));
        }
        readings.gauge(names.in_progress, "operations", &tags, device.in_progress as f64);
        self.intervals.add(device, &names.activity, &tags, readings);
    }
}

/// Returns the device of which `name` is a partition: `sda` for `sda1`, `nvme0n1` for `nvme0n1p2`,
/// `md0` for `md0p1`.
fn device_of_partition<'a>(name: &str, names: &BTreeSet<&'a str>) -> Option<&'a str> {
    let disk = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let ends_in_digit = |text: &str| text.ends_with(|last: char| last.is_ascii_digit());
    let disk = match disk.strip_suffix('p').filter(|disk| ends_in_digit(disk)) {
        Some(disk) => disk,
        None => disk,
    };
    names.get(disk).copied().filter(|disk| *disk != name)
}

/// Returns true when only digits follow the prefix in the name, such as `ram0` but not `ramdisk`.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

fn has_sampled_name(name: &str) -> bool {
    !SKIPPED_PREFIXES.iter().any(|prefix| is_numbered(name, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_memory_floppy_and_optical_devices_are_skipped() {
        for name in ["sda", "sda1", "nvme0n1p2", "vda", "dm-0", "md0", "srv1"] {
            assert!(has_sampled_name(name), "{name}");
        }
        for other in ["loop0", "ram15", "zram0", "sr0", "fd0"] {
            assert!(!has_sampled_name(other), "{other}");
        }
    }

    #[test]
    fn an_operation_counts_once_in_each_family() {
        let folder = tempfile::tempdir().unwrap();
        // LVM (dm-1) on encryption (dm-0) on a partition (sda2); md0, which is partitioned, and
        // zd0, whose prefix is unknown, are both on sdb.
        for (volume, relation, other) in [
            ("dm-0", "slaves", "sda2"),
            ("dm-0", "holders", "dm-1"),
            ("dm-1", "slaves", "dm-0"),
            ("md0", "slaves", "sdb"),
            ("zd0", "slaves", "sdb"),
        ] {
            fs::create_dir_all(folder.path().join("block").join(volume).join(relation).join(other))
                .unwrap();
        }
        let host = Host { sys: folder.path().to_owned(), ..Host::for_tests() };
        let source = Disk::new(Arc::new(host));
        let names: BTreeSet<&str> = [
            "sda",
            "sda1",
            "sda2",
            "sdb",
            "sdc",
            "md0",
            "md0p1",
            "dm-0",
            "dm-1",
            "nvme0n1",
            "nvme0n1p2",
            "zd0",
            "loop0",
        ]
        .into();
        let check = |name: &str, expected: DeviceKind<'_>| {
            assert_eq!(source.device_kind(name, &names), expected, "{name}");
        };
        for disk in ["sda", "sdb", "sdc", "nvme0n1"] {
            check(disk, DeviceKind::Disk);
        }
        check("sda1", DeviceKind::Partition("sda"));
        check("sda2", DeviceKind::Partition("sda"));
        check("nvme0n1p2", DeviceKind::Partition("nvme0n1"));
        for volume in ["md0", "dm-1", "zd0"] {
            check(volume, DeviceKind::Volume);
        }
        for other in ["dm-0", "md0p1", "loop0"] {
            check(other, DeviceKind::LeftOut);
        }
    }
    /// Regression: a disk without a partition table had no series `disk_partition_*`.
    #[test]
    fn a_disk_without_a_partition_table_is_its_own_partition() {
        let folder = tempfile::tempdir().unwrap();
        let line = |name: &str| format!("8 0 {name} 10 0 80 7 5 0 40 3 0 9 10\n");
        let stats: String = ["sda", "sda1", "nvme1n1"].map(line).concat();
        fs::write(folder.path().join("diskstats"), stats).unwrap();
        let host = Host { proc: folder.path().to_owned(), ..Host::for_tests() };
        let mut readings = Readings::default();
        Disk::new(Arc::new(host)).sample(1000, &mut readings).unwrap();
        let tag_values = |metric: &str, tag: &str| -> Vec<&str> {
            let found = readings.as_slice().iter().filter(|reading| reading.metric == metric);
            let tags = found.flat_map(|reading| &reading.tags).filter(|(name, _)| name == tag);
            tags.map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(tag_values("disk_partition_iops_read", "partition"), ["sda1", "nvme1n1"]);
        assert_eq!(tag_values("system_disk_iops_read", "disk"), ["sda", "nvme1n1"]);
    }
}
