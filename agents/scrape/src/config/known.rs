//! Keys of a prometheus.yml that have no effect in an agent, and unsupported keys. The first are
//! listed in one warning, the others are rejected with an alternative.
//!
//! Must never know: the place of a key.

use serde::{Deserialize, Deserializer, de::IgnoredAny};

/// A part of the settings that only concerns a Prometheus server; true when it is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unused(pub(crate) bool);

impl<'de> Deserialize<'de> for Unused {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An empty part, such as `rule_files:` in many files, does not count.
        Option::<IgnoredAny>::deserialize(deserializer).map(|part| Self(part.is_some()))
    }
}

/// Alternatives to unsupported keys.
const INSTEAD: [(&str, &str); 14] = [
    (
        "remote_write",
        "samples go to the daemon of --url, and with --also to others: remove it, or let \
      a Prometheus send to other stores",
    ),
    ("scrape_config_files", "put the jobs of those files under scrape_configs here"),
    (
        "oauth2",
        "have a proxy before the target get its tokens, or write one to the file of \
      authorization.credentials_file",
    ),
    (
        "server_name",
        "scrape the target by the name that is in its certificate; rules may set instance",
    ),
    ("min_version", "TLS 1.2 and 1.3 are spoken: remove it"),
    ("max_version", "TLS 1.2 and 1.3 are spoken: remove it"),
    ("ca", "write it to a file, and name that in ca_file"),
    ("cert", "write it to a file, and name that in cert_file"),
    ("key", "write it to a file, and name that in key_file"),
    ("no_proxy", "set proxy_url in the jobs that need it"),
    ("proxy_from_environment", "set proxy_url"),
    ("proxy_connect_header", "put user and password into proxy_url"),
    ("username_file", "set username"),
    ("credentials_ref", "use credentials_file"),
];
const INSTEAD_OF_DISCOVERY: &str = "name targets in static_configs, or have a tool list them for \
    file_sd_configs or http_sd_configs; dns_sd_configs find the pods of a headless service";

/// Adds an alternative to the error about a key that Prometheus knows and the agent does not
/// support.
pub(super) fn with_remedy(fault: String) -> String {
    let Some((_, behind)) = fault.split_once("unknown field `") else { return fault };
    let Some((key, _)) = behind.split_once('`') else { return fault };
    let instead = if key.ends_with("_sd_configs") {
        Some(INSTEAD_OF_DISCOVERY)
    } else {
        INSTEAD.iter().find(|(known, _)| *known == key).map(|(_, instead)| *instead)
    };
    match instead {
        Some(instead) => format!("{key} is not supported: {instead} ({fault})"),
        None => fault,
    }
}
