//! Keys of a prometheus.yml that have no effect in an agent, and unsupported keys. Keys without
//! effect are listed in one warning. Unsupported keys are rejected, with an alternative.
//!
//! Must never know: the location of a key.

use serde::{Deserialize, Deserializer, de::IgnoredAny};

/// A part of the settings that only concerns a Prometheus server; true when it is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IgnoredSetting(pub(crate) bool);

impl<'de> Deserialize<'de> for IgnoredSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An empty part, such as `rule_files:` in many files, does not count.
        Option::<IgnoredAny>::deserialize(deserializer).map(|part| Self(part.is_some()))
    }
}

/// Alternatives to unsupported keys.
const ALTERNATIVES: [(&str, &str); 15] = [
    (
        "remote_write",
        "the agent sends samples to --url, and to other daemons with --also: remove the key, or \
      let a Prometheus send to other stores",
    ),
    ("scrape_config_files", "copy the jobs of these files to scrape_configs here"),
    (
        "oauth2",
        "let a proxy in front of the target add the token, or write the token to the file of \
      authorization.credentials_file",
    ),
    (
        "server_name",
        "scrape the target by the name in its certificate; relabel_configs can set instance",
    ),
    ("min_version", "the agent uses TLS 1.2 and 1.3: remove the key"),
    ("max_version", "the agent uses TLS 1.2 and 1.3: remove the key"),
    ("ca", "write the certificate to a file, and set ca_file"),
    ("cert", "write the certificate to a file, and set cert_file"),
    ("key", "write the key to a file, and set key_file"),
    ("no_proxy", "set proxy_url in the jobs that need it"),
    ("proxy_from_environment", "set proxy_url"),
    ("proxy_connect_header", "put user and password into proxy_url"),
    ("username_file", "set username"),
    ("kubeconfig_file", "set api_server, authorization.credentials_file and tls_config.ca_file"),
    ("credentials_ref", "use credentials_file"),
];
const DISCOVERY_ALTERNATIVE: &str = "list the targets in static_configs, or let a tool list them \
    for file_sd_configs or http_sd_configs; dns_sd_configs find the pods of a headless service";

/// Adds an alternative to the error about a key that Prometheus knows and the agent does not
/// support.
pub(super) fn with_alternative(fault: String) -> String {
    let Some((_, rest)) = fault.split_once("unknown field `") else { return fault };
    let Some((key, _)) = rest.split_once('`') else { return fault };
    let alternative = if key.ends_with("_sd_configs") {
        Some(DISCOVERY_ALTERNATIVE)
    } else {
        ALTERNATIVES.iter().find(|(known, _)| *known == key).map(|(_, alternative)| *alternative)
    };
    match alternative {
        Some(alternative) => format!("{key} is not supported: {alternative} ({fault})"),
        None => fault,
    }
}
