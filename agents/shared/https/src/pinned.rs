//! TLS connections to servers whose public key is pinned.
//!
//! The HTTP library has no hook for the check of a certificate, so a connector in its chain
//! replaces the library's own connector, with a different check. Must never know: HTTP.

use std::{
    fmt,
    io::{Read, Write},
    sync::Arc,
};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError,
    SignatureScheme, StreamOwned,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

use crate::Pin;

/// The error for a server whose key is not pinned.
#[derive(Debug)]
pub(crate) struct OtherKey {
    /// The pin of the server's key.
    pub(crate) presented: Pin,
}

impl fmt::Display for OtherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server's key has the pin {}", self.presented)
    }
}

impl std::error::Error for OtherKey {}

/// The check of a server's certificate by its public key alone. As usual, a signature proves that
/// the server has the key.
#[derive(Debug)]
pub(crate) struct PinnedKeys {
    /// The accepted keys; `None` accepts every key.
    pins: Option<Vec<Pin>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinnedKeys {
    pub(crate) fn new(pins: Vec<Pin>, provider: &CryptoProvider) -> Self {
        Self { pins: Some(pins), algorithms: provider.signature_verification_algorithms }
    }

    /// Accepts every key, for connections that only read certificates.
    pub(crate) fn any(provider: &CryptoProvider) -> Self {
        Self { pins: None, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for PinnedKeys {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let presented = Pin::of_key(&certificate.subject_public_key_info());
        if self.pins.as_ref().is_none_or(|pins| pins.contains(&presented)) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::Other(OtherError(Arc::new(OtherKey { presented }))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The last connector of a chain: it wraps the connections of https in TLS.
#[derive(Debug)]
pub(crate) struct PinnedConnector(Arc<ClientConfig>);

impl PinnedConnector {
    pub(crate) fn new(config: Arc<ClientConfig>) -> Self {
        Self(config)
    }
}

impl<In: Transport> Connector<In> for PinnedConnector {
    type Out = Either<In, PinnedTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host);
        let name = name.map_err(|_| ureq::Error::Tls("the address has no valid host name"))?;
        let mut conn = ClientConnection::new(self.0.clone(), name)?;
        let mut sock = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        sock.set_timeout(details.timeout);
        conn.complete_io(&mut sock)?;
        let (input, output) =
            (details.config.input_buffer_size(), details.config.output_buffer_size());
        let buffers = LazyBuffers::new(input, output);
        Ok(Some(Either::B(PinnedTransport { buffers, stream: StreamOwned { conn, sock } })))
    }
}

/// A TLS connection.
pub(crate) struct PinnedTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for PinnedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedTransport").finish_non_exhaustive()
    }
}

impl Transport for PinnedTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
