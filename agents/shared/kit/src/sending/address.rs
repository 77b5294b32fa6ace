//! Addresses without secrets: the user and the password are removed before an address is shown.
//!
//! Must never know: which service has the address.

/// The replacement for an address in which the end of the password is ambiguous.
const HIDDEN: &str = "...";

/// Returns the hosts of an address or a URI.
pub fn hosts_of(address: &str) -> &str {
    let (authority, rest) = split_authority(address);
    // A password with a slash makes the URI invalid, but must not be shown either.
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    if path.contains('@') && !authority.contains('@') {
        return HIDDEN;
    }
    authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts)
}

/// Returns the address of a daemon without the user and password, which are meant for a proxy.
pub(crate) fn without_user(url: &str) -> String {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let hosts = hosts_of(url);
    let rest = if hosts == HIDDEN { "" } else { split_authority(url).1 };
    format!("{scheme}://{hosts}{rest}")
}

/// Splits a URI into the authority and the rest.
fn split_authority(address: &str) -> (&str, &str) {
    let plain = address.split_once("://").map_or(address, |(_, plain)| plain);
    plain.split_at(plain.find(['/', '?']).unwrap_or(plain.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hosts_of_a_uri_are_shown() {
        for (uri, hosts) in [
            ("mongodb://user:s3cret@db1:27017,db2/admin?x=y", "db1:27017,db2"),
            ("mongodb://db1", "db1"),
            ("mongodb://u:s3@cret@db1/", "db1"),
            ("mongodb://u:s3/cret@db1/", "..."),
            ("mongodb://db1/?authMechanismProperties=A:x@y", "db1"),
            ("s3cret@db1", "db1"),
        ] {
            assert_eq!(hosts_of(uri), hosts);
        }
    }

    #[test]
    fn a_password_for_a_proxy_is_not_shown() {
        for (url, expected) in [
            ("https://eve:s3cret@x:1/a@b", "https://x:1/a@b"),
            ("http://eve:s3@cret@x", "http://x"),
            ("http://eve:s3/cret@x/a", "http://..."),
            ("http://x:7117", "http://x:7117"),
        ] {
            assert_eq!(without_user(url), expected);
        }
    }
}
