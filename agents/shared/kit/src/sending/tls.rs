//! TLS settings: trusted authorities, client certificates and keys from files.
//!
//! Must never know: which server is contacted.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The maximum size of a file with keys, certificates, secrets or settings.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The files of a TLS client.
#[derive(Debug, Clone, Copy, Default)]
pub struct TlsFiles<'a> {
    /// Certificates of the trusted authorities (default: the system's).
    pub ca: Option<&'a Path>,
    /// The client's certificates.
    pub cert: Option<&'a Path>,
    /// The key of the client's certificates.
    pub key: Option<&'a Path>,
    /// True to accept any certificate of the server.
    pub accepts_any_certificate: bool,
}

impl TlsFiles<'_> {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is unreadable or has the wrong content; the error names the file.
    pub fn read(&self) -> Result<TlsConfig, String> {
        let roots = match self.ca {
            None => RootCerts::PlatformVerifier,
            Some(file) => RootCerts::new_with_certs(&read_certificates(file)?),
        };
        let client = match (self.cert, self.key) {
            (Some(cert), Some(key)) => {
                let error = |cause: ureq::Error| format!("{}: {cause}", key.display());
                let key = PrivateKey::from_pem(&read_small(key)?).map_err(error)?;
                Some(ClientCert::new_with_certs(&read_certificates(cert)?, key))
            }
            _ => None,
        };
        Ok(TlsConfig::builder()
            .root_certs(roots)
            .client_cert(client)
            .disable_verification(self.accepts_any_certificate)
            .build())
    }
}

fn read_certificates(file: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let bytes = read_small(file)?;
    let mut all = Vec::new();
    for item in parse_pem(&bytes) {
        let item = item.map_err(|cause| format!("{}: {cause}", file.display()))?;
        if let PemItem::Certificate(certificate) = item {
            all.push(certificate);
        }
    }
    if all.is_empty() {
        return Err(format!("{}: no certificate found", file.display()));
    }
    Ok(all)
}

/// Reads a file of keys, certificates, secrets or settings, up to a limit.
///
/// # Errors
/// The file is unreadable or too long; the error names the file.
pub fn read_small(file: &Path) -> Result<Vec<u8>, String> {
    let error = |cause: io::Error| format!("{}: {cause}", file.display());
    let mut bytes = Vec::new();
    let open = fs::File::open(file).map_err(error)?;
    open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(error)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("{}: more than {FILE_BYTES_MAX} bytes", file.display()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let read = |path: &Path| TlsFiles { ca: Some(path), ..TlsFiles::default() }.read();
        assert!(read(&path).unwrap_err().contains("ca.pem"));
        fs::write(&path, "no certificate").unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.contains("ca.pem: no certificate found"), "{error}");
        assert!(TlsFiles::default().read().is_ok());
    }
}
