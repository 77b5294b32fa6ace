//! The settings of certificates, of their clients and of proxies, checked before any file is read.
//!
//! Must never know: the contents of certificates.

use std::path::Path;

use super::{
    faults::Faults,
    sections::{Sections, Server, Tls},
};
use crate::access::{ClientScopes, Scope, TrustedProxies};

/// Checks that a certificate has a key. The files are read later.
pub(super) fn check_tls(Sections { tls, graphite, .. }: &Sections, faults: &mut Faults) {
    let is_set = |path: &Path| !path.as_os_str().is_empty();
    let (certificate, key) = (is_set(&tls.certificate_file), is_set(&tls.key_file));
    let fault = match (certificate, key) {
        (true, false) => "tls.key_file is missing; name the key of tls.certificate_file",
        (false, true) => "tls.certificate_file is missing; name the certificate of tls.key_file",
        (false, false) if is_set(&tls.client_ca_file) => {
            "tls.client_ca_file needs TLS; set tls.certificate_file and tls.key_file, too"
        }
        (false, false) if graphite.listen.tls.is_some() => {
            "graphite.listen: tls:// needs a certificate; set tls.certificate_file and tls.key_file"
        }
        _ => return,
    };
    faults.0.push(fault.to_owned());
}

/// Checks that at least one client may send Graphite's protocol over TLS when access control
/// requires a name with a scope.
pub(super) fn check_graphite_clients(
    Sections { tls, graphite, security, .. }: &Sections,
    scopes: &ClientScopes,
    faults: &mut Faults,
) {
    let is_asked = security.access && !tls.client_ca_file.as_os_str().is_empty();
    if is_asked && graphite.listen.tls.is_some() && scopes.with(Scope::Ingest).is_empty() {
        faults.0.push(
            "graphite.listen: no client may send over TLS: with security.access, give the names in \
             their certificates the scope ingest in tls.clients"
                .to_owned(),
        );
    }
}

pub(super) fn trusted_proxies(server: &Server, faults: &mut Faults) -> TrustedProxies {
    TrustedProxies::new(&server.trusted_proxies).unwrap_or_else(|found| {
        faults.0.extend(found.iter().map(|fault| format!("server.trusted_proxies: {fault}")));
        TrustedProxies::default()
    })
}

pub(super) fn client_scopes(tls: &Tls, faults: &mut Faults) -> ClientScopes {
    if !tls.clients.is_empty() && tls.client_ca_file.as_os_str().is_empty() {
        let fault = "tls.clients needs certificates; set tls.client_ca_file, too";
        faults.0.push(fault.to_owned());
    }
    let pairs = tls.clients.iter().map(|(name, scopes)| (name.as_str(), scopes.as_str()));
    ClientScopes::new(pairs).unwrap_or_else(|found| {
        faults.0.extend(found.iter().map(|fault| format!("tls.clients: {fault}")));
        ClientScopes::default()
    })
}
