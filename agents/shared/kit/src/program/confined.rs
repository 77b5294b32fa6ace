//! The memory limit that the system imposes on this process, such as a unit's `MemoryMax`.
//!
//! Must never know: who needs the memory.

use std::{fs, path::Path};

/// Returns the smallest limit of this process' control group and its ancestors, in bytes.
pub fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    // In version 2 of control groups, the file has one line, which begins with 0.
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    smallest_limit(Path::new("/sys/fs/cgroup"), group.trim())
}

fn smallest_limit(root: &Path, group: &str) -> Option<u64> {
    let folder = root.join(group);
    let groups = folder.ancestors().take_while(|folder| folder.starts_with(root));
    // Without a limit, the file contains "max". The root group has no such file.
    let limit = |folder: &Path| {
        fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse::<u64>().ok()
    };
    groups.filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_group_and_its_ancestors_counts() {
        let root = tempfile::tempdir().unwrap();
        let unit = root.path().join("system.slice/a.service");
        fs::create_dir_all(&unit).unwrap();
        assert_eq!(smallest_limit(root.path(), "system.slice/a.service"), None);
        fs::write(unit.join("memory.max"), "max\n").unwrap();
        assert_eq!(smallest_limit(root.path(), "system.slice/a.service"), None);
        fs::write(root.path().join("system.slice/memory.max"), "1000\n").unwrap();
        assert_eq!(smallest_limit(root.path(), "system.slice/a.service"), Some(1000));
        fs::write(unit.join("memory.max"), "64000000\n").unwrap();
        assert_eq!(smallest_limit(root.path(), "system.slice/a.service"), Some(1000));
        assert_eq!(smallest_limit(root.path(), ""), None);
    }
}
