//! The servers that receive the credentials of the settings after a discovery: only servers in the
//! domain or the network of a host in the URI.
//!
//! Any user who may write to the cluster's configuration can name a server, so an address alone is
//! no reason to authenticate there. Must never know: how servers are found.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mongodb::options::{AuthMechanism, ClientOptions, ServerAddress, Tls};

/// Domains without a dot that no registry sells, so that all their names belong to the operator.
const LOCAL_DOMAINS: [&str; 4] = ["internal", "lan", "local", "localdomain"];

/// The hosts in the URI of a target, without ports, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seeds(Vec<String>);

impl Seeds {
    /// Creates the seeds from the addresses in a URI.
    pub(crate) fn new<'a>(addresses: impl Iterator<Item = &'a ServerAddress>) -> Self {
        Self(addresses.filter_map(host_of).collect())
    }

    /// Returns true when the address is in the domain or network of a seed.
    pub(super) fn include(&self, address: &ServerAddress) -> bool {
        let Some(host) = host_of(address) else { return false };
        self.0.iter().any(|seed| are_near(seed, &host))
    }
}

/// Returns the host of a TCP address.
fn host_of(address: &ServerAddress) -> Option<String> {
    let ServerAddress::Tcp { host, .. } = address else { return None };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(host.trim_end_matches('.').to_ascii_lowercase())
}

fn are_near(seed: &str, host: &str) -> bool {
    if seed == host {
        return true;
    }
    match (seed.parse::<IpAddr>(), host.parse::<IpAddr>()) {
        (Ok(IpAddr::V4(seed)), Ok(IpAddr::V4(host))) => network4(seed) == network4(host),
        (Ok(IpAddr::V6(seed)), Ok(IpAddr::V6(host))) => network6(seed) == network6(host),
        (Err(_), Err(_)) => is_name(host) && are_in_one_domain(seed, host),
        (Ok(_), _) | (_, Ok(_)) => false,
    }
}

/// Returns the first 24 bits.
fn network4(address: Ipv4Addr) -> u32 {
    address.to_bits() >> 8
}

/// Returns the first 64 bits.
fn network6(address: Ipv6Addr) -> u128 {
    address.to_bits() >> 64
}

/// Returns false for other spellings of IPv4 addresses, such as `167772161` and `0xa000001`.
fn is_name(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    last.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Compares names without a domain, or the part of the seed after its first dot.
fn are_in_one_domain(seed: &str, host: &str) -> bool {
    match seed.split_once('.') {
        // The agent's resolver adds the same domain to both.
        None => !host.contains('.'),
        Some((_, domain)) => {
            let is_own = domain.contains('.') || LOCAL_DOMAINS.contains(&domain);
            is_own && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
        }
    }
}

/// Checks that a discovered server cannot read the password.
///
/// # Errors
/// The mechanism sends a password or a token, and nothing verifies the receiver.
pub(crate) fn check_credentials(options: &ClientOptions) -> Result<(), &'static str> {
    let is_verified = match &options.tls {
        Some(Tls::Enabled(tls)) => tls.allow_invalid_certificates != Some(true),
        Some(Tls::Disabled) | None => false,
    };
    let mechanism = options.credential.as_ref().and_then(|part| part.mechanism.as_ref());
    match mechanism {
        Some(AuthMechanism::Plain | AuthMechanism::MongoDbOidc) if !is_verified => Err(
            "discover: the mechanism sends the password or a token to the servers that are found; \
             add tls=true to the URI, without tlsAllowInvalidCertificates, or set discover = false",
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn include(seed: &str, found: &str) -> bool {
        let address = |text: &str| ServerAddress::parse(text).unwrap();
        Seeds::new([address(seed)].iter()).include(&address(found))
    }

    #[test]
    fn servers_outside_of_the_domain_and_the_network_of_the_seeds_are_foreign() {
        for (seed, found) in [
            ("db1.prod.example:27017", "db2.prod.example:27018"),
            ("db1.prod.example", "a.b.PROD.example."),
            ("db1.local", "db2.local"),
            ("db1", "db2"),
            ("10.0.0.1", "10.0.0.250:27018"),
            ("[fd00::1]:27017", "[fd00::2]:27017"),
            ("localhost", "localhost:27018"),
            ("db1.com", "db1.com:27018"),
        ] {
            assert!(include(seed, found), "{seed} {found}");
        }
        for (seed, found) in [
            ("db1.prod.example", "evil.example"),
            ("db1.prod.example", "evilprod.example"),
            ("db1.prod.example", "db1.prod.example.evil.test"),
            ("db1.prod.example", "10.0.0.1"),
            ("db1.com", "evil.com"),
            ("db1", "evil.test"),
            ("db1", "167772161"),
            ("db1", "0xa000001"),
            ("10.0.0.1", "169.254.169.254:80"),
            ("10.0.0.1", "10.0.1.1"),
            ("10.0.0.1", "db1"),
            ("[fd00::1]:27017", "[fd00:0:0:1::1]:27017"),
        ] {
            assert!(!include(seed, found), "{seed} {found}");
        }
    }

    #[tokio::test]
    async fn a_password_in_plain_text_needs_a_verified_server() {
        for (uri, is_safe) in [
            ("mongodb://u:p@db1/?authMechanism=PLAIN", false),
            ("mongodb://u:p@db1/?authMechanism=PLAIN&tls=false", false),
            ("mongodb://u:p@db1/?authMechanism=PLAIN&tls=true&tlsInsecure=true", false),
            ("mongodb://u:p@db1/?authMechanism=PLAIN&tls=true", true),
            ("mongodb://u:p@db1/", true),
            ("mongodb://db1/", true),
        ] {
            let options = ClientOptions::parse(uri).await.unwrap();
            assert_eq!(check_credentials(&options).is_ok(), is_safe, "{uri}");
        }
    }
}
