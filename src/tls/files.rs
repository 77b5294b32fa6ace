//! The files of a certificate, its key and the authorities of clients.
//!
//! Must never know: when the files are read again.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use granary_https::Certificate;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    version::{TLS12, TLS13},
};

use crate::model::UnixMillis;

/// The maximum size of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of certificates in a chain.
const CHAIN_MAX: usize = 16;
/// The only protocol above TLS; HTTP/2 would need limits that the HTTP library lacks.
const HTTP_1_1: &[u8] = b"http/1.1";

/// The paths of the files, all in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the daemon, and the certificates between it and its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities of clients' certificates.
    pub client_ca: Option<PathBuf>,
}

/// The state of the files on the disk, which differs after each change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions(Vec<Option<[i64; 5]>>);

/// A configuration that accepts connections.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// The configuration that accepts clients with and without a certificate.
    pub config: Arc<ServerConfig>,
    /// The configuration for protocols without other credentials: clients must have a certificate
    /// if there are authorities for them.
    pub strict: Arc<ServerConfig>,
    /// The end of validity of the certificate that expires first in the chain.
    pub expires: UnixMillis,
}

/// The reason why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// A file cannot be read.
    #[error("read the {purpose} file {path}: {remedy}", path = .path.display())]
    Read {
        /// The content of the file.
        purpose: &'static str,
        /// The file.
        path: PathBuf,
        /// The next step of the operator.
        remedy: &'static str,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A file has the wrong content.
    #[error("the {purpose} file {path}: {problem}", path = .path.display())]
    Content {
        /// The content that the file should have.
        purpose: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// The library cannot be set up.
    #[error("set up TLS")]
    Library(#[source] rustls::Error),
}

impl TlsFiles {
    /// Returns the current state of the files.
    pub fn versions(&self) -> Versions {
        let paths = [&self.certificate, &self.key].into_iter().chain(&self.client_ca);
        let version = |path: &PathBuf| {
            let found = fs::metadata(path).ok()?;
            let inode = found.ino() as i64;
            Some([inode, found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()])
        };
        Versions(paths.map(version).collect())
    }

    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or has the wrong content, or the key is not the certificate's.
    pub fn read(&self) -> Result<ServerTls, TlsFault> {
        let chain = read_certificates("certificate", &self.certificate)?;
        if chain.len() > CHAIN_MAX {
            let problem = format!(
                "contains {} certificates; keep the certificate of this daemon and those up to \
                 its authority, at most {CHAIN_MAX}",
                chain.len()
            );
            return Err(content("certificate", &self.certificate, problem));
        }
        let expires = chain.iter().map(|certificate| expiry(certificate)).min().flatten();
        let expires = expires.ok_or_else(|| {
            let problem = "a certificate is damaged: its time of expiry cannot be read";
            content("certificate", &self.certificate, problem.to_owned())
        })?;
        let key = read_key(&self.key)?;
        let authorities = self.client_ca.as_deref().map(roots).transpose()?;
        let config = |is_strict| self.config(&chain, &key, authorities.as_ref(), is_strict);
        Ok(ServerTls { config: config(false)?, strict: config(true)?, expires })
    }

    fn config(
        &self,
        chain: &[CertificateDer<'static>],
        key: &PrivateKeyDer<'static>,
        authorities: Option<&Arc<RootCertStore>>,
        is_strict: bool,
    ) -> Result<Arc<ServerConfig>, TlsFault> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(TlsFault::Library)?;
        let builder = match (&self.client_ca, authorities) {
            (Some(path), Some(roots)) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider);
                let verifier = if is_strict { verifier } else { verifier.allow_unauthenticated() };
                let verifier = verifier
                    .build()
                    .map_err(|cause| content("client CA", path, cause.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(chain.to_vec(), key.clone_key())
            .map_err(|cause| self.not_a_pair(&cause))?;
        if !is_strict {
            config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        }
        // The keys of tickets are new in each configuration, so no session outlives a change of the
        // authorities. Tickets replace the list of sessions, which is limited to 256.
        config.ticketer = ring::Ticketer::new().map_err(TlsFault::Library)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    fn not_a_pair(&self, cause: &rustls::Error) -> TlsFault {
        let certificate = self.certificate.display();
        let problem = if matches!(cause, rustls::Error::InconsistentKeys(_)) {
            format!("is not the key of the certificate {certificate}; replace both files")
        } else {
            format!("cannot be used with the certificate {certificate}: {cause}")
        };
        content("key", &self.key, problem)
    }
}

fn content(purpose: &'static str, path: &Path, problem: String) -> TlsFault {
    TlsFault::Content { purpose, path: path.to_owned(), problem }
}

fn read_file(purpose: &'static str, path: &Path) -> Result<Vec<u8>, TlsFault> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|cause: io::Error| {
        let remedies = [
            (io::ErrorKind::NotFound, "the file does not exist; correct the path"),
            (
                io::ErrorKind::PermissionDenied,
                "let the daemon's user read the file, and enter its folder",
            ),
        ];
        let known = remedies.iter().find(|(kind, _)| *kind == cause.kind());
        let remedy = known.map_or("correct the path", |(_, remedy)| *remedy);
        TlsFault::Read { purpose, path: path.to_owned(), remedy, cause }
    })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let problem = format!("is larger than {FILE_BYTES_MAX} bytes; use a file in PEM");
        return Err(content(purpose, path, problem));
    }
    Ok(bytes)
}

/// Returns the end of validity of a certificate in DER; `None` if it cannot be read.
fn expiry(certificate: &[u8]) -> Option<UnixMillis> {
    let seconds = Certificate::read(certificate)?.not_after;
    Some(UnixMillis(i64::try_from(seconds).ok()?.saturating_mul(1000)))
}

/// Reads at least one certificate.
fn read_certificates(
    purpose: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let bytes = read_file(purpose, path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let read = read.and_then(|certificates| match certificates.len() {
        0 => Err(pem::Error::NoItemsFound),
        _ => Ok(certificates),
    });
    read.map_err(|cause| content(purpose, path, not_pem("certificate", "CERTIFICATE", &cause)))
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    const PURPOSE: &str = "key";
    let bytes = read_file(PURPOSE, path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|cause| {
        let is_encrypted = bytes.windows(9).any(|word| word == b"ENCRYPTED");
        let problem = if is_encrypted {
            "the key is encrypted; decrypt it with openssl pkey, and let only the daemon's user \
             read it"
                .to_owned()
        } else {
            not_pem("private key", "PRIVATE KEY", &cause)
        };
        content(PURPOSE, path, problem)
    })
}

/// Describes a fault without the bytes of the file, which may be a secret.
fn not_pem(noun: &str, mark: &str, cause: &pem::Error) -> String {
    if matches!(cause, pem::Error::NoItemsFound) {
        return format!(
            "contains no {noun}; use a file in PEM with the line -----BEGIN {mark}-----"
        );
    }
    let fault = if matches!(cause, pem::Error::MissingSectionEnd { .. }) {
        "a section has no END line"
    } else if matches!(cause, pem::Error::Base64Decode(_)) {
        "a section is not base64"
    } else {
        "a BEGIN line is damaged"
    };
    format!("is not PEM: {fault}; copy the file again")
}

fn roots(path: &Path) -> Result<Arc<RootCertStore>, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates("client CA", path)? {
        roots.add(certificate).map_err(|cause| {
            let problem = format!("a certificate cannot be used as an authority: {cause}");
            content("client CA", path, problem)
        })?;
    }
    Ok(Arc::new(roots))
}

#[cfg(test)]
mod tests;
