//! The certificate of a client.

use granary_https::Certificate;

use super::Stream;
use crate::model::UnixMillis;

/// The certificate that the client of a connection has shown, and one of the authorities signed.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// The names, in lower case.
    pub names: Vec<String>,
    /// The end of the validity.
    pub expires: UnixMillis,
}

impl ClientCertificate {
    /// Returns the certificate of a connection's client, if it has shown one.
    pub fn of(stream: &Stream) -> Option<Self> {
        let read = Certificate::read(stream.client_certificate()?)?;
        let names = read.names.iter().map(|name| name.to_lowercase()).collect();
        let expires = i64::try_from(read.not_after).unwrap_or(i64::MAX).saturating_mul(1000);
        Some(Self { names, expires: UnixMillis(expires) })
    }
}
