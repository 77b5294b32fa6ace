//! An entry of `kubernetes_sd_configs` (prometheus.io, "Configuration").
//!
//! Must never know: how the API is read.

use serde::Deserialize;

use super::credentials::{Authorization, BasicAuth, Credentials, Tls};

/// The maximum number of namespaces: each has up to four watches, with a thread each.
const NAMESPACES_MAX: usize = 16;
/// The maximum length of a namespace or selector.
const TEXT_BYTES_MAX: usize = 1024;

/// The kind of objects that become targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Endpoints,
    EndpointSlice,
    Ingress,
    Node,
    Pod,
    Service,
}

impl Role {
    /// Returns the resources that a role reads, its own first.
    pub(crate) fn resources(self, with_nodes: bool) -> Vec<Self> {
        let mut all = match self {
            Self::Endpoints | Self::EndpointSlice => vec![self, Self::Service, Self::Pod],
            Self::Ingress | Self::Node | Self::Pod | Self::Service => vec![self],
        };
        let has_nodes = matches!(self, Self::Endpoints | Self::EndpointSlice | Self::Pod);
        if with_nodes && has_nodes {
            all.push(Self::Node);
        }
        all
    }
}

/// Targets found by the API of Kubernetes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KubernetesDiscovery {
    pub(crate) role: Role,
    /// The URL of the API; empty inside of a cluster.
    #[serde(default)]
    pub(crate) api_server: String,
    #[serde(default)]
    pub(crate) namespaces: Namespaces,
    #[serde(default)]
    pub(crate) selectors: Vec<Selector>,
    #[serde(default)]
    pub(crate) attach_metadata: AttachMetadata,
    #[serde(default)]
    pub(crate) basic_auth: Option<BasicAuth>,
    #[serde(default)]
    pub(crate) authorization: Option<Authorization>,
    #[serde(default)]
    pub(crate) tls_config: Tls,
    #[serde(default = "enabled")]
    pub(crate) follow_redirects: bool,
    /// Accepted for compatibility; requests always use HTTP/1.1.
    #[serde(default = "enabled")]
    pub(crate) enable_http2: bool,
    #[serde(default)]
    pub(crate) proxy_url: Option<String>,
}

fn enabled() -> bool {
    true
}

/// The namespaces to read; all when none is listed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Namespaces {
    pub(crate) own_namespace: bool,
    pub(crate) names: Vec<String>,
}

/// A filter of the API for the objects of a role.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selector {
    pub(crate) role: Role,
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) field: String,
}

/// Labels of other objects that targets get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AttachMetadata {
    pub(crate) node: bool,
}

impl KubernetesDiscovery {
    pub(super) fn credentials_mut(&mut self) -> Credentials<'_> {
        Credentials {
            basic_auth: &mut self.basic_auth,
            authorization: &mut self.authorization,
            tls_config: &mut self.tls_config,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Self { api_server, namespaces, selectors, .. } = self;
        let fault = |problem: String| Err(format!("kubernetes_sd_configs: {problem}"));
        let is_url = api_server.starts_with("http://") || api_server.starts_with("https://");
        if !api_server.is_empty() && !is_url {
            return fault(format!("api_server {api_server:?} must begin with https://"));
        }
        let authority = api_server.split('/').nth(2).unwrap_or_default();
        if authority.contains('@') {
            return fault("api_server contains a user; use basic_auth".to_owned());
        }
        if api_server.is_empty() && (self.basic_auth.is_some() || self.authorization.is_some()) {
            return fault(
                "credentials need an api_server; without it, those of the pod are used".to_owned(),
            );
        }
        if namespaces.names.len() > NAMESPACES_MAX {
            return fault(format!(
                "more than {NAMESPACES_MAX} namespaces; list none to read all of them, and keep \
                 some with relabel_configs"
            ));
        }
        let is_name = |text: &String| {
            let is_allowed = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-';
            (1..=63).contains(&text.len()) && text.bytes().all(is_allowed)
        };
        if let Some(bad) = namespaces.names.iter().find(|name| !is_name(name)) {
            return fault(format!("{bad:?} is not a namespace"));
        }
        let resources = self.role.resources(self.attach_metadata.node);
        for (index, Selector { role, label, field }) in selectors.iter().enumerate() {
            if !resources.contains(role) {
                return fault(format!("the role {:?} reads no objects of {role:?}", self.role));
            }
            if selectors.iter().skip(index + 1).any(|other| other.role == *role) {
                return fault(format!("two selectors of {role:?}; join them with a comma"));
            }
            if label.len().max(field.len()) > TEXT_BYTES_MAX {
                return fault(format!("a selector is longer than {TEXT_BYTES_MAX} bytes"));
            }
        }
        Ok(())
    }
}
