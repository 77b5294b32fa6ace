//! Traffic, errors and drops of network interfaces.

use std::{collections::BTreeMap, sync::Arc};

use granary_agent_kit::{Readings, Source, SourceError};
use procfs::net::{DeviceStatus, InterfaceDeviceStatus};

use crate::host::Host;

/// The source.
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
            // The host's end of a container: a new name with each container, without bound.
            if !name.starts_with("veth") {
                self.interface(name, device, readings);
            }
        }
        Ok(())
    }
}

impl Network {
    fn interface(&self, name: &str, device: &DeviceStatus, readings: &mut Readings) {
        let tag = ("interface", name);
        let count = |value: u64| value as f64;
        self.0.tagged_counters(
            readings,
            tag,
            "bytes",
            [
                ("system_network_bytes_in", count(device.recv_bytes)),
                ("system_network_bytes_out", count(device.sent_bytes)),
            ],
        );
        self.0.tagged_counters(
            readings,
            tag,
            "packets",
            [
                ("system_network_packets_in", count(device.recv_packets)),
                ("system_network_packets_out", count(device.sent_packets)),
                ("system_network_errors_in", count(device.recv_errs)),
                ("system_network_errors_out", count(device.sent_errs)),
                ("system_network_drops_in", count(device.recv_drop)),
                ("system_network_drops_out", count(device.sent_drop)),
            ],
        );
    }
}
