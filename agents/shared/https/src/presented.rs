//! The certificates that a server shows, for people who want to compare or pin its key.
//!
//! Must never know: whether a certificate is trusted.

use std::{
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection,
    pki_types::{CertificateDer, ServerName},
};
use ureq::http::Uri;

use crate::{pinned::PinnedKeys, settings::provider};

/// The time limit of the connection, and of each read and write.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the certificates of the server at an address such as `https://mon.example.org:7117`,
/// without checking whether they are trusted.
///
/// # Errors
/// The server cannot be reached, or does not speak TLS.
pub fn presented_certificates(url: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let uri: Uri = url.parse().map_err(|cause| format!("{url}: {cause}"))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|cause| format!("{url}: {cause}"))?;
    let error = |cause: std::io::Error| format!("{url}: {cause}");
    let mut addresses = (host, uri.port_u16().unwrap_or(443)).to_socket_addrs().map_err(error)?;
    let address = addresses.next().ok_or_else(|| format!("{url}: the host has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(error)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(error)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(error)?;
    let provider = provider();
    let verifier = PinnedKeys::any(&provider);
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| cause.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), name);
    let mut connection = connection.map_err(|cause| format!("{url}: {cause}"))?;
    connection.complete_io(&mut stream).map_err(|cause| {
        let failure = crate::RequestFailure::of(&cause.into(), crate::TrustOptions::System);
        format!("{url}: {}", failure.text)
    })?;
    let shown = connection.peer_certificates().unwrap_or_default();
    Ok(shown.iter().map(|certificate| certificate.clone().into_owned()).collect())
}
