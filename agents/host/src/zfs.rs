//! ZFS: the cache of the kernel module, and the state of each pool, from /proc/spl/kstat/zfs.

use std::{fs, io, path::Path, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The maximum number of pools.
const POOLS_MAX: usize = 256;
/// The counters of the cache, with their unit and field.
const COUNTERS: [(&str, &str, &str); 4] = [
    ("system_zfs_arc_hits", "reads", "hits"),
    ("system_zfs_arc_misses", "reads", "misses"),
    ("system_zfs_l2arc_hits", "reads", "l2_hits"),
    ("system_zfs_l2arc_misses", "reads", "l2_misses"),
];
/// The gauges of the cache, with their field.
const GAUGES: [(&str, &str); 4] = [
    ("system_zfs_arc_size", "size"),
    ("system_zfs_arc_size_target", "c"),
    ("system_zfs_arc_size_max", "c_max"),
    ("system_zfs_l2arc_size", "l2_size"),
];

/// The source of metrics about ZFS.
#[derive(Debug)]
pub(crate) struct Zfs(pub(crate) Arc<Host>);

impl Source for Zfs {
    fn name(&self) -> &'static str {
        "zfs"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let folder = self.0.proc.join("spl/kstat/zfs");
        let Some(text) = read(&folder.join("arcstats"))? else { return Ok(()) };
        for (metric, unit, field) in COUNTERS {
            if let Some(value) = value_of(&text, field) {
                self.0.counters(readings, unit, [(metric, value)]);
            }
        }
        for (metric, field) in GAUGES {
            if let Some(value) = value_of(&text, field) {
                self.0.gauges(readings, "bytes", [(metric, value)]);
            }
        }
        self.sample_pools(&folder, readings)
    }
}

impl Zfs {
    fn sample_pools(&self, folder: &Path, readings: &mut Readings) -> Result<(), SourceError> {
        let fault = |cause: io::Error| format!("{}: {cause}", folder.display());
        for entry in fs::read_dir(folder).map_err(fault)?.take(POOLS_MAX) {
            let entry = entry.map_err(fault)?;
            // Each pool has a folder; the other entries are files.
            let is_pool = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let state = if is_pool { read(&entry.path().join("state"))? } else { None };
            let (name, Some(state)) = (entry.file_name(), state) else { continue };
            let name = name.to_string_lossy();
            let tags = [("host", self.0.name.as_str()), ("pool", &name), ("state", state.trim())];
            readings.gauge("system_zfs_pool_state", "", &tags, 1.0);
        }
        Ok(())
    }
}

/// Reads a file, or nothing when it does not exist.
fn read(path: &Path) -> Result<Option<String>, SourceError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(format!("{}: {cause}", path.display()).into()),
    }
}

/// Returns the value of a field: a line contains its name, its type and its value.
fn value_of(text: &str, field: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let value = (words.next() == Some(field)).then(|| words.nth(1))??;
        value.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCSTATS: &str = "\
13 1 0x01 147 39984 8125452302 183428410398
name                            type data
hits                            4    1700
misses                          4    33
c                               4    4096
c_max                           4    8192
size                            4    4000
l2_size                         4    0
";

    #[test]
    fn the_cache_and_each_pool_have_series() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host { proc: folder.path().to_owned(), ..Host::for_tests() };
        let mut zfs = Zfs(Arc::new(host));
        let mut readings = Readings::default();
        zfs.sample(0, &mut readings).unwrap();
        assert!(readings.as_slice().is_empty(), "the module is not loaded");
        let path = folder.path().join("spl/kstat/zfs");
        fs::create_dir_all(path.join("tank")).unwrap();
        fs::write(path.join("arcstats"), ARCSTATS).unwrap();
        fs::write(path.join("tank/state"), "DEGRADED\n").unwrap();
        zfs.sample(0, &mut readings).unwrap();
        let values: Vec<_> =
            readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect();
        let expected = [
            ("system_zfs_arc_hits", 1700.0),
            ("system_zfs_arc_misses", 33.0),
            ("system_zfs_arc_size", 4000.0),
            ("system_zfs_arc_size_target", 4096.0),
            ("system_zfs_arc_size_max", 8192.0),
            ("system_zfs_l2arc_size", 0.0),
            ("system_zfs_pool_state", 1.0),
        ];
        assert_eq!(values, expected.map(|(metric, value)| (metric.to_owned(), value)));
        let tags = &readings.as_slice()[6].tags;
        assert!(tags.contains(&("state".into(), "DEGRADED".to_owned())), "{tags:?}");
    }
}
