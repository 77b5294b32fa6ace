//! Targets of endpoints and of their slices, with the labels of their services and pods.

use std::collections::BTreeMap;

use granary_agent_kit::relabel::Labels;

use super::{
    Objects,
    labels::{join, set, set_container, set_map, set_metadata, set_node, set_pod, set_service},
    objects::{Address, Endpoint, Object, Port, Reference},
    targets::Targets,
};
use crate::config::Role;

/// The label of a slice with the name of its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The targets of one object, and the pods that they belong to with their used ports.
struct Found<'a, 't> {
    shared: Labels,
    targets: &'t mut Targets,
    pods: BTreeMap<(&'a str, &'a str), (&'a Object, Vec<u16>)>,
}

impl<'a, 't> Found<'a, 't> {
    fn new(targets: &'t mut Targets) -> Self {
        Self { shared: Labels::default(), targets, pods: BTreeMap::new() }
    }

    /// Adds a target; if it belongs to a pod, with the labels of the pod and the container.
    fn add(
        &mut self,
        mut labels: Labels,
        port: Option<u16>,
        reference: Option<&Reference>,
        objects: &'a Objects,
    ) {
        let reference = reference.filter(|reference| reference.kind == "Pod");
        let pod = reference.and_then(|pod| objects.find(Role::Pod, &pod.namespace, &pod.name));
        if let Some(pod) = pod {
            set_pod(&mut labels, pod);
            for container in &pod.spec.containers {
                let is_used = |own: &&Port| Some(own.container_port) == port;
                if let Some(own) = container.ports.iter().find(is_used) {
                    set_container(&mut labels, container, Some(own));
                }
            }
            let key = (pod.metadata.namespace.as_str(), pod.metadata.name.as_str());
            self.pods.entry(key).or_insert((pod, Vec::new())).1.extend(port);
        }
        self.targets.add(labels);
    }

    /// Adds the container ports that no endpoint has.
    fn finish(self) {
        for (pod, used) in self.pods.values() {
            if pod.status.pod_ip.is_empty() {
                continue;
            }
            for container in &pod.spec.containers {
                if !self.targets.has_room_for(container.ports.len()) {
                    continue;
                }
                for port in container.ports.iter().filter(|p| !used.contains(&p.container_port)) {
                    let mut labels = self.shared.clone();
                    set_pod(&mut labels, pod);
                    set_container(&mut labels, container, Some(port));
                    labels.set("__address__", join(&pod.status.pod_ip, port.container_port));
                    self.targets.add(labels);
                }
            }
        }
    }
}

pub(super) fn add_endpoints(object: &Object, objects: &Objects, targets: &mut Targets) {
    let metadata = &object.metadata;
    let mut found = Found::new(targets);
    set(&mut found.shared, "namespace", metadata.namespace.as_str());
    set_metadata(&mut found.shared, "endpoints", metadata);
    if let Some(service) = objects.find(Role::Service, &metadata.namespace, &metadata.name) {
        set_service(&mut found.shared, service);
    }
    for subset in &object.subsets {
        for port in &subset.ports {
            let ready = subset.addresses.iter().map(|address| (address, "true"));
            let waiting = subset.not_ready_addresses.iter().map(|address| (address, "false"));
            for (address, ready) in ready.chain(waiting) {
                let mut labels = labels_of_address(&found.shared, address, port);
                set(&mut labels, "endpoint_ready", ready);
                set_node(&mut labels, objects, &address.node_name);
                found.add(labels, port.port, address.target_ref.as_ref(), objects);
            }
        }
    }
    found.finish();
}

fn labels_of_address(shared: &Labels, address: &Address, port: &Port) -> Labels {
    let mut labels = shared.clone();
    labels.set("__address__", join(&address.ip, port.port.unwrap_or_default()));
    set(&mut labels, "endpoint_port_name", port.name.clone().unwrap_or_default());
    set(&mut labels, "endpoint_port_protocol", port.protocol.clone().unwrap_or_default());
    set(&mut labels, "endpoint_node_name", address.node_name.as_str());
    set(&mut labels, "endpoint_hostname", address.hostname.as_str());
    if let Some(reference) = &address.target_ref {
        set(&mut labels, "endpoint_address_target_kind", reference.kind.as_str());
        set(&mut labels, "endpoint_address_target_name", reference.name.as_str());
    }
    labels
}

pub(super) fn add_slice(object: &Object, objects: &Objects, targets: &mut Targets) {
    let metadata = &object.metadata;
    let mut found = Found::new(targets);
    set(&mut found.shared, "namespace", metadata.namespace.as_str());
    set(&mut found.shared, "endpointslice_address_type", object.address_type.as_str());
    set_metadata(&mut found.shared, "endpointslice", metadata);
    let service = metadata.labels.get(SERVICE_NAME);
    let service = service.and_then(|name| objects.find(Role::Service, &metadata.namespace, name));
    if let Some(service) = service {
        set_service(&mut found.shared, service);
    }
    for endpoint in &object.endpoints {
        for port in &object.ports {
            for address in &endpoint.addresses {
                let mut labels = labels_of_endpoint(&found.shared, endpoint, port);
                let address = port.port.map_or(address.clone(), |port| join(address, port));
                labels.set("__address__", address);
                let node = endpoint.target_ref.as_ref().filter(|target| target.kind == "Node");
                let node = node.map(|node| &node.name).or(endpoint.node_name.as_ref());
                set_node(&mut labels, objects, node.map(String::as_str).unwrap_or_default());
                found.add(labels, port.port, endpoint.target_ref.as_ref(), objects);
            }
        }
    }
    found.finish();
}

fn labels_of_endpoint(shared: &Labels, endpoint: &Endpoint, port: &Port) -> Labels {
    let mut labels = shared.clone();
    let mut set_if_known = |name: &str, value: Option<String>| {
        set(&mut labels, &format!("endpointslice_{name}"), value.unwrap_or_default());
    };
    set_if_known("port", port.port.map(|port| port.to_string()));
    set_if_known("port_name", port.name.clone());
    set_if_known("port_protocol", port.protocol.clone());
    set_if_known("port_app_protocol", port.app_protocol.clone());
    let conditions = &endpoint.conditions;
    for (name, value) in [
        ("ready", conditions.ready),
        ("serving", conditions.serving),
        ("terminating", conditions.terminating),
    ] {
        set_if_known(&format!("endpoint_conditions_{name}"), value.map(|value| value.to_string()));
    }
    set_if_known("endpoint_hostname", endpoint.hostname.clone());
    set_if_known("endpoint_node_name", endpoint.node_name.clone());
    set_if_known("endpoint_zone", endpoint.zone.clone());
    let target = endpoint.target_ref.clone();
    set_if_known("address_target_kind", target.as_ref().map(|target| target.kind.clone()));
    set_if_known("address_target_name", target.map(|target| target.name));
    let prefix = "endpointslice_endpoint_topology_";
    let present = "endpointslice_endpoint_topology_present_";
    set_map(&mut labels, prefix, present, &endpoint.deprecated_topology);
    labels
}
