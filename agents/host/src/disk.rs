//! Reads, writes, times and use of block devices.

use std::sync::Arc;

use granary_agent_kit::{Readings, Source, SourceError};
use procfs::{DiskStat, DiskStats};

use crate::host::Host;

/// `/proc/diskstats` counts in these, whatever the device's own sector is.
const SECTOR_BYTES: f64 = 512.0;

/// Devices without a medium of their own.
const SKIPPED_PREFIXES: [&str; 5] = ["loop", "ram", "zram", "fd", "sr"];

/// The source.
#[derive(Debug)]
pub(crate) struct Disk(pub(crate) Arc<Host>);

impl Source for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let stats: DiskStats = self.0.parse("diskstats")?;
        for disk in stats.0.iter().filter(|disk| is_real(&disk.name)) {
            self.device(disk, readings);
        }
        Ok(())
    }
}

impl Disk {
    fn device(&self, disk: &DiskStat, readings: &mut Readings) {
        let tag = ("disk", disk.name.as_str());
        let count = |value: u64| value as f64;
        let seconds = |millis: u64| millis as f64 / 1000.0;
        self.0.tagged_counters(
            readings,
            tag,
            "operations",
            [
                ("disk_partition_iops_read", count(disk.reads)),
                ("disk_partition_iops_write", count(disk.writes)),
                ("disk_partition_iops_total", count(disk.reads + disk.writes)),
                ("disk_partition_merged_read", count(disk.merged)),
                ("disk_partition_merged_write", count(disk.writes_merged)),
            ],
        );
        self.0.tagged_counters(
            readings,
            tag,
            "bytes",
            [
                ("disk_partition_bytes_read", count(disk.sectors_read) * SECTOR_BYTES),
                ("disk_partition_bytes_written", count(disk.sectors_written) * SECTOR_BYTES),
            ],
        );
        self.0.tagged_counters(
            readings,
            tag,
            "seconds",
            [
                ("disk_partition_latency_read", seconds(disk.time_reading)),
                ("disk_partition_latency_write", seconds(disk.time_writing)),
                ("disk_partition_utilization", seconds(disk.time_in_progress)),
                ("disk_partition_queue_time", seconds(disk.weighted_time_in_progress)),
            ],
        );
        let tags = [("host", self.0.name.as_str()), tag];
        let in_progress = count(disk.in_progress);
        readings.gauge("disk_partition_operations_in_progress", "operations", &tags, in_progress);
    }
}

fn is_real(name: &str) -> bool {
    !SKIPPED_PREFIXES.iter().any(|prefix| {
        // `ram0` is one, a device whose name merely begins so is none.
        name.strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_without_a_medium_are_left_out() {
        for real in ["sda", "sda1", "nvme0n1p2", "vda", "dm-0", "md0", "srv1"] {
            assert!(is_real(real), "{real}");
        }
        for other in ["loop0", "ram15", "zram0", "sr0", "fd0"] {
            assert!(!is_real(other), "{other}");
        }
    }
}
