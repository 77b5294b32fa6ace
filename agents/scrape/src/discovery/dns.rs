//! Discovery by DNS: SRV records with their ports, or addresses.

use std::net::IpAddr;

use granary_agent_kit::relabel::Labels;
use granary_dns::{Record, Resolver};

use super::Found;
use crate::config::{DnsDiscovery, RecordType};

/// The discovery of one entry of `dns_sd_configs`.
#[derive(Debug)]
pub(crate) struct DnsNames(pub(crate) DnsDiscovery);

impl DnsNames {
    /// Returns the current targets of the names. When a query fails, the caller keeps the
    /// previous targets.
    pub(crate) fn look_up(&self, resolver: &Resolver) -> Result<Found, String> {
        let DnsDiscovery { names, kind, port, .. } = &self.0;
        let mut all = Vec::new();
        for name in names {
            for record in resolver.query(name, record_type(*kind))? {
                let (host, record_port) = match record {
                    Record::Service(host, port) => (host, Some(port)),
                    Record::Address(IpAddr::V4(address)) => (address.to_string(), None),
                    Record::Address(IpAddr::V6(address)) => (format!("[{address}]"), None),
                    Record::Text(_) => continue,
                };
                let port = record_port.unwrap_or(*port);
                let mut labels: Labels =
                    [("__address__", format!("{host}:{port}")), ("__meta_dns_name", name.clone())]
                        .into_iter()
                        .collect();
                if record_port.is_some() {
                    labels.set("__meta_dns_srv_record_target", format!("{host}."));
                    labels.set("__meta_dns_srv_record_port", port.to_string());
                }
                all.push(labels);
            }
        }
        // Name servers return records in any order.
        all.sort_by(|left, right| left.iter().cmp(right.iter()));
        let mut found = Found::default();
        for labels in all {
            found.add(|| labels);
        }
        Ok(found)
    }
}

fn record_type(kind: RecordType) -> granary_dns::RecordType {
    match kind {
        RecordType::Srv => granary_dns::RecordType::Srv,
        RecordType::A => granary_dns::RecordType::A,
        RecordType::Aaaa => granary_dns::RecordType::Aaaa,
    }
}

/// Parses bytes as a response, for fuzz tests.
pub(crate) fn fuzz(bytes: &[u8]) {
    for kind in [RecordType::Srv, RecordType::A, RecordType::Aaaa] {
        drop(granary_dns::decode_response(bytes, record_type(kind)));
    }
}

#[cfg(test)]
mod tests;
