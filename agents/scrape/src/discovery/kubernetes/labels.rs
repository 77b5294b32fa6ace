//! The labels that Prometheus gives to targets, by the object that they come from.
//!
//! Must never know: requests.

use std::{collections::BTreeMap, net::Ipv6Addr};

use granary_agent_kit::relabel::Labels;

use super::{
    Objects,
    objects::{Container, Metadata, Object, Port},
};
use crate::config::Role;

const PREFIX: &str = "__meta_kubernetes_";

/// Sets a label with Prometheus' prefix.
pub(super) fn set(labels: &mut Labels, name: &str, value: impl Into<String>) {
    labels.set(&format!("{PREFIX}{name}"), value);
}

/// Sets a label for each pair, and one that shows its presence, because values can be empty.
pub(super) fn set_map(
    labels: &mut Labels,
    name: &str,
    present: &str,
    map: &BTreeMap<String, String>,
) {
    for (key, value) in map {
        let key: String =
            key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        set(labels, &format!("{name}{key}"), value.as_str());
        set(labels, &format!("{present}{key}"), "true");
    }
}

/// Sets the labels of an object's metadata.
pub(super) fn set_metadata(labels: &mut Labels, kind: &str, metadata: &Metadata) {
    set(labels, &format!("{kind}_name"), metadata.name.as_str());
    let map = |part: &str| (format!("{kind}_{part}_"), format!("{kind}_{part}present_"));
    let ((label, label_present), (note, note_present)) = (map("label"), map("annotation"));
    set_map(labels, &label, &label_present, &metadata.labels);
    set_map(labels, &note, &note_present, &metadata.annotations);
}

/// Joins a host and a port, with brackets around an IPv6 address.
pub(super) fn join(host: &str, port: u16) -> String {
    if host.parse::<Ipv6Addr>().is_ok() {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Sets the labels of a service.
pub(super) fn set_service(labels: &mut Labels, service: &Object) {
    set(labels, "namespace", service.metadata.namespace.as_str());
    set_metadata(labels, "service", &service.metadata);
}

/// Sets the labels of a pod's node, if nodes are read.
pub(super) fn set_node(labels: &mut Labels, objects: &Objects, name: &str) {
    if let Some(node) = objects.find(Role::Node, "", name) {
        set_metadata(labels, "node", &node.metadata);
    }
}

/// Sets the labels of a pod.
pub(super) fn set_pod(labels: &mut Labels, pod: &Object) {
    set_metadata(labels, "pod", &pod.metadata);
    let ready = pod.status.conditions.iter().find(|condition| condition.kind == "Ready");
    let ready = ready.map_or("unknown".to_owned(), |found| found.status.to_ascii_lowercase());
    set(labels, "pod_ip", pod.status.pod_ip.as_str());
    set(labels, "pod_ready", ready);
    set(labels, "pod_phase", pod.status.phase.as_str());
    set(labels, "pod_node_name", pod.spec.node_name.as_str());
    set(labels, "pod_host_ip", pod.status.host_ip.as_str());
    set(labels, "pod_uid", pod.metadata.uid.as_str());
    if let Some(owner) = pod.metadata.owner_references.iter().find(|owner| owner.controller) {
        set(labels, "pod_controller_kind", owner.kind.as_str());
        set(labels, "pod_controller_name", owner.name.as_str());
    }
}

/// Sets the labels of a container and one of its ports.
pub(super) fn set_container(labels: &mut Labels, container: &Container, port: Option<&Port>) {
    set(labels, "pod_container_name", container.name.as_str());
    set(labels, "pod_container_image", container.image.as_str());
    if let Some(port) = port {
        set(labels, "pod_container_port_name", port.name.clone().unwrap_or_default());
        set(labels, "pod_container_port_number", port.container_port.to_string());
        set(labels, "pod_container_port_protocol", port.protocol.clone().unwrap_or_default());
    }
}
