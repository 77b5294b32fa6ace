//! Addresses that other machines can reach: the daemon does not start with one that needs no keys,
//! and warns about one without encryption.
//!
//! Must never know: how an address is opened.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use super::{faults::Faults, sections::Sections};
use crate::access::TrustedProxies;

/// An address that other machines can use without a key.
struct Exposed {
    setting: &'static str,
    address: SocketAddr,
    /// The things that other machines can do.
    allows: &'static str,
    /// The change of the settings that prevents it.
    remedy: &'static str,
}

fn is_loopback(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.to_canonical().is_loopback(),
    }
}

fn exposed(sections: &Sections) -> Vec<Exposed> {
    let http = Exposed {
        setting: "server.listen",
        address: sections.server.listen,
        allows: "read and delete everything",
        remedy: "set security.access = true (docs/security.md)",
    };
    let relay = "use a loopback address and a relay, because Graphite's protocols have no keys";
    let certificates = "set tls.client_ca_file, so that senders must show a certificate";
    // With a file of authorities, each sender of Graphite over TLS must show a certificate.
    let requires_certificates = !sections.tls.client_ca_file.as_os_str().is_empty();
    let tls_listen = sections.graphite.listen.tls.filter(|_| !requires_certificates);
    let graphite = [
        ("graphite.listen", sections.graphite.listen.plain, relay),
        ("graphite.listen (pickle)", sections.graphite.listen.pickle, relay),
        ("graphite.listen (tls)", tls_listen, certificates),
    ];
    let graphite = graphite.into_iter().filter_map(|(setting, address, remedy)| {
        Some(Exposed { setting, address: address?, allows: "send samples", remedy })
    });
    let http = Some(http).filter(|_| !sections.security.access);
    http.into_iter().chain(graphite).filter(|exposed| !is_loopback(exposed.address)).collect()
}

/// Reports each address that other machines can use without a key, unless `security.open` allows
/// it.
pub(super) fn check(sections: &Sections, faults: &mut Faults) {
    if sections.security.open {
        return;
    }
    for Exposed { setting, address, allows, remedy } in exposed(sections) {
        faults.0.push(format!(
            "{setting} = {address}: other machines could {allows} without a key: {remedy}, or in \
             a network that you trust, set security.open = true"
        ));
    }
}

/// Returns the warnings by topic: about addresses that `security.open` allows, and about keys and
/// passwords that are sent without encryption.
pub(super) fn warnings(
    sections: &Sections,
    proxies: &TrustedProxies,
) -> BTreeMap<&'static str, String> {
    let open = open_warning(sections).map(|text| ("open", text));
    let plain = plain_warning(sections, proxies).map(|text| ("plain", text));
    open.into_iter().chain(plain).collect()
}

/// Returns the warning about keys without encryption; none when a proxy on another machine is
/// trusted, because it terminates the TLS of clients and forwards plain HTTP.
fn plain_warning(sections: &Sections, proxies: &TrustedProxies) -> Option<String> {
    let listen = sections.server.listen;
    let is_encrypted = !sections.tls.certificate_file.as_os_str().is_empty();
    let is_plain = sections.security.access && !is_encrypted && !proxies.has_remote();
    (is_plain && !is_loopback(listen)).then(|| {
        format!(
            "server.listen = {listen}: keys and passwords of other machines arrive without \
             encryption: set [tls] (docs/tls.md), or let only a proxy with TLS reach the address, \
             and add it to server.trusted_proxies"
        )
    })
}

fn open_warning(sections: &Sections) -> Option<String> {
    let all = exposed(sections);
    let text = |exposed: &Exposed| {
        let Exposed { setting, address, allows, .. } = exposed;
        format!("whoever reaches {setting} = {address} can {allows} without a key")
    };
    let texts: Vec<_> = all.iter().map(text).collect();
    (!texts.is_empty()).then(|| format!("security.open is set: {}", texts.join("; ")))
}

#[cfg(test)]
mod tests {
    use crate::config::read;

    #[test]
    fn an_address_for_others_needs_access_control_or_security_open() {
        let faults = |text: &str| read(text).err().map(|fault| fault.to_string());
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.5:1", "[::ffff:10.0.0.5]:1"] {
            let listen = format!("server.listen = '{address}'\n");
            let fault = faults(&listen).unwrap();
            assert!(fault.contains("security.access = true"), "{fault}");
            assert!(fault.contains("security.open = true"), "{fault}");
            assert_eq!(faults(&format!("{listen}security.access = true")), None);
            let open = read(&format!("{listen}security.open = true")).unwrap();
            let warning = &open.exposure()["open"];
            assert!(warning.contains("can read and delete everything"), "{warning}");
        }
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            let settings = read(&format!("server.listen = '{address}'")).unwrap();
            assert!(settings.exposure().is_empty(), "{address}");
        }
    }

    #[test]
    fn graphite_has_no_keys() {
        let text = "graphite.listen = '0.0.0.0:2003'\nsecurity.access = true\n";
        let fault = read(text).unwrap_err().to_string();
        assert!(fault.contains("graphite.listen") && !fault.contains("server.listen"), "{fault}");
        let open = read(&format!("{text}security.open = true")).unwrap().exposure();
        let open = &open["open"];
        assert!(open.contains("can send samples") && !open.contains("delete"), "{open}");
        let tls = "tls = { certificate_file = 'c', key_file = 'k' }\n\
                   graphite.listen = ['tls://0.0.0.0:2005']\n";
        let fault = read(tls).unwrap_err().to_string();
        assert!(
            fault.contains("graphite.listen (tls)") && fault.contains("tls.client_ca_file"),
            "{fault}"
        );
        let strict = tls.replace("'k' }", "'k', client_ca_file = 'ca' }");
        assert!(read(&strict).unwrap().exposure().is_empty());
    }

    #[test]
    fn keys_without_encryption_are_a_warning_unless_a_proxy_may_be_in_front() {
        let warning = |text: &str| read(text).unwrap().exposure().remove("plain");
        let outside = "security.access = true\nserver.listen = '0.0.0.0:1'\n";
        let text = warning(outside).unwrap();
        assert!(text.contains("0.0.0.0:1") && text.contains("[tls]"), "{text}");
        assert!(read(outside).unwrap().notes.contains(&text), "the log has the warning");
        let local = "server.trusted_proxies = ['127.0.0.1']";
        assert!(warning(&format!("{outside}{local}")).is_some());
        for safe in [
            "server.trusted_proxies = ['10.1.2.3']",
            "tls = { certificate_file = 'c', key_file = 'k' }",
        ] {
            assert_eq!(warning(&format!("{outside}{safe}")), None);
        }
        assert_eq!(warning("security.access = true\nserver.listen = '[::1]:1'"), None);
        assert_eq!(warning("security.open = true\nserver.listen = '0.0.0.0:1'"), None, "no keys");
        let fault = read("server.trusted_proxies = ['web1']").unwrap_err().to_string();
        assert!(fault.contains("server.trusted_proxies: \"web1\" is no address"), "{fault}");
    }
}
