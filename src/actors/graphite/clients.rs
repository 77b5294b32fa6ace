//! The clients that may send over TLS while access control is on.

use std::net::IpAddr;

use crate::{
    access::{ClientScopes, Scope, Scopes},
    clock::TrustedClock,
    kept::LiveValue,
    telemetry::Metrics,
    tls::{ClientCertificate, Stream},
};

/// The scopes of clients by the names in their certificates.
#[derive(Debug, Clone)]
pub struct GraphiteClients {
    /// The scopes, which a reload changes; `None`: every client whose handshake succeeds may send.
    pub scopes: LiveValue<Option<ClientScopes>>,
    /// The clock, by which certificates expire.
    pub clock: TrustedClock,
    /// The metrics.
    pub metrics: Metrics,
}

/// The client of an encrypted connection.
#[derive(Debug)]
pub(super) struct Client {
    clients: GraphiteClients,
    certificate: Option<ClientCertificate>,
    address: IpAddr,
}

impl Client {
    pub(super) fn new(clients: GraphiteClients, stream: &Stream, address: IpAddr) -> Self {
        Self { clients, certificate: ClientCertificate::of(stream), address }
    }

    /// Returns the sender of a message, if the client may send now.
    pub(super) fn sender(&self) -> Result<String, &'static str> {
        let allowed = self.allowed();
        allowed.map_err(|(reason, message)| {
            self.clients.metrics.requests_refused.with_label_values(&[reason]).inc();
            tracing::warn!(address = %self.address, reason = message, "refused a Graphite client");
            message
        })
    }

    fn allowed(&self) -> Result<String, (&'static str, &'static str)> {
        let scopes = self.clients.scopes.get();
        let Some(scopes) = &*scopes else { return Ok(format!("graphite {}", self.address)) };
        let certificate = self.certificate.as_ref();
        let certificate = certificate.ok_or(("key", "the client has no readable certificate"))?;
        if self.clients.clock.now() >= certificate.expires {
            return Err(("key", "the certificate has expired"));
        }
        let found = scopes.find(&certificate.names);
        let (name, scopes) =
            found.ok_or(("key", "no name of the certificate is in tls.clients"))?;
        if scopes.granted().contains(Scopes::of(&[Scope::Ingest])) {
            return Ok(format!("graphite {name}"));
        }
        Err(("scope", "the name of the certificate lacks the scope ingest in tls.clients"))
    }
}
