//! The series that contribute to sparklines, with their hosts and their roles.
//!
//! The host agent defines the metric names; see agents/host/METRICS.md. Must never know: cells.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    model::{METRIC_TAG, SeriesId},
    query::{Budget, QueryError, series::selector::CHUNK},
    store::{Matcher, Store},
};

/// The contribution of a series to the lines of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Seconds in which cores were busy.
    Busy,
    /// Seconds in which cores were idle.
    Idle,
    /// Used memory in bytes.
    MemoryUsed,
    /// Total memory in bytes.
    MemoryTotal,
    /// Used percentage of the file system with this mount point.
    Disk(Arc<str>),
    /// Bytes sent or received.
    Network,
}

const METRICS: [(&str, Part); 12] = [
    ("system_cpu_user", Part::Busy),
    ("system_cpu_nice", Part::Busy),
    ("system_cpu_kernel", Part::Busy),
    ("system_cpu_irq", Part::Busy),
    ("system_cpu_softirq", Part::Busy),
    ("system_cpu_steal", Part::Busy),
    ("system_cpu_idle", Part::Idle),
    ("system_cpu_iowait", Part::Idle),
    ("system_memory_used", Part::MemoryUsed),
    ("system_memory_total", Part::MemoryTotal),
    ("system_network_bytes_in", Part::Network),
    ("system_network_bytes_out", Part::Network),
];
/// The metric of file systems; its series have a tag `mount`.
const DISK: &str = "disk_partition_space_percent_used";

/// The series of a store that contribute to sparklines.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// The dictionary's generation and number of series at the last update.
    version: Option<(u64, usize)>,
    pub(super) hosts: Vec<Arc<str>>,
    /// The IDs, with the index of the host and the contribution.
    pub(super) series: Vec<(SeriesId, u32, Part)>,
}

impl Members {
    /// Returns the approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.hosts.len() * 64 + size_of_val(self.series.as_slice())
    }

    /// Updates the members when the dictionary has changed.
    pub(super) fn update(&mut self, store: &Store, budget: &Budget) -> Result<(), QueryError> {
        let version = {
            let dictionary = store.dictionary();
            (dictionary.generation(), dictionary.len())
        };
        if self.version == Some(version) {
            return Ok(());
        }
        let mut new = Self { version: Some(version), ..Self::default() };
        let mut hosts = BTreeMap::new();
        let mut mounts: BTreeMap<String, Arc<str>> = BTreeMap::new();
        for (metric, part) in &METRICS {
            new.add(store, budget, metric, &mut hosts, |_| part.clone())?;
        }
        new.add(store, budget, DISK, &mut hosts, |mount| {
            Part::Disk(mounts.entry(mount.to_owned()).or_insert_with(|| mount.into()).clone())
        })?;
        new.series.sort_by_key(|(id, ..)| *id);
        *self = new;
        Ok(())
    }

    /// Adds the series of a metric.
    fn add(
        &mut self,
        store: &Store,
        budget: &Budget,
        metric: &str,
        hosts: &mut BTreeMap<Arc<str>, u32>,
        mut part: impl FnMut(&str) -> Part,
    ) -> Result<(), QueryError> {
        let matcher = Matcher { tag: METRIC_TAG.to_owned(), value: metric.to_owned() };
        let ids = store.dictionary().select(&[matcher]);
        for chunk in ids.chunks(CHUNK) {
            budget.check()?;
            budget.reserve(chunk.len() * size_of::<(SeriesId, u32, Part)>())?;
            let dictionary = store.dictionary();
            for id in chunk {
                let Some(key) = dictionary.key(*id) else { continue };
                let Some(host) = key.tag("host") else { continue };
                let index = hosts.get(host).copied().unwrap_or_else(|| {
                    let (name, index) = (Arc::<str>::from(host), self.hosts.len() as u32);
                    self.hosts.push(name.clone());
                    hosts.insert(name, index);
                    index
                });
                let mount = key.tag("mount").unwrap_or_default();
                self.series.push((*id, index, part(mount)));
            }
        }
        Ok(())
    }
}
