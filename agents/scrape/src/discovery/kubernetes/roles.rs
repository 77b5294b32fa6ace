//! Objects of the API become targets, by their role.
//!
//! Must never know: requests.

use std::collections::BTreeMap;

use granary_agent_kit::relabel::Labels;

use super::{
    Objects, endpoints,
    labels::{join, set, set_container, set_map, set_metadata, set_node, set_pod, set_service},
    objects::{Metadata, NodeAddress, Object, Port},
};
use crate::config::Role;

/// Returns the labels of all targets of a role by object, in a fixed order.
pub(super) fn targets(role: Role, objects: &Objects) -> impl Iterator<Item = Vec<Labels>> {
    objects.all(role).map(move |object| match role {
        Role::Endpoints => endpoints::of_endpoints(object, objects),
        Role::EndpointSlice => endpoints::of_slice(object, objects),
        Role::Ingress => of_ingress(object),
        Role::Node => of_node(object).into_iter().collect(),
        Role::Pod => of_pod(object, objects),
        Role::Service => of_service(object),
    })
}

fn of_pod(pod: &Object, objects: &Objects) -> Vec<Labels> {
    let ip = pod.status.pod_ip.as_str();
    if ip.is_empty() {
        return Vec::new();
    }
    let mut shared = Labels::default();
    set_pod(&mut shared, pod);
    set(&mut shared, "namespace", pod.metadata.namespace.as_str());
    set_node(&mut shared, objects, &pod.spec.node_name);
    let mut all = Vec::new();
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
            all.push(labels);
            continue;
        }
        for port in &container.ports {
            let mut labels = labels.clone();
            set_container(&mut labels, container, Some(port));
            labels.set("__address__", join(ip, port.container_port));
            all.push(labels);
        }
    }
    all
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

fn of_service(service: &Object) -> Vec<Labels> {
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
    spec.ports.iter().map(labels_of_port).collect()
}

fn of_ingress(ingress: &Object) -> Vec<Labels> {
    let mut shared = Labels::default();
    set(&mut shared, "namespace", ingress.metadata.namespace.as_str());
    set_metadata(&mut shared, "ingress", &ingress.metadata);
    set(&mut shared, "ingress_class_name", ingress.spec.ingress_class_name.as_str());
    let mut all = Vec::new();
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
            all.push(labels);
        }
    }
    all
}

/// Returns true when a name of a certificate, whose first part can be a star, covers a host.
fn covers(pattern: &str, host: &str) -> bool {
    let after_star = pattern.strip_prefix("*.");
    pattern == host
        || after_star.is_some_and(|rest| host.split_once('.').is_some_and(|(_, end)| end == rest))
}
