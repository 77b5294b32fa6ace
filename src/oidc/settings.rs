//! The settings of a provider, and of the daemon as its client.
//!
//! Must never know: how a login uses them.

use std::{fmt, path::PathBuf};

use granary_https::read_small;
use openidconnect::url::{Host, Url};

use super::ProviderFault;
use crate::access::GroupRules;

/// The settings of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The name that the login shows.
    pub name: String,
    /// The address of the provider, which identifies it.
    pub issuer: String,
    /// The id of the daemon as a client of the provider.
    pub client_id: String,
    /// The secret of the daemon as a client of the provider.
    pub client_secret: ClientSecret,
    /// The scopes to request, in addition to `openid`.
    pub scopes: Vec<String>,
    /// The claim with the groups.
    pub groups_claim: String,
    /// The address of the daemon's page, without a slash at its end.
    pub page: String,
    /// The rules by which groups give roles.
    pub rules: GroupRules,
}

impl ProviderSettings {
    /// Returns the redirect URI: the address to which the provider sends the browser back.
    pub fn redirect_uri(&self) -> String {
        format!("{}/login/oidc/callback", self.page)
    }
}

/// Returns the host of an issuer's address.
///
/// # Errors
/// The address is invalid, is neither https nor http on this machine, or has a user, a password, a
/// query or a fragment.
pub fn issuer_host(issuer: &str) -> Result<String, String> {
    let example = "use the provider's address, such as https://id.example.org";
    let url = Url::parse(issuer).map_err(|cause| format!("{cause}; {example}"))?;
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_loopback;
    match url.host_str() {
        Some(host) if is_bare && is_safe => Ok(host.to_owned()),
        _ => Err(format!(
            "use https, or http on this machine, without a user, a password, a query or a fragment; {example}"
        )),
    }
}

/// The source of a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientSecret {
    /// The secret.
    Text(String),
    /// The file with the secret, which each login reads.
    File(PathBuf),
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("(hidden)"),
            Self::File(path) => path.fmt(f),
        }
    }
}

impl ClientSecret {
    pub(super) fn read(&self) -> Result<String, ProviderFault> {
        let fault =
            |cause| ProviderFault::Client(format!("security.oidc.client_secret_file: {cause}"));
        match self {
            Self::Text(secret) => Ok(secret.clone()),
            Self::File(path) => {
                let bytes = read_small(path).map_err(fault)?;
                let text = String::from_utf8(bytes);
                let text =
                    text.map_err(|_| fault(format!("{}: not UTF-8 text", path.display())))?;
                Ok(text.trim().to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_has_https_or_is_on_this_machine() {
        for (issuer, host) in [
            ("https://id.example.org/realms/a", "id.example.org"),
            ("http://127.0.0.1:9000", "127.0.0.1"),
            ("http://[::1]:9000/x", "[::1]"),
            ("http://localhost:1", "localhost"),
        ] {
            assert_eq!(issuer_host(issuer), Ok(host.to_owned()));
        }
        for issuer in [
            "",
            "id.example.org",
            "http://id.example.org",
            "http://localhost.example.org",
            "http://10.0.0.1",
            "https://ann:secret@id.example.org",
            "https://id.example.org/?a",
            "https://id.example.org/#a",
            "ftp://id.example.org",
            "https:///x y",
        ] {
            assert!(issuer_host(issuer).is_err(), "{issuer}");
        }
    }
}
