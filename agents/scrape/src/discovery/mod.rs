//! Discovery of targets: lists in the settings, files, DNS, HTTP, Kubernetes.
//!
//! Must never know: how targets are used.

mod dns;
mod files;
mod http;
mod kubernetes;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use granary_agent_kit::relabel::Labels;
use granary_dns::Resolver;

use crate::{
    config::{DnsDiscovery, FileDiscovery, Group, Job},
    memory::Memory,
};

/// The maximum number of targets of a source.
pub(crate) const TARGETS_MAX: usize = 10_000;
/// The interval at which files are checked.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The targets that a source found, as labels.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The targets, up to the maximum number.
    pub(crate) targets: Vec<Labels>,
    /// The number of targets beyond the maximum, which are not scraped.
    pub(crate) dropped: u64,
}

impl Found {
    /// Adds a target, or counts it when there are too many.
    fn add(&mut self, target: impl FnOnce() -> Labels) {
        if self.targets.len() < TARGETS_MAX {
            self.targets.push(target());
        } else {
            self.dropped += 1;
        }
    }

    /// Adds the targets of groups, with the labels before relabeling: the address, the labels of
    /// the group, and `additional` labels.
    fn add_groups(&mut self, groups: &[Group], additional: &[(&str, &str)]) {
        for Group { targets, labels } in groups {
            let group_labels: BTreeMap<&str, &str> = labels
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .chain(additional.iter().copied())
                .collect();
            for address in targets {
                let pairs = group_labels.iter().map(|(name, value)| (*name, *value));
                self.add(|| pairs.chain([("__address__", address.as_str())]).collect());
            }
        }
    }

    /// Returns the message about the targets beyond the maximum.
    pub(crate) fn problem(&self) -> Option<String> {
        (self.dropped > 0).then(|| {
            format!(
                "{} targets beyond {TARGETS_MAX} are not scraped; divide the list between sources",
                self.dropped
            )
        })
    }
}

/// A source of targets.
#[derive(Debug)]
pub(crate) enum Source {
    Static(Vec<Group>),
    Files(files::Files),
    Dns(dns::DnsNames),
    Http(http::HttpEntry),
    Kubernetes(Box<kubernetes::Kubernetes>),
}

impl Source {
    /// Returns the sources of a job. The objects of Kubernetes are charged to `memory`.
    pub(crate) fn all_of(job: &Job, memory: &Arc<Memory>) -> Vec<Self> {
        let lists =
            (!job.static_configs.is_empty()).then(|| Self::Static(job.static_configs.clone()));
        let files = job.file_sd_configs.iter();
        let files = files.map(|FileDiscovery { files, .. }| Self::Files(files::Files::new(files)));
        let names = job.dns_sd_configs.iter().cloned();
        let names = names.map(|settings: DnsDiscovery| Self::Dns(dns::DnsNames(settings)));
        let entry =
            job.http_sd_configs.iter().map(|settings| Self::Http(http::HttpEntry::new(settings)));
        let clusters = job.kubernetes_sd_configs.iter();
        let clusters = clusters.map(|settings| {
            Self::Kubernetes(Box::new(kubernetes::Kubernetes::new(settings, memory)))
        });
        lists.into_iter().chain(files).chain(names).chain(entry).chain(clusters).collect()
    }

    /// Returns the refresh interval, or `None` for a constant source.
    pub(crate) fn interval(&self) -> Option<Duration> {
        match self {
            Self::Static(_) => None,
            Self::Files(_) => Some(FILE_CHECK_INTERVAL),
            Self::Dns(names) => Some(names.0.refresh_interval.0.max(Duration::from_secs(1))),
            Self::Http(entry) => Some(entry.interval()),
            Self::Kubernetes(_) => Some(kubernetes::Kubernetes::interval()),
        }
    }

    /// Returns the current targets, or `None` when they are unchanged. After an error, the caller
    /// keeps the previous targets.
    pub(crate) fn refresh(&mut self, resolver: &Resolver) -> Result<Option<Found>, String> {
        match self {
            Self::Static(groups) => {
                let mut found = Found::default();
                found.add_groups(groups, &[]);
                Ok(Some(found))
            }
            Self::Files(files) => files.read_if_changed(),
            Self::Dns(names) => names.look_up(resolver).map(Some),
            Self::Http(entry) => entry.fetch().map(Some),
            Self::Kubernetes(cluster) => cluster.refresh(),
        }
    }
}

/// Parses bytes as a DNS response and as an event of Kubernetes, for fuzz tests.
pub(crate) fn fuzz(bytes: &[u8]) {
    dns::fuzz(bytes);
    kubernetes::fuzz(bytes);
}
