//! Objects of the Kubernetes API: the fields that labels are made of, for all kinds together.
//!
//! Must never know: requests, and the names of labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A page of a list, whose objects are not parsed: their number and sizes are checked before.
#[derive(Debug, Deserialize)]
pub(super) struct ObjectList<'a> {
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) items: Vec<&'a RawValue>,
}

/// The position of a list or bookmark in the history of the API.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMetadata {
    pub(super) resource_version: String,
    /// The token of the next page; empty at the end.
    #[serde(rename = "continue")]
    pub(super) next_page: String,
}

/// An event of a watch.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
pub(super) enum Event {
    Added(Box<Object>),
    Modified(Box<Object>),
    Deleted(Box<Object>),
    Bookmark(Bookmark),
    Error(Status),
}

/// A position without an object.
#[derive(Debug, Deserialize)]
pub(super) struct Bookmark {
    pub(super) metadata: ListMetadata,
}

/// The reason why a watch ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) message: String,
}

macro_rules! fields {
    ($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(super) struct $name {
            $(
                $(#[$attribute])*
                #[serde(deserialize_with = "or_default")]
                pub(super) $field: $kind,
            )*
        }
    };
}

fields! {
    /// An object of any kind.
    Object {
        metadata: Metadata,
        spec: Spec,
        status: ObjectStatus,
        subsets: Vec<Subset>,
        address_type: String,
        endpoints: Vec<Endpoint>,
        ports: Vec<Port>,
    }
}

fields! {
    /// The name, labels and owner of an object.
    Metadata {
        name: String,
        namespace: String,
        uid: String,
        resource_version: String,
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
        owner_references: Vec<Owner>,
    }
}

fields! {
    /// An owner of a pod.
    Owner { kind: String, name: String, controller: bool, }
}

fields! {
    /// The specification of a node, pod, service or ingress.
    Spec {
        #[serde(rename = "providerID")]
        provider_id: String,
        node_name: String,
        containers: Vec<Container>,
        init_containers: Vec<Container>,
        ports: Vec<Port>,
        #[serde(rename = "type")]
        kind: String,
        #[serde(rename = "clusterIP")]
        cluster_ip: String,
        #[serde(rename = "loadBalancerIP")]
        load_balancer_ip: String,
        external_name: String,
        ingress_class_name: String,
        rules: Vec<IngressRule>,
        tls: Vec<IngressTls>,
    }
}

fields! {
    /// The state of a node or pod.
    ObjectStatus {
        #[serde(rename = "podIP")]
        pod_ip: String,
        #[serde(rename = "hostIP")]
        host_ip: String,
        phase: String,
        conditions: Vec<Condition>,
        container_statuses: Vec<ContainerStatus>,
        init_container_statuses: Vec<ContainerStatus>,
        addresses: Vec<NodeAddress>,
        daemon_endpoints: DaemonEndpoints,
    }
}

fields! {
    /// A condition of a pod.
    Condition {
        #[serde(rename = "type")]
        kind: String,
        status: String,
    }
}

fields! {
    /// The state of a container.
    ContainerStatus {
        name: String,
        #[serde(rename = "containerID")]
        container_id: String,
    }
}

fields! {
    /// An address of a node.
    NodeAddress {
        #[serde(rename = "type")]
        kind: String,
        address: String,
    }
}

fields! {
    /// The ports of a node's services.
    DaemonEndpoints { kubelet_endpoint: KubeletEndpoint, }
}

fields! {
    /// The port of a kubelet, whose name has a capital letter.
    KubeletEndpoint {
        #[serde(rename = "Port")]
        port: u16,
    }
}

fields! {
    /// A container of a pod.
    Container { name: String, image: String, ports: Vec<Port>, }
}

fields! {
    /// A port of a container, service, subset or slice.
    #[expect(clippy::struct_field_names, reason = "the API defines the names")]
    Port {
        name: Option<String>,
        port: Option<u16>,
        container_port: u16,
        protocol: Option<String>,
        app_protocol: Option<String>,
    }
}

fields! {
    /// Addresses of an `Endpoints` object that share ports.
    Subset {
        addresses: Vec<Address>,
        not_ready_addresses: Vec<Address>,
        ports: Vec<Port>,
    }
}

fields! {
    /// An address of a subset.
    Address {
        ip: String,
        hostname: String,
        node_name: String,
        target_ref: Option<Reference>,
    }
}

fields! {
    /// A reference to a pod or node.
    Reference { kind: String, name: String, namespace: String, }
}

fields! {
    /// An endpoint of an `EndpointSlice`.
    Endpoint {
        addresses: Vec<String>,
        conditions: EndpointConditions,
        hostname: Option<String>,
        node_name: Option<String>,
        zone: Option<String>,
        deprecated_topology: BTreeMap<String, String>,
        target_ref: Option<Reference>,
    }
}

fields! {
    /// The conditions of an endpoint.
    EndpointConditions { ready: Option<bool>, serving: Option<bool>, terminating: Option<bool>, }
}

fields! {
    /// A rule of an ingress.
    IngressRule { host: String, http: IngressPaths, }
}

fields! {
    /// The paths of a rule.
    IngressPaths { paths: Vec<IngressPath>, }
}

fields! {
    /// A path of a rule.
    IngressPath { path: String, }
}

fields! {
    /// Hosts of an ingress that have a certificate.
    IngressTls { hosts: Vec<String>, }
}

/// Deserializes a value; `null` is the default, because the API writes empty lists that way.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl Object {
    /// Returns namespace and name, which identify an object among those of its kind.
    pub(super) fn key(&self) -> (String, String) {
        (self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    /// Returns the approximate memory of the object.
    pub(super) fn bytes(&self) -> usize {
        let Metadata { labels, annotations, .. } = &self.metadata;
        let pairs = labels.iter().chain(annotations);
        let texts: usize = pairs.map(|(name, value)| name.len() + value.len() + 96).sum();
        let containers = self.spec.containers.len() + self.spec.init_containers.len();
        let addresses: usize = self
            .subsets
            .iter()
            .map(|subset| subset.addresses.len() + subset.not_ready_addresses.len())
            .sum();
        size_of::<Self>() + texts + (containers + addresses + self.endpoints.len()) * 256
    }
}
