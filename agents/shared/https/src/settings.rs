//! The settings of https: trusted authorities, pinned keys, and the certificate of the client.
//!
//! Must never know: which server is contacted.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use clap::Args;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::CertifiedKey,
};
use ureq::{
    config::ConfigBuilder,
    tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig},
    typestate::AgentScope,
    unversioned::{
        resolver::DefaultResolver,
        transport::{ConnectProxyConnector, Connector, TcpConnector},
    },
};

use crate::{
    Pin,
    files::{read_certificates, read_key, read_small},
    pinned::{PinnedConnector, PinnedKeys},
};

/// The settings of https of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Https {
    /// The file with the trusted authorities (default: the system's).
    pub ca_file: Option<PathBuf>,
    /// The pins of the accepted public keys. If there are any, they replace the authorities, the
    /// check of names and the check of validity, and only https addresses are requested.
    pub pins: Vec<Pin>,
    /// The file with the client's certificates.
    pub client_cert_file: Option<PathBuf>,
    /// The file with the key of the client's certificate.
    pub client_key_file: Option<PathBuf>,
    /// True to accept any certificate of the server.
    pub accepts_any_certificate: bool,
}

/// The options of https that all programs share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct HttpsArgs {
    /// File with the CA certificates that https trusts (default: the system's)
    #[arg(long, env = "GRANARY_CA_FILE", value_name = "FILE", global = true)]
    pub ca_file: Option<PathBuf>,
    /// Pin of the daemon's key, such as sha256//47DEQpj8HBSa..., as printed by `granary cert`; it
    /// replaces the CA and the checks of host name and expiry. Several are separated by commas
    #[arg(
        long = "pin",
        env = "GRANARY_PIN",
        value_name = "PIN",
        value_delimiter = ',',
        conflicts_with = "ca_file",
        global = true
    )]
    pub pins: Vec<Pin>,
    /// File with the certificate that the client shows, for servers that require one
    #[arg(
        long,
        env = "GRANARY_CLIENT_CERT_FILE",
        value_name = "FILE",
        requires = "client_key_file",
        global = true
    )]
    pub client_cert_file: Option<PathBuf>,
    /// File with the key of the client's certificate
    #[arg(
        long,
        env = "GRANARY_CLIENT_KEY_FILE",
        value_name = "FILE",
        requires = "client_cert_file",
        global = true
    )]
    pub client_key_file: Option<PathBuf>,
}

impl HttpsArgs {
    /// Returns the settings.
    pub fn settings(&self) -> Https {
        let Self { ca_file, pins, client_cert_file, client_key_file } = self.clone();
        Https { ca_file, pins, client_cert_file, client_key_file, accepts_any_certificate: false }
    }
}

/// The state of a file, which differs after the file was replaced.
pub(crate) type FileState = Option<(SystemTime, u64, u64)>;

/// The client's certificate with its key, which match.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    key_pem: Vec<u8>,
}

impl Https {
    /// Returns a client with this configuration. Reads the files.
    ///
    /// # Errors
    /// A file is unreadable or has the wrong content; the error names the file.
    pub fn agent(&self, config: ConfigBuilder<AgentScope>) -> Result<ureq::Agent, String> {
        if self.pins.is_empty() {
            return Ok(config.tls_config(self.tls_config()?).build().new_agent());
        }
        // The order of the library's own connectors.
        let connectors = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
        let connectors = connectors.chain(PinnedConnector::new(Arc::new(self.pinned_config()?)));
        let config = config.https_only(true).build();
        Ok(ureq::Agent::with_parts(config, connectors, DefaultResolver::default()))
    }

    /// Returns the configuration of the library's own TLS.
    fn tls_config(&self) -> Result<TlsConfig, String> {
        let roots = match &self.ca_file {
            None => RootCerts::PlatformVerifier,
            Some(file) => read_roots(file)?,
        };
        let identity = self.identity()?.map(|identity| {
            let chain: Vec<_> = identity.chain.iter().map(|der| owned(der)).collect();
            let key = PrivateKey::from_pem(&identity.key_pem);
            key.map(|key| ClientCert::new_with_certs(&chain, key))
                .map_err(|cause| cause.to_string())
        });
        Ok(TlsConfig::builder()
            .root_certs(roots)
            .client_cert(identity.transpose()?)
            .disable_verification(self.accepts_any_certificate)
            .build())
    }

    /// Returns the configuration of connections to pinned keys.
    fn pinned_config(&self) -> Result<ClientConfig, String> {
        let provider = provider();
        let verifier = PinnedKeys::new(self.pins.clone(), &provider);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|cause| cause.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        match self.identity()? {
            None => Ok(builder.with_no_client_auth()),
            Some(Identity { chain, key, .. }) => {
                builder.with_client_auth_cert(chain, key).map_err(|cause| cause.to_string())
            }
        }
    }

    /// Reads the client's certificate and key.
    fn identity(&self) -> Result<Option<Identity>, String> {
        let (Some(cert_file), Some(key_file)) = (&self.client_cert_file, &self.client_key_file)
        else {
            return Ok(None);
        };
        let (chain, key) = (read_certificates(cert_file)?, read_key(key_file)?);
        // The library panics on a key that does not match.
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider()).map_err(|cause| {
            let (cert, key) = (cert_file.display(), key_file.display());
            format!("{key}: not the key of the certificate in {cert}: {cause}")
        })?;
        Ok(Some(Identity { chain, key, key_pem: read_small(key_file)? }))
    }

    /// Returns the states of the files.
    pub(crate) fn file_states(&self) -> Vec<FileState> {
        let files = [&self.ca_file, &self.client_cert_file, &self.client_key_file];
        files.into_iter().flatten().map(|file| file_state(file)).collect()
    }
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn owned(der: &CertificateDer<'_>) -> Certificate<'static> {
    Certificate::from_der(der).to_owned()
}

/// Reads the authorities of a file. Certificates that cannot be authorities are ignored, because
/// lists of authorities may contain some.
fn read_roots(file: &Path) -> Result<RootCerts, String> {
    let certificates = read_certificates(file)?;
    let (usable, _) =
        RootCertStore::empty().add_parsable_certificates(certificates.iter().cloned());
    if usable == 0 {
        return Err(format!("{}: no certificate of an authority found", file.display()));
    }
    let all: Vec<_> = certificates.iter().map(owned).collect();
    Ok(RootCerts::new_with_certs(&all))
}

fn file_state(file: &Path) -> FileState {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/tls").join(name)
    }

    fn outcome(https: &Https) -> Result<(), String> {
        https.agent(ureq::Agent::config_builder()).map(drop)
    }

    /// Regression: the HTTP library panicked at the first connection.
    #[test]
    fn a_key_that_does_not_match_the_certificate_is_an_error() {
        for pins in [vec![], vec![Pin::of_key(b"")]] {
            let of = |cert: &str| Https {
                client_cert_file: Some(file(cert)),
                client_key_file: Some(file("server.key")),
                pins: pins.clone(),
                ..Https::default()
            };
            assert_eq!(outcome(&of("server.pem")), Ok(()));
            let error = outcome(&of("authority.pem")).unwrap_err();
            assert!(error.contains("server.key: not the key of the certificate in "), "{error}");
        }
    }

    #[test]
    fn a_file_without_a_usable_authority_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let https = Https { ca_file: Some(path.clone()), ..Https::default() };
        assert!(outcome(&https).unwrap_err().contains("ca.pem: "), "a missing file");
        std::fs::write(&path, "no certificate").unwrap();
        let error = outcome(&https).unwrap_err();
        assert!(error.contains("ca.pem: no certificate found"), "{error}");
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .unwrap();
        let error = outcome(&https).unwrap_err();
        assert!(error.contains("ca.pem: no certificate of an authority found"), "{error}");
        let ca_file = Some(file("authority.pem"));
        assert_eq!(outcome(&Https { ca_file, ..Https::default() }), Ok(()));
        assert_eq!(outcome(&Https::default()), Ok(()));
    }
}
