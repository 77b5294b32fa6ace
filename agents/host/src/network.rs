//! Traffic, errors and drops of network interfaces.

use std::{collections::BTreeMap, fs, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};
use procfs::net::{DeviceStatus, InterfaceDeviceStatus};

use crate::host::Host;

/// The kernel's names of interface types that carry the traffic of other interfaces.
const STACKED_KINDS: [&str; 7] = ["bond", "bridge", "ipvlan", "macvlan", "macvtap", "team", "vlan"];

/// A unit, and the accessor of the value.
type NetworkCounter = (&'static str, fn(&DeviceStatus) -> u64);

/// The counters, in the order of the names below.
const COUNTERS: [NetworkCounter; 8] = [
    ("bytes", |device| device.recv_bytes),
    ("bytes", |device| device.sent_bytes),
    ("packets", |device| device.recv_packets),
    ("packets", |device| device.sent_packets),
    ("packets", |device| device.recv_errs),
    ("packets", |device| device.sent_errs),
    ("packets", |device| device.recv_drop),
    ("packets", |device| device.sent_drop),
];

/// The family of physical and other independent interfaces.
const INTERFACES: [&str; COUNTERS.len()] = [
    "system_network_bytes_in",
    "system_network_bytes_out",
    "system_network_packets_in",
    "system_network_packets_out",
    "system_network_errors_in",
    "system_network_errors_out",
    "system_network_drops_in",
    "system_network_drops_out",
];

/// The family of bridges, bonds and VLANs, whose traffic also passes the interfaces below them.
const STACKED: [&str; COUNTERS.len()] = [
    "system_network_stacked_bytes_in",
    "system_network_stacked_bytes_out",
    "system_network_stacked_packets_in",
    "system_network_stacked_packets_out",
    "system_network_stacked_errors_in",
    "system_network_stacked_errors_out",
    "system_network_stacked_drops_in",
    "system_network_stacked_drops_out",
];

/// The source of the metrics of interfaces.
#[derive(Debug)]
pub(crate) struct Network(pub(crate) Arc<Host>);

impl Source for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let status: InterfaceDeviceStatus = self.0.parse("net/dev")?;
        let interfaces: BTreeMap<_, _> = status.0.into_iter().collect();
        for (name, device) in &interfaces {
            // Each container adds an interface with a new name, so the number of series would grow
            // without bound. Loopback traffic does not use a network.
            if name.starts_with("veth") || name == "lo" {
                continue;
            }
            let Some(names) = self.metric_names(name) else { continue };
            let tag = ("interface", name.as_str());
            for (metric, (unit, value)) in names.into_iter().zip(COUNTERS) {
                self.0.tagged_counters(readings, tag, unit, [(metric, value(device) as f64)]);
            }
        }
        Ok(())
    }
}

impl Network {
    /// Returns the metric names of an interface. An interface between two others has none, because
    /// both others count its traffic.
    fn metric_names(&self, name: &str) -> Option<[&'static str; COUNTERS.len()]> {
        let folder = self.0.sys.join("class/net").join(name);
        let links: Vec<_> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let has = |prefix: &str| links.iter().any(|link| link.starts_with(prefix));
        let kind = fs::read_to_string(folder.join("uevent")).unwrap_or_default();
        let kind = kind.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
        let is_stacked = has("lower_")
            || kind.is_some_and(|kind| STACKED_KINDS.contains(&kind))
            // Such an interface shapes the traffic of another interface.
            || name.starts_with("ifb");
        match is_stacked {
            false => Some(INTERFACES),
            true if has("upper_") => None,
            true => Some(STACKED),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn traffic_counts_once_in_each_family() {
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("class/net");
        for link in ["eth0/upper_bond0", "bond0/lower_eth0", "bond0/upper_bond0.7"] {
            fs::create_dir_all(net.join(link)).unwrap();
        }
        for (name, uevent) in [
            ("bond0.7", "DEVTYPE=vlan\nINTERFACE=bond0.7\n"),
            ("docker0", "DEVTYPE=bridge\nINTERFACE=docker0\n"),
            ("wlan0", "DEVTYPE=wlan\nINTERFACE=wlan0\n"),
        ] {
            fs::create_dir_all(net.join(name)).unwrap();
            fs::write(net.join(name).join("uevent"), uevent).unwrap();
        }
        let source = Network(Arc::new(Host { sys: folder.path().to_owned(), ..Host::for_tests() }));
        for name in ["eth0", "wlan0", "not_in_sys"] {
            assert_eq!(source.metric_names(name), Some(INTERFACES), "{name}");
        }
        for name in ["bond0.7", "docker0", "ifb0"] {
            assert_eq!(source.metric_names(name), Some(STACKED), "{name}");
        }
        assert_eq!(source.metric_names("bond0"), None);
    }
    #[test]
    fn loopback_traffic_is_not_counted() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("net")).unwrap();
        let table = "Inter-|   Receive  |  Transmit\n face |bytes    packets\n\
                     lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n\
                     eth0: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n";
        fs::write(folder.path().join("net/dev"), table).unwrap();
        let host = Host { proc: folder.path().to_owned(), ..Host::for_tests() };
        let mut readings = Readings::default();
        Network(Arc::new(host)).sample(0, &mut readings).unwrap();
        let tags = readings.as_slice().iter().flat_map(|reading| &reading.tags);
        let interfaces: BTreeSet<_> =
            tags.filter(|(name, _)| name == "interface").map(|(_, value)| value.as_str()).collect();
        assert_eq!(interfaces, ["eth0"].into());
    }
}
