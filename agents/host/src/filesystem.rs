//! Space and inodes of local file systems, and of the system's own memory file systems.

use std::{collections::HashSet, fs, path::Path, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};
use rustix::fs::{StatVfs, StatVfsMountFlags, statvfs};

use crate::host::{Host, rounded};

/// The types of local file systems on a medium. Network file systems are excluded, because a
/// server that does not answer would block the agent.
const REAL_TYPES: [&str; 17] = [
    "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus", "jfs", "nilfs2",
    "ntfs", "ntfs3", "reiserfs", "ufs", "vfat", "xfs", "zfs",
];

/// The source of the metrics of file systems.
#[derive(Debug)]
pub(crate) struct FileSystem(pub(crate) Arc<Host>);

/// An entry of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    device: String,
    point: String,
    is_overlay: bool,
    is_memory: bool,
}

/// The maximum depth of a memory file system's mount point: `/dev/shm` has depth 2. Deeper mounts
/// belong to users, services and containers, and their number is unbounded.
const MEMORY_DEPTH_MAX: usize = 2;

impl Source for FileSystem {
    fn name(&self) -> &'static str {
        "filesystem"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let mut overlay = None;
        for mount in real_mounts(&self.0.read_text("self/mounts")?) {
            match statvfs(mount.point.as_str()) {
                // A file system without a size cannot fill up.
                Ok(stat) if mount.is_memory && stat.f_blocks == 0 => {}
                // A container also mounts single files from the file system below its root overlay.
                Ok(stat) if overlay == Some(shared_properties(&stat)) => {}
                Ok(stat) => {
                    if mount.is_overlay {
                        overlay = Some(shared_properties(&stat));
                    }
                    self.push_space(&mount, &stat, readings);
                }
                Err(cause) => readings.problem(format!("filesystem {}", mount.point), cause),
            }
        }
        Ok(())
    }
}

impl FileSystem {
    fn push_space(&self, mount: &Mount, stat: &StatVfs, readings: &mut Readings) {
        let tags = [("host", self.0.name.as_str()), ("mount", mount.point.as_str())];
        // The tag `partition` joins a mount with the series of its device.
        let device = device_name(&mount.device);
        let join_tags = [tags[0], tags[1], ("partition", device.as_str())];
        readings.gauge("disk_partition_mounted", "", &join_tags, 1.0);
        let bytes = |blocks: u64| blocks as f64 * stat.f_frsize as f64;
        let used = stat.f_blocks.saturating_sub(stat.f_bfree);
        readings.gauge("disk_partition_space_total", "bytes", &tags, bytes(stat.f_blocks));
        readings.gauge("disk_partition_space_used", "bytes", &tags, bytes(used));
        readings.gauge("disk_partition_space_free", "bytes", &tags, bytes(stat.f_bavail));
        if let Some(percent) = percent_used(used, stat.f_bavail) {
            readings.gauge("disk_partition_space_percent_used", "percent", &tags, rounded(percent));
            let free = rounded(100.0 - percent);
            readings.gauge("disk_partition_space_percent_free", "percent", &tags, free);
        }
        // Some file systems, such as btrfs, have no fixed number of inodes.
        if stat.f_files > 0 {
            let inodes_used = stat.f_files.saturating_sub(stat.f_ffree);
            readings.gauge("disk_partition_inodes_used", "inodes", &tags, inodes_used as f64);
            readings.gauge("disk_partition_inodes_free", "inodes", &tags, stat.f_ffree as f64);
        }
        let read_only = stat.f_flag.contains(StatVfsMountFlags::RDONLY);
        readings.gauge("disk_partition_read_only", "", &tags, f64::from(u8::from(read_only)));
    }
}

/// Returns the kernel's name of a device, as in the series of disks, partitions and volumes: `dm-0`
/// for `/dev/mapper/vg-root`. Other sources are shortened to their last part: `data` for
/// `tank/data`.
fn device_name(device: &str) -> String {
    let is_device = device.starts_with("/dev/");
    let resolved = is_device.then(|| fs::canonicalize(device).ok()).flatten();
    let path = resolved.as_deref().unwrap_or_else(|| Path::new(device));
    path.file_name().map_or_else(|| device.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the properties that an overlay shares with the file system below it.
fn shared_properties(stat: &StatVfs) -> (u64, u64, u64) {
    (stat.f_frsize, stat.f_blocks, stat.f_files)
}

/// Returns the used percentage as `df` computes it: without the reserve for root.
fn percent_used(used: u64, available: u64) -> Option<f64> {
    let sum = used.checked_add(available).filter(|sum| *sum > 0)?;
    Some(used as f64 / sum as f64 * 100.0)
}

/// Returns the local file systems, each device once, because bind mounts repeat the same space.
fn real_mounts(table: &str) -> Vec<Mount> {
    let mut devices = HashSet::new();
    let mut mounts: Vec<Mount> = table.lines().filter_map(real_mount).collect();
    // The shortest mount point of a device is kept; among equally short mount points, the first.
    mounts.sort_by_key(|mount| mount.point.len());
    // All memory file systems have the same device name.
    let identity =
        |mount: &Mount| if mount.is_memory { &mount.point } else { &mount.device }.clone();
    mounts.retain(|mount| devices.insert(identity(mount)));
    mounts
}

fn real_mount(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let (device, point, kind) = (words.next()?, words.next()?, words.next()?);
    let point = unescape(point);
    // A container's root is an overlay, whose space the container can use.
    let is_overlay = kind == "overlay" && point == "/";
    let is_memory = kind == "tmpfs" && point.matches('/').count() <= MEMORY_DEPTH_MAX;
    let is_real = REAL_TYPES.contains(&kind) || is_overlay || is_memory;
    is_real.then(|| Mount { device: unescape(device), point, is_overlay, is_memory })
}

/// Decodes special characters, which are written as a backslash and three octal digits.
fn unescape(word: &str) -> String {
    let mut parts = word.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        if let Some(byte) = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            bytes.extend_from_slice(part.as_bytes().get(3..).unwrap_or_default());
        } else {
            bytes.push(b'\\');
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_file_systems_are_listed_and_each_device_once() {
        let table = "proc /proc proc rw 0 0\n\
            /dev/vda1 /var/lib/docker ext4 rw 0 0\n/dev/vda1 / ext4 rw 0 0\n\
            tmpfs /dev/shm tmpfs rw 0 0\ntmpfs /run tmpfs rw 0 0\ntmpfs /run tmpfs rw 0 0\n\
            tmpfs /run/user/1000 tmpfs rw 0 0\nnas:/x /mnt/nas nfs4 rw 0 0\n\
            overlay /merged overlay rw 0 0\n/dev/sdb1 /my\\040disk xfs rw 0 0\n";
        let points: Vec<_> = real_mounts(table).into_iter().map(|m| m.point).collect();
        assert_eq!(points, ["/", "/run", "/dev/shm", "/my disk"]);
        let container = real_mounts("overlay / overlay rw 0 0\n");
        assert_eq!(container.len(), 1);
    }

    #[test]
    fn a_device_has_its_kernel_name() {
        for (device, name) in [
            ("/dev/no-such-disk1", "no-such-disk1"),
            ("tank/data", "data"),
            ("overlay", "overlay"),
            ("", ""),
        ] {
            assert_eq!(device_name(device), name, "{device}");
        }
        assert_eq!(device_name("/dev/fd"), "fd", "the symbolic link is resolved");
    }

    #[test]
    fn percent_used_excludes_the_reserve_for_root() {
        assert_eq!(percent_used(30, 90), Some(25.0));
        assert_eq!(percent_used(0, 0), None);
    }

    #[test]
    fn octal_escapes_are_decoded_and_other_backslashes_are_kept() {
        assert_eq!(unescape(r"/a\040b\134c"), r"/a b\c");
        assert_eq!(unescape(r"/a\x"), r"/a\x");
    }
}
