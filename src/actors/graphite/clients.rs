//! The clients that may send over TLS while access control is on.

use std::{collections::HashSet, net::IpAddr};

use crate::{
    clock::TrustedClock,
    kept::LiveValue,
    telemetry::Metrics,
    tls::{ClientCertificate, Stream},
};

/// The names of clients that may send.
#[derive(Debug, Clone)]
pub struct GraphiteClients {
    /// The accepted names: a certificate must have one of them. A reload changes them. `None`:
    /// every client whose handshake succeeds may send.
    pub names: LiveValue<Option<HashSet<String>>>,
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
        let names = self.clients.names.get();
        let Some(names) = &*names else { return Ok(format!("graphite {}", self.address)) };
        let certificate = self.certificate.as_ref();
        let certificate = certificate.ok_or(("key", "the client has no readable certificate"))?;
        if self.clients.clock.now() >= certificate.expires {
            return Err(("key", "the certificate has expired"));
        }
        let known = certificate.names.iter().find(|name| names.contains(*name));
        let lacks = "no name of the certificate has the scope ingest in tls.clients";
        known.map(|name| format!("graphite {name}")).ok_or(("scope", lacks))
    }
}
