//! Objects of the API become targets, by their role.
//!
//! Must never know: requests.

use std::collections::BTreeMap;

use granary_agent_kit::relabel::Labels;

use super::{
    Objects, endpoints,
    labels::{join, set, set_container, set_map, set_metadata, set_node, set_pod, set_service},
    objects::{Metadata, NodeAddress, Object, Port, Subset},
    targets::Targets,
};
use crate::config::Role;

/// Adds the targets of a role by object, in a fixed order.
pub(super) fn add_targets(role: Role, objects: &Objects, targets: &mut Targets) {
    for object in objects.all(role) {
        // One object can name millions of targets: the product of its addresses and ports.
        if !targets.has_room_for(count_targets(role, object)) {
            continue;
        }
        match role {
            Role::Endpoints => endpoints::add_endpoints(object, objects, targets),
            Role::EndpointSlice => endpoints::add_slice(object, objects, targets),
            Role::Ingress => add_ingress(object, targets),
            Role::Node => of_node(object).into_iter().for_each(|labels| targets.add(labels)),
            Role::Pod => add_pod(object, objects, targets),
            Role::Service => add_service(object, targets),
        }
    }
}

/// Returns the maximum number of targets of an object, without those of its pods.
fn count_targets(role: Role, object: &Object) -> usize {
    match role {
        Role::Endpoints => {
            let of_subset = |subset: &Subset| {
                let addresses = subset.addresses.len() + subset.not_ready_addresses.len();
                addresses.saturating_mul(subset.ports.len())
            };
            object.subsets.iter().map(of_subset).fold(0, usize::saturating_add)
        }
        Role::EndpointSlice => {
            let addresses = object.endpoints.iter().map(|endpoint| endpoint.addresses.len());
            addresses.sum::<usize>().saturating_mul(object.ports.len())
        }
        Role::Ingress => object.spec.rules.iter().map(|rule| rule.http.paths.len().max(1)).sum(),
        Role::Node => 1,
        Role::Pod => {
            let containers = object.spec.containers.iter().chain(&object.spec.init_containers);
            containers.map(|container| container.ports.len().max(1)).sum()
        }
        Role::Service => object.spec.ports.len(),
    }
}

fn add_pod(pod: &Object, objects: &Objects, targets: &mut Targets) {
    let ip = pod.status.pod_ip.as_str();
    if ip.is_empty() {
        return;
    }
    let mut shared = Labels::default();
    set_pod(&mut shared, pod);
    set(&mut shared, "namespace", pod.metadata.namespace.as_str());
    set_node(&mut shared, objects, &pod.spec.node_name);
    let containers = pod.spec.containers.iter().map(|container| (container, false));
    let initial = pod.spec.init_containers.iter().map(|container| (container, true));
    for (container, is_initial) in containers.chain(initial) {
        let statuses = if is_initial {
            &pod.status.init_container_statuses
        } else {
            &pod.status.container_statuses
        };
        let status = statuses.iter().find(|status| status.name == container.name);
        let mut labels = shared.clone();
        let id = status.map(|status| status.container_id.as_str()).unwrap_or_default();
        set(&mut labels, "pod_container_id", id);
        set(&mut labels, "pod_container_init", is_initial.to_string());
        if container.ports.is_empty() {
            set_container(&mut labels, container, None);
            labels.set("__address__", ip);
            targets.add(labels);
            continue;
        }
        for port in &container.ports {
            let mut labels = labels.clone();
            set_container(&mut labels, container, Some(port));
            labels.set("__address__", join(ip, port.container_port));
            targets.add(labels);
        }
    }
}

fn of_node(node: &Object) -> Option<Labels> {
    let addresses = &node.status.addresses;
    let first = |kind: &str| addresses.iter().find(|address| address.kind == kind);
    let kinds = ["InternalIP", "ExternalIP", "LegacyHostIP", "Hostname"];
    let NodeAddress { address, .. } = kinds.into_iter().find_map(first)?;
    let mut labels = Labels::default();
    set_metadata(&mut labels, "node", &node.metadata);
    set(&mut labels, "node_provider_id", node.spec.provider_id.as_str());
    for NodeAddress { kind, address } in addresses.iter().rev() {
        let kind = BTreeMap::from([(kind.clone(), address.clone())]);
        // The labels of addresses have no counterpart that shows their presence.
        set_map(&mut labels, "node_address_", "node_addresspresent_", &kind);
    }
    labels.retain(|name| !name.starts_with("__meta_kubernetes_node_addresspresent_"));
    labels.set("__address__", join(address, node.status.daemon_endpoints.kubelet_endpoint.port));
    labels.set("instance", node.metadata.name.as_str());
    Some(labels)
}

fn add_service(service: &Object, targets: &mut Targets) {
    let Metadata { name, namespace, .. } = &service.metadata;
    let spec = &service.spec;
    let labels_of_port = |port: &Port| {
        let mut labels = Labels::default();
        set_service(&mut labels, service);
        let number = port.port.unwrap_or_default();
        labels.set("__address__", format!("{name}.{namespace}.svc:{number}"));
        set(&mut labels, "service_port_name", port.name.clone().unwrap_or_default());
        set(&mut labels, "service_port_number", number.to_string());
        set(&mut labels, "service_port_protocol", port.protocol.clone().unwrap_or_default());
        set(&mut labels, "service_type", spec.kind.as_str());
        match spec.kind.as_str() {
            "ExternalName" => set(&mut labels, "service_external_name", &*spec.external_name),
            _ => set(&mut labels, "service_cluster_ip", spec.cluster_ip.as_str()),
        }
        if spec.kind == "LoadBalancer" {
            set(&mut labels, "service_loadbalancer_ip", spec.load_balancer_ip.as_str());
        }
        labels
    };
    spec.ports.iter().for_each(|port| targets.add(labels_of_port(port)));
}

fn add_ingress(ingress: &Object, targets: &mut Targets) {
    let mut shared = Labels::default();
    set(&mut shared, "namespace", ingress.metadata.namespace.as_str());
    set_metadata(&mut shared, "ingress", &ingress.metadata);
    set(&mut shared, "ingress_class_name", ingress.spec.ingress_class_name.as_str());
    for rule in &ingress.spec.rules {
        let mut secure = ingress.spec.tls.iter().flat_map(|tls| &tls.hosts);
        let scheme = if secure.any(|host| covers(host, &rule.host)) { "https" } else { "http" };
        let paths = rule.http.paths.iter().map(|path| path.path.as_str());
        let mut paths: Vec<&str> =
            paths.map(|path| if path.is_empty() { "/" } else { path }).collect();
        if paths.is_empty() {
            paths.push("/");
        }
        for path in paths {
            let mut labels = shared.clone();
            labels.set("__address__", rule.host.as_str());
            set(&mut labels, "ingress_scheme", scheme);
            set(&mut labels, "ingress_host", rule.host.as_str());
            set(&mut labels, "ingress_path", path);
            targets.add(labels);
        }
    }
}

/// Returns true when a name of a certificate, whose first part can be a star, covers a host.
fn covers(pattern: &str, host: &str) -> bool {
    let after_star = pattern.strip_prefix("*.");
    pattern == host
        || after_star.is_some_and(|rest| host.split_once('.').is_some_and(|(_, end)| end == rest))
}
