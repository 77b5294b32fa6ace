//! The proxies whose header `X-Forwarded-For` names the addresses of their clients.
//!
//! Must never know: HTTP, where the list comes from.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// The maximum number of entries; each request of a proxy is compared with all.
const ENTRIES_MAX: usize = 64;

/// The addresses of trusted proxies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies(Vec<IpNet>);

/// Parses an address, or an address with the number of leading bits that count.
fn parse(text: &str) -> Option<IpNet> {
    let net: IpNet = text.parse().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.into()))?;
    let is_plain = net.addr().to_canonical() == net.addr();
    (is_plain && net.prefix_len() > 0).then_some(net)
}

fn is_loopback(net: &IpNet) -> bool {
    net.network().is_loopback() && net.broadcast().is_loopback()
}

impl TrustedProxies {
    /// Parses addresses and prefixes, such as `10.1.2.3` and `10.0.0.0/8`.
    ///
    /// # Errors
    /// The faults, each with its entry.
    pub fn new(entries: &[String]) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        if entries.len() > ENTRIES_MAX {
            faults.push(format!("{} entries are more than {ENTRIES_MAX}", entries.len()));
        }
        let mut parsed = |text: &String| {
            let prefix = parse(text);
            if prefix.is_none() {
                faults.push(format!(
                    "{text:?} is no address: use one such as \"10.1.2.3\", or a prefix such as \
                     \"10.0.0.0/8\" or \"fd00::/8\""
                ));
            }
            prefix
        };
        let prefixes = entries.iter().filter_map(&mut parsed).collect();
        if faults.is_empty() { Ok(Self(prefixes)) } else { Err(faults) }
    }

    /// Returns true if an address is that of a trusted proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|prefix| prefix.contains(&address))
    }

    /// Returns true if proxies on other machines are trusted.
    pub fn has_remote(&self) -> bool {
        self.0.iter().any(|prefix| !is_loopback(prefix))
    }

    /// Returns the address of the client of a connection from `peer`, whose request has these
    /// entries of `X-Forwarded-For`. Each proxy appends the address of its own client, so the last
    /// entry that no trusted proxy has is the client; whatever precedes it may be forged.
    pub fn client<'a>(
        &self,
        peer: IpAddr,
        entries: impl DoubleEndedIterator<Item = &'a str>,
    ) -> IpAddr {
        let mut client = peer;
        let mut entries = entries.rev();
        while self.contains(client)
            && let Some(address) = entries.next().and_then(address_of)
        {
            client = address;
        }
        client
    }

    /// Returns the address of the client of a request that a node of the cluster passed on. The last
    /// entry is what the node appended.
    pub fn client_of_node<'a>(
        &self,
        node: IpAddr,
        mut entries: impl DoubleEndedIterator<Item = &'a str>,
    ) -> IpAddr {
        match entries.next_back().and_then(address_of) {
            Some(client) => self.client(client, entries),
            None => node,
        }
    }
}

/// Returns the address of an entry, which may have a port.
fn address_of(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let with_port = || entry.parse().map(|address: SocketAddr| address.ip());
    entry.parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(entries: &[&str]) -> Result<TrustedProxies, Vec<String>> {
        let entries: Vec<_> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        TrustedProxies::new(&entries)
    }

    #[test]
    fn the_address_that_a_node_appends_is_its_client() {
        let trusted = proxies(&["10.1.0.0/16"]).unwrap();
        for (forwarded, client) in [
            ("192.0.2.1, 192.0.2.2", "192.0.2.2"),
            ("192.0.2.1, 10.1.2.3", "192.0.2.1"),
            ("10.1.2.3", "10.1.2.3"),
            ("?", "192.0.2.9"),
        ] {
            let found = trusted.client_of_node("192.0.2.9".parse().unwrap(), forwarded.split(','));
            assert_eq!(found.to_string(), client, "{forwarded}");
        }
    }

    #[test]
    fn the_last_address_that_is_not_of_a_trusted_proxy_is_the_client() {
        let trusted = proxies(&["127.0.0.0/8", "::1", "10.1.0.0/16", "fd00::/9"]).unwrap();
        let check = |peer: &str, forwarded: &str, client: &str| {
            let entries = forwarded.split(',');
            let found = trusted.client(peer.parse().unwrap(), entries);
            assert_eq!(found.to_string(), client, "{peer}, {forwarded}");
        };
        check("127.0.0.1", "", "127.0.0.1");
        check("127.0.0.1", "192.0.2.1, 192.0.2.2", "192.0.2.2");
        check("::1", "192.0.2.1,2001:db8::1", "2001:db8::1");
        check("::ffff:127.0.0.1", "192.0.2.1", "192.0.2.1");
        check("10.1.255.1", "192.0.2.1, 10.1.0.9, 127.0.0.1", "192.0.2.1");
        check("fd7f::1", "192.0.2.1:4711", "192.0.2.1");
        check("fd00::1", "[2001:db8::1]:4711", "2001:db8::1");
        // The entries of an untrusted peer do not count, also when a trusted proxy passes them on.
        check("192.0.2.9", "192.0.2.1", "192.0.2.9");
        check("10.2.0.1", "192.0.2.1", "10.2.0.1");
        check("fd80::1", "192.0.2.1", "fd80::1");
        check("127.0.0.1", "198.51.100.1, 127.0.0.1, 192.0.2.1, 10.1.0.1", "192.0.2.1");
        // An entry that is no address hides those before it; all may be proxies.
        check("127.0.0.1", "192.0.2.1, unknown", "127.0.0.1");
        check("127.0.0.1", "192.0.2.1, unknown, 10.1.0.1", "10.1.0.1");
        check("127.0.0.1", "10.1.0.2, 10.1.0.1", "10.1.0.2");
    }

    #[test]
    fn a_list_is_checked() {
        let text =
            ["10.0.0.0/8x", "10.0.0.0/33", "0.0.0.0/0", "::/0", "web1", "", "::ffff:1.2.3.4"];
        assert_eq!(proxies(&text).unwrap_err().len(), text.len());
        assert!(proxies(&["10.0.0.1"; ENTRIES_MAX + 1]).is_err());
        let none = proxies(&[]).unwrap();
        assert!(!none.contains(IpAddr::from([127, 0, 0, 1])) && !none.has_remote());
        assert!(!proxies(&["127.0.0.0/8", "::1", "127.0.0.1"]).unwrap().has_remote());
        for remote in ["10.0.0.1", "127.0.0.0/7", "::/127"] {
            assert!(proxies(&["127.0.0.1", remote]).unwrap().has_remote(), "{remote}");
        }
    }
}
